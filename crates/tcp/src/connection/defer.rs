//! TCP_DEFER_ACCEPT: a listening socket does not take a connection up before its first data.
//!
//! The ACK that would complete the handshake is dropped while it comes without data, and so is
//! every further one, until the time is over. Meanwhile no SYN/ACK is repeated. When the timer has
//! run as often as the option's time is long, the SYN/ACK goes out once more, and its answer, with
//! data or without, completes the connection.
//!
//! # Source
//! Linux 6.1 `tcp_check_req` (`net/ipv4/tcp_minisocks.c`), `syn_ack_recalc`, `reqsk_timer_handler`
//! (`inet_connection_sock.c`), `secs_to_retrans`, `retrans_to_secs` (`tcp.c`).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Span, Time};

use crate::Endpoint;

/// Number of expiries that take `time`, for a timer that starts at `first` and doubles up to `most`
/// (Linux `secs_to_retrans`): 0 for none, 255 at most.
pub fn retries_within(time: Span, first: Span, most: Span) -> u32 {
    let (mut retries, mut wait, mut passed) = (0, first, Span::ZERO);
    while passed < time && retries < 255 {
        retries += 1;
        passed += wait;
        wait = (wait * 2).min(most);
    }
    retries
}

/// Duration of `retries` expiries (Linux `retrans_to_secs`).
pub fn time_of_retries(retries: u32, first: Span, most: Span) -> Span {
    let (mut wait, mut passed) = (first, Span::ZERO);
    for _ in 0..retries.min(255) {
        passed += wait;
        wait = (wait * 2).min(most);
    }
    passed
}

impl Endpoint {
    /// Returns `true` if a listening socket drops this segment to its child because it waits for
    /// data.
    #[cold]
    pub(crate) fn defers(&mut self, now: Time, segment: &Segment) -> bool {
        let waits = self.sender.rtt.timeouts() < self.config.states.defer_accept;
        let bare = segment.sequence_len() == 0 && self.receiver.lift(segment.seq) == Some(1);
        if !waits || !bare || segment.flags.contains(Flags::SYN) || !self.completes(segment) {
            return false;
        }
        if !self.passes_paws(now, segment, 1) {
            return false;
        }
        self.update_ts_recent(now, segment, 1);
        self.socket.defer();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_retransmissions_as_linux_rounds_them() {
        let (first, most) = (Span::from_secs(1), Span::from_secs(120));
        let there = |seconds| retries_within(Span::from_secs(seconds), first, most);
        let back = |retries| time_of_retries(retries, first, most).as_millis() / 1000;
        // 1, 1 + 2, 1 + 2 + 4, ... and from the eighth on 120 s each: 127 + 120 = 247.
        for (seconds, retries, rounded) in
            [(0, 0, 0), (1, 1, 1), (2, 2, 3), (3, 2, 3), (4, 3, 7), (7, 3, 7), (8, 4, 15), (128, 8, 247)]
        {
            assert_eq!((there(seconds), back(retries)), (retries, rounded), "{seconds}");
        }
        assert_eq!(there(1_000_000), 255);
    }
}
