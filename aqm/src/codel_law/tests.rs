use std::collections::VecDeque;

use super::*;
use crate::stub::{Stub, stub};

const MS: u64 = 1_000_000;

/// A queue of packets of 1500 bytes, which arrived at these times in nanoseconds.
struct WaitingPacket {
    packets: VecDeque<Entry<Stub>>,
    dropped: u32,
}

impl WaitingPacket {
    fn new(arrivals: impl IntoIterator<Item = u64>) -> WaitingPacket {
        let entry = |(id, at)| Entry { packet: stub(id, 1500), enqueued_at: Time::from_nanos(at) };
        WaitingPacket { packets: (0..).zip(arrivals).map(entry).collect(), dropped: 0 }
    }
}

impl CodelSource<Stub> for WaitingPacket {
    fn take(&mut self) -> Option<Entry<Stub>> {
        self.packets.pop_front()
    }

    fn backlog_bytes(&self) -> u64 {
        1500 * self.packets.len() as u64
    }

    fn discard(&mut self, _: Entry<Stub>) {
        self.dropped += 1;
    }

    fn mark(&mut self, _: &mut Stub) -> bool {
        false
    }
}

fn law(control_law: ControlLaw, target: Span, interval: Span) -> CodelLaw {
    CodelLaw::new(control_law, [target, interval], None, false, 1514)
}

fn usual(control_law: ControlLaw) -> CodelLaw {
    law(control_law, Span::from_millis(5), Span::from_millis(100))
}

#[test]
fn exact_gaps_close_up_with_the_square_root_of_their_count() {
    let law = usual(ControlLaw::Rfc8289);
    let gap = |count| CodelState { count, ..CodelState::new() }.control_law(&law, 0);
    for (count, nanos) in [(1, 100_000_000), (2, 70_710_678), (3, 57_735_026), (4, 50_000_000), (100, 10_000_000)] {
        assert_eq!(gap(count), nanos, "count {count}");
    }
    // The count wraps; the law must not panic there. An infinite step saturates.
    assert_eq!(gap(0), u64::MAX);
}

/// From 65,535: 3 * 2^32 - 2 * 4,294,836,225 = 4,295,229,438, a quarter of it times 4,294,901,760 /
/// 2^47 = 32,769.5, truncated. From there on the root is known to 3 %.
#[test]
fn newton_follows_a_count_that_climbs() {
    assert_eq!(newton(u16::MAX, 2), 32_769);
    let mut root = u16::MAX;
    for count in 2..1000u32 {
        root = newton(root, count);
        let exact = 65_536.0 / f64::from(count).sqrt();
        if count >= 3 {
            assert!((f64::from(root) / exact - 1.0).abs() < 0.03, "count {count}: {root} for {exact}");
        }
    }
}

/// The comment on [`ControlLaw::Linux`] about jumps. Down: from 40 to 9 the root of 1/3 is asked
/// for and 0.158 / 2 * (3 - 9 / 40) = 0.219 given, 0.66 of it; the larger the jump, the nearer to
/// 1.5 times the root before.
#[test]
fn newton_is_far_off_where_the_count_jumps() {
    let at = |count: u32| (2..=count).fold(u16::MAX, newton);
    let ratio = |from: u32, to: u32| f64::from(newton(at(from), to)) * f64::from(to).sqrt() / 65_536.0;
    for (from, to, expected) in [(40, 9, 0.66), (40, 4, 0.46), (100, 4, 0.30), (100, 2, 0.21)] {
        assert!((ratio(from, to) - expected).abs() < 0.01, "{from} to {to}: {}", ratio(from, to));
    }
    // Up by a batch of 64: 0.1 / 2 * (3 - 165 / 100) = 0.0675 for 0.0778, but 0.158 / 2 * (3 - 105
    // / 40) = 0.0296 for 0.0976.
    assert!((ratio(100, 165) - 0.87).abs() < 0.02, "{}", ratio(100, 165));
    assert!((ratio(40, 105) - 0.30).abs() < 0.03, "{}", ratio(40, 105));
    // From 4 to 69 the step would be negative, 0.5 / 2 * (3 - 69 / 4) = -3.56: it wraps to what 16
    // bits leave of it.
    let wrapped = newton(at(4), 69);
    let gap = f64::from(wrapped) / 65_536.0;
    assert!(gap > 2.0 / 69f64.sqrt(), "{gap}");
}

/// 1,000,000 ns are 976.56 units of 1.024 us, 5 ms are 4882, 100 ms 97,656; a gap at count 1 is
/// 97,656 * 65,535 / 65,536.
#[test]
fn linux_counts_in_units_of_1024_ns() {
    let law = usual(ControlLaw::Linux);
    assert_eq!((law.target, law.interval), (4882, 97_656));
    let entered = CodelState { count: 1, reciprocal_root: u16::MAX, ..CodelState::new() };
    assert_eq!(entered.control_law(&law, 1000), 1000 + 97_654);
    assert_eq!(law.units(Time::from_millis(1)), 976);
}

/// The head of 0 ns is above the target for the first time at `first` ns; when it may first be
/// dropped.
fn first_drop(law: &CodelLaw, first: u64, at: [u64; 2]) -> [u32; 2] {
    at.map(|at| {
        let mut state = CodelState::new();
        let mut queue = WaitingPacket::new([0; 10]);
        state.dequeue(law, Time::from_nanos(first), &mut queue);
        state.dequeue(law, Time::from_nanos(at), &mut queue);
        queue.dropped
    })
}

/// The RFC drops at the end of the interval, Linux in the unit after it: 4882 + 97,656 + 1 =
/// 102,539.
#[test]
fn linux_wants_the_interval_to_be_over() {
    let rfc = usual(ControlLaw::Rfc8289);
    assert_eq!(first_drop(&rfc, 5 * MS, [105 * MS - 1, 105 * MS]), [0, 1]);
    let linux = usual(ControlLaw::Linux);
    assert_eq!(first_drop(&linux, 5 * MS, [102_539 * 1024 - 1, 102_539 * 1024]), [0, 1]);
}

/// A queue that was found empty starts its interval anew in the RFC, and not in Linux, where only a
/// head below the target or a queue that ran empty by a drop does that.
#[test]
fn linux_remembers_its_interval_beyond_an_empty_queue() {
    for (control_law, dropped) in [(ControlLaw::Rfc8289, 0), (ControlLaw::Linux, 1)] {
        let law = usual(control_law);
        let mut state = CodelState::new();
        let now = |ms| Time::from_millis(ms);
        let mut queue = WaitingPacket::new([0; 4]);
        state.dequeue(&law, now(10), &mut queue);
        queue.packets.clear();
        assert_eq!(state.dequeue(&law, now(11), &mut queue), None);
        let mut queue = WaitingPacket::new([100 * MS; 4]);
        state.dequeue(&law, now(111), &mut queue);
        assert_eq!(queue.dropped, dropped, "{control_law:?}");
    }
}

/// Drops by another law count only for a queue that was in its dropping state less than 16
/// intervals ago. One that never was starts with a count of 1, however early in the run that is.
#[test]
fn a_queue_that_never_dropped_did_not_drop_recently() {
    for control_law in [ControlLaw::Rfc8289, ControlLaw::Linux] {
        let law = usual(control_law);
        let mut state = CodelState::new();
        state.count_drops(64);
        let mut queue = WaitingPacket::new([0; 300]);
        state.dequeue(&law, Time::from_millis(5), &mut queue);
        state.dequeue(&law, Time::from_millis(106), &mut queue);
        assert_eq!((queue.dropped, state.count, state.last_count), (1, 1, 1), "{control_law:?}");
        // Now it did: 1 + 64 drops, and the next entry resumes with what came on top of the first.
        state.count_drops(64);
        queue.packets.iter_mut().take(2).for_each(|entry| entry.enqueued_at = Time::from_millis(106));
        state.dequeue(&law, Time::from_millis(107), &mut queue);
        assert!(!state.dropping());
        state.dequeue(&law, Time::from_millis(112), &mut queue);
        state.dequeue(&law, Time::from_millis(120), &mut queue);
        state.dequeue(&law, Time::from_millis(221), &mut queue);
        assert!(state.dropping());
        assert_eq!((state.count, state.last_count), (64, 64), "{control_law:?}");
    }
}

/// sch_codel.c, `codel_dequeue`: what was learnt counts for less than 16 intervals after
/// `drop_next`, and if the last time gave more than one drop; else the count is 1, and the root
/// that of 1.
#[test]
fn what_was_learnt_counts_for_sixteen_intervals() {
    for control_law in [ControlLaw::Rfc8289, ControlLaw::Linux] {
        let law = usual(control_law);
        let start = |count, elapsed| {
            let mut state = CodelState { last_count: 1, drop_next: 1000, reciprocal_root: 30_000, ..CodelState::new() };
            state.count = count;
            state.start_dropping(&law, 1000 + elapsed);
            (state.count, state.last_count, state.reciprocal_root)
        };
        let over = 16 * law.interval;
        assert_eq!(start(5, over - 1).0, 4);
        assert_eq!(start(5, over), (1, 1, u16::MAX));
        assert_eq!(start(3, 0).0, 2);
        assert_eq!(start(2, 0), (1, 1, u16::MAX));
    }
}
