//! How long a scenario takes on this machine, roughly, said before it starts.

use ackclock_scenario::Scenario;

/// Full packets in a second of one thread, with their ACKs: between what few flows do on a machine
/// of 2020 and what 100,000 do (`benches/README.md`).
const PACKETS_PER_SECOND: f64 = 1_000_000.0;

/// What takes less is not worth a line, s.
const WORTH_A_NOTE: f64 = 30.0;

/// A note on virtual runs that take long.
pub(crate) fn note(scenario: &Scenario, threads: usize) -> Option<String> {
    if scenario.is_live() {
        return None;
    }
    let packets = scenario.packets()?;
    let seconds = packets / PACKETS_PER_SECOND / threads.min(scenario.runs()).max(1) as f64;
    (seconds >= WORTH_A_NOTE).then(|| {
        let of =
            if scenario.runs() == 1 { "the run sends".to_owned() } else { format!("{} runs send", scenario.runs()) };
        format!("note: {of} up to {} million packets, which take {}", (packets / 1e6).round(), roughly(seconds))
    })
}

fn roughly(seconds: f64) -> String {
    match seconds {
        ..90.0 => "about a minute".to_owned(),
        ..5400.0 => format!("about {} minutes", (seconds / 60.0).round()),
        ..129_600.0 => format!("about {} hours", (seconds / 3600.0).round()),
        _ => format!("about {} days", (seconds / 86_400.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_said() {
        let scenario = |duration: &str, more: &str| {
            let text = format!(
                "schema = 1\n[run]\nduration = \"{duration}\"\n[links.a]\nrate = \"1200mbit\"\ndelay = \"10ms\"\n\
                 [[flows]]\nid = \"few\"\npath = [\"a\"]\n{more}"
            );
            Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
        };
        // 100,000 packets a second.
        assert_eq!(note(&scenario("100s", ""), 1), None);
        let note = |duration, more, threads| note(&scenario(duration, more), threads).expect("it is long");
        assert_eq!(note("1000s", "", 2), "note: the run sends up to 100 million packets, which take about 2 minutes");
        assert_eq!(
            note("1000s", "[sweep]\nrepeat = 36", 2),
            "note: 36 runs send up to 3600 million packets, which take about 30 minutes"
        );
        assert!(note("400s", "", 1).ends_with("about a minute"));
        assert!(note("100000s", "", 1).ends_with("about 3 hours"));
        assert!(note("5000000s", "", 1).ends_with("about 6 days"));
    }
}
