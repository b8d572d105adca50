//! Every controller over the same course, a row for each round trip, as a person can judge it: slow
//! start, a loss, a mark, a queue that grows and empties, a timeout and a loss that was none.
//!
//! `cwnd` and `ssthresh` are in segments at the end of the round, `-` is a threshold that is not
//! set yet. The loss happens in slow start: its recovery lasts for the round and the first ACK of
//! the next one. Each test says what its table should show.

mod line;

use std::fmt::Write;

use ackclock_cc::{
    Balia, Bbr, BbrConfig, Cdg, CdgConfig, Chd, ChdConfig, CongestionControl, Cubic, CubicConfig, CubicRules, Dctcp,
    DctcpConfig, Hd, HdConfig, Htcp, HtcpConfig, HystartPlusPlusConfig, Lia, LinuxCdg, LinuxCdgConfig, NewReno,
    NewRenoConfig, Olia, Prague, PragueConfig, Scalable, ScalableConfig, SlowStartRules, Vegas, VegasConfig, Westwood,
    WestwoodConfig, Window, Wvegas, WvegasConfig,
};
use ackclock_units::{Random, Span};

use line::{BASE, Event, Line, MSS};

/// The course: for each round what the queue adds to the round-trip time, and what happens.
fn course() -> Vec<(u64, Event)> {
    let mut rounds = vec![(0, Event::None); 3];
    rounds.push((0, Event::Loss));
    rounds.extend([(0, Event::None); 6]);
    rounds.push((0, Event::Mark));
    rounds.extend([(0, Event::None); 6]);
    rounds.extend([10, 20, 30, 50, 50, 50, 20, 0, 0].map(|queue| (queue, Event::None)));
    rounds.push((0, Event::Timeout));
    rounds.extend([(0, Event::None); 6]);
    rounds.extend([(0, Event::FalseLoss), (0, Event::Undo)]);
    rounds.extend([(0, Event::None); 3]);
    rounds
}

fn table(cc: impl CongestionControl + 'static) -> String {
    table_of(cc, course())
}

fn table_of(cc: impl CongestionControl + 'static, course: Vec<(u64, Event)>) -> String {
    let mut line = Line::new(Box::new(cc));
    let mut text = String::from("round  rtt    cwnd  ssthresh  event\n");
    for (number, (queue, event)) in course.into_iter().enumerate() {
        line.queue = Span::from_millis(queue);
        line.round(event);
        let Window { cwnd, ssthresh } = line.cc.window();
        let ssthresh = match ssthresh {
            Window::INFINITE => "-".to_owned(),
            _ => format!("{:.1}", ssthresh as f64 / MSS as f64),
        };
        let event = match event {
            Event::None if line.backed_off => "backs off",
            Event::None => "",
            Event::Loss => "loss",
            Event::Mark => "mark",
            Event::Timeout => "timeout",
            Event::FalseLoss => "loss, as it seems",
            Event::Undo => "undone",
        };
        let rtt = (BASE + line.queue).as_millis();
        let row = format!("{:5}  {rtt:3}  {:6.1}  {ssthresh:>8}  {event}", number + 1, cwnd as f64 / MSS as f64);
        writeln!(text, "{}", row.trim_end()).expect("a string");
    }
    text
}

fn random() -> Random {
    Random::for_component(1, 0, "rounds")
}

/// Doubles; halves for loss (80 to 40) and mark (46 to 23); one segment per round trip, whatever
/// the queue; after the timeout slow start to half of 38; 21 comes down to 10 and is back with the
/// undo.
#[test]
fn newreno() {
    insta::assert_snapshot!(table(NewReno::new(NewRenoConfig::default())));
}

/// 0.7 for loss and mark. The curve from 56 to the flat at 80 takes cbrt(80 * 0.3 / 0.4) = 3.9 s,
/// W(0.6 s) = 80 - 0.4 * 3.3^3 = 65.4. At the mark 65.8 is below 80, and fast convergence has the
/// flat at 65.8 * 0.85 = 55.9, which is reached after 2.9 s, in the queue. After the timeout K is
/// 0: half a segment per round trip, Reno's share with this beta.
#[test]
fn cubic() {
    insta::assert_snapshot!(table(Cubic::new(CubicConfig::default())));
}

/// CUBIC's growth in whole segments.
#[test]
fn cubic_linux() {
    let linux =
        CubicConfig { rules: CubicRules::Linux61, beta: 717.0 / 1024.0, c: 410.0 / 1024.0, ..CubicConfig::default() };
    insta::assert_snapshot!(table(Cubic::new(linux)));
}

/// NewReno's growth for a second after congestion; then alpha = 1 + 10 (t - 1) + ((t - 1) / 2)^2
/// segments per round trip, t seconds after it, from round 21 on. A first timeout, which may be a
/// false alarm, does not start the time again; the loss that is taken back does.
#[test]
fn htcp() {
    insta::assert_snapshot!(table(Htcp::new(HtcpConfig::default())));
}

/// An eighth, in whole segments: 80 - 10 = 70 for the loss, 76 - 9 = 67 for the mark, 82 - 10 = 72
/// for the timeout, 72 - 9 = 63 for the loss that is undone. Below 100 segments one per round trip.
#[test]
fn scalable() {
    insta::assert_snapshot!(table(Scalable::new(ScalableConfig::default())));
}

/// Halves for the loss, and at the end of recovery has the bandwidth that it has seen times the
/// shortest round trip for its threshold. Its filter forgets an eighth per round trip and is far
/// behind slow start: 5. The mark finds it nearer: 8.
#[test]
fn westwood() {
    insta::assert_snapshot!(table(Westwood::new(WestwoodConfig::default())));
}

/// Doubles in every other round trip. One segment per round trip as long as less than one waits in
/// the queue; it stays where one to three do, 13 * (1 - 100 / 110) = 1.2 to 13 * (1 - 100 / 130) =
/// 3.0, and shrinks by one for 13 * (1 - 100 / 150) = 4.3. The next 12 * (1 - 100 / 150) = 4.0 are
/// 3.9 in whole bytes per tick, and count as 3.
#[test]
fn vegas() {
    insta::assert_snapshot!(table(Vegas::new(VegasConfig::default())));
}

/// Doubles; halves for the loss and the mark. One segment per round trip while fewer than ten wait,
/// and never as many do: 24 * 50 / 150 = 8. But the queueing delay doubles from 10 to 20 ms, and of
/// 30 segments 30 / 2 * 100 / 120 = 12 are left, which slow start brings back to three quarters of
/// 30. 50 ms are not twice 30.
#[test]
fn wvegas() {
    insta::assert_snapshot!(table(Wvegas::new(WvegasConfig::default())));
}

/// With no siblings, the loss-based ones of Multipath TCP are NewReno.
#[test]
fn coupled_alone() {
    let newreno = table(NewReno::new(NewRenoConfig::default()));
    assert_eq!(table(Lia::new(NewRenoConfig::default())), newreno);
    assert_eq!(table(Olia::new(NewRenoConfig::default())), newreno);
    assert_eq!(table(Balia::new(NewRenoConfig::default())), newreno);
}

/// NewReno, until an ACK of a queue above 5 ms draws a back-off (up to 5 % of ACKs at 20 ms): in
/// round 20 twice, since its recovery lasts no longer than the ACK. Beyond the threshold of 20 ms
/// ever fewer do.
#[test]
fn hd() {
    insta::assert_snapshot!(table(Hd::new(HdConfig::default(), random())));
}

/// A loss without a queue costs nothing (80 stays 80, 19 stays 19); marks and timeouts halve. The
/// queue draws a back-off once per round trip at most.
#[test]
fn chd() {
    insta::assert_snapshot!(table(Chd::new(ChdConfig::default(), random())));
}

/// A loss with a queue of which nothing is known halves. A queue that grows draws back-offs by 0.7.
/// The queue that has emptied is still in the mean of eight gradients, hence the back-off at 2
/// segments; what is sent again after a timeout measures nothing, and without measurements
/// avoidance does not grow. The last loss is with a queue that is not full, and costs nothing.
#[test]
fn cdg() {
    insta::assert_snapshot!(table(Cdg::new(CdgConfig::default(), random())));
}

/// NewReno's course, but for back-offs by 0.7 while the gradients are above zero, in rounds 19 to
/// 24, with a round trip of standing still for each. The queue that has emptied is long in the mean
/// here, too.
#[test]
fn cdg_linux() {
    insta::assert_snapshot!(table(LinuxCdg::new(LinuxCdgConfig::default(), random())));
}

/// NewReno's course, but for the mark: alpha is 1 at the start and has decayed by 1/16 for each of
/// ten round trips without marks, 0.52; 46 * (1 - 0.52 / 2) = 34.
#[test]
fn dctcp() {
    insta::assert_snapshot!(table(Dctcp::new(DctcpConfig::default())));
}

/// NewReno's course, but that growth goes on in the round trip of the mark, and follows its
/// fraction with a segment for each ACK. The first mark ever halves. After the timeout the window
/// climbs to its threshold by up to a segment for each ACK.
#[test]
fn prague() {
    insta::assert_snapshot!(table(Prague::new(PragueConfig::default())));
}

/// Paced, over a link of 400 segments per round trip, which nobody else has. Startup doubles,
/// through the loss, to twice the link; the mark ends it, and its bound with the headroom of 15 %
/// is 0.85 * 823. The window does not follow the queue. After the timeout it doubles from 4, what
/// was in flight being sent again; the undo brings the old window back. 5 s after the shortest
/// round trip ProbeRTT halves the link: 200.
#[test]
fn bbr() {
    insta::assert_snapshot!(table(Bbr::new(BbrConfig::default(), random())));
}

/// A queue of 15 ms, more than an eighth of 100 ms, in slow start. HyStart++'s rounds have 10, 18,
/// 36, 72 and 144 ACKs: in the row from 80 the eighth ACK after 136 segments finds it, 73 ACKs
/// having added a segment each and the last seven a quarter: 154.75. Rows of a quarter follow until
/// five rounds are over, and the threshold is set. Where the round-trip time falls below the 115 ms
/// of then, slow start resumes.
#[test]
fn hystart_plus_plus() {
    let reno = NewRenoConfig {
        slow_start: SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default()),
        ..NewRenoConfig::default()
    };
    let rounds = |queues: [u64; 10]| queues.map(|queue| (queue, Event::None)).to_vec();
    let found = table_of(NewReno::new(reno), rounds([0, 0, 15, 30, 30, 30, 30, 30, 30, 30]));
    let resumed = table_of(NewReno::new(reno), rounds([0, 0, 15, 30, 5, 5, 5, 5, 5, 5]));
    insta::assert_snapshot!(format!("the queue grows and stays\n{found}\nit grows and shrinks\n{resumed}"));
}

#[test]
fn every_controller_with_a_choice_of_slow_start_takes_it() {
    let slow_start = SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default());
    let reno = NewRenoConfig { slow_start, ..NewRenoConfig::default() };
    // Controllers that react to delay by themselves do so from 5 ms (HD, CHD) or by a chance of
    // nearly none (CDG).
    let calm = CdgConfig { slow_start, exp_backoff_scale: 1_000_000, ..CdgConfig::default() };
    let all: [Box<dyn CongestionControl>; 13] = [
        Box::new(NewReno::new(reno)),
        Box::new(Cubic::new(CubicConfig { reno, ..CubicConfig::default() })),
        Box::new(Htcp::new(HtcpConfig { reno, ..HtcpConfig::default() })),
        Box::new(Westwood::new(WestwoodConfig { reno, ..WestwoodConfig::default() })),
        Box::new(Vegas::new(VegasConfig { reno, alpha: 1000, beta: 1000, ..VegasConfig::default() })),
        Box::new(Hd::new(HdConfig { reno, queue_min: 200, queue_threshold: 300, ..HdConfig::default() }, random())),
        Box::new(Chd::new(ChdConfig { reno, queue_min: 200, queue_threshold: 300, ..ChdConfig::default() }, random())),
        Box::new(Cdg::new(calm, random())),
        Box::new(Dctcp::new(DctcpConfig { reno, ..DctcpConfig::default() })),
        Box::new(Lia::new(reno)),
        Box::new(Olia::new(reno)),
        Box::new(Balia::new(reno)),
        Box::new(Wvegas::new(WvegasConfig { reno, gamma: 1000, ..WvegasConfig::default() })),
    ];
    for cc in all {
        let mut line = Line::new(cc);
        for queue in [0, 0, 0, 0, 15, 30, 30, 30] {
            line.queue = Span::from_millis(queue);
            line.round(Event::None);
        }
        let found = format!("{:?}", line.cc);
        assert!(found.contains("css: Some"), "{found}");
    }
}
