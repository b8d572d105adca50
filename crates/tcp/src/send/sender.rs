//! The sending half of a connection: its state, and what the rest of the endpoint asks of it.

use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_units::{Span, Time};

use crate::connection::negotiated::Negotiated;
use crate::ecn::EcnState;
use crate::loss::Loss;
use crate::report::counters::Counters;
use crate::send::burst::Burst;
use crate::send::limited::LimitClock;
use crate::send::observer::Observer;
use crate::send::pacing::Pacer;
use crate::send::persist::Persist;
use crate::send::pmtu::Path;
use crate::send::retransmission_timer::RetransmissionTimer;
use crate::send::rtt::RttEstimator;
use crate::send::segmentation::Queue;
use crate::send::sequence::SendSequence;
use crate::send::units::Units;
use crate::send::validation::Validation;
use crate::send::window_use::WindowUse;
use crate::send::writing::Writing;
use crate::{Config, SentAs, Stats};

/// The sending half of a connection: the stream, its segments in flight, the congestion window and
/// the timers. Fields that most segments touch lie together.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sender {
    // Every visit.
    pub(crate) burst: Burst,
    /// Segments may take the short way of `prediction`.
    pub(crate) predicts: bool,
    /// Why the last data segment was sent.
    pub(crate) sent_as: SentAs,
    /// The SYN or its answer was presumably lost.
    pub(crate) syn_lost: bool,
    /// The number of earlier ACKs at the time of the last one, or of the last transmission.
    pub(crate) order: u32,
    pub(crate) sequence: SendSequence,
    pub(crate) negotiated: Negotiated,
    /// The time of the last ACK or timer.
    pub(crate) now: Time,
    /// The RTT sample of the ACK in hand.
    pub(crate) latest_sample: Option<Span>,
    pub(crate) timer: RetransmissionTimer,
    pub(crate) persist: Persist,
    pub(crate) loss: Loss,
    pub(crate) counters: Counters,

    // The parts of sending.
    /// The endpoint's.
    pub(crate) config: Arc<Config>,
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) observer: Observer,
    pub(crate) window_use: WindowUse,
    pub(crate) rtt: RttEstimator,
    pub(crate) stats: Stats,
    pub(crate) queue: Queue,
    pub(crate) held: LimitClock,
    pub(crate) ecn: EcnState,
    pub(crate) pacer: Pacer,
    pub(crate) validation: Validation,
    pub(crate) writing: Writing,
    pub(crate) path: Path,

    // Parts that few connections have.
    /// Its units of segments, where it sends such.
    pub(crate) units: Option<Box<Units>>,
}

impl Sender {
    /// The endpoint's settings have changed.
    #[cold]
    pub(crate) fn configured(&mut self, config: &Arc<Config>) {
        self.config = Arc::clone(config);
        self.loss.config = Arc::clone(config);
    }

    /// Nothing is sent yet; `isn` and `ts_offset` as [`crate::Endpoint::new`] has them.
    pub(crate) fn new(config: Arc<Config>, cc: Box<dyn CongestionControl>, isn: u32, ts_offset: u32) -> Sender {
        let observer = Observer::new(&*cc);
        let needs = observer.needs;
        Sender {
            burst: Burst::default(),
            predicts: false,
            sent_as: SentAs::New,
            syn_lost: false,
            sequence: SendSequence::new(isn),
            negotiated: Negotiated::new(u32::from(config.mss).max(1), ts_offset),
            now: Time::ZERO,
            order: 0,
            latest_sample: None,
            timer: RetransmissionTimer::new(),
            persist: Persist::default(),
            loss: Loss::new(Arc::clone(&config), needs.delivery_rate, needs.whole_control),
            counters: Counters::new(),
            cc,
            observer,
            window_use: WindowUse::default(),
            rtt: RttEstimator::new(),
            stats: Stats::default(),
            queue: Queue::new(config.send_buffer),
            held: LimitClock::default(),
            ecn: EcnState::new(),
            pacer: Pacer::default(),
            validation: Validation::default(),
            writing: Writing::default(),
            path: Path::new(&config),
            units: None,
            config,
        }
    }

    /// SIOCOUTQNSD: bytes written and not sent.
    pub(crate) fn unsent(&self) -> u64 {
        (self.sequence.written() + 1).saturating_sub(self.sequence.nxt().max(1))
    }

    /// Bytes of the options that every data segment carries.
    #[inline]
    pub(crate) fn options_len(&self) -> u32 {
        self.negotiated.options_len() + u32::from(self.path.reserved)
    }

    /// Bytes of our stream that the peer has acknowledged.
    #[inline]
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.sequence.una().saturating_sub(1).min(self.sequence.written())
    }

    /// The retransmission timeout, back-off included.
    #[inline]
    pub(crate) fn rto(&self) -> Span {
        self.rtt.rto(&self.config)
    }
}
