use super::*;
use crate::rows::{PIECE, ROW};

fn record() -> QueueRecord<'static> {
    QueueRecord {
        at: Time::from_nanos(1_000_000_001),
        link: "a.forward",
        packet: 7,
        flow: "f.0",
        seq: Some(1448),
        size: 1500,
        action: QueueAction::Enqueue,
        sojourn: None,
        probability: None,
        delay: None,
        average: None,
        dropping: None,
        backlog_packets: 1,
        backlog_bytes: 1500,
    }
}

fn rows(records: &[QueueRecord<'_>]) -> String {
    let mut csv = QueueCsv::new(Vec::new());
    for record in records {
        assert!(csv.record(record).is_continue());
    }
    let text = String::from_utf8(csv.finish().expect("memory takes everything")).expect("UTF-8");
    text.strip_prefix(QUEUE_COLUMNS).expect("the header").trim_start().to_owned()
}

#[test]
fn what_a_law_does_not_have_is_empty() {
    let ack = QueueRecord { seq: None, size: 52, ..record() };
    assert_eq!(
        rows(&[record(), ack]),
        "1.000000001,a.forward,7,f.0,1448,1500,enqueue,,,,,,,1,1500\n\
         1.000000001,a.forward,7,f.0,,52,enqueue,,,,,,,1,1500\n"
    );
}

#[test]
fn times_are_exact() {
    let of = |nanos| QueueRecord {
        at: Time::from_nanos(nanos),
        sojourn: Some(Span::from_nanos(nanos)),
        action: QueueAction::Dequeue,
        ..record()
    };
    for (nanos, seconds, millis) in [
        (0, "0.000000000", "0.000000"),
        (1, "0.000000001", "0.000001"),
        (999_999_999, "0.999999999", "999.999999"),
        (60_000_000_000, "60.000000000", "60000.000000"),
        // 2^53 + 1: a float would have lost the last digit.
        (9_007_199_254_740_993, "9007199.254740993", "9007199254.740993"),
        (u64::MAX, "18446744073.709551615", "18446744073709.551615"),
    ] {
        let row = rows(&[of(nanos)]);
        assert_eq!(row, format!("{seconds},a.forward,7,f.0,1448,1500,dequeue,,{millis},,,,,1,1500\n"));
    }
}

#[test]
fn the_variables_of_a_law() {
    let dropped = QueueRecord {
        action: QueueAction::Drop("early"),
        probability: Some(0.1),
        delay: Some(Span::from_micros(15_500)),
        average: Some(12_345.678_9),
        dropping: Some(true),
        ..record()
    };
    let tiny = QueueRecord { action: QueueAction::Mark, probability: Some(2.5e-11), dropping: Some(false), ..record() };
    let zero = QueueRecord { action: QueueAction::Mark, probability: Some(0.0), ..record() };
    assert_eq!(
        rows(&[dropped, tiny, zero]),
        "1.000000001,a.forward,7,f.0,1448,1500,drop,early,,0.1,15.500000,12345.679,1,1,1500\n\
         1.000000001,a.forward,7,f.0,1448,1500,mark,,,2.5e-11,,,0,1,1500\n\
         1.000000001,a.forward,7,f.0,1448,1500,mark,,,0.0,,,,1,1500\n"
    );
}

#[test]
fn odd_names_are_quoted() {
    let odd = QueueRecord { link: "a,b", flow: "say \"f\"\n", ..record() };
    assert_eq!(rows(&[odd]), "1.000000001,\"a,b\",7,\"say \"\"f\"\"\n\",1448,1500,enqueue,,,,,,,1,1500\n");
}

#[test]
fn every_row_has_the_columns_of_the_header() {
    let columns = |line: &str| line.split(',').count();
    let full = QueueRecord {
        at: Time::NEVER,
        packet: u64::MAX,
        seq: Some(u64::MAX),
        size: u32::MAX,
        sojourn: Some(Span::MAX),
        probability: Some(f64::MIN_POSITIVE),
        delay: Some(Span::MAX),
        average: Some(1e15 + 0.1),
        dropping: Some(false),
        backlog_packets: u64::MAX,
        backlog_bytes: u64::MAX,
        ..record()
    };
    let text = rows(&[record(), full]);
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().all(|line| columns(line) == columns(QUEUE_COLUMNS)), "{text}");
    assert!(text.lines().all(|line| line.len() < ROW), "{text}");
}

/// Takes some bytes, then no more.
#[derive(Debug)]
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_breaks_the_run_off_and_is_told_at_the_end() {
    let mut csv = QueueCsv::new(Full(3 * PIECE));
    let taken = (0..1_000_000).take_while(|_| csv.record(&record()).is_continue()).count();
    // 62 bytes a row: the fourth piece does not fit.
    assert!((3 * PIECE / 62..4 * PIECE / 62 + 4).contains(&taken), "{taken}");
    assert!(csv.record(&record()).is_break());
    assert_eq!(csv.finish().expect_err("the disk is full").kind(), io::ErrorKind::StorageFull);
    // An error of the last piece counts too.
    let mut csv = QueueCsv::new(Full(10));
    assert!(csv.record(&record()).is_continue());
    assert!(csv.finish().is_err());
}
