//! Rough estimates of the time and space that a scenario's runs need on this machine, printed
//! before they start.

use ackclock_run::selection::Walk;

/// Full packets in a second of one thread, with their ACKs: between what few flows do on a machine
/// of 2020 and what 100,000 do (`benches/README.md`).
const PACKETS_PER_SECOND: f64 = 1_000_000.0;

/// Time below which a line is not worth it, s.
const WORTH_A_NOTE: f64 = 30.0;

/// The most runs that are looked at.
const MOST: usize = 1_000_000;

/// The needs of the runs that are left.
pub(crate) struct RemainingNeeds {
    pub(crate) runs: usize,
    /// Packets without ACKs, if anything limits them.
    pub(crate) packets: Option<f64>,
    /// Their duration, s.
    pub(crate) seconds: Option<f64>,
    /// Bytes written with `--out`.
    pub(crate) bytes: Option<f64>,
}

impl RemainingNeeds {
    pub(crate) fn of(walk: &Walk<'_>, threads: usize) -> RemainingNeeds {
        let (scenario, left) = (walk.scenario(), walk.left());
        let step = left.div_ceil(MOST).max(1);
        let runs = || (0..left).step_by(step).filter_map(|job| walk.ahead(job));
        let share = left as f64 / left.div_ceil(step).max(1) as f64;
        let packets = scenario.packets(runs()).map(|packets| packets * share);
        let seconds = match scenario.is_live() {
            true => Some(scenario.seconds(runs()) * share),
            false => packets.map(|packets| packets / PACKETS_PER_SECOND / threads.min(left).max(1) as f64),
        };
        RemainingNeeds { runs: left, packets, seconds, bytes: scenario.bytes(runs()).map(|bytes| bytes * share) }
    }
}

/// A note on virtual runs that take long.
pub(crate) fn note(walk: &Walk<'_>, threads: usize) -> Option<String> {
    let RemainingNeeds { runs, packets, seconds, .. } = RemainingNeeds::of(walk, threads);
    let (packets, seconds) = (packets?, seconds?);
    (seconds >= WORTH_A_NOTE && !walk.scenario().is_live()).then(|| {
        let of = if runs == 1 { "the run sends".to_owned() } else { format!("{runs} runs send") };
        format!("note: {of} up to {} million packets, which take {}", (packets / 1e6).round(), roughly(seconds))
    })
}

pub(crate) fn roughly(seconds: f64) -> String {
    match seconds {
        ..1.0 => "less than a second".to_owned(),
        ..WORTH_A_NOTE => format!("about {} s", seconds.round()),
        ..90.0 => "about a minute".to_owned(),
        ..5400.0 => format!("about {} minutes", (seconds / 60.0).round()),
        ..129_600.0 => format!("about {} hours", (seconds / 3600.0).round()),
        _ => format!("about {} days", (seconds / 86_400.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use ackclock_scenario::Scenario;

    use super::*;
    use ackclock_run::selection::Selection;

    fn scenario(duration: &str, more: &str) -> Scenario {
        let text = format!(
            "schema = 1\n[run]\nduration = \"{duration}\"\n[links.a]\nrate = \"1200mbit\"\ndelay = \"10ms\"\n\
             [[flows]]\nid = \"few\"\npath = [\"a\"]\n{more}"
        );
        Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    fn walk<'s>(scenario: &'s Scenario, only: &str) -> Walk<'s> {
        let only = (!only.is_empty()).then(|| only.parse().expect("it is well-formed"));
        Walk::new(scenario, Selection::of(scenario, only.as_ref(), None).expect("they are there"))
    }

    #[test]
    fn what_takes_long_is_said() {
        let note = |duration, more, threads| super::note(&walk(&scenario(duration, more), ""), threads);
        // 100,000 packets a second.
        assert_eq!(note("100s", "", 1), None);
        let note = |duration, more, threads| note(duration, more, threads).expect("it is long");
        assert_eq!(note("1000s", "", 2), "note: the run sends up to 100 million packets, which take about 2 minutes");
        assert_eq!(
            note("1000s", "[sweep]\nrepeat = 36", 2),
            "note: 36 runs send up to 3600 million packets, which take about 30 minutes"
        );
        assert!(note("400s", "", 1).ends_with("about a minute"));
        assert!(note("100000s", "", 1).ends_with("about 3 hours"));
        assert!(note("5000000s", "", 1).ends_with("about 6 days"));
    }

    #[test]
    fn what_is_left_out_counts_for_nothing() {
        // Points of 100 and of 1000 s, ten runs of each.
        let sweep = scenario("1s", "[sweep]\nrepeat = 10\naxes.\"run.duration\" = [\"100s\", \"1000s\"]");
        let needs = |only: &str| {
            let RemainingNeeds { runs, packets, seconds, .. } = RemainingNeeds::of(&walk(&sweep, only), 2);
            (runs, packets.map(|packets| packets / 1e6), seconds)
        };
        assert_eq!(needs(""), (20, Some(1100.0), Some(550.0)));
        assert_eq!(needs("8-11"), (4, Some(220.0), Some(110.0)));
        // One run has one thread.
        assert_eq!(needs("0"), (1, Some(10.0), Some(10.0)));
        assert_eq!(
            super::note(&walk(&sweep, "0-5"), 2),
            Some("note: 6 runs send up to 60 million packets, which take about a minute".to_owned())
        );
        let bytes = |only: &str| RemainingNeeds::of(&walk(&sweep, only), 1).bytes.expect("nothing is recorded");
        assert!((bytes("") - 20.0 * bytes("0")).abs() < 1e-6);
    }
}
