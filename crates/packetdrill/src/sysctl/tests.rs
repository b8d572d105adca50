use super::setters::product;
use super::*;
use ackclock_tcp::{AdaptiveRules, EcnFeedback, LossDetector, SackCompression};
use ackclock_units::Span;

#[test]
fn sysctls_of_linux_that_set_what_its_profile_has() {
    let states = |text| applied(text).0.config.states;
    assert_eq!(states("sysctl -q net.ipv4.tcp_syn_linear_timeouts=3").linear_syn_timeouts, 3);
    assert_eq!(states("sysctl -q net.ipv4.tcp_ecn_fallback=0").ecn_syn_retries, u32::MAX);
    assert_eq!(states("sysctl -q net.ipv4.tcp_ecn_fallback=1").ecn_syn_retries, 0);
    let (host, _) = applied("./set_sysctls.py /proc/sys/net/ipv4/tcp_rto_max_ms=1000");
    assert_eq!(host.config.max_rto, Span::from_secs(1));
    assert!(applied("sysctl -q net.ipv4.tcp_rto_max_ms=999").1.unsupported.is_some());
}

#[test]
fn acks_are_put_together_as_three_sysctls_say() {
    let rules = |text| applied(text).0.config.transfer.sack_compression;
    assert_eq!(rules("true"), Some(SackCompression::default()));
    assert_eq!(rules("sysctl -q net.ipv4.tcp_comp_sack_nr=0"), None);
    let text = "sysctl -q net.ipv4.tcp_comp_sack_nr=10 net.ipv4.tcp_comp_sack_delay_ns=5000 \
                net.ipv4.tcp_comp_sack_slack_ns=7";
    let (delay, slack) = (Span::from_micros(5), Span::from_nanos(7));
    assert_eq!(rules(text), Some(SackCompression { delay, slack, segments: 10 }));
}

#[test]
fn a_size_may_be_a_product() {
    let scale = |text| applied(text).1.unsupported;
    assert_eq!(scale("sysctl -q net.ipv4.tcp_rmem=\"4096 131072 $((32*1024*1024))\""), None);
    assert_eq!(product("$((15*1024*1024))"), Some(15_728_640));
    assert_eq!(product("7"), Some(7));
    for word in ["$((2*x))", "$((", "$(())", "2*", "$((18446744073709551615*2))"] {
        assert_eq!(product(word), None, "{word}");
    }
}

fn applied(text: &str) -> (Host, Shell) {
    let mut host = Host::default();
    let shell = apply(&mut host, &Settings::new(), text);
    (host, shell)
}

#[test]
fn the_defaults_of_the_suite_are_all_known() {
    for (name, value) in DEFAULTS {
        assert!(matches!(set(&mut Host::default(), &Settings::new(), name, value), Some(Ok(_))), "{name}={value}");
    }
    let (host, shell) = applied("../../common/defaults.sh");
    assert_eq!(shell.not_run, Vec::<String>::new());
    assert_eq!((host.cc.name, host.config.ecn, host.config.slow_start_after_idle), ("cubic", EcnFeedback::None, false));
    // tcp_rmem and tcp_wmem: the numbers in the middle.
    assert_eq!((host.receive_buffer(), host.config.send_buffer), (540_000, 262_144));
}

#[test]
fn commands_of_one_line_are_taken_one_by_one() {
    let (host, shell) = applied(
        "../common/defaults.sh\nethtool -K tun0 tso off gso off\n\
         ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\\n /proc/sys/net/ipv4/tcp_sack=0",
    );
    assert_eq!(shell.not_run, ["ethtool -K tun0 tso off gso off"]);
    assert!(!host.config.timestamps && !host.config.sack);
}

#[test]
fn values_in_quotes_and_redirections() {
    let (host, shell) = applied("sysctl -q net.ipv4.tcp_wmem=\"4096 50000 4194304\" > /dev/null 2>&1");
    assert_eq!(shell, Shell { changed: vec!["sndbuf=50000".to_owned()], ..Shell::default() });
    assert_eq!(host.config.send_buffer, 50_000);
}

#[test]
fn numbers_are_worked_out() {
    let (host, shell) = applied("sysctl -q net.ipv4.tcp_wmem=\"4096 $((32*1024)) $(( (1 + 3) << 20 ))\"");
    assert_eq!((shell.unsupported, host.config.send_buffer), (None, 32_768));
    for text in ["$((x))", "$((1", "$((1/0))", "$((1+))"] {
        assert!(applied(&format!("sysctl -q net.ipv4.tcp_sack={text}")).1.unsupported.is_some(), "{text}");
    }
}

#[test]
fn what_shapes_and_filters_packets_is_not_here() {
    for text in ["tc qdisc delete dev tun0 root 2>/dev/null", "/sbin/tc qdisc add dev tun0 root pfifo", "iptables -F"] {
        let shell = applied(text).1;
        assert!(shell.unsupported.is_some() && shell.not_run.is_empty(), "{text}: {shell:?}");
    }
}

#[test]
fn what_the_sysctls_of_loss_recovery_do() {
    let after = |profile: &str, text: &str| {
        let mut host = Host::of_profile(profile).unwrap();
        let shell = apply(&mut host, &Settings::new(), &format!("sysctl -q {text}"));
        assert_eq!(shell.not_run, Vec::<String>::new());
        (host.config, shell)
    };
    let old = AdaptiveRules::rack_off();
    assert_eq!(after("linux-6.1", "net.ipv4.tcp_recovery=0").0.loss_detector, LossDetector::Linux(old));
    assert_eq!(after("linux-6.1", "net.ipv4.tcp_recovery=0x1").0.loss_detector, LossDetector::Rack);
    assert!(after("linux-6.1", "net.ipv4.tcp_recovery=4").1.unsupported.is_some());
    let (config, shell) = after("linux-6.18", "net.ipv4.tcp_recovery=0");
    assert_eq!(config.loss_detector, LossDetector::Rack);
    assert!(shell.changed[0].contains("6.17"), "{shell:?}");
    assert_eq!(after("freebsd-14", "net.ipv4.tcp_recovery=0").0.loss_detector, LossDetector::Rfc6675);
    assert!(after("linux-6.18", "net.ipv4.tcp_ecn=3").1.unsupported.is_some());
    assert!(after("linux-7.3", "net.ipv4.tcp_ecn=3").1.unsupported.is_none());
    // The value turns tail loss probes and F-RTO on where the host has them.
    for (value, tlp) in [(0, false), (2, false), (3, true)] {
        assert_eq!(after("linux-6.1", &format!("net.ipv4.tcp_early_retrans={value}")).0.tlp, tlp, "{value}");
    }
    for (value, frto) in [(0, false), (2, true)] {
        assert_eq!(after("linux-6.1", &format!("net.ipv4.tcp_frto={value}")).0.frto, frto, "{value}");
    }
    assert_eq!(after("freebsd-14", "net.ipv4.tcp_frto=2").0, Host::of_profile("freebsd-14").unwrap().config);
}

#[test]
fn what_is_not_known_is_not_run() {
    for text in ["nstat > /dev/null", "sysctl -w net.ipv4.tcp_unheard_of=1", "sysctl net.ipv4.tcp_sack"] {
        assert_eq!(applied(text).1.not_run.len(), 1, "{text}");
    }
}

#[test]
fn values_that_are_not_here_are_refused() {
    for text in [
        "sysctl -w net.inet.tcp.blackhole=1",
        "sysctl -q net.ipv4.tcp_ecn=6",
        "sysctl -q net.ipv4.tcp_congestion_control=yeah",
        "sysctl -q net.ipv4.tcp_sack=yes",
        "sysctl -q net.ipv4.tcp_rmem=4096",
        "sysctl -w net.inet.tcp.delacktime=0",
    ] {
        assert!(applied(text).1.unsupported.is_some(), "{text}");
    }
}

#[test]
fn freebsd_says_two_things_at_once() {
    // tcp(4), rfc1323: 1 is both, 2 window scaling alone, 3 timestamps alone.
    for (value, scaling, timestamps) in [(0, false, false), (1, true, true), (2, true, false), (3, false, true)] {
        let (host, _) = applied(&format!("sysctl -w net.inet.tcp.rfc1323={value}"));
        assert_eq!((host.config.window_scaling, host.config.timestamps), (scaling, timestamps), "{value}");
    }
}

#[test]
fn what_is_chosen_stays() {
    let mut settings = Settings::new();
    settings.set("timestamps", "on").unwrap();
    let mut host = Host::default();
    apply(&mut host, &settings, "sysctl -q net.ipv4.tcp_timestamps=0");
    assert!(host.config.timestamps);
}

/// docs/packetdrill.md lists every sysctl that is known, and no other.
#[test]
fn every_sysctl_is_there_once_and_documented() {
    let known: Vec<&str> = table::TABLES.into_iter().flatten().map(|row| row.name).collect();
    for (index, name) in known.iter().enumerate() {
        assert!(!known[..index].contains(name), "{name} is there twice");
    }
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/packetdrill.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let documented: Vec<&str> =
        guide.split('`').filter(|word| word.starts_with("net.") && !word.contains('=')).collect();
    for name in &known {
        assert!(documented.contains(name) || guide.contains(&format!("`{name}`")), "{name} is not documented");
    }
    for name in documented {
        assert!(known.contains(&name), "{name} is documented, but not known");
    }
}
