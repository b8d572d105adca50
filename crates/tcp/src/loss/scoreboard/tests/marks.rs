//! The rules that declare segments lost, against their definition.

use super::*;

/// The other rules that mark segments lost, each against its definition over all entries.
#[derive(Clone, Debug)]
enum Mark {
    Push,
    Sack(prop::sample::Index, prop::sample::Index),
    Acknowledge(prop::sample::Index),
    Resend,
    First(u64),
    BelowSacked(u64),
    SentBefore { newest: prop::sample::Index, wait: u64 },
    Old(u64),
    Overtaken,
    Unmark,
}

fn any_mark() -> impl Strategy<Value = Mark> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(Mark::Push),
        8 => (index(), index()).prop_map(|(a, b)| Mark::Sack(a, b)),
        2 => index().prop_map(Mark::Acknowledge),
        6 => Just(Mark::Resend),
        2 => (0u64..12).prop_map(Mark::First),
        3 => (0u64..6).prop_map(Mark::BelowSacked),
        6 => (index(), 0u64..30).prop_map(|(newest, wait)| Mark::SentBefore { newest, wait }),
        1 => (0u64..30).prop_map(Mark::Old),
        1 => Just(Mark::Overtaken),
        1 => Just(Mark::Unmark),
    ]
}

/// Applies a mark to each entry, written down without marks of earlier judgments: lost segments
/// stay lost, and a segment that is lost while it is resent loses its retransmission.
fn apply_naively(mark: &Mark, now: Time, entries: &mut [Sent], newest: (Stamp, u64)) {
    let highest = entries.iter().filter(|sent| sent.sacked).map(Sent::end).max();
    let mut sacked_below = 0;
    for (i, sent) in entries.iter_mut().enumerate() {
        if sent.sacked {
            sacked_below += 1;
            continue;
        }
        let again = |sent: &mut Sent| {
            sent.resent &= !sent.lost;
            sent.lost = true;
        };
        let age = now.since(sent.sent_at);
        match *mark {
            Mark::First(count) => sent.lost |= (i as u64) < count,
            Mark::BelowSacked(most) => sent.lost |= sacked_below <= most,
            Mark::SentBefore { wait, .. } => {
                let waits = sent.lost && !sent.resent || sent.unlisted();
                if !waits && (sent.stamp(), sent.end()) < newest && age >= Span::from_millis(wait) {
                    again(sent);
                    sent.set(Sent::UNLISTED, true);
                }
            }
            Mark::Old(wait) => {
                if i == 0 {
                    (sent.lost, sent.resent) = (true, false);
                } else if age >= Span::from_millis(wait) {
                    again(sent);
                }
            }
            Mark::Overtaken => {
                if sent.resent && highest.is_some_and(|highest| highest > sent.seq + u64::from(sent.aux)) {
                    (sent.lost, sent.resent) = (true, false);
                }
            }
            Mark::Unmark => sent.lost = false,
            Mark::Push | Mark::Sack(..) | Mark::Acknowledge(_) | Mark::Resend => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn marks_are_their_definitions(
        fack: bool,
        marks in prop::collection::vec(any_mark(), 1..80),
    ) {
        let mut board = Scoreboard::default();
        let (mut una, mut nxt) = (1, 1);
        let mut progress = Progress::new(Time::ZERO);
        for (i, mark) in marks.iter().enumerate() {
            // Three ACKs at each time.
            let now = at(i as u64 / 3);
            let stamp = Stamp { at: now, order: i as u32 % 3 };
            let n = board.entries.len();
            // FACK or counting: a connection changes from one to the other only where everything is
            // judged anew.
            if matches!(mark, Mark::First(_)) != fack && matches!(mark, Mark::First(_) | Mark::BelowSacked(_)) {
                continue;
            }
            // Retransmissions are judged by what overtook them, or by time, and never by both.
            if matches!(mark, Mark::Overtaken) != fack && matches!(mark, Mark::Overtaken | Mark::SentBefore { .. }) {
                continue;
            }
            let mut expected: Vec<Sent> = board.entries.iter().copied().collect();
            let newest = match mark {
                Mark::SentBefore { newest, .. } if n > 0 => {
                    let sent = expected[newest.index(n)];
                    (sent.stamp(), sent.end())
                }
                _ => (Stamp::default(), 0),
            };
            // Reneging is treated elsewhere.
            let reneged = board.entries.front().is_some_and(|front| front.sacked);
            match mark {
                Mark::Push => {
                    board.push(stamp, nxt, MSS, false);
                    nxt += u64::from(MSS);
                }
                Mark::Sack(a, b) if n > 1 => {
                    // Never the first one.
                    let (a, b) = (1 + a.index(n - 1), 1 + b.index(n - 1));
                    let edge = |i: usize| una + i as u64 * u64::from(MSS);
                    board.sack(&[(edge(a.min(b)), edge(a.max(b) + 1))], &mut progress);
                }
                Mark::Acknowledge(share) => {
                    una += share.index(n + 1) as u64 * u64::from(MSS);
                    board.acknowledge(una, &mut progress);
                }
                Mark::Resend => {
                    if let Some(sent) = board.next_lost() {
                        board.resend(stamp, sent.seq, nxt);
                    }
                }
                Mark::First(count) => board.lose_first(*count),
                Mark::BelowSacked(most) => board.lose_below_sacked(*most, u64::MAX),
                Mark::SentBefore { wait, .. } => {
                    let wait = Span::from_millis(*wait);
                    let left = board.lose_sent_before(newest, now, wait);
                    let young = |sent: &&Sent| {
                        !sent.sacked
                            && !sent.unlisted()
                            && (!sent.lost || sent.resent)
                            && (sent.stamp(), sent.end()) < newest
                            && now.since(sent.sent_at) < wait
                    };
                    let longest = expected.iter().filter(young).map(|sent| wait - now.since(sent.sent_at)).max();
                    prop_assert_eq!(left, longest);
                }
                Mark::Old(wait) if !reneged => board.mark_old_lost(now, Span::from_millis(*wait)),
                Mark::Overtaken => board.lose_overtaken_retransmissions(),
                Mark::Unmark => board.unmark_lost(),
                Mark::Sack(..) | Mark::Old(_) => continue,
            }
            board.check();
            let judges = !matches!(mark, Mark::Push | Mark::Sack(..) | Mark::Acknowledge(_) | Mark::Resend);
            if judges {
                apply_naively(mark, now, &mut expected, newest);
                for (sent, expected) in board.entries.iter().zip(&expected) {
                    prop_assert_eq!((sent.lost, sent.resent), (expected.lost, expected.resent), "{:?} {:?}", mark, sent);
                }
                let resendable = board.entries.iter().find(|sent| sent.lost && !sent.resent).map(|sent| sent.seq);
                prop_assert_eq!(board.next_lost().map(|sent| sent.seq), resendable);
            }
        }
    }
}
