//! Changes that were made while a run went on are made again by a replay, at the same time.

use ackclock_emulator::{Change, Up};

use super::*;

/// A change of both links: `LINK NUMBER`, in place of `KEY=VALUE`.
fn changes_of(text: &str) -> Result<Vec<(DirectionId, Change)>, String> {
    let numbers: Vec<u64> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [direction, kind, value] = numbers[..] else { return Err(format!("`{text}` says nothing")) };
    let nothing = Change::default();
    let change = match kind {
        0 => Change { rate: Some(Rate::from_bps(value * 1_000_000)), ..nothing },
        1 => Change { delay: Some(Span::from_micros(value * 300)), ..nothing },
        2 => Change { loss: Some(value as f64 / 40.0), ..nothing },
        3 => Change { up: Some(Up::Holds), ..nothing },
        4 => Change { up: Some(Up::Loses), ..nothing },
        5 => Change {
            delay: Some(Span::from_millis(value)),
            until: Some(Time::from_millis(100 * value)),
            up: Some(Up::Passes),
            ..nothing
        },
        6 => Change { jitter: Some(Span::from_micros(value * 500)), ..nothing },
        7 => Change { queue: Some(QueueSpec::all()[value as usize % QueueSpec::NAMES.len()].clone()), ..nothing },
        _ => Change { rate: Some(Rate::from_bps(value * 1_000_000)), up: Some(Up::Passes), ..nothing },
    };
    Ok(vec![(DirectionId::all(2).nth(direction as usize).unwrap(), change)])
}

fn reader() -> ChangeReader {
    ChangeReader::new(|_, texts| texts.iter().try_fold(Vec::new(), |all, text| Ok([all, changes_of(text)?].concat())))
}

/// As the loop of a live run does it: a change comes a nanosecond behind a packet that was read,
/// however late what is due is handed over.
fn record(spec: &RunSpec, arrivals: &[Arrival], changes: &[(usize, String)], dir: &Path) -> (String, u64) {
    let mut csv = QueueCsv::new(Vec::new());
    let mut recorders = Recorders {
        queues: Some(QueueRecorder { directions: &DirectionId::all(2).collect::<Vec<_>>(), sink: &mut csv }),
        ..Recorders::default()
    };
    let mut writer = CaptureWriter::create(&dir.join("run.pcapng"), spec, None).unwrap();
    let mut engine = Engine::new(spec);
    engine.world().start(&recorders);
    let mut sent = 0;
    let mut hand_over = |engine: &mut Engine, writer: &mut CaptureWriter, until: Time| {
        while let Some(out) = engine.advance(until) {
            sent += 1;
            writer.packet(out.at, out.node, CaptureDirection::ToHost, out.bytes);
        }
    };
    let mut last = Time::ZERO;
    for (count, (at, from, bytes)) in arrivals.iter().enumerate() {
        // Two changes behind one packet are a nanosecond apart, and the next packet may have come
        // in between.
        let at = *at;
        if count % 7 == 0 {
            hand_over(&mut engine, &mut writer, at);
        }
        writer.packet(at, *from, CaptureDirection::FromHost, bytes);
        engine.buffer()[..bytes.len()].copy_from_slice(bytes);
        engine.arrive(at, *from, bytes.len());
        for (_, text) in changes.iter().filter(|(behind, _)| *behind == count) {
            last = at.max(last) + Span::from_nanos(1);
            engine.change(last, &changes_of(text).unwrap());
            writer.change(last, std::slice::from_ref(text));
        }
    }
    let end = Time::ZERO + spec.duration;
    hand_over(&mut engine, &mut writer, Time::from_nanos(end.as_nanos() - 1));
    engine.complete(&mut recorders).unwrap();
    writer.finish(end).unwrap();
    (String::from_utf8(csv.finish().unwrap()).unwrap(), sent)
}

/// A directory that is removed.
fn directory(name: &str) -> TemporaryCapture {
    let dir = std::env::temp_dir().join(format!("ackt-changes-{name}-{}", process::id()));
    fs::create_dir_all(&dir).unwrap();
    TemporaryCapture(dir)
}

fn replay(spec: &RunSpec, recording: &TemporaryCapture) -> (String, Outcome) {
    let mut csv = QueueCsv::new(Vec::new());
    let recorders = Recorders {
        queues: Some(QueueRecorder { directions: &DirectionId::all(2).collect::<Vec<_>>(), sink: &mut csv }),
        ..Recorders::default()
    };
    let outcome = run(spec, recorders, &recording.path(), Some(&reader())).unwrap();
    (String::from_utf8(csv.finish().unwrap()).unwrap(), outcome)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_replay_makes_the_changes_at_their_times(
        seed in any::<u64>(),
        count in 10..1200usize,
        changes in prop::collection::vec((0.0..1.0f64, 0..4u8, 0..9u8, 1..20u8), 1..12),
        path in prop::sample::select(vec![vec![0, 1], vec![1]]),
    ) {
        let (mut spec, arrivals) = (spec(), arrivals(count, seed));
        spec.live.as_mut().unwrap().pipes[0].path = path;
        let behind = |part: f64| (part * count as f64) as usize;
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(part, direction, kind, value)| (behind(part), format!("{direction} {kind} {value}")))
            .collect();
        let recording = directory("random");
        let (log, sent) = record(&spec, &arrivals, &changes, &recording.0);
        let (replayed, outcome) = replay(&spec, &recording);
        prop_assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        prop_assert_eq!(&live(&outcome).invalid, &[""; 0]);
        prop_assert_eq!(live(&outcome).compared_packets, Some(sent));
        let differs = log.lines().zip(replayed.lines()).find(|(one, other)| one != other);
        prop_assert!(log == replayed, "{:?} {} {}", differs, log.lines().count(), replayed.lines().count());
        prop_assert_eq!(outcome.summary.changes.len(), changes.len());
    }
}

#[test]
fn without_its_changes_a_replay_goes_another_way() {
    let (spec, arrivals) = (spec(), arrivals(2000, 11));
    let (recording, other) = (directory("with"), directory("without"));
    let changes = [(300, "0 0 1".to_owned())];
    record(&spec, &arrivals, &changes, &recording.0);
    assert_eq!(live(&replay(&spec, &recording).1).invalid, [""; 0]);
    // The comment becomes one of something else.
    let file = fs::read(recording.path()).unwrap();
    let at = file.windows(9).position(|bytes| bytes == b"set 0 0 1").unwrap();
    let mut changed = file.clone();
    changed[at..at + 9].copy_from_slice(b"say 0 0 1");
    fs::write(other.path(), changed).unwrap();
    let (_, outcome) = replay(&spec, &other);
    assert!(live(&outcome).invalid[0].contains("differs from what the recorded run sent"));
    assert!(outcome.summary.changes.is_empty());
}

#[test]
fn a_change_that_cannot_be_read_breaks_the_replay_off() {
    let (spec, arrivals) = (spec(), arrivals(500, 12));
    let recording = directory("damaged");
    record(&spec, &arrivals, &[(300, "0 0 1".to_owned())], &recording.0);
    let file = fs::read(recording.path()).unwrap();
    let at = file.windows(9).position(|bytes| bytes == b"set 0 0 1").unwrap();
    let with = |from: usize, bytes: &[u8]| {
        let mut damaged = file.clone();
        damaged[from..from + bytes.len()].copy_from_slice(bytes);
        fs::write(recording.path(), damaged).unwrap();
        let outcome = replay(&spec, &recording).1;
        assert!(outcome.summary.partial);
        outcome.broken_off.unwrap().to_string()
    };
    let error = with(at, b"set 0 x 1");
    assert!(error.contains("the change at 0.") && error.contains("`0 x 1` says nothing"), "{error}");
    // Its time, behind type, length and interface: before the beginning, and before the packet that
    // precedes it.
    let error = with(at - 12, &[0; 8]);
    assert!(error.contains("a change that was made before what precedes it"), "{error}");
    // It has two halves, the upper one first.
    let place = at - 12;
    let half = |from: usize| u64::from(u32::from_le_bytes(file[from..from + 4].try_into().unwrap()));
    let time = half(place) << 32 | half(place + 4);
    let halves = |time: u64| time.rotate_left(32).to_le_bytes();
    let error = with(place, &halves(time - 1_000_000));
    assert!(error.contains("a change that was made before what precedes it"), "{error}");
    // And long after what follows it.
    let error = with(place, &halves(time + 59_000_000));
    assert!(error.contains("comes before it in the file") || error.contains("chronological"), "{error}");
    let error = run(&spec, Recorders::default(), &recording.path(), None).unwrap().broken_off.unwrap().to_string();
    assert!(error.contains("nothing that reads it"), "{error}");
}
