//! What happens to a flow, whose packets may take several paths.

use ackclock_packet::Segment;
use ackclock_tcp::Acknowledgment;
use ackclock_units::Time;

use super::Flow;
use super::subflows::{Sent, of_path};
use crate::host::Host;
use crate::record::TcpRecording;
use crate::truth::Culprit;

impl Flow {
    /// An ACK arrived over a path at the sender, which may have several.
    #[inline]
    pub(crate) fn measure_ack_of(&mut self, path: usize, arrival: &Acknowledgment, sender: &Host) {
        self.measure_ack(arrival, || sender.cwnd());
        if let Some(subflows) = &mut self.subflows {
            subflows.measure_ack(path, arrival, sender);
        }
    }

    /// A packet of `bytes` bytes arrives over a path at the receiver, which may have several, and
    /// has got so much new payload before it.
    #[inline]
    pub(crate) fn measure_packet_of(&mut self, now: Time, path: usize, bytes: u32, received: impl FnOnce() -> u64) {
        let counts = self.is_live || self.aborted;
        self.measure_packet(now, bytes, received);
        if let Some(subflows) = &mut self.subflows
            && counts
        {
            subflows.measure_packet(now, path, bytes);
        }
    }

    /// An ackclock endpoint has sent a segment; returns the number of the packet.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        now: Time,
        is_sender: bool,
        [state, peer]: [&Host; 2],
        segment: &Segment,
        by_timer: bool,
    ) -> u64 {
        match (&mut self.subflows, state) {
            (Some(subflows), Host::Mptcp(connection)) if is_sender => subflows.sent(now, connection, segment, peer),
            (Some(subflows), Host::Mptcp(connection)) => subflows.answered(connection.last_path()),
            _ if !is_sender => self.truth.receiver_sent(),
            _ => match state.range_of(segment) {
                Some(range) => {
                    self.truth.sent(state.stamp(now), range, state.sent_as(by_timer), segment.payload.len > 0)
                }
                None => 0,
            },
        }
    }

    /// A receiver outside has sent a packet over a path; returns its number.
    pub(crate) fn receiver_sent(&mut self, path: usize) -> u64 {
        match &mut self.subflows {
            None => self.truth.receiver_sent(),
            Some(subflows) => subflows.answered(path),
        }
    }

    /// A packet with data has reached the receiver.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time, sent: Sent, receiver: &Host, log: Option<&mut TcpRecording>) {
        match &mut self.subflows {
            None => self.truth.arrived(now, sent.1, |from, to| receiver.holds(from, to), log),
            Some(subflows) => {
                if let Some(measures) = subflows.all.get_mut(sent.0) {
                    measures.judged.arrived(now, sent, receiver, log);
                }
            }
        }
    }

    /// The last copy of a packet with data was lost.
    pub(crate) fn lost(&mut self, at: Time, sent: Sent, culprit: Culprit, log: Option<&mut TcpRecording>) {
        match &mut self.subflows {
            None => self.truth.lost(at, sent.1, culprit, log),
            Some(subflows) => {
                if let Some(measures) = subflows.all.get_mut(sent.0) {
                    measures.judged.truth.lost(at, of_path(sent.1), culprit, log);
                }
            }
        }
    }

    /// The run is over, or the flow is: what is on its way is not lost.
    pub(crate) fn finish_truth(&mut self, end: Time, mut log: Option<&mut TcpRecording>) {
        self.truth.finish(end, log.as_deref_mut());
        if let Some(subflows) = &mut self.subflows {
            subflows.all.iter_mut().for_each(|one| one.judged.truth.finish(end, log.as_deref_mut()));
        }
    }
}
