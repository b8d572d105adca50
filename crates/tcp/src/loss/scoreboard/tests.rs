//! The scoreboard against a model that keeps every unit of sequence space by itself and recomputes
//! all from scratch.

use ackclock_units::{Span, Time};
use proptest::prelude::*;

use super::*;

mod marks;

/// Small, so that the rule by bytes and the rule by sequences both decide.
const MSS: u32 = 3;
const THRESHOLD: u32 = 3;

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// One unit of sequence space.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    sacked: bool,
    lost: bool,
    resent: bool,
    ever_resent: bool,
    sent_at: Time,
    /// The segment that it was sent in ends here.
    segment_end: u64,
}

#[derive(Debug, Default)]
struct Model {
    una: u64,
    units: Vec<Unit>,
}

impl Model {
    fn nxt(&self) -> u64 {
        self.una + self.units.len() as u64
    }

    fn unit(&mut self, seq: u64) -> &mut Unit {
        &mut self.units[(seq - self.una) as usize]
    }

    /// RFC 6675 section 4, `IsLost`, for the unit with this index.
    fn is_lost(&self, index: usize) -> bool {
        let above = &self.units[index + 1..];
        let bytes = above.iter().filter(|unit| unit.sacked).count();
        let starts =
            above.iter().zip(&self.units[index..]).filter(|(unit, before)| unit.sacked && !before.sacked).count();
        starts >= THRESHOLD as usize || bytes > ((THRESHOLD - 1) * MSS) as usize
    }

    fn judge(&mut self) {
        for index in 0..self.units.len() {
            // Lost segments stay lost, even if sequences above them join and leave fewer than the
            // threshold.
            let lost = !self.units[index].sacked && (self.units[index].lost || self.is_lost(index));
            self.units[index].lost = lost;
        }
    }

    /// RFC 6675 section 4, `SetPipe`.
    fn pipe(&self) -> u64 {
        let unsacked = || self.units.iter().filter(|unit| !unit.sacked);
        (unsacked().filter(|unit| !unit.lost).count() + unsacked().filter(|unit| unit.resent).count()) as u64
    }

    /// The first unit for `NextSeg` rule 1.
    fn next_lost(&self) -> Option<u64> {
        let index = self.units.iter().position(|unit| unit.lost && !unit.resent)?;
        Some(self.una + index as u64)
    }

    /// The first unit for `NextSeg` rule 3.
    fn next_hole(&self) -> Option<u64> {
        let highest = self.units.iter().rposition(|unit| unit.sacked)?;
        let index = self.units[..highest].iter().position(|unit| !unit.sacked && !unit.lost && !unit.resent)?;
        Some(self.una + index as u64)
    }

    /// The last unit, for `NextSeg` rule 4.
    fn last(&self) -> Option<u64> {
        self.units.last().filter(|unit| !unit.sacked && !unit.resent).map(|_| self.nxt() - 1)
    }

    fn deliver(unit: &Unit, told: &mut Told) {
        told.delivered += 1;
        if !unit.ever_resent {
            told.newest_sent_at = told.newest_sent_at.max(Some(unit.sent_at));
        }
    }

    fn acknowledge(&mut self, ack: u64, told: &mut Told) {
        for unit in self.units.drain(..(ack - self.una) as usize) {
            told.acked += 1;
            if !unit.sacked {
                Model::deliver(&unit, told);
                told.covers_resent |= unit.ever_resent;
            }
        }
        self.una = ack;
    }

    fn sack(&mut self, left: u64, right: u64, told: &mut Told) {
        for seq in left..right {
            let unit = self.unit(seq);
            if !unit.sacked {
                Model::deliver(unit, told);
                (unit.sacked, unit.resent, unit.lost) = (true, false, false);
            }
        }
    }

    fn resend(&mut self, now: Time, sent: &Sent) {
        for seq in sent.seq..sent.end() {
            let unit = self.unit(seq);
            (unit.resent, unit.ever_resent, unit.sent_at) = (true, true, now);
        }
    }

    fn declare_lost(&mut self, units: std::ops::Range<usize>) {
        for unit in &mut self.units[units] {
            if !unit.sacked {
                (unit.lost, unit.resent) = (true, false);
            }
        }
    }
}

/// The expected contents of a [`Progress`].
#[derive(Debug, Default, PartialEq)]
struct Told {
    acked: u64,
    delivered: u64,
    newest_sent_at: Option<Time>,
    covers_resent: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    /// A cumulative ACK for a share of what is outstanding or for nothing new, and blocks as shares
    /// of the rest.
    Ack(Option<prop::sample::Index>, Vec<(prop::sample::Index, prop::sample::Index)>),
    Resend,
    FrontLost,
    AllLost,
}

fn any_step() -> impl Strategy<Value = Step> {
    let block = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let blocks = prop::collection::vec(block, 0..5);
    prop_oneof![
        8 => (1u32..6).prop_map(Step::Push),
        6 => (any::<prop::sample::Index>(), blocks.clone()).prop_map(|(ack, blocks)| Step::Ack(Some(ack), blocks)),
        8 => blocks.prop_map(|blocks| Step::Ack(None, blocks)),
        8 => Just(Step::Resend),
        1 => Just(Step::FrontLost),
        1 => Just(Step::AllLost),
    ]
}

fn assert_candidate(model: &Model, found: Option<Sent>, first: Option<u64>, what: &str) {
    assert_eq!(found.map(|sent| sent.seq), first, "{what}");
    if let Some(sent) = found {
        let units = &model.units[(sent.seq - model.una) as usize..(sent.end() - model.una) as usize];
        assert!(units.iter().all(|unit| !unit.sacked && !unit.resent && unit.segment_end >= sent.end()), "{what}");
    }
}

fn assert_same(board: &mut Scoreboard, model: &Model) {
    board.check();
    let units = |keep: fn(&Unit) -> bool| model.units.iter().filter(|unit| keep(unit)).count() as u64;
    assert_eq!(board.outstanding(), model.units.len() as u64);
    assert_eq!(board.sacked(), units(|unit| unit.sacked));
    assert_eq!(board.lost(), units(|unit| unit.lost));
    assert_eq!(board.pipe(), model.pipe());
    assert_candidate(model, board.next_lost(), model.next_lost(), "rule 1");
    assert_candidate(model, board.next_unsacked_hole(), model.next_hole(), "rule 3");
    let last = board.last_unsacked();
    assert_eq!(last.map(|sent| sent.end() - 1), model.last(), "rule 4");
}

fn apply(step: &Step, now: Time, board: &mut Scoreboard, model: &mut Model) {
    match step {
        &Step::Push(len) => {
            let seq = model.nxt();
            let unit = Unit { sent_at: now, segment_end: seq + u64::from(len), ..Unit::default() };
            model.units.extend(std::iter::repeat_n(unit, len as usize));
            board.push(Stamp::first(now), seq, len, false);
        }
        Step::Ack(ack, blocks) => {
            let ack = model.una + ack.map_or(0, |ack| ack.index(model.units.len() + 1) as u64);
            let (mut progress, mut told) = (Progress::new(Time::ZERO), Told::default());
            model.acknowledge(ack, &mut told);
            board.acknowledge(ack, &mut progress);
            let edge = |index: &prop::sample::Index| ack + index.index(model.units.len() + 1) as u64;
            let blocks: Vec<_> = blocks.iter().map(|(a, b)| (edge(a).min(edge(b)), edge(a).max(edge(b)))).collect();
            let blocks: Vec<_> = blocks.into_iter().filter(|(left, right)| left < right).collect();
            blocks.iter().for_each(|&(left, right)| model.sack(left, right, &mut told));
            board.sack(&blocks, &mut progress);
            let lost_before = board.lost();
            let found = board.mark_lost(THRESHOLD, MSS);
            assert_eq!(found, board.lost() > lost_before);
            let Progress { acked, delivered, newest_sent_at, covers_resent, .. } = progress;
            assert_eq!(Told { acked, delivered, newest_sent_at, covers_resent }, told);
        }
        Step::Resend => {
            let next = board.next_lost().or_else(|| board.next_unsacked_hole()).or_else(|| board.last_unsacked());
            if let Some(sent) = next {
                model.resend(now, &sent);
                board.resend(Stamp::first(now), sent.seq, model.nxt());
            }
        }
        Step::FrontLost => {
            if let Some(front) = board.front() {
                let len = front.len as usize;
                board.mark_front_lost();
                model.declare_lost(0..len);
            }
        }
        Step::AllLost => {
            board.mark_all_lost();
            if model.units.first().is_some_and(|unit| unit.sacked) {
                // RFC 2018 section 8: the receiver has dropped what it reported.
                model.units.iter_mut().for_each(|unit| unit.sacked = false);
            }
            model.declare_lost(0..model.units.len());
        }
    }
    model.judge();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_scoreboard_is_the_model(steps in prop::collection::vec(any_step(), 1..60)) {
        let (mut board, mut model) = (Scoreboard::default(), Model { una: 1, ..Model::default() });
        for (i, step) in steps.iter().enumerate() {
            apply(step, at(i as u64), &mut board, &mut model);
            assert_same(&mut board, &model);
        }
    }
}

/// `n` segments of `MSS` units from unit 1 on, sent a millisecond apart.
fn board_of(n: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for i in 0..n {
        board.push(Stamp::first(at(i)), segment(i), MSS, false);
    }
    board
}

/// First unit of segment `i`.
fn segment(i: u64) -> u64 {
    1 + i * u64::from(MSS)
}

fn sack(board: &mut Scoreboard, blocks: &[(u64, u64)]) -> Progress {
    let mut progress = Progress::new(Time::ZERO);
    let units: Vec<_> = blocks.iter().map(|&(left, right)| (segment(left), segment(right))).collect();
    board.sack(&units, &mut progress);
    progress
}

#[test]
fn a_part_of_a_segment_is_reported_with_the_rest_of_it() {
    // tcp_match_skb_to_sack: segment 1 is units 4 to 6, segment 2 is units 7 to 9.
    let mut board = board_of(4);
    board.whole_reports = true;
    let mut sacked = |left, right| {
        let mut progress = Progress::new(Time::ZERO);
        board.sack(&[(left, right)], &mut progress);
        board.check();
        (progress.sacked_segments, board.sacked(), board.segments())
    };
    assert_eq!(sacked(5, 8), (0, 0, 4), "parts of two");
    // Segments that the last block covered are not searched again, unless it was a part.
    assert_eq!(sacked(5, 10), (1, 3, 4));
    assert_eq!(sacked(4, 10), (1, 6, 4));
    assert_eq!(sacked(4, 13), (1, 9, 4));
}

#[test]
fn more_than_two_segments_of_sacked_bytes_above_prove_a_loss() {
    // RFC 6675 section 4, IsLost: more than (DupThresh - 1) * SMSS bytes.
    let mut board = board_of(6);
    sack(&mut board, &[(1, 3)]);
    assert!(!board.mark_lost(3, MSS), "exactly two segments");
    sack(&mut board, &[(1, 4)]);
    assert!(board.mark_lost(3, MSS));
    assert_eq!(board.lost(), 3, "segment 0 alone");
}

#[test]
fn three_discontiguous_sequences_above_prove_a_loss() {
    // RFC 6675 section 4, IsLost: DupThresh discontiguous sequences, here of one unit each.
    let mut board = board_of(8);
    let mut progress = Progress::new(Time::ZERO);
    for (i, expected) in [(7, 0), (5, 0), (3, 3 * u64::from(MSS))] {
        let left = segment(i);
        board.sack(&[(left, left + 1)], &mut progress);
        board.mark_lost(3, MSS);
        assert_eq!(board.lost(), expected, "after segment {i}");
    }
}

#[test]
fn a_lost_ack_is_no_reordering() {
    // The option has the newest block first; both are news to the sender, and they arrived in
    // order.
    let mut board = board_of(8);
    assert_eq!(sack(&mut board, &[(5, 6), (1, 2)]).reordering, 0);
    // Segment 3 is reported after segment 5: two behind.
    assert_eq!(sack(&mut board, &[(3, 4), (5, 6), (1, 2)]).reordering, 2);
}

#[test]
fn a_hole_that_fills_without_retransmission_was_reordered() {
    let mut board = board_of(4);
    sack(&mut board, &[(1, 3)]);
    let mut progress = Progress { reported: board.reported(), ..Progress::new(Time::ZERO) };
    board.acknowledge(segment(3), &mut progress);
    // Segment 0 after segment 2.
    assert_eq!((progress.reordering, progress.newest_sent_at), (2, Some(at(0))));
}

#[test]
fn a_retransmission_gives_no_time_of_sending() {
    // Karn's rule (RFC 6298 section 3).
    let mut board = board_of(2);
    board.mark_all_lost();
    board.resend(Stamp::first(at(100)), segment(0), segment(2));
    let mut progress = Progress::new(Time::ZERO);
    board.acknowledge(segment(1), &mut progress);
    assert_eq!((progress.newest_sent_at, progress.covers_resent), (None, true));
}

#[test]
fn adjacent_sacked_segments_share_a_socket_buffer() {
    // tcp_shift_skb_data: into the one before, and then the one behind joins.
    let mut board = board_of(6);
    sack(&mut board, &[(1, 2)]);
    sack(&mut board, &[(3, 5)]);
    assert_eq!(board.merged_segments(), 1, "4 joins 3");
    sack(&mut board, &[(1, 5)]);
    assert_eq!(board.merged_segments(), 3, "2 joins 1, and 3 joins them");
    board.acknowledge(segment(3), &mut Progress::new(Time::ZERO));
    assert_eq!(board.merged_segments(), 2);
    board.acknowledge(segment(6), &mut Progress::new(Time::ZERO));
    assert_eq!(board.merged_segments(), 0);
}

#[test]
fn a_hole_before_a_sacked_segment_stays_by_itself() {
    // Without one before it nothing is shifted, whatever is behind.
    let mut board = board_of(4);
    sack(&mut board, &[(2, 3)]);
    sack(&mut board, &[(1, 3)]);
    assert_eq!(board.merged_segments(), 0);
}

#[test]
fn a_probe_that_is_reported_stays_by_itself() {
    // Retransmitted, and not declared lost: it does not become a plain SACKed segment.
    let mut board = board_of(4);
    sack(&mut board, &[(1, 2)]);
    board.resend(Stamp::first(at(1)), segment(2), segment(4));
    sack(&mut board, &[(1, 3)]);
    assert_eq!(board.merged_segments(), 0);
}

#[test]
fn reneging_forgets_all_reports() {
    // RFC 2018 section 8: after a timeout with a SACKed segment in front, nothing that was reported
    // counts.
    let mut board = board_of(4);
    sack(&mut board, &[(1, 4)]);
    let mut progress = Progress::new(Time::ZERO);
    board.acknowledge(segment(1), &mut progress);
    board.mark_all_lost();
    assert_eq!((board.sacked(), board.lost(), board.pipe()), (0, 9, 0));
    assert_eq!(board.next_lost().map(|sent| sent.seq), Some(segment(1)));
    // A new report of the same block counts again.
    assert_eq!(sack(&mut board, &[(2, 4)]).delivered, 6);
}

#[test]
fn what_is_reported_with_the_ack_has_overtaken_nothing() {
    // Segment 0 is acknowledged and segment 2 reported by one ACK: nothing is known of their order.
    let mut board = board_of(4);
    let mut progress = Progress { reported: board.reported(), ..Progress::new(Time::ZERO) };
    board.sack(&[(segment(2), segment(3))], &mut progress);
    board.acknowledge(segment(1), &mut progress);
    assert_eq!((progress.reordering, progress.low_acked), (0, (segment(0), 0)));
}

/// The rule that judges in [`work_of`].
#[derive(Clone, Copy, Debug)]
enum Judge {
    Rfc6675,
    Fack,
    Counting,
    Rack,
}

impl Judge {
    fn judge(self, board: &mut Scoreboard, now: Time, progress: &Progress) {
        match self {
            Judge::Rfc6675 => _ = board.mark_lost(THRESHOLD, MSS),
            Judge::Fack => {
                board.lose_overtaken_retransmissions();
                board.lose_first(board.segments_to_highest().saturating_sub(u64::from(THRESHOLD)));
            }
            Judge::Counting => {
                if let Some(most) = board.sacked_segments().checked_sub(u64::from(THRESHOLD)) {
                    board.lose_below_sacked(most, u64::MAX);
                }
            }
            Judge::Rack => _ = board.lose_sent_before(progress.delivery.certain.unwrap(), now, Span::ZERO),
        }
    }
}

/// Every second of `n` segments is lost, and of the retransmissions the first and every eighth,
/// while new data follows. Returns how many entries were looked at, and for how many transmissions.
fn work_of(judge: Judge, n: u64) -> (u64, u64) {
    let mut board = board_of(n);
    let (mut next, mut again, mut resent) = (n, VecDeque::new(), 0);
    let mut arrivals: VecDeque<u64> = (0..n).filter(|i| i % 2 == 1).collect();
    for ack in 0.. {
        let now = at(n + ack);
        let Some(arrived) = arrivals.pop_front().or_else(|| again.pop_front()) else { break };
        let mut progress = Progress::new(now);
        // The block with it, as the receiver would report it first.
        let joins = board.at(arrived - 1).is_some_and(|sent| sent.sacked);
        let left = arrived - u64::from(joins);
        board.sack(&[(segment(left), segment(arrived + 1))], &mut progress);
        judge.judge(&mut board, now, &progress);
        if let Some(sent) = board.next_lost().or_else(|| board.next_unsacked_hole()) {
            board.resend(Stamp::first(now), sent.seq, segment(next));
            if resent % 8 > 0 && sent.seq != segment(0) {
                again.push_back((sent.seq - 1) / u64::from(MSS));
            }
            resent += 1;
        }
        if ack < n {
            board.push(Stamp::first(now), segment(next), MSS, false);
            again.push_back(next);
            next += 1;
        }
    }
    board.check();
    assert!(board.front().is_some_and(|front| !front.sacked) && resent > n / 4, "{judge:?}: {resent} of {n}");
    (board.steps.into(), next + resent)
}

#[test]
fn the_work_for_a_transmission_does_not_grow_with_the_window() {
    for judge in [Judge::Rfc6675, Judge::Fack, Judge::Counting, Judge::Rack] {
        for n in [100, 1000, 10_000] {
            let (steps, transmissions) = work_of(judge, n);
            assert!(steps <= 12 * transmissions, "{judge:?}: {steps} for {transmissions}");
        }
    }
}
