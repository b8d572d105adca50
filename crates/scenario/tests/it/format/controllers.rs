//! Congestion control and its parameters.

use super::*;

#[test]
fn a_controller_brings_its_feedback_of_ecn_along() {
    use EcnFeedback::{Accurate, Classic, Dctcp, None};
    for (keys, sender, receiver) in [
        ("cc = \"dctcp\"", Dctcp, Dctcp),
        ("cc = { kind = \"dctcp\", shift_g = 3 }", Dctcp, Dctcp),
        ("cc = \"prague\"", Accurate, Accurate),
        ("cc = \"prague\"\nreceiver = \"linux-6.1\"", Accurate, Accurate),
        ("cc = \"dctcp\"\nreceiver = { host = \"linux-6.1\" }", Dctcp, Dctcp),
        ("cc = \"dctcp\"\nreceiver = { ecn = true }", Dctcp, Classic),
        ("cc = \"dctcp\"\necn = \"accecn\"", Accurate, Accurate),
        ("cc = \"prague\"\necn = false", None, None),
        ("cc = \"cubic\"\necn = \"accecn\"", Accurate, Accurate),
        ("ecn = \"dctcp\"\nreceiver = \"linux-6.1\"", Dctcp, None),
        ("ecn = true", Classic, Classic),
    ] {
        let ends = ends(keys);
        assert_eq!((config(&ends.0).ecn, config(&ends.1).ecn), (sender, receiver), "{keys}");
    }
}

#[test]
fn congestion_control_has_the_parameters_of_its_host() {
    let cc = |keys: &str| match ends(keys).0 {
        HostSpec::Endpoint(endpoint) => endpoint.cc,
        _ => panic!("not our endpoint"),
    };
    let linux = Profile::linux_3_9();
    assert_eq!(cc("host = \"linux-3.9\""), CcSpec::Cubic(linux.cubic));
    assert_eq!(cc("host = \"linux-3.9\"\ncc = \"newreno\""), CcSpec::NewReno(linux.newreno));
    assert_eq!(
        cc("host = \"linux-3.9\"\ncc = { kind = \"cubic\", beta = 0.5, abc = true }\nhystart = false"),
        CcSpec::Cubic(ackclock_cc::CubicConfig {
            beta: 0.5,
            reno: ackclock_cc::NewRenoConfig { abc: true, slow_start: SlowStartRules::Standard, ..linux.cubic.reno },
            ..linux.cubic
        })
    );
    assert_eq!(
        cc("cc = { kind = \"bbr\", beta = 0.8, min_pipe_cwnd = 2, probe_rtt_duration = \"100ms\" }"),
        CcSpec::Bbr(ackclock_cc::BbrConfig {
            beta: 0.8,
            min_pipe_cwnd: 2,
            probe_rtt_duration: Span::from_millis(100),
            ..ackclock_cc::BbrConfig::default()
        })
    );
}

#[test]
fn delay_based_congestion_control_has_the_names_of_the_sysctls() {
    let cc = |host: &str, cc: &str| match ends(&format!("host = \"{host}\"\ncc = {cc}")).0 {
        HostSpec::Endpoint(endpoint) => endpoint.cc,
        _ => panic!("not our endpoint"),
    };
    let reno = Profile::freebsd_9_2().newreno;
    let freebsd = |keys: &str| cc("freebsd-9.2", keys);
    assert_eq!(freebsd("\"cdg\""), CcSpec::Cdg(CdgConfig::default()));
    assert_eq!(
        freebsd(
            "{ kind = \"cdg\", alpha_inc = 1, beta_delay = 2, beta_loss = 3, exp_backoff_scale = 4, smoothing_factor = 5, \
             loss_compete_consec_cong = 6, loss_compete_hold_backoff = 7, rtt_unit = \"100us\" }"
        ),
        CcSpec::Cdg(CdgConfig {
            alpha_inc: 1,
            beta_delay: 2,
            beta_loss: 3,
            exp_backoff_scale: 4,
            smoothing_factor: 5,
            loss_compete_consec_cong: 6,
            loss_compete_hold_backoff: 7,
            rtt_unit: Span::from_micros(100),
            ..CdgConfig::default()
        })
    );
    // The variant of CDG follows from the host, or is given.
    let linux = CcSpec::LinuxCdg(LinuxCdgConfig { reno: Profile::linux_6_1().newreno, ..LinuxCdgConfig::default() });
    assert_eq!(cc("linux-6.1", "\"cdg\""), linux);
    assert_eq!(cc("linux-6.1", "{ kind = \"cdg\", variant = \"freebsd\" }"), CcSpec::Cdg(CdgConfig::default()));
    assert_eq!(
        freebsd("{ kind = \"cdg\", variant = \"linux\" }"),
        CcSpec::LinuxCdg(LinuxCdgConfig { reno, ..LinuxCdgConfig::default() })
    );
    assert_eq!(freebsd("\"hd\""), CcSpec::Hd(HdConfig { reno, ..HdConfig::default() }));
    // A threshold below the usual minimum takes it along.
    assert_eq!(
        freebsd("{ kind = \"hd\", queue_threshold = 3, pmax = 9, rtt_unit = \"1us\" }"),
        CcSpec::Hd(HdConfig { queue_threshold: 3, queue_min: 3, pmax: 9, rtt_unit: Span::from_micros(1), reno })
    );
    assert_eq!(freebsd("\"chd\""), CcSpec::Chd(ChdConfig { reno, ..ChdConfig::default() }));
    assert_eq!(
        freebsd("{ kind = \"chd\", queue_threshold = 3, queue_min = 1, pmax = 9, loss_fair = false, use_max = false }"),
        CcSpec::Chd(ChdConfig {
            queue_threshold: 3,
            queue_min: 1,
            pmax: 9,
            loss_fair: false,
            use_max: false,
            rtt_unit: Span::from_millis(1),
            reno
        })
    );
    assert_eq!(freebsd("\"vegas\""), CcSpec::Vegas(VegasConfig { reno, ..VegasConfig::default() }));
    let slow = CcSpec::Vegas(VegasConfig {
        alpha: 2,
        beta: 4,
        rtt_unit: Span::from_millis(1),
        reno: ackclock_cc::NewRenoConfig { abc: false, ..reno },
    });
    assert_eq!(freebsd("{ kind = \"vegas\", alpha = 2, beta = 4, abc = false }"), slow);
    // So does that of Vegas.
    let linux = |reno| LinuxVegasConfig { reno, ..LinuxVegasConfig::default() };
    assert_eq!(cc("linux-6.1", "\"vegas\""), CcSpec::LinuxVegas(linux(Profile::linux_6_1().newreno)));
    assert_eq!(
        freebsd("{ kind = \"vegas\", variant = \"linux\", alpha = 3, beta = 5, gamma = 0 }"),
        CcSpec::LinuxVegas(LinuxVegasConfig { alpha: 3, beta: 5, gamma: 0, ..linux(reno) })
    );
}

#[test]
fn bounds_between_parameters_are_kept() {
    for (cc, says) in [
        ("{ kind = \"hd\", queue_min = 21 }", "from 0 to 20"),
        ("{ kind = \"chd\", queue_min = 20 }", "from 0 to 19"),
        ("{ kind = \"vegas\", alpha = 4 }", "from 1 to 3"),
        ("{ kind = \"cdg\", beta_delay = 101 }", "from 1 to 100"),
        ("{ kind = \"cdg\", exp_backoff_scale = 0 }", "must not be zero"),
        ("{ kind = \"cdg\", rtt_unit = \"0s\" }", "must not be zero"),
    ] {
        let text = format!("{BASE}{FLOW}host = \"freebsd-9.2\"\ncc = {cc}\n");
        let error = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_err().to_string();
        assert!(error.contains(says), "{cc}: {error}");
    }
}

#[test]
fn cdg_is_the_hosts_own_unless_it_says_whose() {
    let cc = |keys: &str| match ends(keys).0 {
        HostSpec::Endpoint(endpoint) => endpoint.cc,
        _ => panic!("not our endpoint"),
    };
    let linux = |profile: Profile| LinuxCdgConfig { reno: profile.newreno, ..LinuxCdgConfig::default() };
    let freebsd = CcSpec::Cdg(CdgConfig::default());
    for (keys, spec) in [
        ("host = \"linux-6.1\"\ncc = \"cdg\"", CcSpec::LinuxCdg(linux(Profile::linux_6_1()))),
        ("host = \"linux-3.9\"\ncc = \"cdg\"", CcSpec::LinuxCdg(linux(Profile::linux_3_9()))),
        ("host = \"freebsd-9.2\"\ncc = \"cdg\"", freebsd.clone()),
        ("host = \"linux-6.1\"\ncc = { kind = \"cdg\", variant = \"freebsd\" }", freebsd),
        (
            "host = \"freebsd-9.2\"\ncc = { kind = \"cdg\", variant = \"linux\", window = 16, backoff_beta = 512, \
             backoff_factor = 21, hystart_detect = 0, use_ineff = 0, use_shadow = false, use_tolerance = true }",
            CcSpec::LinuxCdg(LinuxCdgConfig {
                window: 16,
                backoff_beta: 512,
                backoff_factor: 21,
                hystart_detect: 0,
                use_ineff: 0,
                use_shadow: false,
                use_tolerance: true,
                ..linux(Profile::freebsd_9_2())
            }),
        ),
    ] {
        assert_eq!(cc(keys), spec, "{keys}");
    }
}

#[test]
fn htcp_and_westwood_share_the_hosts_newreno() {
    let cc = |keys: &str| match ends(keys).0 {
        HostSpec::Endpoint(endpoint) => endpoint.cc,
        _ => panic!("not our endpoint"),
    };
    let (freebsd, linux) = (Profile::freebsd_9_2().newreno, Profile::linux_6_1().newreno);
    assert_eq!(
        cc("host = \"freebsd-9.2\"\ncc = { kind = \"htcp\", adaptive_backoff = true }"),
        CcSpec::Htcp(HtcpConfig { adaptive_backoff: true, rtt_scaling: false, reno: freebsd })
    );
    assert_eq!(
        cc("host = \"linux-6.1\"\ncc = { kind = \"westwood\", rtt_min = \"10ms\" }"),
        CcSpec::Westwood(WestwoodConfig {
            rtt_min: Span::from_millis(10),
            tick: Span::from_millis(4),
            late_events: true,
            reno: linux
        })
    );
}

#[test]
fn hystart_is_a_choice_for_any_congestion_control() {
    let slow_start = |keys: &str| match ends(keys).0 {
        HostSpec::Endpoint(mut endpoint) => *endpoint.cc.slow_start_mut().expect("a choice"),
        _ => panic!("not our endpoint"),
    };
    let linux = |rules| SlowStartRules::Hystart(HystartConfig { rules, ..HystartConfig::default() });
    let (linux39, linux61) = (linux(HystartRules::Linux39), linux(HystartRules::Linux61));
    let linux26 = linux(HystartRules::Linux26);
    let rfc9406 = SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default());
    for (keys, rules) in [
        ("", linux61),
        ("hystart = false", SlowStartRules::Standard),
        ("host = \"rfc\"", SlowStartRules::Standard),
        ("host = \"rfc\"\nhystart = true", linux61),
        ("hystart = \"linux-3.9\"", linux39),
        ("cc = \"newreno\"\nhystart = \"hystart++\"", rfc9406),
        ("cc = \"newreno\"\nhystart = \"rfc9406\"", rfc9406),
        // Off in the CUBIC of one host, on in that of another, off in every NewReno.
        ("host = \"freebsd-14\"", SlowStartRules::Standard),
        ("host = \"freebsd-14\"\nhystart = true", rfc9406),
        ("hystart = \"linux-2.6.32\"", linux26),
        ("host = \"linux-2.6.32\"", linux26),
        ("host = \"linux-3.9\"", linux39),
        ("host = \"linux-3.9\"\nhystart = false", SlowStartRules::Standard),
        ("host = \"linux-6.1\"\nhystart = \"linux-3.9\"", linux39),
        ("host = \"linux-6.1\"\ncc = \"newreno\"", SlowStartRules::Standard),
        ("host = \"linux-3.9\"\ncc = \"newreno\"\nhystart = true", linux39),
    ] {
        assert_eq!(slow_start(keys), rules, "{keys}");
    }
    let SlowStartRules::Hystart(some) = slow_start("hystart = { low_window = 4 }") else { panic!("Linux's") };
    assert_eq!((some.low_window, some.ack_train, some.rules), (4, true, HystartRules::Linux61));
    let css = slow_start("hystart = { rules = \"rfc9406\", css_rounds = 3, min_rtt_thresh = \"1ms\", l = 0 }");
    assert_eq!(
        css,
        SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig {
            css_rounds: 3,
            min_rtt_thresh: Span::from_millis(1),
            l: 0,
            ..HystartPlusPlusConfig::default()
        })
    );
    // The other end has what this one has, or its own.
    let receiver = |keys: &str| match ends(keys).1 {
        HostSpec::Endpoint(mut endpoint) => *endpoint.cc.slow_start_mut().expect("a choice"),
        _ => panic!("not our endpoint"),
    };
    for (keys, rules) in [
        ("hystart = \"rfc9406\"", rfc9406),
        ("hystart = \"rfc9406\"\nreceiver = { cc = { kind = \"cubic\", beta = 0.5 } }", rfc9406),
        ("hystart = \"rfc9406\"\nreceiver = { cc = \"newreno\" }", SlowStartRules::Standard),
        ("hystart = \"rfc9406\"\nreceiver = { hystart = false }", SlowStartRules::Standard),
    ] {
        assert_eq!(receiver(keys), rules, "{keys}");
    }
}

#[test]
fn hystart_has_no_meaning_for_those_with_a_slow_start_of_their_own() {
    let parse = |keys: &str| Scenario::parse("test.toml", format!("{BASE}{FLOW}{keys}").as_bytes(), &[]);
    for cc in ["bbr", "prague"] {
        let error = parse(&format!("cc = \"{cc}\"\nhystart = true\n")).expect_err("no meaning").to_string();
        assert!(error.contains(&format!("`{cc}` has a slow start of its own")), "{error}");
        assert!(parse(&format!("cc = \"{cc}\"\nhystart = false\n")).is_ok());
    }
}

#[test]
fn smoltcp_has_knobs_of_its_own() {
    let (sender, _) =
        ends("host = \"smoltcp\"\ncc = \"cubic\"\nmtu = \"576B\"\nack_delay = false\nsend_buffer = \"1KiB\"");
    let HostSpec::Smoltcp(stock) = sender else { panic!("smoltcp") };
    assert_eq!((stock.cc, stock.mtu, stock.ack_delay, stock.send_buffer), (SmoltcpCc::Cubic, 576, None, 1024));
}

#[test]
fn every_controller_is_read_by_its_name() {
    for controller in &CONTROLLERS {
        for host in ["rfc", "linux-6.1"] {
            let HostSpec::Endpoint(read) = ends(&format!("host = \"{host}\"\ncc = \"{}\"", controller.name)).0 else {
                panic!("not our endpoint")
            };
            assert_eq!(read.cc.name(), controller.name);
            assert!(controller.feedback.is_none_or(|feedback| read.config.ecn == feedback), "{}", controller.name);
        }
    }
}

#[test]
fn a_schedule_changes_the_controller_of_the_sender() {
    let keys = "host = \"linux-3.9\"\ncc = \"newreno\"\nreceiver = \"windows-7\"\n\
                schedule = [{ at = \"3s\", cc = { kind = \"cubic\", beta = 0.5 } }, { at = \"5s\", cc = \"newreno\" }]";
    let linux = Profile::linux_3_9();
    let cubic = ackclock_cc::CubicConfig { beta: 0.5, ..linux.cubic };
    let changes = |spec: &RunSpec| {
        let schedule = spec.flows[0].schedule.clone();
        schedule.into_iter().map(|change| (change.at, change.cc)).collect::<Vec<_>>()
    };
    let text = format!("{BASE}{FLOW}{keys}\n");
    let all = [(Time::from_secs(3), CcSpec::Cubic(cubic)), (Time::from_secs(5), CcSpec::NewReno(linux.newreno))];
    assert_eq!(changes(&scenario(&text).spec(0)), all);
    // Arguments and axes reach into it.
    let set = with(&text, &["flows.f.schedule.1.at=7s", "flows.f.schedule.0.cc.beta=0.9"]).spec(0);
    assert_eq!(changes(&set)[0].1, CcSpec::Cubic(ackclock_cc::CubicConfig { beta: 0.9, ..cubic }));
    assert_eq!(changes(&set)[1].0, Time::from_secs(7));
    let swept = scenario(&format!("{text}[sweep]\naxes.\"flows.f.schedule.0.at\" = [\"1s\", \"2s\"]\n"));
    assert_eq!([0, 1].map(|run| changes(&swept.spec(run))[0].0), [Time::from_secs(1), Time::from_secs(2)]);
    // The resolved file says the same.
    let resolved = scenario(&text).resolved();
    assert!(resolved.contains("schedule = [{ at = \"3s\", cc = { kind = \"cubic\", beta = 0.5, "), "{resolved}");
    assert_eq!(scenario(&resolved).spec(0), scenario(&text).spec(0));
}
