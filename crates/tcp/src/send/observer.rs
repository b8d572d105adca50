//! The observations that the congestion controller has requested beside its reactions.

use ackclock_cc::{Ack, Arrival, CongestionControl, EcnFeedback, Lost, Needs, RateSample};
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Span, Time};

use crate::CaState;
use crate::connection::negotiated::MOST_AHEAD;
use crate::send::Sender;

/// The controller's requests, and the round trip that is counted for it.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) needs: Needs,
    round: u64,
    /// The next number to be sent when the round began: it ends once that is acknowledged.
    round_end: u64,
    /// The bytes written when the endpoint last looked for something to send.
    written: u64,
}

impl Observer {
    pub(crate) fn new(cc: &dyn CongestionControl) -> Observer {
        Observer { needs: cc.needs(), round: 0, round_end: 0, written: 0 }
    }
}

impl Sender {
    /// The controller is another one, or needs something else.
    #[cold]
    pub(crate) fn adopt_needs(&mut self) {
        self.observer = Observer::new(&*self.cc);
        let needs = self.observer.needs;
        self.loss.board.sample_rates(needs.delivery_rate);
        self.loss.recovery.set_whole_control(needs.whole_control, self.config.prr);
        self.ecn.serve(&self.config, needs.ecn);
        self.review_prediction();
    }

    /// Decides again whether segments are predicted at all, after a change of the agreement or the
    /// controller.
    pub(crate) fn review_prediction(&mut self) {
        self.predicts = self.may_predict();
    }

    /// Returns `true` if expected segments may take the short path of header prediction.
    pub(crate) fn may_predict(&self) -> bool {
        let needs = self.observer.needs;
        self.config.header_prediction
            && !needs.delivery_rate
            && !needs.whole_control
            && self.ecn.mode() != EcnFeedback::Accurate
            && self.config.states.paws_slack < MOST_AHEAD
    }

    /// An ACK was taken in that newly acknowledges and delivers so many units; `una` and `window`
    /// are from before it.
    #[inline(never)]
    pub(crate) fn tell_arrival(
        &mut self,
        now: Time,
        segment: &Segment,
        (acked, delivered): (u64, u64),
        una: u64,
        window: u64,
    ) {
        let flight = self.flight(now);
        let standing = self.sequence.una() == una && flight.snd_una < flight.snd_nxt;
        let duplicate = standing
            && if self.negotiated.sack() {
                delivered > 0
            } else {
                segment.sequence_len() == 0 && self.sequence.window() == window
            };
        let begins_round = self.sequence.una() > una && self.sequence.una() >= self.observer.round_end;
        if begins_round {
            self.observer.round += 1;
            self.observer.round_end = self.sequence.nxt();
        }
        let arrival = Arrival {
            ack: self.sequence.una(),
            acked,
            delivered,
            sacked_to: self.sequence.sacked_to(segment).filter(|_| self.negotiated.sack()),
            duplicate,
            in_recovery: self.loss.recovery.state() >= CaState::Recovery,
            echoed: self.negotiated.echo_age(now, segment).map(|age| Span::from_millis(age.into())),
            rtt: self.latest_sample,
            round: begins_round.then_some(self.observer.round),
            ce: self.ecn.marked_bytes(),
            plain: segment.flags.bits() & !Flags::PSH.bits() == Flags::ACK.bits()
                && segment.sack.is_empty()
                && u64::from(segment.window) << self.negotiated.peer_shift() == window,
        };
        self.cc.on_arrival(&flight, &arrival);
    }

    /// Reports the segments marked lost since the last call.
    #[inline]
    pub(crate) fn tell_losses(&mut self, now: Time) {
        if self.loss.board.samples_rates() {
            self.tell_each_loss(now);
        }
    }

    #[inline(never)]
    fn tell_each_loss(&mut self, now: Time) {
        let losses = self.loss.board.take_lost();
        if !losses.is_empty() {
            let flight = self.flight(now);
            for lost in &losses {
                self.cc.on_lost(&flight, &Lost { selective_acks: self.negotiated.sack(), ..*lost });
            }
        }
        self.loss.board.give_back(losses);
    }

    /// The samples that an ACK gives, once what it proves lost is marked and told.
    #[inline]
    pub(crate) fn add_samples(&mut self, now: Time, ack: &mut Ack) {
        (ack.rtt, ack.ce) = (self.latest_sample, self.ecn.marked_bytes());
        if self.loss.board.samples_rates() {
            ack.rate = self.sample_rate(now);
        }
    }

    /// The rate sample of the ACK in hand: the first time that it is asked for.
    #[inline(never)]
    fn sample_rate(&mut self, now: Time) -> Option<RateSample> {
        self.tell_losses(now);
        let (min_rtt, repairing) = (self.rtt.min(), self.loss.recovery.state() == CaState::Loss);
        self.loss.board.rate_sample(now, min_rtt, repairing)
    }

    /// The ACK is dealt with, whether the controller heard of it or not.
    #[inline]
    pub(crate) fn end_rate_sample(&mut self, now: Time) {
        if self.loss.board.samples_rates() {
            self.sample_rate(now);
        }
    }

    /// The ACK goes to a controller that rules the window in every state (`tcp_cong_control`), if
    /// it tells something.
    pub(crate) fn rule_window(&mut self, now: Time, mut ack: Ack) {
        self.add_samples(now, &mut ack);
        if ack.delivered > 0 || ack.lost > 0 {
            let flight = self.flight(now);
            // The controller has reduced the window as it likes; nothing comes down by itself.
            let _ = self.cc.on_ack(&flight, &ack);
        }
    }

    /// The endpoint looks for something to send: perhaps because more was written.
    #[inline]
    pub(crate) fn note_writes(&mut self, now: Time) {
        if self.loss.board.samples_rates() && self.observer.written != self.sequence.written() {
            let before = std::mem::replace(&mut self.observer.written, self.sequence.written());
            self.check_app_limited(now, before);
        }
    }

    /// Notes if the application has left the pipe unfilled (`CheckIfApplicationLimited`): before
    /// what an ACK, a timer or a write changes. `written` bytes had been written until now.
    #[inline(never)]
    pub(crate) fn check_app_limited(&mut self, now: Time, written: u64) {
        let unsent = (written + 1).saturating_sub(self.sequence.nxt().max(1));
        let pipe = self.loss.pipe(&self.negotiated);
        // Less than a segment may wait for more by Nagle's rule, as in Linux.
        let dry = unsent < u64::from(self.negotiated.mss())
            && !self.pacer.is_early(now)
            && pipe < self.cwnd()
            && self.loss.board.lost() <= self.loss.board.resent();
        if dry {
            self.loss.board.ran_dry(pipe);
        }
    }

    /// A segment with data is about to leave.
    #[inline(always)]
    pub(crate) fn departs(&mut self, now: Time, seq: u64, payload: u32) {
        if self.pacer.is_on() || self.observer.needs.departures || self.sequence.una() == self.sequence.nxt() {
            self.tell_departure(now, seq, payload);
        }
    }

    #[inline(never)]
    fn tell_departure(&mut self, now: Time, seq: u64, payload: u32) {
        let flight = self.flight(now);
        if self.observer.needs.departures || flight.snd_una == flight.snd_nxt {
            self.cc.on_sent(&flight, &ackclock_cc::Sent { seq, bytes: payload });
        }
        if self.pacer.is_on() {
            self.pace(&flight, seq, payload);
        }
    }
}
