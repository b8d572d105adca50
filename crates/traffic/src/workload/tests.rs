use super::*;

fn streams() -> WorkloadStreams {
    let stream = |name| Random::for_component(1, 0, name);
    WorkloadStreams { gaps: stream("gaps"), sizes: stream("sizes"), paths: stream("paths") }
}

fn of(arrivals: Arrivals, size: Distribution, paths: usize, choice: PathChoice, count: Option<u64>) -> Workload {
    let pattern = WorkloadPattern { arrivals, stretch: 1.0, size, paths, choice, count };
    Workload::new(pattern, streams(), Time::from_secs(1), Time::NEVER)
}

fn constant(value: f64) -> Distribution {
    Distribution::constant(value).unwrap()
}

/// The first million flows of a workload.
fn million(mut workload: Workload) -> Vec<Arrival> {
    std::iter::from_fn(|| workload.draw()).take(1_000_000).collect()
}

/// Within 1 %, relative.
fn near(found: f64, exact: f64) -> bool {
    (found / exact - 1.0).abs() < 0.01
}

#[test]
fn rates_sizes_and_load_are_those_asked_for() {
    let gaps = [
        constant(1e5),
        Distribution::exponential(1e5).unwrap(),
        Distribution::uniform(0.0, 2e5).unwrap(),
        Distribution::pareto_with_mean(1e5, 2.5, None).unwrap(),
        Distribution::log_normal_with_mean(1e5, 1.0).unwrap(),
    ];
    for gap in gaps {
        let size = Distribution::web_search();
        let workload = of(Arrivals::Gaps(gap.clone()), size.clone(), 1, PathChoice::Random, None);
        assert!(near(workload.pattern().per_second(), 1e4), "{gap:?}");
        let flows = million(workload);
        let lasted = flows.last().unwrap().at.since(Time::from_secs(1)).as_secs_f64();
        assert!(near(lasted, 100.0), "{gap:?}: {lasted} s");
        let bytes = flows.iter().map(|flow| flow.bytes as f64).sum::<f64>();
        assert!(near(bytes / 1e6, size.mean()), "{gap:?}: {} bytes", bytes / 1e6);
        assert!(near(bytes * 8.0 / lasted, 1e4 * 8.0 * size.mean()), "{gap:?}");
    }
}

#[test]
fn poisson_arrivals_are_independent() {
    // The number in each interval of 10 ms has mean and variance 100, over 10 000 intervals with
    // standard errors of 0.1 and 1.4.
    let flows = million(of(
        Arrivals::Gaps(Distribution::exponential(1e5).unwrap()),
        constant(1.0),
        1,
        PathChoice::Random,
        None,
    ));
    let mut counts = vec![0_u32; 9_900];
    for flow in &flows {
        let interval = (flow.at.since(Time::from_secs(1)).as_nanos() / 10_000_000) as usize;
        if let Some(count) = counts.get_mut(interval) {
            *count += 1;
        }
    }
    let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64;
    let squares = counts.iter().map(|&count| (f64::from(count) - mean) * (f64::from(count) - mean));
    let variance = squares.sum::<f64>() / (counts.len() - 1) as f64;
    assert!((mean - 100.0).abs() < 0.4 && (variance - 100.0).abs() < 6.0, "{mean} {variance}");
}

#[test]
fn a_stretch_changes_the_mean_and_nothing_else() {
    let draw = |stretch| {
        let pattern = WorkloadPattern {
            arrivals: Arrivals::Gaps(Distribution::exponential(1e6).unwrap()),
            stretch,
            size: Distribution::data_mining(),
            paths: 3,
            choice: PathChoice::Random,
            count: Some(1000),
        };
        let mut workload = Workload::new(pattern, streams(), Time::ZERO, Time::NEVER);
        std::iter::from_fn(move || workload.draw()).collect::<Vec<_>>()
    };
    let (once, twice) = (draw(1.0), draw(2.0));
    for (one, two) in once.iter().zip(&twice) {
        assert_eq!((one.bytes, one.path, one.number), (two.bytes, two.path, two.number));
        // Each gap was rounded.
        assert!((one.at.as_nanos() * 2).abs_diff(two.at.as_nanos()) <= 2 * one.number + 2);
    }
}

#[test]
fn paths_are_drawn_evenly_or_in_turn() {
    let gaps = || Arrivals::Gaps(constant(10.0));
    let flows = million(of(gaps(), constant(1.0), 4, PathChoice::Random, None));
    for path in 0..4 {
        // The standard deviation is 433.
        let taken = flows.iter().filter(|flow| flow.path == path).count();
        assert!(taken.abs_diff(250_000) < 1_800, "{path}: {taken}");
    }
    let same = flows.windows(2).filter(|pair| pair[0].path == pair[1].path).count();
    assert!(same.abs_diff(250_000) < 1_800, "{same}");
    let mut turns = of(gaps(), constant(1.0), 3, PathChoice::RoundRobin, Some(5));
    let paths: Vec<usize> = std::iter::from_fn(|| turns.draw()).map(|flow| flow.path).collect();
    assert_eq!(paths, [0, 1, 2, 0, 1]);
}

#[test]
fn a_request_is_answered_by_all_at_once() {
    let arrivals = Arrivals::Incast { senders: 3, every: constant(2e6) };
    let mut incast = of(arrivals, constant(500.0), 2, PathChoice::RoundRobin, Some(2));
    assert_eq!((incast.pattern().per_second(), incast.pattern().flows()), (1500.0, Some(6)));
    let flows: Vec<_> = std::iter::from_fn(|| incast.draw()).collect();
    let at = |ms| Time::from_secs(1) + Span::from_millis(ms);
    let expected: Vec<Arrival> = [(0, 0, 0), (0, 0, 1), (0, 0, 0), (2, 1, 1), (2, 1, 0), (2, 1, 1)]
        .into_iter()
        .zip(0..)
        .map(|((ms, request, path), number)| Arrival { at: at(ms), number, request, bytes: 500, path })
        .collect();
    assert_eq!(flows, expected);
}

#[test]
fn none_comes_at_the_end_or_later() {
    let pattern = of(Arrivals::Gaps(constant(1e9)), constant(1.0), 1, PathChoice::Random, None).pattern().clone();
    let mut workload = Workload::new(pattern, streams(), Time::ZERO, Time::from_secs(3));
    assert_eq!(std::iter::from_fn(|| workload.draw()).count(), 2);
    assert_eq!(workload.draw(), None);
}
