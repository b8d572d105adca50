//! Transmissions that were lost, and what the sender learns of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_tcp::Stamp;
use ackclock_units::{Span, Time, prefetch};

use super::cause::Culprit;

/// A transmission that was lost, until the sender has no more to do with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostTransmission {
    number: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    stamp: Stamp,
    pub(super) culprit: Culprit,
    /// A later transmission reached the receiver, which the sender learns.
    pub(super) shown: News,
    /// The smoothed RTT then.
    pub(super) rtt: Option<Span>,
    /// A later transmission brought the first byte, which the sender learns.
    pub(super) repaired: News,
    /// Time of the loss declaration; `true` if it was by timeout.
    pub(super) declared: Option<(Time, bool)>,
    /// The transmission was judged, and some of its bytes were missing then.
    pub(super) was_missing: bool,
    /// The sender is through with it. It stays until those before it are closed too.
    closed: bool,
}

/// Something that happens at the receiver and that the sender learns with its first packet from
/// afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    None,
    /// The news is on its way to the sender.
    Happened,
    Known(Time),
}

/// The news of a loss that reaches the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossEvent {
    Shown,
    Repaired,
}

/// The losses that the sender is not through with. What happens to one of them finds it in a list,
/// so that the work does not grow with their number.
#[derive(Debug)]
pub(super) struct LossTracker {
    /// Losses in order of their numbers, and so of their stamps.
    all: VecDeque<LostTransmission>,
    /// Losses that are not closed.
    open: usize,
    /// Numbers of losses after which no later transmission has reached the receiver, in order.
    unshown: VecDeque<u64>,
    /// First bytes and numbers of those that no later transmission has brought, in order.
    unrepaired: VecDeque<(u64, u64)>,
    /// Events at the receiver since it sent its last packet.
    at_receiver: Vec<(u64, LossEvent)>,
    /// Serial numbers of the receiver's packets, and what the sender learns from them, in order.
    on_way: VecDeque<(u64, u64, LossEvent)>,
    /// Ends and numbers of losses that are not acknowledged, ...
    unacknowledged: BinaryHeap<Reverse<(u64, u64)>>,
    /// ... and numbers of those that are, and only have to be judged.
    unjudged: BinaryHeap<Reverse<u64>>,
    /// Losses looked at.
    #[cfg(test)]
    pub(super) looks: u64,
}

impl LossTracker {
    pub(super) fn new() -> LossTracker {
        LossTracker {
            all: VecDeque::new(),
            open: 0,
            unshown: VecDeque::new(),
            unrepaired: VecDeque::new(),
            at_receiver: Vec::new(),
            on_way: VecDeque::new(),
            unacknowledged: BinaryHeap::new(),
            unjudged: BinaryHeap::new(),
            #[cfg(test)]
            looks: 0,
        }
    }

    /// Starts to fetch the first ones into the cache.
    pub(super) fn prefetch_behind(&self) {
        self.all.front().map(prefetch);
        self.all.back().map(prefetch);
        self.unshown.front().map(prefetch);
        self.unrepaired.front().map(prefetch);
        self.at_receiver.first().map(prefetch);
        self.on_way.front().map(prefetch);
        self.unacknowledged.peek().map(prefetch);
        self.unjudged.peek().map(prefetch);
    }

    /// Returns true if there are open losses.
    #[inline]
    pub(super) fn are_open(&self) -> bool {
        self.open > 0
    }

    /// Nothing is kept of any.
    pub(super) fn are_over(&self) -> bool {
        self.all.is_empty() && self.at_receiver.is_empty() && self.on_way.is_empty()
    }

    /// Returns true if no loss is kept, closed or not.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Transmission `number` of `from..to`, which the sender calls `stamp`, is lost.
    pub(super) fn add(&mut self, number: u64, (from, to): (u64, u64), stamp: Stamp, culprit: Culprit) {
        self.open += 1;
        self.unacknowledged.push(Reverse((to, number)));
        let loss = LostTransmission {
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
        let at = place(self.all.len(), |at| self.all[at].number < number);
        put(&mut self.all, at, loss);
        let at = place(self.unshown.len(), |at| self.unshown[at] < number);
        put(&mut self.unshown, at, number);
        let at = place(self.unrepaired.len(), |at| self.unrepaired[at] < (from, number));
        put(&mut self.unrepaired, at, (from, number));
    }

    /// The loss of transmission `number`, if it is not closed.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut LostTransmission> {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let place = place(self.all.len(), |at| self.all[at].number < number);
        self.all.get_mut(place).filter(|loss| loss.number == number && !loss.closed)
    }

    /// The sender declares the transmission of the byte at `offset` lost that it calls `stamp`;
    /// `false` if it is not among these. The same loss may be declared twice, when the first time
    /// was taken back in between.
    pub(super) fn declare(&mut self, stamp: Stamp, offset: u64, at: Time, by_timeout: bool) -> bool {
        // One that is closed has no bytes any more.
        let range = |at: usize| {
            let loss = &self.all[at];
            (loss.stamp, if loss.closed { loss.to } else { loss.from }, loss.to)
        };
        let place = transmission(self.all.len(), stamp, offset, range);
        if let Some(place) = place {
            self.all[place].declared.get_or_insert((at, by_timeout));
        }
        place.is_some()
    }

    /// Returns true if the arrival of transmission `number` will show a loss to the sender.
    #[inline]
    pub(super) fn are_shown_by(&self, number: u64) -> bool {
        self.unshown.front().is_some_and(|&shown| shown < number)
    }

    /// Transmission `number` has reached the receiver.
    #[inline]
    pub(super) fn arrived(&mut self, number: u64) {
        while let Some(&shown) = self.unshown.front().filter(|&&shown| shown < number) {
            self.unshown.pop_front();
            self.happen(shown, LossEvent::Shown);
        }
    }

    /// Transmission `number` has brought `from..to`.
    pub(super) fn repair(&mut self, number: u64, from: u64, to: u64) {
        let mut place = place(self.unrepaired.len(), |at| self.unrepaired[at].0 < from);
        while let Some(&(_, lost)) = self.unrepaired.get(place).filter(|&&(first, _)| first < to) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if lost < number {
                self.unrepaired.remove(place);
                self.happen(lost, LossEvent::Repaired);
            } else {
                place += 1;
            }
        }
    }

    /// The sender will learn something of a loss.
    fn happen(&mut self, number: u64, learnt: LossEvent) {
        let Some(loss) = self.get(number) else { return };
        match learnt {
            LossEvent::Shown => loss.shown = News::Happened,
            LossEvent::Repaired => loss.repaired = News::Happened,
        }
        self.at_receiver.push((number, learnt));
    }

    /// The receiver sends packet number `serial`.
    #[inline]
    pub(super) fn receiver_sent(&mut self, serial: u64) {
        if !self.at_receiver.is_empty() {
            self.send_news(serial);
        }
    }

    #[inline(never)]
    fn send_news(&mut self, serial: u64) {
        for &(number, learnt) in &self.at_receiver {
            self.on_way.push_back((serial, number, learnt));
        }
        self.at_receiver.clear();
    }

    /// A packet of the receiver has reached the sender, for which then `acked` bytes are
    /// acknowledged and the smoothed RTT is `srtt`.
    pub(super) fn sender_received(&mut self, now: Time, serial: u64, acked: u64, srtt: Option<Span>) {
        while let Some(&(_, number, learnt)) = self.on_way.front().filter(|&&(first, ..)| first <= serial) {
            self.on_way.pop_front();
            let Some(loss) = self.get(number) else { continue };
            match learnt {
                LossEvent::Shown => (loss.shown, loss.rtt) = (News::Known(now), srtt),
                LossEvent::Repaired => loss.repaired = News::Known(now),
            }
        }
        while let Some(&Reverse((_, number))) = self.unacknowledged.peek().filter(|Reverse((to, _))| *to <= acked) {
            self.unacknowledged.pop();
            self.unjudged.push(Reverse(number));
        }
    }

    /// Closes a loss that is acknowledged and was judged, as all transmissions before `judged`
    /// were.
    pub(super) fn close_next(&mut self, judged: u64) -> Option<LostTransmission> {
        while let Some(&Reverse(number)) = self.unjudged.peek().filter(|Reverse(number)| *number < judged) {
            self.unjudged.pop();
            let Some(loss) = self.get(number) else { continue };
            loss.closed = true;
            let loss = *loss;
            self.forget(&loss);
            return Some(loss);
        }
        None
    }

    /// Nothing that happens to a loss matters any more.
    fn forget(&mut self, loss: &LostTransmission) {
        self.open -= 1;
        if let Ok(place) = self.unshown.binary_search(&loss.number) {
            self.unshown.remove(place);
        }
        if let Ok(place) = self.unrepaired.binary_search(&(loss.from, loss.number)) {
            self.unrepaired.remove(place);
        }
        while self.all.front().is_some_and(|loss| loss.closed) {
            self.all.pop_front();
        }
    }

    /// Takes the losses that are open at the end of the run.
    pub(super) fn take_open(&mut self) -> impl Iterator<Item = LostTransmission> + use<> {
        std::mem::take(&mut self.all).into_iter().filter(|loss| !loss.closed)
    }
}

/// The number of those before some place, of `all` in order: mostly none or all.
#[inline]
pub(super) fn place(all: usize, is_before: impl Fn(usize) -> bool) -> usize {
    if all == 0 || !is_before(0) {
        return 0;
    }
    if is_before(all - 1) {
        return all;
    }
    let (mut first, mut end) = (1, all - 1);
    while first < end {
        let middle = first + (end - first) / 2;
        if is_before(middle) { first = middle + 1 } else { end = middle }
    }
    first
}

/// Inserts a value at its place, which is mostly the end.
fn put<T>(values: &mut VecDeque<T>, at: usize, value: T) {
    if at == values.len() {
        values.push_back(value);
    } else {
        values.insert(at, value);
    }
}

/// The place of the transmission of the byte at `offset` that the sender calls `stamp`, among so
/// many in order of sending; `of` has the stamp and the range of each.
pub(super) fn transmission(
    all: usize,
    stamp: Stamp,
    offset: u64,
    of: impl Fn(usize) -> (Stamp, u64, u64),
) -> Option<usize> {
    let is_it = |at: usize| {
        let (sent_at, from, to) = of(at);
        (sent_at == stamp && from <= offset && offset < to).then_some(at)
    };
    // What leaves at one instant is a whole window now and then, mostly in order of the stream.
    let found = place(all, |at| {
        let (sent_at, _, to) = of(at);
        (sent_at, to) <= (stamp, offset)
    });
    (found < all).then(|| is_it(found)).flatten().or_else(|| {
        let mut burst = place(all, |at| of(at).0 < stamp)..place(all, |at| of(at).0 <= stamp);
        burst.find_map(is_it)
    })
}
