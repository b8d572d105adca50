//! A handshake and packet protection without cryptography, for simulations.
//!
//! The messages are those of TLS 1.3 with one certificate of 800 bytes, in number, direction and
//! length; of their contents only the transport parameters are real. Packets have a tag of 16
//! bytes, as with AES-128-GCM, which contains packet number and key: a packet is accepted only with
//! the key that it was sent with. Contents are not protected; the checksums of UDP find damage.
//!
//! # Source
//! RFC 9001: the order of keys (section 4), tags and header protection (section 5). Message lengths
//! of RFC 8446: ClientHello and ServerHello with X25519 and one cipher suite; Certificate,
//! CertificateVerify and Finished with ECDSA P-256 and SHA-256.
//!
//! # Departures
//! - No Retry packets, no export of keys.
//! - A ticket for 0-RTT (RFC 9001 section 4.6) is what the client remembers of an earlier connection:
//!   no message carries it, and every server accepts it. Handshakes that resume have no certificate.
//!
//! As `host.rs`, the file is compiled for each implementation.

use std::any::Any;

use bytes::BytesMut;

use super::proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair, Keys, PacketKey, Session,
};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{Side, TransportError, TransportErrorCode};
use super::{Cid, error};
use crate::wire::TAG;

/// Lengths of handshake messages, transport parameters included where a message has them.
const CLIENT_HELLO: usize = 280;
const SERVER_HELLO: usize = 90;
/// EncryptedExtensions, Certificate, CertificateVerify, Finished.
const SERVER_FLIGHT: usize = 1080;
/// With a ticket of 180 bytes, its binder and the offer of early data; and without certificate.
const RESUMING_HELLO: usize = 510;
const RESUMED_FLIGHT: usize = 130;
const CLIENT_FINISHED: usize = 36;

/// Encryption levels, in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Initial,
    /// Data of a client that resumes (0-RTT).
    Early,
    Handshake,
    /// The generation of a key update.
    OneRtt(u32),
}

/// The key of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    sender: Side,
    level: Level,
}

impl Key {
    /// The limits of AES-128-GCM (RFC 9001 section 6.6).
    pub(super) const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
    pub(super) const INTEGRITY_LIMIT: u64 = 1 << 52;

    fn tag(self, packet: u64) -> [u8; TAG] {
        let (level, generation) = match self.level {
            Level::Initial => (0, 0),
            Level::Handshake => (1, 0),
            Level::OneRtt(generation) => (2, generation),
            Level::Early => (3, 0),
        };
        let mut tag = [0; TAG];
        tag[..8].copy_from_slice(&packet.to_be_bytes());
        tag[8..12].copy_from_slice(&generation.to_be_bytes());
        tag[12] = level;
        tag[13] = u8::from(self.sender == Side::Client);
        tag
    }

    /// Writes the tag of a packet at its end (RFC 9001 section 5.3).
    pub(super) fn append(self, packet: u64, buf: &mut [u8]) {
        let at = buf.len() - TAG;
        buf[at..].copy_from_slice(&self.tag(packet));
    }

    /// Removes the tag of a packet, if it is this key's.
    pub(super) fn remove(self, packet: u64, payload: &mut BytesMut) -> Result<(), CryptoError> {
        let at = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[at..] != self.tag(packet) {
            return Err(CryptoError);
        }
        payload.truncate(at);
        Ok(())
    }
}

impl HeaderKey for Key {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        16
    }
}

pub(super) fn keys(side: Side, level: Level) -> Keys {
    let pair = packet_keys(side, level);
    let [local, remote] = [side, !side].map(|sender| Box::new(Key { sender, level }) as Box<dyn HeaderKey>);
    Keys { header: KeyPair { local, remote }, packet: pair }
}

fn packet_keys(side: Side, level: Level) -> KeyPair<Box<dyn PacketKey>> {
    let [local, remote] = [side, !side].map(|sender| Box::new(Key { sender, level }) as Box<dyn PacketKey>);
    KeyPair { local, remote }
}

/// The next step of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client sends its hello.
    ClientHello,
    /// The server waits for it.
    AwaitClientHello,
    /// The server sends its hello and gets the keys of the handshake.
    ServerHello,
    /// The client waits for it.
    AwaitServerHello,
    /// The client gets the keys of the handshake.
    ClientKeys,
    /// The server sends the rest of its flight and gets the keys of data.
    ServerFlight,
    /// The client waits for it.
    AwaitServerFlight,
    /// The client sends its last message and gets the keys of data.
    ClientFinished,
    /// The server waits for it.
    AwaitClientFinished,
    Done,
}

/// The handshake of one side.
pub(super) struct Plaintext {
    side: Side,
    step: Step,
    /// The client resumes an earlier connection.
    resumes: bool,
    /// Encoded parameters of this side.
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Bytes of a message that has not arrived as a whole.
    pending: Vec<u8>,
    generation: u32,
}

impl Plaintext {
    pub(super) fn new(side: Side, params: &TransportParameters) -> Plaintext {
        let mut own = Vec::new();
        params.write(&mut own);
        let step = match side {
            Side::Client => Step::ClientHello,
            Side::Server => Step::AwaitClientHello,
        };
        Plaintext { side, step, resumes: false, own, peer: None, pending: Vec::new(), generation: 0 }
    }

    /// Of a client that remembers these parameters of the server.
    pub(super) fn resumed(params: &TransportParameters, remembered: TransportParameters) -> Plaintext {
        Plaintext { resumes: true, peer: Some(remembered), ..Plaintext::new(Side::Client, params) }
    }

    /// Writes a message of at least `len` bytes: two bytes with the length of `contents`, these, a byte
    /// that is 1 if the connection resumes another, and padding; the message's own length stands before.
    fn write(&self, buf: &mut Vec<u8>, len: usize, contents: &[u8]) {
        let len = len.max(5 + contents.len());
        for length in [len, contents.len()] {
            buf.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
        buf.extend(contents);
        buf.push(self.resumes.into());
        buf.resize(buf.len() + len - 5 - contents.len(), 0);
    }

    /// The contents of the next whole message.
    fn read(&mut self) -> Option<Vec<u8>> {
        let length = |at| Some(usize::from(u16::from_be_bytes(*self.pending.get(at..)?.first_chunk()?)));
        let (len, contents) = (length(0)?, length(2)?);
        let message = self.pending.get(..len)?;
        self.resumes |= message.get(4 + contents) == Some(&1);
        let contents = message.get(4..4 + contents)?.to_vec();
        self.pending.drain(..len);
        Some(contents)
    }

    fn take_parameters(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        self.peer = Some(TransportParameters::read(self.side, &mut &contents[..])?);
        Ok(())
    }
}

impl Session for Plaintext {
    fn initial_keys(&self, _dst_cid: Cid<'_>, side: Side) -> Keys {
        keys(side, Level::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let key = Key { sender: Side::Client, level: Level::Early };
        self.resumes.then(|| (Box::new(key) as Box<dyn HeaderKey>, Box::new(key) as Box<dyn PacketKey>))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.resumes)
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.pending.extend(buf);
        while let Some(contents) = self.read() {
            self.step = match self.step {
                Step::AwaitClientHello => {
                    self.take_parameters(&contents)?;
                    Step::ServerHello
                }
                Step::AwaitServerHello => Step::ClientKeys,
                Step::AwaitServerFlight => {
                    self.take_parameters(&contents)?;
                    Step::ClientFinished
                }
                Step::AwaitClientFinished => Step::Done,
                // The alert of TLS, unexpected_message.
                _ => return Err(error(TransportErrorCode::crypto(10), "a message that is not expected")),
            };
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (next, level) = match self.step {
            Step::ClientHello => {
                self.write(buf, if self.resumes { RESUMING_HELLO } else { CLIENT_HELLO }, &self.own);
                (Step::AwaitServerHello, None)
            }
            Step::ServerHello => {
                self.write(buf, SERVER_HELLO, &[]);
                (Step::ServerFlight, Some(Level::Handshake))
            }
            Step::ClientKeys => (Step::AwaitServerFlight, Some(Level::Handshake)),
            Step::ServerFlight => {
                self.write(buf, if self.resumes { RESUMED_FLIGHT } else { SERVER_FLIGHT }, &self.own);
                (Step::AwaitClientFinished, Some(Level::OneRtt(0)))
            }
            Step::ClientFinished => {
                self.write(buf, CLIENT_FINISHED, &[]);
                (Step::Done, Some(Level::OneRtt(0)))
            }
            step => (step, None),
        };
        self.step = next;
        level.map(|level| keys(self.side, level))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.generation += 1;
        Some(packet_keys(self.side, Level::OneRtt(self.generation)))
    }

    fn is_valid_retry(&self, _orig_dst_cid: Cid<'_>, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// The plaintext handshake and keys of endpoints, for their configurations.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaintextCrypto;

/// The key of stateless resets: a signature is the beginning of what is signed.
impl HmacKey for PlaintextCrypto {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        for (number, byte) in signature_out.iter_mut().enumerate() {
            *byte = data.get(number).copied().unwrap_or(0xa5);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = vec![0; signature.len()];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// The handshake of a client that remembers these parameters of the server.
pub(super) struct Resumption(pub(super) TransportParameters);
