//! Captures: packets as pcapng.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::Time;

/// Bytes per write.
const PIECE: usize = 64 << 10;

/// Block types (draft-ietf-opsawg-pcapng, section 11.1).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// The byte-order magic (section 4.1).
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Options (sections 3.5, 4.1, 4.2 and 4.3).
const END: u16 = 0;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
/// Link types of packets that begin with an IP header, and with one of version 4. Of a file with
/// several interfaces libpcap accepts the second alone (it compares the number of the first with
/// its own, which is another).
const RAW: u16 = 101;
const IPV4: u16 = 228;

/// A packet at a place that is captured.
#[derive(Clone, Copy, Debug)]
pub struct CaptureRecord<'a> {
    /// Time of capture.
    pub at: Time,
    /// Index of the capture, in the order in which they were requested.
    pub capture: usize,
    /// Index of the interface in the capture.
    pub interface: u32,
    /// The first bytes of the packet, from the IP header on.
    pub bytes: &'a [u8],
    /// Length of the packet, bytes.
    pub length: u32,
    /// The direction at a host: `true` for a packet that arrives, `false` for one that leaves;
    /// `None` on links.
    pub inbound: Option<bool>,
    /// A comment on the packet, such as the reason of its drop.
    pub comment: Option<&'a str>,
}

/// The destination of captured packets; those of one capture come in order of time.
pub trait CaptureSink: fmt::Debug {
    /// Takes a packet; may break the run off.
    fn record(&mut self, record: &CaptureRecord<'_>) -> ControlFlow<()>;
}

/// Writes a capture as pcapng (draft-ietf-opsawg-pcapng), little endian, with times to the
/// nanosecond. Time 0 of a run is the epoch. A packet has its comment and direction as options.
#[derive(Debug)]
pub struct PcapNg<W> {
    out: W,
    piece: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> PcapNg<W> {
    /// A file with these interfaces, names and descriptions, whose packets have at most `snaplen`
    /// bytes.
    pub fn new(out: W, interfaces: &[(&str, &str)], snaplen: u32) -> PcapNg<W> {
        let mut piece = Vec::with_capacity(2 * PIECE);
        block(&mut piece, SECTION_HEADER, |body| {
            body.extend(BYTE_ORDER.to_le_bytes());
            body.extend([1, 0, 0, 0]);
            // The length of the section is not said.
            body.extend([0xff; 8]);
            option(body, APPLICATION, b"ackclock");
            option(body, END, b"");
        });
        let link_type = if interfaces.len() > 1 { IPV4 } else { RAW };
        for (name, description) in interfaces {
            block(&mut piece, INTERFACE_DESCRIPTION, |body| {
                body.extend(link_type.to_le_bytes());
                body.extend([0, 0]);
                body.extend(snaplen.to_le_bytes());
                option(body, NAME, name.as_bytes());
                option(body, DESCRIPTION, description.as_bytes());
                option(body, RESOLUTION, &[9]);
                option(body, END, b"");
            });
        }
        PcapNg { out, piece, error: None }
    }

    /// Writes a packet; breaks off once the writer has failed.
    pub fn add(&mut self, record: &CaptureRecord<'_>) -> ControlFlow<()> {
        let nanos = record.at.as_nanos();
        block(&mut self.piece, ENHANCED_PACKET, |body| {
            let [high, low] = [(nanos >> 32) as u32, nanos as u32];
            for word in [record.interface, high, low, record.bytes.len() as u32, record.length] {
                body.extend(word.to_le_bytes());
            }
            padded(body, record.bytes);
            if let Some(comment) = record.comment {
                option(body, COMMENT, comment.as_bytes());
            }
            if let Some(inbound) = record.inbound {
                option(body, FLAGS, &if inbound { 1u32 } else { 2 }.to_le_bytes());
            }
            if record.comment.is_some() || record.inbound.is_some() {
                option(body, END, b"");
            }
        });
        if self.piece.len() >= PIECE {
            self.hand_on();
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_on();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    fn hand_on(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.piece).err();
        }
        self.piece.clear();
    }
}

/// A block: its length stands before and behind it.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let length = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // An option has 16 bits for its length; names and comments are far shorter.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    padded(out, value);
}

/// Bytes, and as many zeros as make it words.
fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes);
    out.extend(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_draft() {
        let mut capture = PcapNg::new(Vec::new(), &[("wire", "before")], 96);
        let record = CaptureRecord {
            at: Time::from_nanos((1 << 32) + 7),
            capture: 0,
            interface: 0,
            bytes: &[1, 2, 3, 4, 5],
            length: 1500,
            inbound: Some(false),
            comment: Some("lost"),
        };
        assert!(capture.add(&record).is_continue());
        assert!(capture.add(&CaptureRecord { inbound: None, comment: None, ..record }).is_continue());
        let bytes = capture.finish().unwrap();
        let words: Vec<u32> = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        let of = |first: u16, second: u16| u32::from(first) | u32::from(second) << 16;
        let text = |text: &[u8; 4]| u32::from_le_bytes(*text);
        let section = [
            SECTION_HEADER,
            44,
            BYTE_ORDER,
            1,
            u32::MAX,
            u32::MAX,
            of(APPLICATION, 8),
            text(b"ackc"),
            text(b"lock"),
            0,
            44,
        ];
        assert_eq!(words[..11], section);
        let interface = [
            INTERFACE_DESCRIPTION,
            52,
            of(RAW, 0),
            96,
            of(NAME, 4),
            text(b"wire"),
            of(DESCRIPTION, 6),
            text(b"befo"),
            text(b"re\0\0"),
            of(RESOLUTION, 1),
            9,
            0,
            52,
        ];
        assert_eq!(words[11..24], interface);
        let packet = [
            ENHANCED_PACKET,
            60,
            0,
            1,
            7,
            5,
            1500,
            0x0403_0201,
            5,
            of(COMMENT, 4),
            text(b"lost"),
            of(FLAGS, 4),
            2,
            0,
            60,
        ];
        assert_eq!(words[24..39], packet);
        assert_eq!(words[39..], [ENHANCED_PACKET, 40, 0, 1, 7, 5, 1500, 0x0403_0201, 5, 40]);
    }
}
