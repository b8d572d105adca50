//! The model: what every controller promises, whatever happens to it.
//!
//! Operations come in any order and with any numbers; where the endpoint would not call a hook in
//! the state at hand, the model does not either. The state is that of an endpoint: no episode, one
//! that a signal began, or one that the controller began.

use ackclock_cc::{
    Ack, Arrival, CongestionControl, EcnFeedback, EcnUse, Flight, Lost, Needs, RateSample, Sent, Shared, Signal,
    Subflow, Verdict, Window,
};
use ackclock_units::{Span, Time};
use proptest::prelude::*;

/// The checked promises. A name is what a failure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// After a timeout the window is one segment, beside what is kept in flight (RFC 5681 section
    /// 3.1, RFC 8985 section 6.3).
    LossWindow,
    /// At other times window and threshold are at least two segments (RFC 5681 equation 4).
    TwoSegments,
    /// No window exceeds `Window::MAX`.
    Bounded,
    /// A window that does not limit the sender does not grow (RFC 5681 section 3.1, RFC 7661).
    UnusedDoesNotGrow,
    /// From a loss or mark to the end of its recovery the window does not grow.
    RecoveryDoesNotGrow,
    /// Only ACKs grow the window, and undoing does.
    ObservationsDoNotGrow,
    /// An ACK that brings the window down says so.
    VerdictTells,
    /// A loss or mark does not raise the window.
    SignalDoesNotRaise,
    /// From a loss, mark or back-off to the end of its recovery neither window nor threshold come
    /// down once more, but for a timeout.
    OneReduction,
    /// An undone reduction leaves a window that is at least the one before it.
    UndoRestores,
    /// An undone reduction leaves a threshold that is at least the one before it.
    UndoRestoresThreshold,
    /// An undo takes nothing away.
    UndoTakesNothing,
    /// A timeout that repeats keeps the threshold (RFC 5681 section 3.1).
    RepeatKeepsThreshold,
    /// `Resume` has the window and the threshold that it says (RFC 4653 section 3.2).
    ResumeAsTold,
    /// Recovery ends at the threshold or below.
    EndsAtThreshold,
    /// Idle time does not raise the window.
    IdleDoesNotRaise,
    /// `needs` stays the same.
    NeedsAreConstant,
    /// There is a pacing rate at all times or never.
    PacingIsConstant,
    /// A controller that takes over has the window of the one before.
    TakeOverKeepsWindow,
    /// A controller that takes over has the threshold of the one before.
    TakeOverKeepsThreshold,
    /// Equal operations lead to equal windows.
    Deterministic,
}

/// All of them.
pub(crate) const EVERY: [Promise; 21] = [
    Promise::LossWindow,
    Promise::TwoSegments,
    Promise::Bounded,
    Promise::UnusedDoesNotGrow,
    Promise::RecoveryDoesNotGrow,
    Promise::ObservationsDoNotGrow,
    Promise::VerdictTells,
    Promise::SignalDoesNotRaise,
    Promise::OneReduction,
    Promise::UndoRestores,
    Promise::UndoRestoresThreshold,
    Promise::UndoTakesNothing,
    Promise::RepeatKeepsThreshold,
    Promise::ResumeAsTold,
    Promise::EndsAtThreshold,
    Promise::IdleDoesNotRaise,
    Promise::NeedsAreConstant,
    Promise::PacingIsConstant,
    Promise::TakeOverKeepsWindow,
    Promise::TakeOverKeepsThreshold,
    Promise::Deterministic,
];

/// An exception: a promise that an algorithm does not make, and why.
pub(crate) type Exception = (&'static str, Promise, &'static str);

/// Everything that is done to a controller.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) mss: u32,
    pub(crate) initial_segments: u64,
    pub(crate) start: Time,
    pub(crate) feedback: EcnFeedback,
    pub(crate) ops: Vec<(Span, View, Op)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Ack(Ack),
    Arrival(Arrival),
    Signal(Signal),
    Lost(Lost),
    Sent(Sent),
    /// The controller is the subflow of this number; of no connection with others if there is none.
    Couple(usize, [Subflow; 3]),
    /// Another controller takes over: which one, modulo their number.
    Switch(usize),
}

/// The operation's view besides the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) in_flight: u64,
    pub(crate) cwnd_limited: bool,
    pub(crate) snd_una: u64,
    pub(crate) ahead: u64,
    pub(crate) srtt: Option<Span>,
    pub(crate) latest_rtt: Option<Span>,
    pub(crate) min_rtt: Option<Span>,
    pub(crate) after_timeout: bool,
    pub(crate) paced: bool,
    pub(crate) app_limited: bool,
}

impl View {
    pub(crate) fn flight(&self, now: Time, mss: u32, initial_window: u64) -> Flight {
        Flight {
            now,
            mss,
            in_flight: self.in_flight,
            cwnd_limited: self.cwnd_limited,
            snd_una: self.snd_una,
            snd_nxt: self.snd_una.saturating_add(self.ahead),
            srtt: self.srtt,
            latest_rtt: self.latest_rtt,
            min_rtt: self.min_rtt,
            after_timeout: self.after_timeout,
            initial_window,
            paced: self.paced,
            app_limited: self.app_limited,
        }
    }
}

/// Does one operation; `Switch` is the model's to do.
pub(crate) fn apply(cc: &mut dyn CongestionControl, f: &Flight, op: &Op) -> Verdict {
    match *op {
        Op::Ack(ack) => return cc.on_ack(f, &ack),
        Op::Arrival(arrival) => cc.on_arrival(f, &Arrival { ack: f.snd_una, ..arrival }),
        Op::Signal(signal) => cc.on_signal(f, signal),
        Op::Lost(lost) => cc.on_lost(f, &lost),
        Op::Sent(sent) => cc.on_sent(f, &sent),
        Op::Couple(own, subflows) => {
            if let Some(coupled) = cc.coupled() {
                coupled.couple(own, &subflows);
            }
        }
        Op::Switch(_) => {}
    }
    Verdict::Continue
}

/// The recovery under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Episode {
    None,
    /// A loss or mark.
    Signalled,
    /// The controller backed off by itself.
    Own,
}

/// One controller, and what is known of it.
struct Model<'a> {
    cc: Box<dyn CongestionControl>,
    exceptions: &'a [Exception],
    segment: u64,
    feedback: EcnFeedback,
    episode: Episode,
    /// There was a loss in it.
    fast: bool,
    /// The last signal was a timeout.
    timed_out: bool,
    /// The window that `Spurious` has to restore.
    restores: Option<Window>,
    /// A timeout has brought the window below two segments, and it has not come back.
    below_two: bool,
    needs: Needs,
    paces: bool,
}

impl Model<'_> {
    fn promise(&self, promise: Promise, kept: bool) -> Result<(), TestCaseError> {
        let name = match self.cc.name() {
            // FreeBSD's, of the same name, shows what it measures.
            "vegas" if self.cc.inspect().enhanced_rtt.is_none() => "linux vegas",
            name => name,
        };
        if kept || self.exceptions.iter().any(|(who, what, _)| *who == name && *what == promise) {
            return Ok(());
        }
        Err(TestCaseError::fail(format!("{promise:?}, {name}: {:?}", self.cc)))
    }

    /// Returns `true` if the endpoint would do this now.
    fn happens(&self, op: &Op) -> bool {
        match (op, self.episode) {
            (Op::Signal(Signal::CountedAcks(_)), _) => self.needs.reno_halving,
            (_, Episode::None) => true,
            // In fast recovery an ACK is not told, but to those who rule their window in every
            // state. After a back-off of the controller's own it is, where no PRR shapes the
            // window.
            (Op::Ack(_), Episode::Signalled) => self.needs.whole_control,
            // Once per episode: neither in the middle of a reduction, but for a loss to those whom
            // marks tell little.
            (Op::Signal(Signal::Loss), Episode::Signalled) if !self.fast => self.needs.ecn != EcnUse::Data,
            (Op::Signal(Signal::Loss | Signal::Ecn), _) => false,
            // Data in recovery is in flight.
            (Op::Signal(Signal::IdleRestart), _) => false,
            _ => true,
        }
    }

    fn step(&mut self, f: &Flight, op: &Op) -> Result<(), TestCaseError> {
        let before = self.cc.window();
        let mut op = *op;
        match &mut op {
            Op::Arrival(arrival) => {
                arrival.in_recovery = f.after_timeout || self.episode != Episode::None && self.fast;
            }
            Op::Signal(Signal::Timeout { repeated, .. }) => {
                *repeated &= self.timed_out;
                self.timed_out = true;
            }
            Op::Signal(Signal::RecoveryEnd | Signal::CountedAcks(_) | Signal::IdleRestart) => {}
            Op::Signal(_) => self.timed_out = false,
            _ => {}
        }
        let verdict = apply(&mut *self.cc, f, &op);
        let after = self.cc.window();
        let grew = after.cwnd > before.cwnd;
        let fell = after.cwnd < before.cwnd;

        let signal = match op {
            Op::Signal(Signal::RecoveryEnd | Signal::CountedAcks(_) | Signal::IdleRestart) => None,
            Op::Signal(signal) => Some(signal),
            _ => None,
        };
        if self.episode != Episode::None && signal.is_none() {
            // At the end the window may be bounded so that no burst follows, and trimmed at any
            // time. The threshold is as it was, or the window.
            let trimmed = verdict == Verdict::Trimmed;
            let lower = fell && !matches!(op, Op::Signal(Signal::RecoveryEnd)) && !trimmed;
            let window = if trimmed { after.cwnd } else { before.cwnd };
            let threshold = after.ssthresh >= before.ssthresh.min(window);
            self.promise(Promise::OneReduction, !lower && threshold)?;
            self.promise(Promise::OneReduction, verdict != Verdict::Reduced)?;
        }
        if self.episode == Episode::Signalled && signal.is_none() && !matches!(op, Op::Signal(Signal::RecoveryEnd)) {
            self.promise(Promise::RecoveryDoesNotGrow, !grew)?;
        }

        match op {
            Op::Ack(_) => {
                self.promise(Promise::UnusedDoesNotGrow, f.cwnd_limited || !grew)?;
                self.promise(Promise::VerdictTells, verdict != Verdict::Continue || !fell)?;
                // A sender that rebuilds after a timeout is in recovery as it is.
                if verdict == Verdict::Reduced && !f.after_timeout {
                    (self.episode, self.fast) = (Episode::Own, false);
                    // There is no going back behind it.
                    self.restores = None;
                }
            }
            Op::Signal(Signal::Loss | Signal::Ecn) => {
                self.promise(Promise::SignalDoesNotRaise, !grew)?;
                let loss = signal == Some(Signal::Loss);
                self.restores = loss.then_some(before);
                (self.episode, self.fast) = (Episode::Signalled, loss);
            }
            Op::Signal(Signal::Timeout { repeated, kept }) => {
                let loss_window = kept.saturating_add(self.segment).min(Window::MAX);
                self.promise(Promise::LossWindow, after.cwnd == loss_window)?;
                self.promise(Promise::RepeatKeepsThreshold, !repeated || after.ssthresh == before.ssthresh)?;
                self.below_two = true;
                self.episode = Episode::None;
                if !repeated {
                    self.restores = Some(before);
                }
            }
            Op::Signal(Signal::Spurious) => {
                self.promise(Promise::UndoTakesNothing, !fell)?;
                if let Some(was) = self.restores.take() {
                    self.promise(Promise::UndoRestores, after.cwnd >= was.cwnd)?;
                    // A window that has overtaken the old one has a threshold of its own.
                    let threshold = after.ssthresh >= was.ssthresh || before.cwnd >= was.cwnd;
                    self.promise(Promise::UndoRestoresThreshold, threshold)?;
                }
                self.episode = Episode::None;
            }
            Op::Signal(Signal::Resume { cwnd, ssthresh }) => {
                let window = Window {
                    cwnd: before.cwnd.min(cwnd.max(2 * self.segment)),
                    ssthresh: before.ssthresh.max(ssthresh),
                };
                self.promise(Promise::ResumeAsTold, after == window)?;
                self.episode = Episode::None;
            }
            Op::Signal(Signal::RecoveryEnd) => {
                self.promise(Promise::EndsAtThreshold, after.cwnd <= before.cwnd.max(after.ssthresh))?;
                self.episode = Episode::None;
            }
            Op::Signal(Signal::IdleRestart) => self.promise(Promise::IdleDoesNotRaise, !grew)?,
            Op::Signal(Signal::CountedAcks(_)) | Op::Arrival(_) | Op::Lost(_) | Op::Sent(_) | Op::Couple(..) => {
                self.promise(Promise::ObservationsDoNotGrow, !grew)?;
                if matches!(op, Op::Lost(_)) && self.episode == Episode::None {
                    // The first of another episode: what was before the last one does not come
                    // back.
                    self.restores = None;
                }
            }
            Op::Switch(_) => {}
        }
        self.always(f)
    }

    /// Checks the promises that apply at any time.
    fn always(&mut self, f: &Flight) -> Result<(), TestCaseError> {
        let window = self.cc.window();
        self.below_two &= window.cwnd < 2 * self.segment;
        let least = if self.below_two { 1 } else { 2 } * self.segment;
        self.promise(Promise::TwoSegments, window.cwnd >= least && window.ssthresh >= 2 * self.segment)?;
        self.promise(Promise::Bounded, window.cwnd <= Window::MAX)?;
        self.promise(Promise::NeedsAreConstant, self.cc.needs() == self.needs)?;
        self.promise(Promise::PacingIsConstant, self.cc.pacing_rate(f).is_some() == self.paces)
    }

    /// A controller begins: with the connection, or in the place of another one.
    fn begin(&mut self, f: &Flight, window: Option<Window>) -> Result<(), TestCaseError> {
        self.cc.on_established(f);
        if let Some(window) = window {
            self.cc.take_over(window);
            self.promise(Promise::TakeOverKeepsWindow, self.cc.window().cwnd == window.cwnd)?;
            self.promise(Promise::TakeOverKeepsThreshold, self.cc.window().ssthresh == window.ssthresh)?;
        }
        self.cc.on_ecn(self.feedback);
        (self.needs, self.paces) = (self.cc.needs(), self.cc.pacing_rate(f).is_some());
        self.restores = None;
        self.always(f)
    }
}

/// Carries out a plan; returns the window after every operation.
pub(crate) fn keeps(
    cc: Box<dyn CongestionControl>,
    others: &dyn Fn() -> Vec<Box<dyn CongestionControl>>,
    exceptions: &[Exception],
    plan: &Plan,
) -> Result<Vec<Window>, TestCaseError> {
    let segment = u64::from(plan.mss);
    let initial_window = plan.initial_segments.saturating_mul(segment);
    let mut model = Model {
        cc,
        exceptions,
        segment,
        feedback: plan.feedback,
        episode: Episode::None,
        fast: false,
        timed_out: false,
        restores: None,
        below_two: false,
        needs: Needs::default(),
        paces: false,
    };
    let quiet = View {
        in_flight: 0,
        cwnd_limited: false,
        snd_una: 0,
        ahead: 0,
        srtt: None,
        latest_rtt: None,
        min_rtt: None,
        after_timeout: false,
        paced: false,
        app_limited: false,
    };
    let mut now = plan.start;
    model.begin(&quiet.flight(now, plan.mss, initial_window), None)?;
    let mut windows = vec![model.cc.window()];
    for (step, view, op) in &plan.ops {
        now += *step;
        let f = view.flight(now, plan.mss, initial_window);
        if let Op::Switch(which) = *op {
            let window = model.cc.window();
            let mut others = others();
            model.cc = others.swap_remove(which % others.len());
            model.begin(&f, Some(window))?;
            if model.episode == Episode::Own {
                // The back-off was of the other controller; this one may back off at once.
                model.episode = Episode::None;
            }
        } else if model.happens(op) {
            model.step(&f, op)?;
        } else if matches!(op, Op::Signal(Signal::Loss)) {
            model.fast = true;
        }
        windows.push(model.cc.window());
    }
    Ok(windows)
}

/// Carries out a plan with two controllers that are the same.
pub(crate) fn keeps_twice(
    first: Box<dyn CongestionControl>,
    second: Box<dyn CongestionControl>,
    others: &dyn Fn() -> Vec<Box<dyn CongestionControl>>,
    exceptions: &[Exception],
    plan: &Plan,
) -> Result<(), TestCaseError> {
    let name = first.name();
    let windows = keeps(first, others, exceptions, plan)?;
    if windows == keeps(second, others, exceptions, plan)? {
        return Ok(());
    }
    Err(TestCaseError::fail(format!("{:?}, {name}", Promise::Deterministic)))
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..200_000u64, 1 => Just(1u64), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn span() -> impl Strategy<Value = Span> {
    let nanos = prop_oneof![8 => 1_000_000..300_000_000u64, 1 => Just(0u64), 1 => Just(u64::MAX), 1 => any::<u64>()];
    nanos.prop_map(Span::from_nanos)
}

fn maybe_span() -> impl Strategy<Value = Option<Span>> {
    proptest::option::of(span())
}

fn ack() -> impl Strategy<Value = Ack> {
    let marks = prop_oneof![3 => Just(0), 1 => bytes()];
    let lost = prop_oneof![3 => Just(0), 1 => bytes()];
    (bytes(), maybe_span(), any::<(bool, bool)>(), marks, lost, proptest::option::of(rate())).prop_map(
        |(acked, rtt, (sampled, ece), ce, lost, rate)| Ack {
            acked,
            delivered: acked,
            rtt,
            sampled,
            ece,
            ce,
            lost,
            in_recovery: false,
            rate,
        },
    )
}

fn rate() -> impl Strategy<Value = RateSample> {
    ([bytes(), bytes(), bytes()], maybe_span(), any::<bool>(), [bytes(), bytes()]).prop_map(
        |(totals, interval, app_limited, [in_flight_when_sent, lost])| RateSample {
            total_delivered: totals[0],
            prior_delivered: totals[1],
            delivered: totals[2],
            interval,
            app_limited,
            in_flight_when_sent,
            lost,
        },
    )
}

/// An arrival, whose acknowledged bytes follow from the view.
fn arrival() -> impl Strategy<Value = Arrival> {
    let acked = prop_oneof![1 => Just(0), 3 => bytes()];
    let marks = prop_oneof![3 => Just(0), 1 => bytes()];
    (
        acked,
        marks,
        proptest::option::of(bytes()),
        any::<(bool, bool)>(),
        [maybe_span(), maybe_span()],
        proptest::option::weighted(0.25, any::<u64>()),
    )
        .prop_map(|(acked, ce, sacked_to, (duplicate, in_recovery), [echoed, rtt], round)| Arrival {
            acked,
            delivered: acked,
            sacked_to,
            duplicate,
            in_recovery,
            echoed,
            rtt,
            round,
            ce,
            ..Arrival::default()
        })
}

fn lost() -> impl Strategy<Value = Lost> {
    ([bytes(), bytes(), bytes(), bytes(), bytes(), bytes()], any::<u32>(), any::<(bool, bool)>()).prop_map(
        |(numbers, bytes, (app_limited, selective_acks))| Lost {
            seq: numbers[0],
            bytes,
            total_delivered: numbers[1],
            total_lost: numbers[2],
            prior_delivered: numbers[3],
            prior_lost: numbers[4],
            in_flight_when_sent: numbers[5],
            app_limited,
            selective_acks,
        },
    )
}

fn sent() -> impl Strategy<Value = Sent> {
    let length = prop_oneof![3 => 1..3_000u32, 1 => any::<u32>()];
    (bytes(), length).prop_map(|(seq, bytes)| Sent { seq, bytes })
}

fn subflow() -> impl Strategy<Value = Subflow> {
    let rate = prop_oneof![1 => Just(0.0), 8 => 0.0..1e6, 1 => Just(f64::MAX)];
    let windows = [bytes(), bytes(), bytes(), bytes()];
    (windows, any::<u32>(), maybe_span(), maybe_span(), rate).prop_map(|(bytes, mss, srtt, min_rtt, rate)| Subflow {
        cwnd: bytes[0],
        ssthresh: bytes[1],
        mss,
        srtt,
        min_rtt,
        shared: Shared { between_losses: bytes[2], since_loss: bytes[3], rate },
    })
}

fn op() -> impl Strategy<Value = Op> {
    let kept = prop_oneof![3 => Just(0), 1 => bytes()];
    prop_oneof![
        20 => ack().prop_map(Op::Ack),
        12 => arrival().prop_map(Op::Arrival),
        2 => Just(Op::Signal(Signal::Loss)),
        2 => Just(Op::Signal(Signal::Ecn)),
        1 => (any::<bool>(), kept).prop_map(|(repeated, kept)| Op::Signal(Signal::Timeout { repeated, kept })),
        1 => Just(Op::Signal(Signal::Spurious)),
        1 => (bytes(), bytes()).prop_map(|(cwnd, ssthresh)| Op::Signal(Signal::Resume { cwnd, ssthresh })),
        4 => Just(Op::Signal(Signal::RecoveryEnd)),
        1 => any::<u32>().prop_map(|acks| Op::Signal(Signal::CountedAcks(acks))),
        1 => Just(Op::Signal(Signal::IdleRestart)),
        2 => lost().prop_map(Op::Lost),
        8 => sent().prop_map(Op::Sent),
        8 => (0..4usize, [subflow(), subflow(), subflow()]).prop_map(|(own, subflows)| Op::Couple(own, subflows)),
        1 => any::<usize>().prop_map(Op::Switch),
    ]
}

fn view() -> impl Strategy<Value = View> {
    let limited = prop::bool::weighted(0.8);
    let flags = (prop::bool::weighted(0.1), any::<bool>(), any::<bool>());
    ([bytes(), bytes(), bytes()], limited, [maybe_span(), maybe_span(), maybe_span()], flags).prop_map(
        |([in_flight, snd_una, ahead], cwnd_limited, [srtt, latest_rtt, min_rtt], flags)| View {
            in_flight,
            cwnd_limited,
            snd_una,
            ahead,
            srtt,
            latest_rtt,
            min_rtt,
            after_timeout: flags.0,
            paced: flags.1,
            app_limited: flags.2,
        },
    )
}

/// Steps of time: mostly small, sometimes none, sometimes to the end of time.
fn step() -> impl Strategy<Value = Span> {
    let nanos = prop_oneof![8 => 0..50_000_000u64, 2 => Just(0u64), 1 => any::<u64>()];
    nanos.prop_map(Span::from_nanos)
}

/// Any connection and any order of operations.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let mss = prop_oneof![4 => Just(1448u32), 1 => Just(1u32), 1 => Just(u32::MAX), 1 => 1..10_000u32];
    let initial_segments = prop_oneof![4 => 2..40u64, 1 => Just(1u64 << 33)];
    let start = prop_oneof![4 => Just(Time::ZERO), 1 => any::<u64>().prop_map(Time::from_nanos)];
    use EcnFeedback::{Accurate, Classic, Dctcp, None};
    let feedback = prop::sample::select(vec![None, Classic, Dctcp, Accurate]);
    (mss, initial_segments, start, feedback, prop::collection::vec((step(), view(), op()), 1..200))
        .prop_map(|(mss, initial_segments, start, feedback, ops)| Plan { mss, initial_segments, start, feedback, ops })
}

/// Does anything at all to a controller, which may do anything but panic.
pub(crate) fn survives(cc: &mut dyn CongestionControl, mss: u32, initial_window: u64, ops: &[(Time, View, Op)]) {
    for (now, view, op) in ops {
        let f = view.flight(*now, mss, initial_window);
        let _ = apply(cc, &f, op);
        match op {
            Op::Switch(which) if which % 2 == 0 => cc.on_established(&f),
            Op::Switch(_) => cc.take_over(cc.window()),
            _ => {}
        }
        let _ = cc.coupled().map(|coupled| coupled.shared());
        let _ = (cc.window(), cc.needs(), cc.pacing_rate(&f), cc.name(), cc.inspect());
    }
}

/// Operations without a connection, at times that go back and forth.
pub(crate) fn chaos() -> impl Strategy<Value = (u32, u64, Vec<(Time, View, Op)>)> {
    let time = any::<u64>().prop_map(Time::from_nanos);
    (any::<u32>(), any::<u64>(), prop::collection::vec((time, view(), op()), 1..50))
}
