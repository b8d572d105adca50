//! What the ends of a flow have counted.

use ackclock_tcp::LimitedTime;
use ackclock_trace::Limited;

use crate::host::Host;
use crate::watch::WatchCounts;

/// What the two ends have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent_packets: u64,
    pub(super) retransmitted_packets: u64,
    pub(super) timeouts: u64,
    pub(super) fast_recoveries: u64,
    pub(super) undos: u64,
    pub(super) ece_acks: u64,
    pub(super) delivered_bytes: u64,
    pub(super) acked_bytes: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Counts) {
        self.sent_packets += other.sent_packets;
        self.retransmitted_packets += other.retransmitted_packets;
        self.timeouts += other.timeouts;
        self.fast_recoveries += other.fast_recoveries;
        self.undos += other.undos;
        self.ece_acks += other.ece_acks;
        self.delivered_bytes += other.delivered_bytes;
        self.acked_bytes += other.acked_bytes;
    }

    pub(super) fn of(sender: &Host, receiver: &Host) -> Counts {
        let both = Counts {
            sent_packets: sender.sent_packets(),
            delivered_bytes: receiver.delivered_bytes(),
            acked_bytes: sender.acked_bytes(),
            ..Counts::default()
        };
        match sender {
            Host::Endpoint(endpoint) => {
                let stats = endpoint.stats();
                Counts {
                    retransmitted_packets: stats.retransmitted_packets + stats.resent_syns,
                    timeouts: stats.timeouts,
                    fast_recoveries: stats.fast_recoveries,
                    undos: stats.undos,
                    ece_acks: stats.ece_acks,
                    ..both
                }
            }
            Host::Outside(watch) => {
                let WatchCounts { retransmitted_packets, ece_acks, .. } = watch.counts();
                Counts { retransmitted_packets, ece_acks, ..both }
            }
            Host::Smoltcp(stock) => Counts { retransmitted_packets: stock.stats().retransmitted_packets, ..both },
            Host::Datagrams(_) => both,
        }
    }
}

/// What held a sender back, in seconds.
pub(super) fn limited(time: LimitedTime) -> Limited {
    Limited {
        cwnd: time.cwnd.as_secs_f64(),
        rwnd: time.rwnd.as_secs_f64(),
        app: time.app.as_secs_f64(),
        pacing: time.pacing.as_secs_f64(),
    }
}
