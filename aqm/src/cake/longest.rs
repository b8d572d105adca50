//! The longest of all queues: a heap that exists only while queues overflow.
//!
//! # Source
//! Linux `net/sched/sch_cake.c`: `cake_heap*`, and the parts of `cake_drop` and `cake_dequeue` that
//! make it and let it lapse.

use super::tin::{MAX_TINS, QUEUES};

/// Departures for which the heap is kept after a drop.
const LIFE: u16 = u16::MAX;

/// The backlogs of all queues, by [`id`].
#[derive(Debug)]
pub(super) struct Longest {
    backlogs: Box<[u64]>,
    /// Queues, of which each was not shorter than those at twice its place when it was put there.
    heap: Box<[u16]>,
    /// The place of each queue.
    places: Box<[u16]>,
    /// Departures until the heap lapses.
    life: u16,
}

/// The number of a tin's queue.
pub(super) const fn id(tin: usize, flow: usize) -> usize {
    flow * MAX_TINS + tin
}

/// The tin and the queue of a number.
pub(super) const fn of_id(id: usize) -> (usize, usize) {
    (id % MAX_TINS, id / MAX_TINS)
}

impl Longest {
    pub(super) fn new() -> Longest {
        const ALL: usize = MAX_TINS * QUEUES;
        let in_order: Box<[u16]> = (0..ALL as u16).collect();
        Longest { backlogs: vec![0; ALL].into(), heap: in_order.clone(), places: in_order, life: 0 }
    }

    pub(super) fn backlog(&self, id: usize) -> u64 {
        self.backlogs[id]
    }

    /// A queue has grown.
    #[inline]
    pub(super) fn add(&mut self, id: usize, bytes: u32) {
        self.backlogs[id] += u64::from(bytes);
        if self.life > 0 {
            self.rise(self.places[id].into());
        }
    }

    /// Another packet has taken the place of one inside.
    pub(super) fn replace(&mut self, id: usize, removed: u32) {
        self.backlogs[id] -= u64::from(removed);
    }

    /// A queue has shrunk.
    #[inline]
    pub(super) fn remove(&mut self, id: usize, bytes: u32) {
        self.backlogs[id] -= u64::from(bytes);
        if self.life > 0 {
            self.sink(self.places[id].into());
        }
    }

    /// A packet has left.
    #[inline]
    pub(super) fn age(&mut self) {
        self.life = self.life.saturating_sub(1);
    }

    /// The queue at the top, which is the longest where the heap is new.
    pub(super) fn top(&mut self) -> usize {
        if self.life == 0 {
            (0..self.heap.len() / 2).rev().for_each(|place| self.sink(place));
        }
        self.life = LIFE;
        self.heap[0].into()
    }

    /// The top was found empty: the heap is made anew.
    pub(super) fn lapse(&mut self) {
        self.life = 0;
    }

    fn at(&self, place: usize) -> u64 {
        self.backlogs[usize::from(self.heap[place])]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.places[usize::from(self.heap[place])] = place as u16;
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.at(place) > self.at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// Lets the longer child take the place, one level at a time: the source compares the levels
    /// below with the child that has risen, not with the queue that sinks.
    fn sink(&mut self, mut place: usize) {
        let mut longest = self.at(place);
        loop {
            let mut best = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.at(child) > longest {
                    (best, longest) = (child, self.at(child));
                }
            }
            if best == place {
                return;
            }
            self.swap(place, best);
            place = best;
        }
    }
}
