//! What the congestion controller hears beside its reactions, if it has asked for it.

use ackclock_cc::{Arrival, CongestionControl, Needs};
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Span, Time};

use crate::scoreboard::Progress;
use crate::{CaState, Endpoint};

/// What the controller asked for, and where the round trip stands that is counted for it.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) needs: Needs,
    round: u64,
    /// What was next to be sent when the round began: it ends once that is acknowledged.
    round_end: u64,
}

impl Observer {
    pub(crate) fn new(cc: &dyn CongestionControl) -> Observer {
        Observer { needs: cc.needs(), round: 0, round_end: 0 }
    }
}

impl Endpoint {
    /// An ACK was taken in; `una` and `window` are from before it.
    #[inline(never)]
    pub(crate) fn tell_arrival(&mut self, now: Time, segment: &Segment, progress: &Progress, una: u64, window: u64) {
        let flight = self.flight(now);
        let standing = self.send.una == una && flight.snd_una < flight.snd_nxt;
        let duplicate = standing
            && if self.sack_enabled {
                progress.delivered > 0
            } else {
                segment.sequence_len() == 0 && self.send.wnd == window
            };
        let echo = segment.timestamps.filter(|stamps| self.timestamps_enabled && stamps.echo != 0);
        let arrival = Arrival {
            ack: self.send.una,
            acked: progress.acked,
            delivered: progress.delivered,
            sack: !segment.sack.is_empty(),
            duplicate,
            in_recovery: self.recovery.state >= CaState::Recovery,
            echoed: echo.map(|stamps| Span::from_millis(self.timestamp(now).wrapping_sub(stamps.echo).into())),
            rtt: self.latest_sample,
            ece: self.ecn_enabled && segment.flags.contains(Flags::ECE),
            ce: 0,
        };
        self.cc.on_arrival(&flight, &arrival);
        if self.send.una > una && self.send.una >= self.observer.round_end {
            self.observer.round += 1;
            self.observer.round_end = self.send.nxt;
            self.cc.on_round(&flight, self.observer.round);
        }
        if self.latest_sample.is_some() {
            self.cc.on_rtt_sample(&flight);
        }
    }
}
