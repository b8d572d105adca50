//! Data that goes with the SYN (RFC 7413).

use ackclock_units::Time;

use crate::SentAs;
use crate::send::Sender;

impl Sender {
    /// Books the data of a SYN as the first segment of the stream.
    pub(crate) fn send_with_syn(&mut self, now: Time, len: u32) {
        self.sequence.end_at(1 + u64::from(len));
        self.loss.board.push(self.stamp(now), 1, len, false);
        self.loss.board.set_push(true);
        self.queue.sent(self.sequence.nxt());
        self.stats.sent_packets += 1;
        self.counters.bytes_sent += u64::from(len);
        self.sequence.sent_at(now);
        self.sent_as = SentAs::New;
    }

    /// The server did not take all data of the SYN: what is left goes out again at once, in
    /// segments of the size agreed on.
    pub(crate) fn resend_syn_data(&mut self, now: Time, linux: bool) {
        self.loss.board.split_front(self.negotiated.mss());
        self.loss.board.mark_all_lost();
        self.tell_losses(now);
        if linux && self.loss.linux_episodes() {
            // tcp_non_congestion_loss_retransmit: the state of a timeout, with the window as it
            // was.
            self.loss.begin_loss_without_reduction(now, self.sequence.nxt());
            self.loss.recovery.resend_lost();
        }
    }
}
