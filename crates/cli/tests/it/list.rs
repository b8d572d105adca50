//! `ackclock list`: what it has is what scenarios are read by.

use crate::common::{Said, ackclock};

fn list(args: &[&str]) -> Said {
    ackclock().arg("list").args(args).output().expect("the binary runs").into()
}

#[test]
fn the_overview_names_what_there_is_in_lines_of_a_terminal() {
    let said = list(&[]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{}", said.out);
    for name in ["fq_codel", "cubic", "rfc9406", "rack", "linux-6.18", "freebsd-14", "voip", "sweep", "expect"] {
        let found = said.out.split([' ', ',', '\n']).filter(|word| *word == name).count();
        assert_eq!(found, 1, "{name}: {}", said.out);
    }
}

#[test]
fn a_queue_has_its_parameters_with_defaults_ranges_and_sources() {
    let said = list(&["queues", "pie"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let line = |name: &str| said.out.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or("");
    // tc-pie(8): 15 ms, 1000 packets.
    assert!(line("target").contains("\"15ms\"") && line("target").contains("above 0"), "{}", said.out);
    assert!(line("limit").contains("\"1000p\""), "{}", said.out);
    assert!(said.out.lines().nth(1).is_some_and(|head| head.ends_with("source")), "{}", said.out);
}

#[test]
fn json_is_the_same_list() {
    let said = list(&["controllers", "cubic", "--json"]);
    let items: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let keys = items[0]["keys"].as_array().unwrap();
    // RFC 9438 section 4.6: 0.7, section 5: 0.4.
    let default = |name: &str| keys.iter().find(|key| key["name"] == name).map(|key| key["default"].clone());
    assert_eq!((default("beta"), default("c")), (Some("`0.7`".into()), Some("`0.4`".into())));
    let all: serde_json::Value = serde_json::from_str(&list(&["--json"]).out).unwrap();
    assert_eq!(all["controllers"].as_array().unwrap().iter().find(|item| item["name"] == "cubic"), Some(&items[0]));
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn a_kernel_is_a_host_with_keys() {
    let said = list(&["hosts", "kernel"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert!(said.out.lines().any(|line| line.starts_with("memory_mb ") && line.contains("64.0")), "{}", said.out);
    assert!(list(&[]).out.split([' ', ',', '\n']).any(|word| word == "kernel"));
    assert!(list(&["hosts", "kernal"]).err.contains("did you mean `kernel`?"));
    let keys = list(&["keys"]).out;
    for key in ["flows[].host.sysctl ", "hosts.NAME.stack.qdisc "] {
        assert!(keys.lines().any(|line| line.starts_with(key)), "{key}");
    }
}

#[test]
fn keys_have_the_values_that_show_config_fills_in() {
    let said = list(&["keys", "links"]);
    let folder = crate::common::folder("list_keys");
    let shown = crate::common::run(&folder, crate::common::SMALL, &["--show-config"]).out;
    for (key, default) in [("overhead", "\"0B\""), ("corrupt", "0.0"), ("jitter", "\"0s\"")] {
        let line = said.out.lines().find(|line| line.starts_with(&format!("links.NAME.{key} "))).unwrap_or("");
        assert!(line.contains(default), "{line}");
        let is_shown = |line: &str| {
            line.split_once(" = ").is_some_and(|(name, value)| {
                name.trim() == key && value.split('#').next().unwrap_or("").trim() == default
            })
        };
        assert!(shown.lines().any(is_shown), "{key}: {shown}");
    }
}

#[test]
fn what_there_is_not_is_an_error_with_the_nearest_name() {
    let said = list(&["queue"]);
    assert_eq!(said.status, 2);
    assert!(
        said.err.starts_with("error: there is no category `queue`; did you mean `queues`?\nexpected one of queues, ")
    );
    let said = list(&["queues", "fq-codel"]);
    assert_eq!(said.status, 2);
    assert!(said.err.starts_with("error: queues: there is no `fq-codel`; did you mean `fq_codel`?\n"), "{}", said.err);
    let said = list(&["hosts", "plan9"]);
    assert!(said.status == 2 && !said.err.contains("did you mean"), "{}", said.err);
}
