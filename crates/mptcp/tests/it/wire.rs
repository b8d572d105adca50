//! A server and a peer that is played by hand: what single segments do.

use std::net::IpAddr;

use ackclock_cc::{CongestionControl, NewReno, NewRenoConfig};
use ackclock_mptcp::{Connection, MptcpConfig, Path, keys};
use ackclock_packet::{AddAddress, Capable, DataNumber, Dss, Flags, Mapping, MptcpOption, Payload, Segment};
use ackclock_tcp::{Config, DelayedAck, Ports};
use ackclock_units::{Ecn, Random, Time};

const PEER_KEY: u64 = 2;
/// MP_TCPRST: no reason given, and that of MPTCP itself (IANA registry).
const UNSPECIFIED: u8 = 0;
const MPTCP_SPECIFIC: u8 = 1;

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn capable(keys: [Option<u64>; 2]) -> MptcpOption {
    let [sender_key, receiver_key] = keys;
    MptcpOption::Capable(Capable { version: 1, hmac_sha256: true, sender_key, receiver_key, ..Capable::default() })
}

/// A number of the peer's data sequence space; its first byte is 1.
fn number(count: u64) -> u64 {
    keys::initial_sequence(PEER_KEY).wrapping_add(count)
}

struct Server {
    connection: Connection,
    /// The key of the server, and the initial sequence number of its initial subflow.
    key: u64,
    isn: u32,
}

impl Server {
    /// It has answered a SYN with MP_CAPABLE.
    fn asked() -> Server {
        let path = Path { local: address(1), remote: address(101), backup: false };
        let config = MptcpConfig { paths: vec![path], foreign_peer: true, ..MptcpConfig::default() };
        let newreno = |_| -> Box<dyn CongestionControl> { Box::new(NewReno::new(NewRenoConfig::default())) };
        let ports = Ports { local: 80, remote: 5000 };
        let random = Random::for_component(1, 0, "server");
        let delayed_ack = DelayedAck { segments: 1, ..DelayedAck::default() };
        let tcp = Config { timestamps: false, sack: false, delayed_ack, ..Config::default() };
        let mut connection = Connection::new(config, tcp, Box::new(newreno), ports, random);
        connection.listen();
        let mut server = Server { connection, key: 0, isn: 0 };
        let syn = Segment { flags: Flags::SYN, ..server.segment(0) };
        let answer = server.sent(0, with(syn, &[capable([None; 2])]))[0];
        let Some(MptcpOption::Capable(Capable { sender_key: Some(key), .. })) = answer.mptcp.iter().next() else {
            panic!("{answer:?}");
        };
        (server.key, server.isn) = (key, answer.seq);
        server
    }

    /// Its connection is open, and both ends have both keys.
    fn open() -> Server {
        let mut server = Server::asked();
        let third = with(server.segment(1), &[capable([Some(PEER_KEY), Some(server.key)])]);
        server.sent(0, third);
        assert!(server.connection.is_multipath());
        server
    }

    /// A segment of the peer on the initial subflow that acknowledges the SYN.
    fn segment(&self, seq: u32) -> Segment {
        Segment {
            source_port: 5000,
            destination_port: 80,
            seq,
            ack: self.isn.wrapping_add(1),
            flags: Flags::ACK,
            window: 1000,
            ..Segment::default()
        }
    }

    /// The same with `len` bytes from the start of the subflow on.
    fn data(&self, at: u32, len: u32) -> Segment {
        Segment { payload: Payload { offset: at.into(), len }, ..self.segment(1 + at) }
    }

    /// The segments sent in response to a segment.
    fn sent(&mut self, path: usize, segment: Segment) -> Vec<Segment> {
        self.connection.input(Time::ZERO, path, &segment, Ecn::NotEct);
        self.flush()
    }

    fn flush(&mut self) -> Vec<Segment> {
        let mut out = Segment::default();
        let mut all = Vec::new();
        while self.connection.transmit(Time::ZERO, &mut out).is_some() {
            all.push(out);
        }
        all
    }

    /// A further subflow from port 6000 between these addresses.
    fn join(&mut self, local: u8, remote: u8, token: u32) -> (usize, Vec<Segment>) {
        let new = Path { local: address(local), remote: address(remote), backup: false };
        let path = self.connection.add_path(new).expect("there is room");
        let syn = Segment { flags: Flags::SYN, source_port: 6000, ack: 0, ..self.segment(0) };
        let option = MptcpOption::JoinSyn { backup: false, address_id: 1, token, nonce: 42 };
        (path, self.sent(path, with(syn, &[option])))
    }

    /// The same, open; the segment that the peer sends next on it, and its path.
    fn joined(&mut self) -> (usize, Segment) {
        let (path, answers) = self.join(1, 102, self.connection.token());
        let Some(MptcpOption::JoinSynAck { nonce, .. }) = answers[0].mptcp.iter().next() else {
            panic!("{answers:?}");
        };
        let hmac = keys::join_hmac([PEER_KEY, self.key], [42, nonce]);
        let next = Segment { source_port: 6000, ack: answers[0].seq.wrapping_add(1), ..self.segment(1) };
        self.sent(path, with(next, &[MptcpOption::JoinAck { hmac }]));
        assert!(self.connection.subflows()[1].is_open());
        (path, next)
    }
}

fn with(segment: Segment, options: &[MptcpOption]) -> Segment {
    let mut segment = segment;
    options.iter().for_each(|option| assert!(segment.mptcp.push(option)));
    segment
}

/// DSS with a mapping.
fn mapped(sequence: DataNumber, subflow_sequence: u32, len: u16) -> MptcpOption {
    MptcpOption::Dss(Dss {
        mapping: Some(Mapping { sequence, subflow_sequence, len, checksum: None }),
        ..Dss::default()
    })
}

/// The data acknowledgment of the last segment.
fn acknowledged(sent: &[Segment]) -> Option<DataNumber> {
    sent.last()?.mptcp.dss()?.ack
}

fn options(segment: &Segment) -> Vec<MptcpOption> {
    segment.mptcp.iter().collect()
}

#[test]
fn a_third_packet_of_another_version_is_plain_tcp() {
    let mut server = Server::asked();
    let old = Capable { version: 0, hmac_sha256: true, ..Capable::default() };
    let old = Capable { sender_key: Some(PEER_KEY), receiver_key: Some(server.key), ..old };
    let third = with(server.segment(1), &[MptcpOption::Capable(old)]);
    server.sent(0, third);
    assert!(server.connection.is_plain());
}

#[test]
fn a_mapping_of_nothing_is_no_fallback() {
    let mut server = Server::open();
    let nothing = with(server.segment(1), &[mapped(DataNumber::Long(number(1)), 1, 0)]);
    server.sent(0, nothing);
    assert!(server.connection.is_multipath());
    // With data it is an infinite one.
    let infinite = with(server.data(0, 10), &[mapped(DataNumber::Long(number(1)), 1, 0)]);
    server.sent(0, infinite);
    assert!(server.connection.is_plain());
}

#[test]
fn acknowledgments_have_the_length_of_the_last_number_of_data() {
    let mut server = Server::open();
    let long = with(server.data(0, 10), &[mapped(DataNumber::Long(number(1)), 1, 10)]);
    assert_eq!(acknowledged(&server.sent(0, long)), Some(DataNumber::Long(number(11))));
    let short = with(server.data(10, 10), &[mapped(DataNumber::Short(number(11) as u32), 11, 10)]);
    assert_eq!(acknowledged(&server.sent(0, short)), Some(DataNumber::Short(number(21) as u32)));
    // DATA_FIN alone is no data.
    let mapping = Mapping { sequence: DataNumber::Long(number(21)), subflow_sequence: 0, len: 1, checksum: None };
    let fin = MptcpOption::Dss(Dss { mapping: Some(mapping), fin: true, ..Dss::default() });
    let fin = with(server.segment(21), &[fin]);
    assert_eq!(acknowledged(&server.sent(0, fin)), Some(DataNumber::Short(number(22) as u32)));
}

#[test]
fn the_first_data_is_mapped_whichever_keys_it_repeats() {
    let mut server = Server::open();
    let repeated = Capable { sender_key: Some(server.key), receiver_key: Some(PEER_KEY), ..Capable::default() };
    let repeated = Capable { version: 1, hmac_sha256: true, data_len: Some(2), ..repeated };
    let first = with(server.data(0, 2), &[MptcpOption::Capable(repeated)]);
    assert_eq!(acknowledged(&server.sent(0, first)), Some(DataNumber::Long(number(3))));
    assert_eq!(server.connection.unread(), 2);
}

#[test]
fn a_reset_that_tcp_does_not_believe_closes_nothing() {
    let mut server = Server::open();
    let (path, next) = server.joined();
    let close = [MptcpOption::FastClose { key: server.key }];
    let reset = Segment { flags: Flags::RST | Flags::ACK, ..next };
    server.sent(path, with(Segment { seq: 2001, ..reset }, &close));
    assert_eq!((server.connection.error(), server.connection.is_open()), (None, true));
    let sent = server.sent(path, with(reset, &close));
    assert!(server.connection.error().is_some() && !server.connection.is_open());
    // The other subflow is reset, and it is not to be tried again.
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(options(&sent[0]), [MptcpOption::Reset { transient: false, reason: UNSPECIFIED }]);
}

#[test]
fn nothing_is_left_after_a_fast_close() {
    let mut server = Server::open();
    let close = with(server.segment(1), &[MptcpOption::FastClose { key: server.key }]);
    let sent = server.sent(0, close);
    assert!(sent[0].flags.contains(Flags::RST), "{sent:?}");
    assert_eq!(options(&sent[0]), [MptcpOption::Reset { transient: false, reason: UNSPECIFIED }]);
    let late = with(server.data(0, 10), &[mapped(DataNumber::Long(number(1)), 1, 10)]);
    let sent = server.sent(0, late);
    assert!(sent[0].flags.contains(Flags::RST) && sent[0].mptcp.is_empty(), "{sent:?}");
}

#[test]
fn a_token_of_nobody_is_refused() {
    let mut server = Server::open();
    let wrong = server.connection.token().wrapping_add(1);
    let (_, sent) = server.join(1, 102, wrong);
    assert!(sent[0].flags.contains(Flags::RST), "{sent:?}");
    assert_eq!(options(&sent[0]), [MptcpOption::Reset { transient: false, reason: MPTCP_SPECIFIC }]);
}

#[test]
fn who_does_not_know_the_keys_is_reset_once() {
    let mut server = Server::open();
    let token = server.connection.token();
    let (path, answers) = server.join(1, 102, token);
    let third = Segment { source_port: 6000, ack: answers[0].seq.wrapping_add(1), ..server.segment(1) };
    let sent = server.sent(path, with(third, &[MptcpOption::JoinAck { hmac: [0; 20] }]));
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].flags.contains(Flags::RST));
    assert_eq!(options(&sent[0]), [MptcpOption::Reset { transient: false, reason: MPTCP_SPECIFIC }]);
}

#[test]
fn no_segment_is_too_long_whatever_it_acknowledges() {
    let mut server = Server::open();
    server.connection.write(Time::ZERO, 10_000);
    let mut sent = server.flush();
    let long = with(server.data(0, 10), &[mapped(DataNumber::Long(number(1)), 1, 10)]);
    let acked = sent.last().map_or(0, |last| last.seq.wrapping_add(last.payload.len));
    let ack = DataNumber::Long(keys::initial_sequence(server.key).wrapping_add(10_001));
    let ack = MptcpOption::Dss(Dss { ack: Some(ack), ..Dss::default() });
    server.sent(0, long);
    server.sent(0, with(Segment { ack: acked, ..server.segment(11) }, &[ack]));
    server.connection.write(Time::ZERO, 10_000);
    sent.extend(server.flush());
    // The peer has announced no MSS: 536 bytes of TCP payload and options (RFC 9293 section 3.7.1).
    let most = sent.iter().map(|segment| segment.payload.len + segment.header_len() - 20).max();
    assert_eq!(most, Some(536));
}

#[test]
fn an_address_has_one_number() {
    let mut server = Server::open();
    // A second address of ours is announced, before DSS.
    let second = Path { local: address(2), remote: address(101), backup: false };
    let path = server.connection.add_path(second).expect("there is room");
    server.connection.restore_path(Time::ZERO, path);
    let sent = server.flush();
    let [MptcpOption::AddAddress(AddAddress { id: 1, address: announced, .. }), MptcpOption::Dss(_)] =
        options(&sent[0])[..]
    else {
        panic!("{sent:?}");
    };
    assert_eq!(announced, address(2));
    // Subflows to it and to the first one have these numbers, wherever they come from.
    for (local, remote, id) in [(2, 102, 1), (1, 103, 0)] {
        let token = server.connection.token();
        let (_, sent) = server.join(local, remote, token);
        let Some(MptcpOption::JoinSynAck { address_id, .. }) = sent[0].mptcp.iter().next() else {
            panic!("{sent:?}");
        };
        assert_eq!(address_id, id);
    }
}
