//! A network stack of one's own: a bulk transfer over UDP whose window follows the delay, and the
//! host that acknowledges its datagrams.
//!
//!     cargo run --release --example own_stack -- --scenario crates/cli/examples/own_stack.toml

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::ExitCode;

use ackclock::stack::{Datagram, StackHost, Transport, UdpHost};
use ackclock::units::{Ecn, Span, Time};
use ackclock::{Own, OwnStack};

const PORT: u16 = 4433;
const PAYLOAD: usize = 1200;

/// Sends numbered datagrams, as many as the window allows. Once in a round trip the window grows by
/// one datagram if the queueing delay is below `target`, and shrinks by one if it is above. After
/// a loss it is halved; a second without an acknowledgment sets it back to one datagram.
struct Sender {
    to: SocketAddr,
    target: Span,
    window: f64,
    next: u64,
    /// Datagrams in flight: number and time of sending.
    in_flight: VecDeque<(u64, Time)>,
    shortest: Option<Span>,
    /// Losses before this number belong to a reduction that was made.
    reduced_until: u64,
    acknowledged: u64,
    lost: u64,
    timeout: Time,
}

impl Transport for Sender {
    fn input(&mut self, now: Time, datagram: Datagram<'_>) {
        let Ok(number) = datagram.payload.try_into().map(u64::from_be_bytes) else { return };
        // The path keeps the order: datagrams before the one acknowledged are lost.
        while let Some(&(first, sent)) = self.in_flight.front().filter(|(first, _)| *first <= number) {
            self.in_flight.pop_front();
            if first < number {
                self.lost += 1;
                if first >= self.reduced_until {
                    self.reduced_until = self.next;
                    self.window = (self.window / 2.0).max(1.0);
                }
                continue;
            }
            self.acknowledged += 1;
            let rtt = now.since(sent);
            let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
            self.shortest = Some(shortest);
            let step = if rtt > shortest + self.target { -1.0 } else { 1.0 };
            self.window = (self.window + step / self.window).max(1.0);
        }
        self.timeout = now + Span::from_secs(1);
    }

    fn output(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        if self.in_flight.len() as f64 >= self.window {
            return None;
        }
        payload.extend(self.next.to_be_bytes());
        payload.resize(PAYLOAD, 0);
        self.in_flight.push_back((self.next, now));
        self.next += 1;
        Some((self.to, Ecn::NotEct))
    }

    fn next_deadline(&self) -> Time {
        self.timeout
    }

    fn on_deadline(&mut self, now: Time) {
        self.lost += self.in_flight.len() as u64;
        self.in_flight.clear();
        self.window = 1.0;
        self.timeout = now + Span::from_secs(1);
    }

    fn results(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        see("goodput_bps", (8 * PAYLOAD) as f64 * self.acknowledged as f64 / now.as_secs_f64());
        see("lost_datagrams", self.lost as f64);
        see("window_datagrams", self.window);
    }
}

/// Answers each datagram with its number.
struct Receiver {
    answers: VecDeque<(SocketAddr, [u8; 8])>,
}

impl Transport for Receiver {
    fn input(&mut self, _: Time, datagram: Datagram<'_>) {
        self.answers.extend(datagram.payload.first_chunk().map(|number| (datagram.from, *number)));
    }

    fn output(&mut self, _: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        let (to, number) = self.answers.pop_front()?;
        payload.extend(number);
        Some((to, Ecn::NotEct))
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _: Time) {}
}

/// The socket of a host, and of the first host that a path leads to.
fn sockets(host: &StackHost) -> [SocketAddr; 2] {
    [host.addresses[0], host.neighbours[0].addresses[0]].map(|address| SocketAddr::new(address, PORT))
}

fn main() -> ExitCode {
    let sender = OwnStack::new("delay-sender", |host, values, _| {
        let [local, to] = sockets(host);
        let sender = Sender {
            to,
            target: Span::from_nanos((values[0] * 1e6) as u64),
            window: 2.0,
            next: 0,
            in_flight: VecDeque::new(),
            shortest: None,
            reduced_until: 0,
            acknowledged: 0,
            lost: 0,
            timeout: Time::from_secs(1),
        };
        Box::new(UdpHost::new(local, sender))
    });
    let receiver = OwnStack::new("delay-receiver", |host, _, _| {
        let [local, _] = sockets(host);
        Box::new(UdpHost::new(local, Receiver { answers: VecDeque::new() }))
    });
    ackclock::main_with(Own::new().stack(sender.parameter("target_ms", 10.0, 0.1..=1000.0)).stack(receiver))
}
