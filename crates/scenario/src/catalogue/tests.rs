//! `docs/parameters.md` is what the catalogue has of algorithms, and the catalogue has everything.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

use ackclock_tcp::GiveUp;
use ackclock_units::Span;

use super::*;

const HEAD: &str = "\
# Parameters

The parameters of queue disciplines and congestion controllers, set next to `kind`. `aqm/src` and `cc/src` document each; this page
is generated from them.

Ranges are inclusive; a range that depends on another parameter is that for its default. In sources `s` is short for section, and
FreeBSD's `cc.hd` for the sysctls below `net.inet.tcp.cc.hd`. Limits and thresholds of queues may be in packets, bytes, time or
bandwidth-delay products ([quantities](scenarios.md#quantities)).
";

const CONTROLLERS: &str = "
## Congestion controllers

Defaults are those of the host `rfc`; other hosts have their stacks' NewReno, CUBIC, DCTCP and CDG (`--show-config`).
";

const HYSTART: &str = "
## Slow start

The key `hystart` of a host, next to `cc`.
";

/// The values of a key with its unit, unless the quantities in the range or the default show it.
fn values(key: &Described) -> String {
    let range = if key.range == "`true`, `false`" { "boolean" } else { key.range.trim_end_matches(" of:") };
    // A list of what stands before it.
    let range = match range.split_once(", or a list, each ") {
        Some((one, each)) if one == each => format!("{one}, or a list of these"),
        _ => range.to_owned(),
    };
    let is_shown = |text: &str| text.contains("p\"`") || text.contains("B\"`");
    match key.unit.as_str() {
        "" => range,
        unit if range.is_empty() => unit.to_owned(),
        unit @ ("time" | "rate") => {
            range.replace("above 0", &format!("{unit} > 0")).replace("0 or more", &format!("{unit} ≥ 0"))
        }
        _ if is_shown(&range) => range,
        unit => format!("{range} {unit}"),
    }
}

/// The source of most rows.
fn common_source(rows: &[Described]) -> &str {
    let count = |source: &str| rows.iter().filter(|row| row.source == source).count();
    // The first of several with as many.
    rows.iter().rev().map(|row| row.source.as_str()).max_by_key(|source| count(source)).unwrap_or_default()
}

fn list_parameters(out: &mut String, title: &str, rows: &[Described]) {
    let common = common_source(rows);
    let _ = write!(out, "\n### {title}\n\n");
    for row in rows {
        let _ = writeln!(out, "- `{}`: {}, default {}", row.name, values(row), row.default);
    }
    let _ = write!(out, "\nSource: {common}");
    // Parameters from elsewhere, by source in the order of the first of each.
    let mut others: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.source != common) {
        let name = format!("`{}`", row.name);
        match others.iter_mut().find(|(source, _)| *source == row.source) {
            Some((_, names)) => names.push(name),
            None => others.push((&row.source, vec![name])),
        }
    }
    out.push_str(if others.is_empty() { ".\n" } else { "; others:\n\n" });
    for (source, names) in others {
        let _ = writeln!(out, "- {}: {source}", names.join(", "));
    }
}

fn document() -> String {
    let mut out = format!("{HEAD}\n## Queue disciplines\n");
    // A series has those of its queues.
    for item in queues().into_iter().filter(|item| !item.keys.is_empty()) {
        list_parameters(&mut out, &format!("`{}`", item.name), &item.keys);
    }
    out.push_str(CONTROLLERS);
    for item in controllers() {
        let variant = item.selected_by.map_or(String::new(), |variant| format!(", `{variant}`"));
        list_parameters(&mut out, &format!("`{}`{variant}", item.name), &item.keys);
        if let Some(other) = item.and_of {
            let _ = write!(out, "\nAnd the parameters of `{other}`.\n");
        }
    }
    out.push_str(HYSTART);
    let [linux, _, _, rfc] = &slow_starts()[..] else { panic!("four sets of rules") };
    list_parameters(&mut out, "`rules = \"linux-2.6.32\"`, `\"linux-3.9\"` and `\"linux-6.1\"`", &linux.keys);
    list_parameters(&mut out, "`rules = \"rfc9406\"`", &rfc.keys);
    out
}

const KEYS: &str = "\
# Keys of a scenario

Every key of a scenario file; `ackclock list keys` prints the same. `NAME` stands for the id of a host or link, `[]` for an entry
of a list, such as `[[flows]]`. Quantities have units: `\"20ms\"`, `\"10mbit\"`, `\"180p\"`, `\"600KiB\"`. Defaults of flows are those of
the host `linux-6.1`; [other hosts](hosts.md) have their own. `varies` stands for
a default that depends on other keys, such as the host. This page is generated.

Not repeated are the keys of `links.NAME.reverse` (those of a direction of the link), `flows[].receiver` (those of a host),
`workloads[]` (those of a flow's hosts), and `rt` and `ul` of a queue's class (those of `ls`). A value that may be drawn from a
distribution has the keys of [distributions](#distributions). [Parameters](parameters.md) lists those of queues, congestion
controllers and slow start.
";

const HOSTS: &str = "\
# Hosts

The settings of each host profile, which are also [keys](keys.md) of a flow. `rfc` has all; other hosts list the values in which
they differ from `rfc`, or from the older release that they name. `ackclock list hosts` prints all; `crates/tcp/src/stack/profile`
describes each profile and its omissions. This page is generated.
";

/// A list of keys. Long lists of values stand at the first key that has them.
fn list_keys(out: &mut String, keys: &[&Described], lists: &mut Vec<(String, String)>) {
    let number = format!("`{:e}` to `{:e}`", f64::MIN, f64::MAX);
    for key in keys {
        let mut range = values(key).replace(&number, "a number");
        // The list of the key's kinds is in the row of `kind`, and others' lists in theirs.
        let kind = format!("{}.kind", key.name);
        if let Some(kind) = keys.iter().find(|other| other.name == kind).filter(|kind| range.contains(&kind.range)) {
            let rest = range.replacen(&kind.range, "a `kind`", 1);
            range = rest.replacen(", or a table with `kind`", ", or a table", 1);
        }
        for (name, list) in lists.iter() {
            range = range.replacen(list, &format!("as `{name}`"), 1);
        }
        let list = range.split(", or a").next().unwrap_or_default();
        if list.split(' ').count() > 5 {
            lists.push((key.name.clone(), list.to_owned()));
        }
        let default = match key.default.as_str() {
            "" => String::new(),
            "required" | "required by some kinds" => key.default.clone(),
            "depends on other keys" => "varies".to_owned(),
            default => format!("default {default}"),
        };
        let notes: Vec<String> = [range, default].into_iter().filter(|note| !note.is_empty()).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let _ = writeln!(out, "- `{}`: {}{notes}", key.name, key.meaning);
    }
}

fn keys_page() -> String {
    let mut out = KEYS.to_owned();
    let of_flows: Vec<String> = sections(Own::NONE)
        .into_iter()
        .flat_map(|item| item.keys)
        .filter_map(|key| Some(key.name.strip_prefix("flows[].")?.to_owned()))
        .collect();
    let is_repeated = |name: &str| {
        let as_of_flow = name.strip_prefix("workloads[].").is_some_and(|key| of_flows.iter().any(|known| known == key));
        [".reverse.", ".receiver.", ".rt.", ".ul."].iter().any(|part| name.contains(part))
            || as_of_flow
            || is_of_distribution(name)
            || is_parameter(name)
    };
    let mut lists = Vec::new();
    for item in sections(Own::NONE) {
        let _ = write!(out, "\n## `{}`\n\n", item.name);
        let keys: Vec<&Described> = item.keys.iter().filter(|key| !is_repeated(&key.name)).collect();
        list_keys(&mut out, &keys, &mut lists);
    }
    out.push_str("\n## Distributions\n\n");
    let of_distributions =
        sections(Own::NONE).into_iter().flat_map(|item| item.keys).filter(|key| is_of_distribution(&key.name));
    // Of rows of the same key, the one with the most values: sizes have more kinds than times.
    let mut listed: Vec<Described> = Vec::new();
    for key in of_distributions {
        match listed.iter_mut().find(|known| leaf(&known.name) == leaf(&key.name)) {
            Some(known) if known.range.len() < key.range.len() => *known = key,
            Some(_) => {}
            None => listed.push(key),
        }
    }
    for Described { name, range, meaning, .. } in listed {
        let _ = writeln!(out, "- `{}`: {meaning} ({range})", leaf(&name));
    }
    out
}

fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// Returns `true` if a key is a parameter of an algorithm, which has a source.
fn is_parameter(name: &str) -> bool {
    [".queue.", ".cc.", ".hystart."]
        .iter()
        .any(|of| name.rsplit_once(of).is_some_and(|(_, parameter)| parameter != "kind" && !is_of_tree(parameter)))
}

/// Returns `true` if a key of a queue is one of its tree of classes, or of its series.
fn is_of_tree(name: &str) -> bool {
    name == "default" || name.starts_with("classes") || name.starts_with("stages")
}

#[test]
fn every_key_has_a_meaning() {
    let keys = items("keys", Own::NONE).into_iter().flat_map(|item| item.keys);
    let without: Vec<String> =
        keys.filter(|key| key.meaning.is_empty() && !is_parameter(&key.name)).map(|key| key.name).collect();
    assert!(without.is_empty(), "nothing says what these mean: {without:?}");
}

/// Returns `true` if a key is of the table of a distribution.
fn is_of_distribution(name: &str) -> bool {
    static KEYS: LazyLock<BTreeSet<String>> =
        LazyLock::new(|| sections(Own::NONE).into_iter().flat_map(|item| item.keys).map(|key| key.name).collect());
    let Some((table, leaf)) = name.rsplit_once('.') else { return false };
    ["distribution", "min", "max", "mean", "shape", "sigma", "median", "file"].contains(&leaf)
        && KEYS.contains(&format!("{table}.distribution"))
}

const TIMERS: &str = "
## Timers and patience

How long a host tries without an answer: the times of SYNs and, behind the arrow, of giving up; the number of retransmissions of a
SYN/ACK, of data, and of a FIN after it, with waits that double from the retransmission timeout up to `max_rto`. A user timeout or
`max_retries` of the scenario takes precedence. The scripts in `crates/tcp/tests/scripts/timers` show each.

| Host | SYN, s | SYN/ACK again | Data again | FIN again, closed | Window probes | Keep-alive | FIN-WAIT-2 | TIME-WAIT | Source |
|---|---|---|---|---|---|---|---|---|---|
";

/// Where the numbers of a row are from.
fn source(host: &str) -> &'static str {
    match host {
        "rfc" => "RFC 6298 sections 2 and 5, RFC 1122 sections 4.2.3.5 and 4.2.3.6, RFC 9293 section 3.8.6.1",
        "windows-7" => {
            "`TcpInitialRtt`, `TcpMaxConnectRetransmissions`, `TcpMaxConnectResponseRetransmissions`, \
             `TcpMaxDataRetransmissions`, `TcpTimedWaitDelay` (Microsoft's list of TCP/IP registry values); keep-alive \
             is off unless a socket asks; FIN-WAIT-2 is not documented"
        }
        "freebsd-9.2" => {
            "`tcp_timer.h`, `tcp_timer.c` (`tcp_syn_backoff`, `tcp_backoff`, `tcp_timer_persist`), `tcp_syncache.c` of 9.2"
        }
        "freebsd-14" => "the same files of 14; every SYN but the first waits `rexmit_slop` longer, as data does",
        "linux-2.4" => "`include/net/tcp.h`, `tcp_timer.c` (`tcp_write_timeout`) of 2.4.0",
        _ => "`include/net/tcp.h`, `tcp_timer.c` (`retransmits_timed_out`, `tcp_orphan_retries`, `tcp_probe_timer`)",
    }
}

/// A row of the table of timers.
fn timers(profile: &Profile, source: &str) -> String {
    let (config, rules) = (&profile.endpoint, &profile.endpoint.states);
    let seconds = |span: Span| (span.as_secs_f64() * 1000.0).round() / 1000.0;
    let mut at = Span::ZERO;
    let mut sent = Vec::new();
    let deadline = rules.handshake_timeout.unwrap_or(Span::from_secs(1 << 30));
    for number in 0..=rules.syn_retries + rules.linear_syn_timeouts {
        if at >= deadline {
            break;
        }
        sent.push(seconds(at).to_string());
        let doublings = number.saturating_sub(rules.linear_syn_timeouts).min(30);
        let slop = if number > 0 { config.rto_slop } else { Span::ZERO };
        at += (config.initial_rto * (1 << doublings)).min(config.max_rto) + slop;
    }
    let given_up = seconds(at.min(deadline));
    let data = match rules.give_up {
        GiveUp::Retries => config.max_retries.to_string(),
        GiveUp::ModelTime(least) => {
            let doubled = (0..=config.max_retries).map(|n| (least * (1 << n.min(20))).min(config.max_rto));
            format!("for {} s", seconds(doubled.fold(Span::ZERO, |sum, wait| sum + wait)))
        }
    };
    let fin = rules
        .orphan_retries
        .map_or_else(|| data.clone(), |retries| format!("{retries} in place of {}", config.max_retries));
    let probes = rules.persist.map_or_else(
        || format!("as data, up to {} s", seconds(config.max_rto)),
        |persist| format!("half of that, {} to {} s", seconds(persist.least), seconds(persist.most)),
    );
    let keepalive = rules.keepalive.map_or_else(
        || "off".to_owned(),
        |of| format!("after {} s, {} times each {} s", seconds(of.idle), of.count, seconds(of.interval)),
    );
    let fin_wait_2 =
        rules.fin_wait_2_timeout.map_or_else(|| "for ever".to_owned(), |span| format!("{} s", seconds(span)));
    format!(
        "| `{}` | {} → {given_up} | {} | {data} | {fin} | {probes} | {keepalive} | {fin_wait_2} | {} s | {source} |\n",
        profile.name,
        sent.join(", "),
        rules.synack_retries,
        seconds(config.time_wait)
    )
}

fn hosts_page() -> String {
    let mut out = HOSTS.to_owned();
    out.push_str(TIMERS);
    let mut known = "";
    for profile in Profile::all() {
        let source = source(profile.name);
        out.push_str(&timers(&profile, if source == known { "the same" } else { source }));
        known = source;
    }
    let mut hosts = items("hosts", Own::NONE);
    hosts.iter_mut().flat_map(|host| &mut host.keys).for_each(|key| key.meaning.clear());
    let system = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    for (number, host) in hosts.iter().enumerate() {
        let is_set = |key: &&Described| !key.default.is_empty();
        let lines = |known: &[Described]| host.keys.iter().filter(|key| !known.contains(key)).filter(is_set).count();
        // The closest of `rfc` and the older releases.
        let older =
            hosts[..number].iter().filter(|older| older.name == "rfc" || system(&older.name) == system(&host.name));
        let older = older.min_by_key(|older| lines(&older.keys));
        let known = older.map_or(&[][..], |older| &older.keys);
        let _ = write!(out, "\n## `{}`\n\n", host.name);
        if let Some(older) = older.filter(|older| older.name != "rfc") {
            let _ = writeln!(out, "As `{}`{}", older.name, if lines(known) == 0 { "." } else { ", but:\n" });
        }
        if lines(known) > 0 {
            out.push_str("```toml\n");
            for Described { name, default, .. } in host.keys.iter().filter(|key| !known.contains(key)).filter(is_set) {
                let _ = writeln!(out, "{name} = {}", default.trim_matches('`'));
            }
            out.push_str("```\n");
        }
    }
    out
}

/// A page of `docs` is what is generated.
fn check(file: &str, document: &str) {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        std::fs::write(&path, document).expect("the file can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = document.lines().zip(found.lines().chain(std::iter::repeat(""))).find(|(line, found)| line != found);
    assert!(
        document == found,
        "docs/{file} is out of date: {differs:?}\nACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-scenario documented writes it"
    );
}

#[test]
fn the_documented_parameters_are_those_of_the_algorithms() {
    check("parameters.md", &document());
}

#[test]
fn the_documented_keys_are_those_of_the_parser() {
    check("keys.md", &keys_page());
}

#[test]
fn the_documented_hosts_are_the_profiles() {
    check("hosts.md", &hosts_page());
}

#[test]
fn every_category_has_items_with_keys() {
    for category in CATEGORIES {
        let items = items(category, Own::NONE);
        assert!(items.len() >= 3, "{category}");
        assert!(items.iter().all(|item| !item.name.is_empty()), "{category}");
        assert!(items.iter().flat_map(|item| &item.keys).all(|key| !key.name.is_empty()), "{category}");
    }
    assert_eq!(items("nothing", Own::NONE), []);
}

#[test]
fn a_list_is_an_array_in_the_schema() {
    let affinity = &schema(Own::NONE)["properties"]["run"]["properties"]["affinity"]["anyOf"];
    assert_eq!(affinity[0]["const"], false);
    assert_eq!((&affinity[1]["type"], &affinity[1]["items"]["type"]), (&"array".into(), &"integer".into()));
}

fn key<'a>(items: &'a [Item], item: &str, key: &str) -> &'a Described {
    let item = items.iter().find(|found| found.name == item).unwrap_or_else(|| panic!("no {item}"));
    item.keys.iter().find(|found| found.name == key).unwrap_or_else(|| panic!("{} has no {key}", item.name))
}

#[test]
fn keys_of_hosts_and_applications_are_those_of_the_parser() {
    let hosts = items("hosts", Own::NONE);
    assert_eq!(hosts.len(), Profile::all().len() + 1, "and smoltcp");
    // RFC 6298's second, and Linux's `TCP_RTO_MIN`.
    assert_ne!(key(&hosts, "linux-6.1", "min_rto.time").default, key(&hosts, "rfc", "min_rto.time").default);
    assert_eq!(key(&hosts, "linux-6.1", "min_rto.time").default, "`\"200ms\"`");
    assert_eq!(key(&hosts, "linux-6.1", "min_rto.time").unit, "time");
    let applications = items("applications", Own::NONE);
    let rate = key(&applications, "cbr", "rate");
    assert_eq!((rate.unit.as_str(), rate.default.as_str(), rate.range.as_str()), ("rate", "required", "above 0"));
}

#[test]
fn metrics_have_the_units_of_their_names() {
    let metrics = items("metrics", Own::NONE);
    for (item, name, unit) in [
        ("flows", "flows.ID.goodput_bps", "bit/s"),
        ("flows", "flows.ID.rtt_ms.p50", "ms"),
        ("flows", "flows.ID.start_s", "s"),
        ("links", "links.ID.dropped.early", ""),
        ("run", "fairness_jain", ""),
    ] {
        assert_eq!(key(&metrics, item, name).unit, unit, "{name}");
    }
}

#[test]
fn the_keys_are_those_of_every_section_with_all_kinds_and_hosts() {
    let keys = items("keys", Own::NONE);
    // Each is asked for only if something else is said: a kind, a host, `true`, another section.
    for (section, name) in [
        ("run", "run.lateness_limit"),
        ("links", "links.NAME.queue.floyd.mark_p"),
        ("links", "links.NAME.queue.classes.NAME.ceil"),
        ("links", "links.NAME.queue.classes.NAME.rt.umax"),
        ("links", "links.NAME.trace.opportunity"),
        ("links", "links.NAME.reverse.loss.p14"),
        ("flows", "flows[].cc.bw_probe_base"),
        ("flows", "flows[].loss_detector.fack"),
        ("flows", "flows[].application.codec"),
        ("flows", "flows[].receiver.hystart.css_rounds"),
        ("workloads", "workloads[].arrivals.senders"),
        ("paths", "paths[].router.mtu"),
        ("sweep", "sweep.repeat"),
        ("sweep", "sweep.repeat.min"),
        ("sweep", "sweep.repeat.until.ci95"),
        ("expect", "expect[].ratio_to.reduce"),
    ] {
        key(&keys, section, name);
    }
    // The entry of `ecn` has the values for queues, hosts and datagrams.
    assert!(key(&keys, "flows", "flows[].ecn").range.contains("`\"accecn\"`"));
    assert!(key(&keys, "flows", "flows[].ecn").range.contains("`\"ect1\"`"));
    assert_eq!(key(&keys, "links", "links.NAME.overhead").default, "`\"0B\"`");
    assert_eq!(key(&keys, "links", "links.NAME.delay").unit, "time");
    assert_eq!(key(&keys, "run", "run.duration").default, "required");
    assert_eq!(key(&keys, "links", "links.NAME.loss.packets").default, "required by some kinds");
}
