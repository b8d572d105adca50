//! Endpoints of ours that have had a connection, and what further ones get.

use super::*;

const CLIENT: u16 = 4000;

/// A bench with our endpoint on the left, which listens, and nobody yet on the right.
fn bench() -> EngineBench {
    let mut spec = spec([false, true], Impairments::default());
    let host = HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    spec.flows.push(flow(HostSpec::Outside, host, [1, 0], None));
    EngineBench::new(&spec, vec![None, None])
}

impl EngineBench {
    /// A client on the right sends a segment, and what comes back until a second later.
    fn say(&mut self, seq: u32, ack: u32, flags: Flags) -> Vec<Segment> {
        let segment = Segment {
            source_port: CLIENT,
            destination_port: PORT,
            seq,
            ack,
            flags,
            window: 1000,
            ..Segment::default()
        };
        let mut packet = [0; 40];
        codec::emit(&segment, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
        self.log.clear();
        self.send(1, &packet);
        let until = self.now + Span::from_millis(900);
        self.run_until(until, |_| false);
        self.now = until;
        self.exchange();
        self.log.iter().filter_map(|(_, _, bytes)| codec::parse(bytes).ok()).map(|parsed| parsed.segment).collect()
    }

    /// A client on the right sends 100 kB, and gets them acknowledged.
    fn serves(&mut self) {
        self.peers[1] = Some(twin(Task::Send(PORT, 100_000)));
        let until = self.now + Span::from_secs(60);
        let acked = |bench: &mut EngineBench| bench.peers[1].as_ref().is_some_and(|peer| peer.acked() == 100_000);
        assert!(self.run_until(until, acked), "{:?}", self.log.len());
        assert_eq!(self.engine.error(), None);
    }

    /// The same, after which the run is over.
    fn serves_to_the_end(&mut self) {
        self.serves();
        let began = self.now;
        let flow = &self.summary().flows[0];
        assert_eq!(flow.progress.delivered_bytes, 100_000);
        // From its own first packet on, not from the first one of another connection.
        assert!(flow.start_s > Some(0.5) && flow.start_s < Some(began.as_secs_f64()), "{flow:?}");
    }
}

#[test]
fn a_client_that_is_reset_in_the_handshake_leaves_the_port_to_the_next() {
    let mut bench = bench();
    let answers = bench.say(17, 0, Flags::SYN);
    assert_eq!(answers[0].flags, Flags::SYN | Flags::ACK);
    bench.say(18, 0, Flags::RST);
    bench.serves_to_the_end();
}

#[test]
fn a_probe_of_the_port_leaves_it_to_the_next() {
    let mut bench = bench();
    let answers = bench.say(17, 0, Flags::SYN);
    let next = answers[0].seq.wrapping_add(1);
    bench.say(18, next, Flags::ACK);
    bench.say(18, next, Flags::ACK | Flags::FIN);
    bench.serves_to_the_end();
}

/// The end of the connection is just ahead of the SYN of the next one.
#[test]
fn the_next_client_may_be_right_behind() {
    let mut bench = bench();
    bench.say(17, 0, Flags::SYN);
    let reset =
        Segment { source_port: CLIENT, destination_port: PORT, seq: 18, flags: Flags::RST, ..Segment::default() };
    let mut packet = [0; 40];
    codec::emit(&reset, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
    bench.send(1, &packet);
    bench.serves_to_the_end();
}

#[test]
fn what_is_no_syn_opens_nothing() {
    let mut bench = bench();
    bench.say(17, 0, Flags::SYN);
    bench.say(18, 0, Flags::RST);
    for flags in [Flags::ACK, Flags::SYN | Flags::ACK, Flags::SYN | Flags::FIN, Flags::SYN | Flags::RST, Flags::NONE] {
        let answers = bench.say(40, 1, flags);
        assert!(answers.iter().all(|answer| answer.flags.contains(Flags::RST)), "{flags:?} {answers:?}");
    }
    bench.serves_to_the_end();
}

#[test]
fn a_connection_that_brought_data_is_the_only_one() {
    let mut bench = bench();
    bench.say(17, 0, Flags::SYN);
    bench.say(18, 0, Flags::RST);
    bench.serves();
    bench.peers[1] = None;
    let answers = bench.say(1017, 0, Flags::SYN);
    assert!(answers.iter().any(|answer| answer.flags == Flags::RST | Flags::ACK && answer.ack == 1018), "{answers:?}");
}

#[test]
fn while_a_client_is_connecting_others_are_reset() {
    let mut bench = bench();
    bench.say(17, 0, Flags::SYN);
    let other =
        Segment { source_port: CLIENT + 1, destination_port: PORT, seq: 5, flags: Flags::SYN, ..Segment::default() };
    let mut packet = [0; 40];
    codec::emit(&other, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
    bench.log.clear();
    bench.send(1, &packet);
    bench.now += Span::from_millis(100);
    bench.exchange();
    let reset = bench.log.iter().filter_map(|(_, _, bytes)| codec::parse(bytes).ok()).map(|parsed| parsed.segment);
    let reset: Vec<Segment> = reset.filter(|segment| segment.destination_port == CLIENT + 1).collect();
    assert_eq!(reset.iter().map(|reset| (reset.flags, reset.ack)).collect::<Vec<_>>(), [(Flags::RST | Flags::ACK, 6)]);
}
