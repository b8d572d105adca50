//! What became of every transmission of a flow: which retransmissions were needed, and whose fault that was, and how late
//! a loss was noticed. Only who sees the whole path can tell.
//!
//! Transmissions with data are numbered in order of sending. Their fates come in any order and are judged in order: when
//! it is a transmission's turn, it is known of every earlier one whether it arrived, so that the bytes that no earlier one
//! has brought ([`Truth::missing`]) are known exactly. A retransmission of some of them was needed. That is the same whether
//! the retransmission came before or after the fate of the original; it costs nothing but the wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use ackclock_tcp::{LossDeclaration, SentAs, Stamp};
use ackclock_trace::{
    Displacement, Distribution, Histogram, LossDeclarations, Retransmissions, SignedHistogram, Verdict,
};
use ackclock_units::{Span, Time};

use crate::record::{TcpFact, TcpRecording};

/// What stands for a link where the receiver refused data.
pub(crate) const RECEIVER: &str = "receiver";
/// Why a receiver refuses data: it does not fit into its window, or is too old by its timestamp (PAWS).
const REFUSED: &str = "refused";

/// Repair times are counted in thousandths of an RTT.
const RTT_PARTS: f64 = 1e3;

/// Who lost a packet, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Culprit {
    /// The link direction; `None` is the receiver.
    pub(crate) direction: Option<usize>,
    pub(crate) reason: &'static str,
    pub(crate) probability: Option<f64>,
}

impl Culprit {
    const RECEIVER: Culprit = Culprit { direction: None, reason: REFUSED, probability: None };

    fn verdict(self) -> Verdict<'static> {
        // The link's name is filled in where the record is written.
        Verdict::Lost { link: "", reason: self.reason, probability: self.probability }
    }
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its range of the stream; a FIN is the byte after the last one.
    from: u64,
    to: u64,
    sent_at: Time,
    /// Its time as the sender orders it.
    stamp: Stamp,
    fate: Fate,
    /// When that was decided.
    fate_at: Time,
    sent_as: SentAs,
    /// Some of the range had been sent before.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    OnItsWay,
    Lost,
    /// It was the n-th to arrive, from 1, and the receiver has all of it, or it was refused.
    Arrived {
        place: u64,
        kept: bool,
    },
}

/// Bytes that no transmission so far has brought.
#[derive(Clone, Copy, Debug)]
struct Missing {
    from: u64,
    to: u64,
    /// Who lost the last one.
    culprit: Culprit,
}

/// A transmission that was lost, until the sender has no more to do with it.
#[derive(Clone, Copy, Debug)]
struct Loss {
    number: u64,
    from: u64,
    to: u64,
    stamp: Stamp,
    culprit: Culprit,
    /// A later transmission reached the receiver, which the sender learns.
    shown: News,
    /// The smoothed RTT then.
    rtt: Option<Span>,
    /// A later transmission brought the first byte, which the sender learns.
    repaired: News,
    /// When it was taken for lost, and whether by timeout.
    declared: Option<(Time, bool)>,
    /// It was judged, and some of it was missing then.
    was_missing: bool,
    /// The sender is through with it. It stays until those before it are closed too.
    closed: bool,
}

/// Something that happens at the receiver and that the sender learns with its first packet from afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    /// On its way to the sender.
    Happened,
    Known(Time),
}

/// What the sender learns of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Learnt {
    Shown,
    Repaired,
}

/// A transmission that was taken for lost before its fate was judged.
#[derive(Clone, Copy, Debug)]
struct Declared {
    number: u64,
    at: Time,
    by_timeout: bool,
}

/// The transmissions of one flow and the measures on them. In constant memory but for what is in flight or lost.
#[derive(Debug)]
pub(crate) struct Truth {
    /// The flow's number.
    flow: usize,
    /// Transmissions that were not judged yet, in order of sending.
    sent: VecDeque<Sent>,
    /// Number of the first of them.
    first: u64,
    /// One past the highest byte sent.
    end: u64,
    arrivals: u64,
    /// Of those judged, how many did not arrive.
    losses_before: u64,
    /// When all of those judged were decided.
    judged_at: Time,
    /// What no transmission judged so far has brought, in order, disjoint.
    missing: VecDeque<Missing>,
    /// In order of their numbers, and so of their stamps. What happens to one of them finds it in the lists below, so that the
    /// work does not grow with their number.
    losses: VecDeque<Loss>,
    /// How many of them are not closed.
    open: usize,
    /// Their numbers as long as no later transmission has reached the receiver, in order.
    unshown: VecDeque<u64>,
    /// First bytes and numbers of those that no later transmission has brought, in order.
    unrepaired: VecDeque<(u64, u64)>,
    /// What has happened at the receiver since it sent its last packet.
    at_receiver: Vec<(u64, Learnt)>,
    /// Serial numbers of the receiver's packets, and what the sender learns from them, in order.
    on_way: VecDeque<(u64, u64, Learnt)>,
    /// Ends and numbers of losses that are not acknowledged, ...
    unacknowledged: BinaryHeap<Reverse<(u64, u64)>>,
    /// ... and numbers of those that are, and only have to be judged.
    unjudged: BinaryHeap<Reverse<u64>>,
    /// In order of their numbers.
    declared: VecDeque<Declared>,
    /// Packets that the receiver has sent.
    serial: u64,

    needed: u64,
    spurious_reordering: u64,
    spurious_delay: u64,
    by_culprit: Vec<(Option<usize>, &'static str, u64)>,
    declarations: LossDeclarations,
    late: Histogram,
    repair: Histogram,
    /// Transmissions that arrived in their places; the displacements of the others.
    on_time: u64,
    displacement: SignedHistogram,
    /// Losses looked at.
    #[cfg(test)]
    looks: u64,
}

impl Truth {
    pub(crate) fn new(flow: usize) -> Truth {
        Truth {
            flow,
            sent: VecDeque::new(),
            first: 1,
            end: 0,
            arrivals: 0,
            losses_before: 0,
            judged_at: Time::ZERO,
            missing: VecDeque::new(),
            losses: VecDeque::new(),
            open: 0,
            unshown: VecDeque::new(),
            unrepaired: VecDeque::new(),
            at_receiver: Vec::new(),
            on_way: VecDeque::new(),
            unacknowledged: BinaryHeap::new(),
            unjudged: BinaryHeap::new(),
            declared: VecDeque::new(),
            serial: 0,
            needed: 0,
            spurious_reordering: 0,
            spurious_delay: 0,
            by_culprit: Vec::new(),
            declarations: LossDeclarations::default(),
            late: Histogram::new(),
            repair: Histogram::new(),
            on_time: 0,
            displacement: SignedHistogram::new(),
            #[cfg(test)]
            looks: 0,
        }
    }

    /// The sender sends `from..to`, at a time that it calls `stamp`; returns the number of the transmission.
    pub(crate) fn sent(&mut self, now: Time, stamp: Stamp, from: u64, to: u64, sent_as: SentAs) -> u64 {
        let again = from < self.end;
        self.end = self.end.max(to);
        let fate = Fate::OnItsWay;
        self.sent.push_back(Sent { from, to, sent_at: now, stamp, fate, fate_at: Time::ZERO, sent_as, again });
        self.first + self.sent.len() as u64 - 1
    }

    /// A transmission was lost on its way. Its last copy, if it was doubled.
    pub(crate) fn lost(&mut self, at: Time, number: u64, culprit: Culprit, log: Option<&mut TcpRecording>) {
        let Some((index, sent)) = self.on_its_way(number) else { return };
        (sent.fate, sent.fate_at) = (Fate::Lost, at);
        self.lose(number, index, culprit);
        if index == 0 {
            self.judge(log);
        }
    }

    /// A transmission reached the receiver; `holds` tells whether the receiver now has a range.
    pub(crate) fn arrived(
        &mut self,
        now: Time,
        number: u64,
        holds: impl FnOnce(u64, u64) -> bool,
        log: Option<&mut TcpRecording>,
    ) {
        let place = self.arrivals + 1;
        let Some((index, sent)) = self.on_its_way(number) else { return };
        let (from, to, again) = (sent.from, sent.to, sent.again);
        let kept = holds(from, to);
        if index == 0 && kept && !again && self.is_quiet() && place + self.losses_before == number {
            // The common case: everything before it has arrived in order, and nobody thinks otherwise.
            self.sent.pop_front();
            self.first += 1;
            self.judged_at = self.judged_at.max(now);
            self.arrivals = place;
            self.on_time += 1;
            return;
        }
        let sent = &mut self.sent[index];
        (sent.fate, sent.fate_at) = (Fate::Arrived { place, kept }, now);
        self.arrivals = place;
        while let Some(&shown) = self.unshown.front().filter(|&&shown| shown < number) {
            self.unshown.pop_front();
            self.happen(shown, Learnt::Shown);
        }
        if kept && again {
            self.repair(number, from, to);
        }
        if !kept {
            self.lose(number, index, Culprit::RECEIVER);
        }
        if index == 0 {
            self.judge(log);
        }
    }

    /// A transmission whose fate is open, with its place. A second copy changes no fate.
    fn on_its_way(&mut self, number: u64) -> Option<(usize, &mut Sent)> {
        let index = number.checked_sub(self.first)? as usize;
        Some((index, self.sent.get_mut(index).filter(|sent| sent.fate == Fate::OnItsWay)?))
    }

    /// Nothing is lost, missing, or taken for lost.
    fn is_quiet(&self) -> bool {
        self.open == 0 && self.declared.is_empty() && self.missing.is_empty()
    }

    /// The sender will learn something of a loss.
    fn happen(&mut self, number: u64, learnt: Learnt) {
        let Some(loss) = self.loss(number) else { return };
        match learnt {
            Learnt::Shown => loss.shown = News::Happened,
            Learnt::Repaired => loss.repaired = News::Happened,
        }
        self.at_receiver.push((number, learnt));
    }

    /// Transmission `number` has brought `from..to`.
    fn repair(&mut self, number: u64, from: u64, to: u64) {
        let mut place = self.unrepaired.partition_point(|&(first, _)| first < from);
        while let Some(&(_, lost)) = self.unrepaired.get(place).filter(|&&(first, _)| first < to) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if lost < number {
                self.unrepaired.remove(place);
                self.happen(lost, Learnt::Repaired);
            } else {
                place += 1;
            }
        }
    }

    fn lose(&mut self, number: u64, index: usize, culprit: Culprit) {
        let Sent { from, to, stamp, .. } = self.sent[index];
        self.open += 1;
        self.unacknowledged.push(Reverse((to, number)));
        let loss = Loss {
            number,
            from,
            to,
            stamp,
            culprit,
            shown: News::None,
            rtt: None,
            repaired: News::None,
            declared: None,
            was_missing: false,
            closed: false,
        };
        // Nearly always the last ones.
        let place = self.losses.partition_point(|before| before.number < number);
        self.losses.insert(place, loss);
        let place = self.unshown.partition_point(|&before| before < number);
        self.unshown.insert(place, number);
        let place = self.unrepaired.partition_point(|&before| before < (from, number));
        self.unrepaired.insert(place, (from, number));
    }

    /// The loss of transmission `number`, if it is not closed.
    fn loss(&mut self, number: u64) -> Option<&mut Loss> {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let place = self.losses.partition_point(|loss| loss.number < number);
        self.losses.get_mut(place).filter(|loss| loss.number == number && !loss.closed)
    }

    /// The place of the first range of missing bytes that ends behind `from`.
    fn missing_from(&self, from: u64) -> usize {
        self.missing.partition_point(|missing| missing.to <= from)
    }

    /// The receiver sends a packet; returns its number.
    pub(crate) fn receiver_sent(&mut self) -> u64 {
        self.serial += 1;
        if !self.at_receiver.is_empty() {
            let serial = self.serial;
            self.on_way.extend(self.at_receiver.drain(..).map(|(number, learnt)| (serial, number, learnt)));
        }
        self.serial
    }

    /// A packet of the receiver arrived at the sender, for which then `acked` bytes are acknowledged and the smoothed RTT is
    /// `srtt`.
    pub(crate) fn sender_received(
        &mut self,
        now: Time,
        serial: u64,
        acked: u64,
        srtt: Option<Span>,
        mut log: Option<&mut TcpRecording>,
    ) {
        while let Some(&(_, number, learnt)) = self.on_way.front().filter(|&&(first, ..)| first <= serial) {
            self.on_way.pop_front();
            let Some(loss) = self.loss(number) else { continue };
            match learnt {
                Learnt::Shown => (loss.shown, loss.rtt) = (News::Known(now), srtt),
                Learnt::Repaired => loss.repaired = News::Known(now),
            }
        }
        while let Some(&Reverse((_, number))) = self.unacknowledged.peek().filter(|Reverse((to, _))| *to <= acked) {
            self.unacknowledged.pop();
            self.unjudged.push(Reverse(number));
        }
        while let Some(&Reverse(number)) = self.unjudged.peek().filter(|Reverse(number)| *number < self.first) {
            self.unjudged.pop();
            let Some(loss) = self.loss(number) else { continue };
            loss.closed = true;
            let loss = *loss;
            self.forget(&loss);
            self.close(now, &loss, log.as_deref_mut());
        }
    }

    /// Nothing that happens to a loss matters any more.
    fn forget(&mut self, loss: &Loss) {
        self.open -= 1;
        if let Ok(place) = self.unshown.binary_search(&loss.number) {
            self.unshown.remove(place);
        }
        if let Ok(place) = self.unrepaired.binary_search(&(loss.from, loss.number)) {
            self.unrepaired.remove(place);
        }
        while self.losses.front().is_some_and(|loss| loss.closed) {
            self.losses.pop_front();
        }
    }

    /// Whether there are losses that the sender is not through with.
    #[inline]
    pub(crate) fn has_losses(&self) -> bool {
        self.open > 0
    }

    /// Nothing more will happen to a loss.
    fn close(&mut self, now: Time, loss: &Loss, log: Option<&mut TcpRecording>) {
        let late = match (loss.declared, loss.shown) {
            (Some((at, _)), News::Known(known)) => Some(at.as_nanos() as i64 - known.as_nanos() as i64),
            _ => None,
        };
        if let Some((at, by_timeout)) = loss.declared {
            self.declarations.right += 1;
            match late.and_then(|late| u64::try_from(late).ok()) {
                Some(late) => self.late.add(late),
                None => self.declarations.blind += 1,
            }
            if let Some(log) = log {
                let fact = self.fact(loss.from, loss.to, at, declared_by(by_timeout), loss.culprit.verdict(), late);
                log.add(now, self.flow, TcpFact::Declaration(fact, loss.culprit.direction));
            }
        }
        if let (News::Known(shown), News::Known(repaired), Some(rtt), true) =
            (loss.shown, loss.repaired, loss.rtt, loss.was_missing)
            && rtt > Span::ZERO
            && late.is_none_or(|late| late >= 0)
        {
            // What was declared before has often become known by its own repair.
            let rtts = repaired.since(shown).as_secs_f64() / rtt.as_secs_f64();
            self.repair.add((rtts * RTT_PARTS).round() as u64);
        }
    }

    /// The sender takes a transmission for lost.
    pub(crate) fn declared(&mut self, now: Time, declared: LossDeclaration, log: Option<&mut TcpRecording>) {
        let LossDeclaration { offset, len, stamp, by_timeout } = declared;
        // The same loss may be declared twice, when the first time was taken back in between.
        // One that is closed has no bytes any more.
        let range = |loss: &Loss| (loss.stamp, if loss.closed { loss.to } else { loss.from }, loss.to);
        if let Some(place) = transmission(&self.losses, stamp, offset, range) {
            self.losses[place].declared.get_or_insert((now, by_timeout));
            return;
        }
        match transmission(&self.sent, stamp, offset, |sent| (sent.stamp, sent.from, sent.to)) {
            Some(place) => {
                let number = self.first + place as u64;
                if let Err(place) = self.declared.binary_search_by_key(&number, |declared| declared.number) {
                    self.declared.insert(place, Declared { number, at: now, by_timeout });
                }
            }
            // It was judged before, and is not among the losses: it arrived.
            None => self.declared_wrongly(now, now, (offset, offset + u64::from(len)), by_timeout, log),
        }
    }

    fn declared_wrongly(
        &mut self,
        now: Time,
        at: Time,
        (from, to): (u64, u64),
        by_timeout: bool,
        log: Option<&mut TcpRecording>,
    ) {
        self.declarations.wrong += 1;
        if let Some(log) = log {
            let verdict = if by_timeout { Verdict::Delayed } else { Verdict::Reordered };
            let fact = self.fact(from, to, at, declared_by(by_timeout), verdict, None);
            log.add(now.max(at), self.flow, TcpFact::Declaration(fact, None));
        }
    }

    fn fact(
        &self,
        from: u64,
        to: u64,
        since: Time,
        cause: &'static str,
        verdict: Verdict<'static>,
        late: Option<i64>,
    ) -> ackclock_trace::Judged<'static> {
        ackclock_trace::Judged { seq: from, len: (to - from) as u32, since, cause, verdict, late }
    }

    /// Judges, in order of sending, every transmission up to the first whose fate is open.
    fn judge(&mut self, mut log: Option<&mut TcpRecording>) {
        while let Some(&sent) = self.sent.front().filter(|sent| sent.fate != Fate::OnItsWay) {
            self.sent.pop_front();
            let number = self.first;
            self.first += 1;
            self.judged_at = self.judged_at.max(sent.fate_at);
            self.place(number, &sent);
            self.judge_one(number, &sent, log.as_deref_mut());
        }
    }

    /// Measures the displacement: the place among those that arrived less the place among those sent that arrive.
    fn place(&mut self, number: u64, sent: &Sent) {
        match sent.fate {
            Fate::Arrived { place, .. } => match place as i64 - (number - self.losses_before) as i64 {
                0 => self.on_time += 1,
                displaced => self.displacement.add(displaced),
            },
            Fate::Lost | Fate::OnItsWay => self.losses_before += 1,
        }
    }

    fn judge_one(&mut self, number: u64, sent: &Sent, mut log: Option<&mut TcpRecording>) {
        let kept = matches!(sent.fate, Fate::OnItsWay | Fate::Arrived { kept: true, .. });
        if sent.again {
            self.judge_retransmission(sent, log.as_deref_mut());
        }
        if let Some(&Declared { at, by_timeout, .. }) =
            self.declared.front().filter(|declared| declared.number == number)
        {
            self.declared.pop_front();
            match self.loss(number) {
                Some(loss) => _ = loss.declared.get_or_insert((at, by_timeout)),
                None => self.declared_wrongly(self.judged_at, at, (sent.from, sent.to), by_timeout, log),
            }
        }
        if kept {
            if sent.again {
                self.bring(sent.from, sent.to);
            }
            return;
        }
        let first = self.missing_from(sent.from);
        let was_missing = !sent.again || self.missing.get(first).is_some_and(|missing| missing.from < sent.to);
        let Some(loss) = self.loss(number) else { return };
        loss.was_missing = was_missing;
        let culprit = loss.culprit;
        if sent.again {
            let overlap = self.missing.range_mut(first..).take_while(|missing| missing.from < sent.to);
            overlap.for_each(|missing| missing.culprit = culprit);
        } else {
            // New data lies behind all other.
            self.missing.push_back(Missing { from: sent.from, to: sent.to, culprit });
        }
    }

    fn judge_retransmission(&mut self, sent: &Sent, log: Option<&mut TcpRecording>) {
        let missing = self.missing.get(self.missing_from(sent.from)).filter(|missing| missing.from < sent.to);
        let culprit = missing.map(|missing| missing.culprit);
        let verdict = match (culprit, sent.sent_as) {
            (Some(culprit), _) => culprit.verdict(),
            (None, SentAs::Timeout | SentAs::TailLossProbe | SentAs::WindowProbe) => Verdict::Delayed,
            (None, _) => Verdict::Reordered,
        };
        match verdict {
            Verdict::Lost { .. } => self.needed += 1,
            Verdict::Reordered => self.spurious_reordering += 1,
            Verdict::Delayed => self.spurious_delay += 1,
        }
        if let Some(Culprit { direction, reason, .. }) = culprit {
            let known = self.by_culprit.iter_mut().find(|known| (known.0, known.1) == (direction, reason));
            match known {
                Some(known) => known.2 += 1,
                None => self.by_culprit.push((direction, reason, 1)),
            }
        }
        if let Some(log) = log {
            let fact = self.fact(sent.from, sent.to, sent.sent_at, sent.sent_as.name(), verdict, None);
            let direction = culprit.and_then(|culprit| culprit.direction);
            log.add(self.judged_at, self.flow, TcpFact::Retransmission(fact, direction));
        }
    }

    /// A retransmission of `from..to` reached the receiver.
    fn bring(&mut self, from: u64, to: u64) {
        let mut index = self.missing_from(from);
        while let Some(&missing) = self.missing.get(index).filter(|missing| missing.from < to) {
            self.missing.remove(index);
            for (left, right) in [(missing.from, from), (to, missing.to)] {
                if left < right {
                    self.missing.insert(index, Missing { from: left, to: right, ..missing });
                    index += 1;
                }
            }
        }
    }

    /// The run is over: what is on its way is not lost.
    pub(crate) fn finish(&mut self, end: Time, mut log: Option<&mut TcpRecording>) {
        self.judged_at = end;
        while let Some(sent) = self.sent.pop_front() {
            let number = self.first;
            self.first += 1;
            self.place(number, &sent);
            self.judge_one(number, &sent, log.as_deref_mut());
        }
        for loss in std::mem::take(&mut self.losses).into_iter().filter(|loss| !loss.closed) {
            self.close(end, &loss, log.as_deref_mut());
        }
    }

    /// What the retransmissions were; `link` is the name of a direction.
    pub(crate) fn retransmissions<'a>(&self, link: impl Fn(usize) -> &'a str) -> Retransmissions {
        let mut by_queue: BTreeMap<String, BTreeMap<&'static str, u64>> = BTreeMap::new();
        for &(direction, reason, count) in &self.by_culprit {
            let name = direction.map_or(RECEIVER, &link).to_owned();
            by_queue.entry(name).or_default().insert(reason, count);
        }
        Retransmissions {
            needed: self.needed,
            spurious_reordering: self.spurious_reordering,
            spurious_delay: self.spurious_delay,
            by_queue,
        }
    }

    /// What was taken for lost.
    pub(crate) fn declarations(&self) -> LossDeclarations {
        self.declarations
    }

    /// How late losses were declared, in ms.
    pub(crate) fn late_ms(&self) -> Distribution {
        self.late.distribution(1e-6)
    }

    /// How late losses were repaired, in RTTs.
    pub(crate) fn repair_rtts(&self) -> Distribution {
        self.repair.distribution(1.0 / RTT_PARTS)
    }

    /// How far packets arrived from their places.
    pub(crate) fn displacement(&self) -> Displacement {
        let mut displacement = self.displacement.clone();
        displacement.add_repeated(0, self.on_time);
        let (all, early) = (displacement.samples(), displacement.negatives());
        let share = |part: u64| if all > 0 { part as f64 / all as f64 } else { 0.0 };
        Displacement {
            early: share(early),
            on_time: share(self.on_time),
            late: share(all - early - self.on_time),
            distribution: displacement.distribution(1.0),
        }
    }
}

/// The place of the transmission of the byte at `offset` that the sender calls `stamp`, among some in order of sending.
fn transmission<T>(
    all: &VecDeque<T>,
    stamp: Stamp,
    offset: u64,
    of: impl Fn(&T) -> (Stamp, u64, u64),
) -> Option<usize> {
    let is_it = |at: usize| {
        let (sent_at, from, to) = of(all.get(at)?);
        (sent_at == stamp && from <= offset && offset < to).then_some(at)
    };
    // What leaves at one instant is a whole window now and then, mostly in order of the stream.
    let place = all.partition_point(|one| {
        let (sent_at, _, to) = of(one);
        (sent_at, to) <= (stamp, offset)
    });
    is_it(place).or_else(|| {
        let burst = all.partition_point(|one| of(one).0 < stamp)..all.partition_point(|one| of(one).0 <= stamp);
        burst.into_iter().find_map(is_it)
    })
}

fn declared_by(timeout: bool) -> &'static str {
    if timeout { "timeout" } else { "detector" }
}

#[cfg(test)]
mod tests;
