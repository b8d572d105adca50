//! The effect of a scenario's keys on its runs.

use ackclock_aqm::{DqRateEstimator, Limit};
use ackclock_cc::{
    CdgConfig, ChdConfig, DctcpConfig, DctcpRules, HdConfig, HtcpConfig, HystartConfig, HystartPlusPlusConfig,
    HystartRules, LinuxCdgConfig, LinuxVegasConfig, SlowStartRules, VegasConfig, WestwoodConfig,
};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_scenario::{Override, Scenario};
use ackclock_sim::spec::{
    CcSpec, FlowSpec, HostSpec, Overhead, QueueSpec, RunSpec, SmoltcpCc, SplitRule, SplitSpec, WayBack,
};
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{
    AccEcnOption, AccEcnRule, AccEcnRules, AdaptiveRules, BerkeleyRules, CONTROLLERS, CwndValidation, DetectorRules,
    EcnFeedback, InitialWindow, LossDetector, MinRto, Prr, TuningRules, WindowRule,
};
use ackclock_units::{Rate, Span, Time};

mod controllers;

const BASE: &str = "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n";
const FLOW: &str = "[[flows]]\nid = \"f\"\npath = [\"a\"]\n";

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn with(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test.toml", text.as_bytes(), &set).unwrap_or_else(|error| panic!("{error}"))
}

fn link(keys: &str) -> RunSpec {
    scenario(&format!("{BASE}{keys}\n{FLOW}")).spec(0)
}

fn flow(keys: &str) -> FlowSpec {
    scenario(&format!("{BASE}{FLOW}{keys}\n")).spec(0).flows.remove(0)
}

fn ends(keys: &str) -> (HostSpec, HostSpec) {
    let flow = flow(keys);
    (flow.sender.clone(), flow.receiver.clone())
}

fn config(host: &HostSpec) -> &ackclock_tcp::Config {
    match host {
        HostSpec::Endpoint(endpoint) => &endpoint.config,
        _ => panic!("not our endpoint"),
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let spec = link("");
    assert_eq!((spec.seed, spec.run, spec.duration), (1, 0, Span::from_secs(10)));
    let link = &spec.links[0];
    assert_eq!(link.forward, link.reverse);
    assert_eq!((link.forward.delay, link.forward.overhead), (Span::ZERO, Overhead::default()));
    assert_eq!(link.forward.queue, QueueSpec::Pfifo(Default::default()));
    assert_eq!(link.forward.impairments, Impairments::default());
    let flow = &spec.flows[0];
    assert_eq!((&*flow.id, flow.start, flow.stop, flow.bytes), ("f.0", Time::ZERO, None, None));
    assert_eq!(flow.sender, flow.receiver);
    let HostSpec::Endpoint(endpoint) = &flow.sender else { panic!("a profile") };
    let linux = Profile::linux_6_1();
    assert_eq!((endpoint.profile.as_str(), &endpoint.config), ("linux-6.1", &linux.endpoint));
    assert_eq!(endpoint.cc, CcSpec::Cubic(linux.cubic));
}

#[test]
fn the_way_back_differs_in_what_it_says() {
    let spec = link(
        "delay = \"10ms\"\nqueue = { kind = \"pie\", limit = \"10p\" }\n\
         reverse = { rate = \"unlimited\", queue = \"codel\", loss = { kind = \"list\", packets = [3, 1, 3] } }",
    );
    let (forward, reverse) = (&spec.links[0].forward, &spec.links[0].reverse);
    assert_eq!(forward.rate, Rate::from_bps(10_000_000));
    assert_eq!(reverse.rate, None);
    assert_eq!((forward.delay, reverse.delay), (Span::from_millis(10), Span::from_millis(10)));
    assert!(matches!(&forward.queue, QueueSpec::Pie(pie) if pie.limit == 10 && pie.target == Span::from_millis(15)));
    assert!(matches!(&reverse.queue, QueueSpec::Codel(codel) if codel.limit == 1000));
    assert_eq!(forward.impairments.loss, Loss::None);
    assert_eq!(reverse.impairments.loss, Loss::List(vec![1, 3]));
}

#[test]
fn a_kind_has_settings_of_its_own() {
    let text = format!(
        "{BASE}queue = {{ kind = \"pie\", limit = \"180p\", pie = {{ target = \"20ms\" }}, \
         fq_codel = {{ limit = \"90p\", quantum = \"300B\" }}, bfifo = {{ limit = \"64KiB\" }} }}\n{FLOW}\
         [sweep]\naxes.\"links.a.queue.kind\" = [\"pfifo\", \"pie\", \"fq_codel\"]\n"
    );
    let scenario = scenario(&text);
    let queues: Vec<QueueSpec> = (0..3).map(|run| scenario.spec(run).links[0].forward.queue.clone()).collect();
    assert!(matches!(&queues[0], QueueSpec::Pfifo(fifo) if fifo.limit == Limit::Packets(180)));
    assert!(matches!(&queues[1], QueueSpec::Pie(pie) if pie.limit == 180 && pie.target == Span::from_millis(20)));
    assert!(matches!(&queues[2], QueueSpec::FqCodel(fq) if fq.limit == 90 && fq.quantum == 300));
    assert_eq!(scenario.params(1)["links.a.queue.kind"], "pie");
    assert!(matches!(link("queue = { kind = \"bfifo\", limit = \"64KiB\" }").links[0].forward.queue,
        QueueSpec::Bfifo(fifo) if fifo.limit == Limit::Bytes(65_536)));
}

#[test]
fn flows_of_a_group_are_numbered_and_staggered() {
    let spec = scenario(&format!(
        "{BASE}{FLOW}count = 3\nstart = \"1s\"\nstagger = \"500ms\"\nstop = \"9s\"\nbytes = \"1MB\"\ndirection = \"reverse\"\n"
    ))
    .spec(0);
    let ids: Vec<&str> = spec.flows.iter().map(|flow| &*flow.id).collect();
    assert_eq!(ids, ["f.0", "f.1", "f.2"]);
    assert_eq!(spec.flows[2].start, Time::from_secs(2));
    assert_eq!((spec.flows[0].stop, spec.flows[0].bytes), (Some(Time::from_secs(9)), Some(1_000_000)));
    assert!(spec.flows[0].reverse);
}

#[test]
fn every_knob_is_a_key() {
    let (sender, receiver) = ends(
        "host = \"freebsd-9.2\"\nmss = \"536B\"\ninitial_window = \"3p\"\nsack = false\ndsack = true\ntimestamps = false\n\
         window_scaling = false\necn = true\nsend_buffer = \"10kB\"\nreceive_buffer = \"20KiB\"\n\
         delayed_ack = { segments = 1, quick = 5 }\nmin_rto = \"50ms\"\nmax_rto = \"10s\"\ninitial_rto = \"2s\"\nrto_slop = \"1ms\"\n\
         limited_transmit = false\nprr = \"rfc6937\"\nloss_detector = \"rfc6675\"\n\
         undo = true\nfrto = true\ntlp = true\nnagle = false\nfast_open = true\n\
         slow_start_after_idle = false\ntime_wait = \"1s\"\nmax_retries = 3",
    );
    assert_eq!(sender, receiver);
    let config = config(&sender);
    assert_eq!((config.mss, config.initial_window), (536, InitialWindow::Segments(3)));
    assert_eq!((config.sack, config.dsack, config.timestamps, config.window_scaling), (false, true, false, false));
    assert_eq!((config.ecn, config.send_buffer, config.receive_buffer), (EcnFeedback::Classic, 10_000, 20_480));
    let ack = config.delayed_ack;
    assert_eq!((ack.segments, ack.timeout, ack.quick), (1, Span::from_millis(100), 5));
    // A plain time bounds what the profile bounds.
    assert_eq!(config.min_rto, MinRto::OfTotal(Span::from_millis(50)));
    assert_eq!(
        (config.max_rto, config.initial_rto, config.rto_slop),
        (Span::from_secs(10), Span::from_secs(2), Span::from_millis(1))
    );
    assert_eq!((config.undo, config.frto, config.tlp), (true, true, true));
    assert_eq!((config.limited_transmit, config.prr, config.nagle), (false, Prr::Rfc6937, false));
    assert!(config.states.fast_open);
    assert_eq!((config.slow_start_after_idle, config.time_wait, config.max_retries), (false, Span::from_secs(1), 3));
}

#[test]
fn buffers_are_tuned_as_sysctls_say() {
    let (sender, receiver) = ends(
        "host = \"linux-4.0\"\nreceive_buffer = \"auto\"\nsend_buffer = \"auto\"\n\
         tcp_rmem = { default = \"100kB\", max = \"1MB\" }\nreceiver = { receive_buffer = \"70kB\" }",
    );
    let tuning = config(&sender).transfer.receive_tuning.expect("tuned");
    assert_eq!((tuning.law, tuning.default, tuning.most), (TuningRules::LINUX_4_0, 100_000, 1_000_000));
    assert_eq!(config(&sender).transfer.window, WindowRule::Linux { most: 1_000_000 });
    let tuning = config(&sender).transfer.send_tuning.expect("tuned");
    assert_eq!((tuning.default, tuning.most), (16_384, 4 << 20));
    // An end with a buffer of a fixed size has the rules of its profile.
    let transfer = &config(&receiver).transfer;
    assert_eq!((config(&receiver).receive_space(), transfer.receive_tuning), (70_000, None));
    assert_eq!(transfer.window, WindowRule::Linux { most: 0 });
}

#[test]
fn a_loss_detector_is_a_name_or_a_table() {
    let detector = |text: &str| config(&ends(text).0).loss_detector;
    let adaptive = AdaptiveRules::default();
    assert_eq!(detector("host = \"rfc\""), LossDetector::Rfc6675);
    assert_eq!(detector("host = \"linux-6.1\""), LossDetector::Rack);
    assert_eq!(detector("host = \"linux-4.0\"\nloss_detector = \"linux\""), LossDetector::Linux(adaptive));
    // Kernels with RACK have neither any more, and mark last.
    let order = DetectorRules { marks_last: true, ..DetectorRules::LINUX_4_4 };
    let later = AdaptiveRules { fack: false, early_retransmit: false, order, ..adaptive };
    assert_eq!(detector("host = \"linux-6.1\"\nloss_detector = \"linux\""), LossDetector::Linux(later));
    // Keys missing from the table are the profile's.
    let table = "loss_detector = { kind = \"linux\", max_reordering = \"50p\", fack = false }";
    let rules = AdaptiveRules {
        max_reordering: 50,
        fack: false,
        early_retransmit: false,
        high_reordering: false,
        order: DetectorRules::LINUX_4_0,
    };
    assert_eq!(detector(&format!("host = \"linux-2.4\"\n{table}")), LossDetector::Linux(rules));
}

#[test]
fn freebsd_9_recovers_by_itself() {
    let of = |text: &str| config(&ends(&format!("host = \"freebsd-9.2\"\n{text}")).0).clone();
    let own = of("loss_detector = \"freebsd-9\"");
    assert_eq!((own.loss_detector, own.cwnd_validation), (LossDetector::FreeBsd9, CwndValidation::Peer));
    let bounded = of("loss_detector = \"freebsd-9\"\ncwnd_validation = \"growth\"");
    assert_eq!(bounded.cwnd_validation, CwndValidation::Growth);
    let other = of("prr = \"rfc6937\"");
    assert_eq!((other.prr, other.cwnd_validation), (Prr::Rfc6937, CwndValidation::Growth));
    for (key, value) in [("prr", "\"ssrb\""), ("undo", "true"), ("frto", "true"), ("tlp", "true")] {
        let text = format!("{BASE}{FLOW}host = \"freebsd-9.2\"\n{key} = {value}\nloss_detector = \"freebsd-9\"\n");
        let error = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string();
        assert!(error.contains(&format!("`{key}` does not go with `loss_detector = \"freebsd-9\"`")), "{error}");
        assert!(error.contains("test.toml:10:"), "{error}");
    }
    let text = format!("{BASE}{FLOW}host = \"rfc\"\ncwnd_validation = \"peer\"\n");
    let error = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string();
    assert!(error.contains("goes with `loss_detector = \"freebsd-9\"` alone"), "{error}");
}

#[test]
fn tahoe_and_reno_know_no_sack() {
    let of = |text: &str| config(&ends(&format!("host = \"rfc\"\nprr = false\n{text}")).0).clone();
    let bare = of("loss_detector = \"tahoe\"");
    assert_eq!((bare.loss_detector, bare.sack), (LossDetector::Tahoe(BerkeleyRules { bugfix: false }), false));
    let fixed = of("loss_detector = { kind = \"reno\", bugfix = true }\nsack = false");
    assert_eq!((fixed.loss_detector, fixed.sack), (LossDetector::Reno(BerkeleyRules { bugfix: true }), false));
    assert!(of("loss_detector = \"rfc6675\"").sack);
    for (key, value) in [("sack", "true"), ("prr", "\"ssrb\""), ("undo", "true"), ("frto", "true"), ("tlp", "true")] {
        let prr = if key == "prr" { "" } else { "prr = false\n" };
        let text = format!("{BASE}{FLOW}host = \"rfc\"\n{prr}{key} = {value}\nloss_detector = \"reno\"\n");
        let error = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string();
        assert!(error.contains(&format!("`{key}` does not go with `loss_detector = \"reno\"`")), "{error}");
    }
    let text = format!("{BASE}{FLOW}loss_detector = {{ kind = \"rfc6675\", bugfix = true }}\n");
    let error = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string();
    assert!(error.contains("bugfix"), "{error}");
}

#[test]
fn min_rto_says_what_it_bounds() {
    let linux = ends("host = \"linux-3.9\"\nmin_rto = \"50ms\"").0;
    assert_eq!(config(&linux).min_rto, MinRto::OfVariance(Span::from_millis(50)));
    let linux = ends("host = \"linux-3.9\"\nmin_rto = { of = \"total\" }").0;
    assert_eq!(config(&linux).min_rto, MinRto::OfTotal(Span::from_millis(200)));
}

#[test]
fn what_a_linux_host_does_by_default_can_be_switched() {
    for (text, retries, compresses) in [
        ("host = \"linux-6.1\"", 0, true),
        ("host = \"linux-6.18\"", 0, true),
        ("host = \"linux-4.0\"", u32::MAX, false),
        ("host = \"linux-6.1\"\necn_fallback = false\nsack_compression = false", u32::MAX, false),
        ("host = \"linux-6.1\"\necn_fallback = true\nsack_compression = true", 0, true),
        ("host = \"freebsd-14\"\necn_fallback = true", 1, false),
        ("host = \"rfc\"\nsack_compression = true", 0, true),
    ] {
        let config = config(&ends(text).0).clone();
        let found = (config.states.ecn_syn_retries, config.transfer.sack_compression.is_some());
        assert_eq!(found, (retries, compresses), "{text}");
    }
}

#[test]
fn a_receiver_with_a_host_is_a_host_of_its_own() {
    let (sender, receiver) =
        ends("host = \"freebsd-9.2\"\necn = true\nreceiver = { receive_buffer = \"1kB\", ecn = false }");
    assert_eq!(
        *config(&receiver),
        ackclock_tcp::Config { receive_buffer: 1000, ecn: EcnFeedback::None, ..config(&sender).clone() }
    );
    for receiver in ["\"linux-6.1\"", "{ host = \"linux-6.1\" }"] {
        let (_, receiver) = ends(&format!("host = \"freebsd-9.2\"\necn = true\nreceiver = {receiver}"));
        assert_eq!(*config(&receiver), Profile::linux_6_1().endpoint);
    }
}

#[test]
fn what_accurate_ecn_does_is_said_by_three_keys() {
    let keys = "ecn = \"accecn\"\necn_fallback = false\naccecn_rules = \"linux\"";
    let read = |option: &str| {
        let (sender, _) = ends(&format!("{keys}\naccecn_option = {option}"));
        let config = config(&sender);
        let AccEcnRules { rule, option, beacon } = config.transfer.acc_ecn;
        assert_eq!((rule, config.states.ecn_syn_retries), (AccEcnRule::Linux, u32::MAX));
        (option, beacon)
    };
    assert_eq!(read("\"full\""), (AccEcnOption::Full, 3));
    assert_eq!(read("\"persist\""), (AccEcnOption::Persist, 3));
    assert_eq!(read("{ kind = \"minimum\", beacon = 10 }"), (AccEcnOption::Minimum, 10));
    assert_eq!(read("\"off\"").0, AccEcnOption::Off);
}

#[test]
fn what_stacks_differ_in_is_the_hosts_own_unless_it_is_said() {
    let cc = |keys: &str| match ends(keys).0 {
        HostSpec::Endpoint(endpoint) => endpoint.cc,
        _ => panic!("not our endpoint"),
    };
    // newreno_cc_cong_signal and newreno_cc_after_idle of 14.
    let cdg = |timeout_flight, remember_idle| {
        CcSpec::Cdg(CdgConfig { timeout_flight, remember_idle, ..CdgConfig::default() })
    };
    assert_eq!(cc("host = \"freebsd-14\"\ncc = \"cdg\""), cdg(true, true));
    assert_eq!(cc("host = \"freebsd-9.2\"\ncc = { kind = \"cdg\", timeout_flight = true }"), cdg(true, false));
    assert_eq!(cc("host = \"linux-6.1\"\ncc = { kind = \"cdg\", variant = \"freebsd\" }"), cdg(false, false));
    let newreno = Profile::freebsd_14().newreno;
    assert!(newreno.timeout_flight && newreno.remember_idle);
    assert_eq!(cc("host = \"freebsd-14\"\ncc = \"newreno\""), CcSpec::NewReno(newreno));

    for (host, profile, rules) in [
        ("linux-6.1", Profile::linux_6_1(), DctcpRules::Linux),
        ("freebsd-14", Profile::freebsd_14(), DctcpRules::FreeBsd),
        ("rfc", Profile::rfc(), DctcpRules::Rfc8257),
    ] {
        let dctcp = |rules| CcSpec::Dctcp(DctcpConfig { rules, reno: profile.newreno, ..DctcpConfig::default() });
        assert_eq!(cc(&format!("host = \"{host}\"\ncc = \"dctcp\"")), dctcp(rules));
        let said = format!("host = \"{host}\"\ncc = {{ kind = \"dctcp\", rules = \"freebsd\" }}");
        assert_eq!(cc(&said), dctcp(DctcpRules::FreeBsd));
    }
}

#[test]
fn a_grid_is_run_with_the_last_axis_fastest() {
    let text = format!(
        "{BASE}{FLOW}[sweep]\nrepeat = 2\naxes.\"flows.f.count\" = [1, 2]\naxes.\"links.a.delay\" = [\"1ms\", \"2ms\", \"3ms\"]\n"
    );
    let scenario = scenario(&text);
    assert_eq!((scenario.runs(), scenario.repeat(), scenario.is_sweep()), (12, 2, true));
    let seen: Vec<(usize, u64, u64)> = (0..scenario.runs())
        .map(|run| scenario.spec(run))
        .map(|spec| (spec.flows.len(), spec.links[0].forward.delay.as_millis(), spec.run))
        .collect();
    assert_eq!(seen[..4], [(1, 1, 0), (1, 1, 1), (1, 2, 0), (1, 2, 1)]);
    assert_eq!(seen[11], (2, 3, 1));
    assert!((0..12).all(|run| scenario.spec(run).seed == 1));
}

#[test]
fn overrides_need_no_quotes_and_go_into_names() {
    let text = format!("{BASE}queue = \"pie\"\n{FLOW}");
    let spec = with(
        &text,
        &[
            "links.a.delay=40ms",
            "links.a.queue.target = 5ms",
            "flows.f.cc=newreno",
            "flows.0.cc.abc=false",
            "run.seed=7",
        ],
    )
    .spec(0);
    assert_eq!((spec.links[0].forward.delay, spec.seed), (Span::from_millis(40), 7));
    assert!(matches!(&spec.links[0].forward.queue, QueueSpec::Pie(pie) if pie.target == Span::from_millis(5)));
    assert!(
        matches!(&spec.flows[0].sender, HostSpec::Endpoint(end) if matches!(end.cc, CcSpec::NewReno(reno) if !reno.abc))
    );
    let spec =
        with(&text, &["links.a.queue={ kind = \"pfifo\", limit = \"3p\" }", "links.a.reverse.rate=1mbit"]).spec(0);
    assert!(matches!(&spec.links[0].forward.queue, QueueSpec::Pfifo(fifo) if fifo.limit == Limit::Packets(3)));
    assert_eq!(spec.links[0].reverse.rate, Rate::from_bps(1_000_000));
}

#[test]
fn an_override_of_an_axis_leaves_one_value() {
    let text = format!(
        "{BASE}{FLOW}[sweep]\naxes.\"links.a.delay\" = [\"1ms\", \"2ms\"]\n\
         [[expect]]\nmetric = \"fairness_jain\"\nat_least = 0\nwhen = {{ \"links.a.delay\" = \"1ms\" }}\n"
    );
    let pinned = with(&text, &["links.a.delay=2ms"]);
    assert_eq!((pinned.runs(), pinned.checks()), (1, 0));
    assert_eq!(pinned.params(0)["links.a.delay"], "2ms");
    assert!(scenario(&pinned.resolved()).axes().eq(["links.a.delay"]));
    let axes = with(&text, &["sweep.axes.\"links.a.delay\"=[\"1ms\"]", "sweep.repeat=3"]);
    assert_eq!((axes.runs(), axes.checks()), (3, 3));
}

#[test]
fn a_flow_that_restarts_is_followed_by_another() {
    let flows = scenario(&format!(
        "{BASE}[[flows]]\nid = \"f\"\npath = [\"a\"]\ncount = 2\nstagger = \"1s\"\nrestart_every = \"4s\"\nstop = \"9s\"\n"
    ));
    let flows = flows.spec(0).flows;
    let times = |secs: u64| Time::from_secs(secs);
    let found: Vec<_> = flows.iter().map(|flow| (&*flow.id, flow.start, flow.stop)).collect();
    // The second flow of the third round would start when the group stops.
    assert_eq!(
        found,
        [
            ("f.0", times(0), Some(times(4))),
            ("f.1", times(1), Some(times(5))),
            ("f.2", times(4), Some(times(8))),
            ("f.3", times(5), Some(times(9))),
            ("f.4", times(8), Some(times(9))),
        ]
    );
}

#[test]
fn starts_are_jittered_by_flow_and_repetition() {
    let scenario =
        scenario(&format!("{BASE}{FLOW}count = 2\nstart = \"1s\"\nstart_jitter = \"100ms\"\n[sweep]\nrepeat = 2\n"));
    let starts = |run: usize| scenario.spec(run).flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    let all: Vec<Time> = [starts(0), starts(1)].concat();
    assert!(all.iter().all(|&start| start >= Time::from_secs(1) && start < Time::from_millis(1100)), "{all:?}");
    assert!((0..4).all(|n| !all[..n].contains(&all[n])), "each its own: {all:?}");
    assert_eq!(starts(0), all[..2], "and the same every time");
    // Repetitions without it are the same run.
    let plain = format!("{BASE}{FLOW}start = \"1s\"\n");
    assert_eq!(self::scenario(&plain).spec(0).flows[0].start, Time::from_secs(1));
}

#[test]
fn an_abort_ends_every_connection_of_a_group() {
    let keys = "start = \"1s\"\nrestart_every = \"1s\"\nabort = \"3500ms\"\n";
    let flows = scenario(&format!("{BASE}{FLOW}{keys}")).spec(0).flows;
    let found: Vec<_> = flows.iter().map(|flow| (flow.start, flow.stop, flow.abort)).collect();
    let of = |start| (Time::from_secs(start), Some(Time::from_secs(start + 1)), Some(Time::from_millis(3500)));
    assert_eq!(found, [of(1), of(2), of(3)]);
}

#[test]
fn a_jittered_start_leaves_time_to_send() {
    for (keys, title) in [
        ("start_jitter = \"10s\"", "starts when the run is over"),
        ("start = \"4s\"\nstart_jitter = \"1s\"\nstop = \"5s\"", "stops before it starts"),
        ("start = \"4s\"\nabort = \"4s\"", "aborts before it starts"),
        ("stop = \"4s\"\nabort = \"4s\"", "not after `stop`, which is 4s"),
        ("start_jitter = \"2s\"\nrestart_every = \"2s\"", "as long as the connections last"),
    ] {
        let error = Scenario::parse("test.toml", format!("{BASE}{FLOW}{keys}\n").as_bytes(), &[]).unwrap_err();
        assert!(error.to_string().contains(title), "{error}");
    }
}

#[test]
fn a_preset_of_pie_sets_what_is_not_given() {
    let QueueSpec::Pie(pie) =
        link("queue = { kind = \"pie\", preset = \"teacup\", beta = 10 }").links.remove(0).forward.queue
    else {
        panic!("not PIE");
    };
    assert_eq!((pie.target, pie.tupdate), (Span::from_millis(20), Span::from_millis(30)));
    assert_eq!((pie.alpha, pie.beta, pie.derandomize), (2, 10, false));
    assert_eq!(pie.dq_rate_estimator, Some(DqRateEstimator::Linux));
}

#[test]
fn reordering_is_by_jitter_or_by_an_extent() {
    let read = |keys: &str| {
        let link = &link(keys).links[0];
        (link.forward.impairments.reorder, link.reverse.impairments.reorder)
    };
    let hold = |extent, probability, millis| {
        Reorder::HoldBack(HoldBack { extent, probability, timeout: Span::from_millis(millis) })
    };
    assert_eq!(read(""), (Reorder::Never, Reorder::Never));
    assert_eq!(read("reorder = true"), (Reorder::ByJitter, Reorder::ByJitter));
    assert_eq!(read("reorder = {}"), (hold(3, 0.01, 100), hold(3, 0.01, 100)));
    let both = "reorder = { extent = 8, probability = 0.5, timeout = \"1s\" }";
    assert_eq!(read(both), (hold(8, 0.5, 1000), hold(8, 0.5, 1000)));
    // The way back changes what it names, or everything.
    assert_eq!(read(&format!("{both}\nreverse.reorder = false")), (hold(8, 0.5, 1000), Reorder::Never));
    assert_eq!(read(&format!("{both}\nreverse.reorder.extent = 2")), (hold(8, 0.5, 1000), hold(2, 0.5, 1000)));
}

#[test]
fn a_flow_takes_one_path_or_two() {
    let two = format!("{BASE}[links.second]\nrate = \"1mbit\"\n[[flows]]\nid = \"f\"\n");
    let read = |keys: &str| {
        let flow = scenario(&format!("{two}{keys}\n")).spec(0).flows.remove(0);
        (flow.path.clone(), flow.split.clone())
    };
    let over = |path: usize, second: usize, along| {
        let others = vec![vec![second]];
        (
            vec![path],
            Some(SplitSpec { others, along, back: WayBack::Over(0), after_handshake: false, whole_units: false }),
        )
    };
    // The links are numbered in order of the file.
    let names: Vec<String> =
        scenario(&format!("{two}path = [\"second\"]\n")).spec(0).links.iter().map(|link| link.name.clone()).collect();
    assert_eq!(names[1], "second");
    let first = &names[0];
    assert_eq!(read("path = [\"second\"]"), (vec![1], None));
    let alternating = SplitRule::round_robin(2);
    assert_eq!(read(&format!("paths = [[\"{first}\"], [\"second\"]]")), over(0, 1, alternating.clone()));
    let paths = format!("paths = [[\"second\"], [\"{first}\"]]");
    assert_eq!(read(&format!("{paths}\nsplit = \"round_robin\"")), over(1, 0, alternating));
    let vector = format!("{paths}\nsplit = {{ kind = \"send_vector\", weights = [3, 1] }}");
    assert_eq!(read(&vector), over(1, 0, SplitRule::Vector(0x8888_8888_8888_8888)));
}
