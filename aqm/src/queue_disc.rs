//! A queue discipline as its caller sees it: the trait, and what is returned.

use std::any::Any;
use std::fmt::Debug;

use ackclock_units::outside::Failure;
use ackclock_units::{Rate, Time};

use crate::books::{Backlog, Books, Counters, DropReason, Dropped, Drops};
use crate::change::ChangeError;
use crate::limit::Limit;
use crate::probe::{Probe, Variable};
use crate::queued::{Entry, Headers, Queued};
#[cfg(test)]
use crate::stub::Stub;

/// A queue discipline.
///
/// Each packet offered ends, exactly once, dequeued or in the drops. Times never run backwards from
/// call to call. `dequeue` is called when the transmitter becomes free, when a packet arrives at a
/// free transmitter, and at the time of the last [`Dequeue::NotBefore`]. There is no timer hook: a
/// law with a timer (PIE) catches up with every tick that was due before it decides.
pub trait QueueDisc<P: Queued>: Debug + Send {
    /// Accepts a packet or refuses it; packets that the algorithm discards, this one or others, go
    /// to `drops`.
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>);
    /// It is shown the headers of each packet ([`QueueDisc::look`]). Default: no.
    fn looks(&self) -> bool {
        false
    }
    /// The headers of the packet that is offered next. Only where [`QueueDisc::looks`]; a caller
    /// that has none offers the packet without. Default: nothing.
    fn look(&mut self, headers: Headers<'_>) {
        let _ = headers;
    }
    /// The next packet to transmit, or why there is none. A work-conserving discipline gives a
    /// packet whenever one waits; a shaper may hold packets back ([`Dequeue::NotBefore`]). What the
    /// law discards on the way goes to `drops`. Calling it on an empty discipline changes nothing:
    /// [`QueueDisc::idle`] reports an idle link.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P>;
    /// The transmitter is free and nothing waits: an idle period starts at `now`. Called each time
    /// the transmitter becomes free and finds the discipline empty, and after an arrival that was
    /// refused while it was free. Not every caller reports it: a shaper that counts waiting packets
    /// (HTB) never asks an empty queue, and its queues do not learn of idle periods. Default:
    /// nothing.
    #[inline]
    fn idle(&mut self, now: Time) {
        let _ = now;
    }
    /// Whether a packet that arrives at the empty discipline and leaves at the same time is only
    /// counted ([`QueueDisc::pass`]): the law neither drops nor marks it, draws no random number,
    /// and learns nothing from it. A link without a rate then does not ask for every packet.
    /// Default: no.
    fn passes(&self) -> bool {
        false
    }
    /// Counts a packet of `bytes` bytes that passes: offered, enqueued and dequeued. Called in
    /// place of `enqueue`, `dequeue` and `idle`, only where [`QueueDisc::passes`] and nothing
    /// waits.
    fn pass(&mut self, bytes: u32) {
        let _ = bytes;
    }
    /// The limit, if it is a drop-tail queue and no more: a link can then keep what waits where
    /// it keeps what is on its way, and have a [`Fifo`](crate::Fifo) count. Default: it is not.
    fn drop_tail(&self) -> Option<Limit> {
        None
    }
    /// Sets other parameters at run time, as `tc qdisc change` does; `config` is a complete
    /// configuration of the discipline's own type ([`CodelConfig`](crate::CodelConfig) for a
    /// [`Codel`](crate::Codel); of a row, [`QueueSpec::config`](crate::QueueSpec::config)). The
    /// law's measurements and probabilities and the waiting packets are kept, unless the discipline
    /// says otherwise; the next update of a timer stays due when it was. Packets beyond a new limit
    /// are discarded where Linux does so. With an error nothing has changed. Default: no
    /// configuration is accepted.
    ///
    /// # Errors
    /// Parameters of another discipline, or that are out of range; one that only a new discipline
    /// can have.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let _ = (now, config, drops);
        Err(ChangeError::OtherDiscipline)
    }
    /// The packet that the discipline would consider first for its next `dequeue`, for parent
    /// disciplines that need its size or its time (`Qdisc_ops.peek`); `None` if nothing waits.
    /// Nothing is decided: the discipline may still discard the packet, so that another one leaves,
    /// or hold it back. A parent therefore accounts for a packet when it has left. (Where a
    /// kernel's discipline decides on departure, its `peek` takes the packet out and keeps it
    /// aside, `qdisc_peek_dequeued`.)
    fn peek(&self) -> Option<&Entry<P>>;
    /// Its books, which balance after every call.
    fn books(&self) -> &Books;
    /// Waiting packets and bytes. Default: those of the books.
    fn backlog(&self) -> Backlog {
        self.books().backlog()
    }
    /// Totals since the start. Default: those of the books.
    fn counters(&self) -> &Counters {
        self.books().counters()
    }
    /// The algorithm's own variables, for traces; with several queues, those of the queue concerned
    /// by the last call. Default: none.
    fn probe(&self) -> Probe {
        Probe::default()
    }
    /// The integral of the probability over the time until `now`, in seconds, where it moves by
    /// steps that the law knows the times of: its mean over a part of a run is a difference of two
    /// such values. Default: none.
    fn probability_time(&self, _now: Time) -> Option<f64> {
        None
    }
    /// Calls `see` for each variable that the law has, with its name as `tc -s` or the law's source
    /// has it, and its value now: those of [`QueueDisc::probe`], and what only this law knows. A
    /// law with several queues says how many are in use, and of which one the others are. Default:
    /// those of the probe.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        self.probe().variables(see);
    }
    /// Calls `see` for each class of a tree, in the order of the configuration; the values of a
    /// class above others are the sums of those below. Default: there are no classes.
    fn classes(&self, see: &mut dyn FnMut(ClassState<'_>)) {
        let _ = see;
    }
    /// Why it cannot go on, for a discipline from outside; the run then fails. Asked now and then:
    /// the hooks are called until then.
    fn failure(&self) -> Option<&Failure> {
        None
    }
    /// Gives up all packets, because another discipline takes its place: they go to `drops`,
    /// whatever the books say, and no other hook is called any more. Default: what `dequeue` gives
    /// until nothing waits.
    fn purge(&mut self, now: Time, drops: &mut Drops<P>) {
        let mut at = now;
        loop {
            match self.dequeue(at, drops) {
                Dequeue::Packet(entry) => drops.push(Dropped { packet: entry.packet, reason: DropReason::Purge }),
                Dequeue::NotBefore(later) => at = later,
                Dequeue::Empty => return,
            }
        }
    }
    /// The run is over at `now`, and no other hook is called any more: a discipline from outside is
    /// held to account for the packets that it has. Default: nothing.
    fn audit(&mut self, now: Time) {
        let _ = now;
    }
}

/// The result of [`QueueDisc::dequeue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue<P> {
    /// The next packet to transmit.
    Packet(Entry<P>),
    /// Packets wait, but none may leave before this time, which is later than now. The caller asks
    /// again then, and after each arrival, since one may make an earlier time possible.
    NotBefore(Time),
    /// The queue is empty.
    Empty,
}

impl<P> Dequeue<P> {
    /// The packet, if there is one.
    #[inline]
    pub fn packet(self) -> Option<Entry<P>> {
        match self {
            Dequeue::Packet(entry) => Some(entry),
            Dequeue::NotBefore(_) | Dequeue::Empty => None,
        }
    }
}

impl<P> From<Option<Entry<P>>> for Dequeue<P> {
    /// `None` is an empty queue.
    #[inline]
    fn from(entry: Option<Entry<P>>) -> Dequeue<P> {
        entry.map_or(Dequeue::Empty, Dequeue::Packet)
    }
}

/// The values of a class now.
#[derive(Clone, Copy, Debug)]
pub struct ClassState<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its rate without borrowing.
    pub rate: Option<Rate>,
    /// Totals since the start.
    pub counters: &'a Counters,
    /// Waiting packets and bytes.
    pub backlog: Backlog,
    /// The probability of a leaf's law.
    pub probability: Option<f64>,
}

/// `dequeue` returns through memory either way; the enum takes no more of it than an `Option` did.
#[cfg(test)]
const _: () = assert!(size_of::<Dequeue<Stub>>() == size_of::<Option<Entry<Stub>>>());
