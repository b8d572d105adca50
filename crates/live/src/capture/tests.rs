//! Captures written and read, against the draft and against tcpdump.

use std::fs;
use std::io::{Cursor, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use ackclock_sim::spec::{Clock, LiveSpec, NodeSpec, RunSpec, Spin};
use ackclock_units::{Span, Time};
use proptest::prelude::*;

use super::*;
use crate::LiveError;

mod changes;
mod foreign;

/// A file name in a directory of its own, which is removed.
struct ScratchFile(PathBuf);

impl ScratchFile {
    fn new(name: &str) -> ScratchFile {
        let dir = std::env::temp_dir().join(format!("ackt-capture-{name}-{}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        ScratchFile(dir)
    }

    fn file(&self) -> PathBuf {
        self.0.join("run.pcapng")
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Hosts left and right behind devices, ours without one between them.
fn nodes() -> Vec<NodeSpec> {
    let node = |name: &str, tun: Option<&str>, last: u8| NodeSpec {
        name: name.to_owned(),
        tun: tun.map(str::to_owned),
        addresses: vec![
            (IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 24),
            (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into())), 64),
        ],
        netns: None,
        mtu: 1500,
        ..Default::default()
    };
    vec![node("left", Some("ack0"), 1), node("ours", None, 3), node("right", Some("ack1"), 2)]
}

fn spec() -> RunSpec {
    RunSpec {
        title: "Two hosts".to_owned(),
        duration: Span::from_secs(10),
        seed: 7,
        run: 0,
        ties: ackclock_sim::spec::Ties::default(),
        links: Vec::new(),
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: nodes(),
            pipes: Vec::new(),
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        })),
    }
}

/// An IPv4 packet of `len` bytes, of which only version, length and addresses are right.
fn ipv4(from: u8, to: u8, len: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..len).map(|n| (n * 7 + len) as u8).collect();
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet[12..16].copy_from_slice(&[10, 0, 0, from]);
    packet[16..20].copy_from_slice(&[10, 0, 0, to]);
    packet
}

type Packet = (u64, usize, CaptureDirection, Vec<u8>);

/// All packets, and the end.
fn read(bytes: impl AsRef<[u8]> + Send + 'static) -> Result<(Vec<Packet>, Option<Time>), String> {
    read_all(Cursor::new(bytes))
}

fn read_all(file: impl Read + Send + 'static) -> Result<(Vec<Packet>, Option<Time>), String> {
    let mut reader =
        CaptureReader::new(Path::new("x.pcapng"), file, Some(&nodes())).map_err(|error| error.to_string())?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next().map_err(|error| error.to_string())? {
        packets.push((packet.at.as_nanos(), packet.node, packet.way, packet.bytes.to_vec()));
    }
    Ok((packets, reader.end()))
}

/// A capture of these packets, ended after 5 s.
fn write(name: &str, packets: &[Packet]) -> Vec<u8> {
    let scratch = ScratchFile::new(name);
    let mut writer = CaptureWriter::create(&scratch.file(), &spec(), None).unwrap();
    for (at, node, way, bytes) in packets {
        writer.packet(Time::from_nanos(*at), *node, *way, bytes);
    }
    assert!(!writer.failed());
    writer.finish(Time::from_secs(5)).unwrap();
    assert_eq!(scratch.names(), ["run.pcapng"]);
    fs::read(scratch.file()).unwrap()
}

fn some_packets() -> Vec<Packet> {
    vec![
        (0, 0, CaptureDirection::FromHost, ipv4(1, 2, 40)),
        (1_000_000_007, 2, CaptureDirection::ToHost, ipv4(1, 2, 41)),
        (1_000_000_007, 2, CaptureDirection::FromHost, ipv4(2, 1, 1499)),
        (4_999_999_999, 0, CaptureDirection::ToHost, vec![0x60; 1501]),
        (4_999_999_999, 0, CaptureDirection::FromHost, Vec::new()),
    ]
}

#[test]
fn what_is_written_is_read() {
    let packets = some_packets();
    let file = write("round", &packets);
    assert_eq!(read(file), Ok((packets, Some(Time::from_secs(5)))));
}

#[test]
fn a_capture_of_many_chunks_is_whole() {
    // 3000 packets of about 1 kB are 3 MB, and chunks have 256 kB.
    let packet =
        |n: u64| (n * 1000, [0, 2][n as usize % 2], CaptureDirection::FromHost, ipv4(1, 2, 500 + n as usize % 1000));
    let packets: Vec<Packet> = (0..3000).map(packet).collect();
    assert_eq!(read(write("chunks", &packets)), Ok((packets, Some(Time::from_secs(5)))));
}

#[test]
fn a_host_without_a_device_has_no_packets() {
    let file = write(
        "own",
        &[(5, 1, CaptureDirection::FromHost, ipv4(3, 1, 40)), (6, 99, CaptureDirection::FromHost, ipv4(3, 1, 40))],
    );
    assert_eq!(read(file), Ok((Vec::new(), Some(Time::from_secs(5)))));
}

#[test]
fn a_packet_may_have_its_beginning_alone() {
    let (scratch, long, short) = (ScratchFile::new("snap"), ipv4(1, 2, 1499), ipv4(1, 2, 128));
    let mut writer = CaptureWriter::create(&scratch.file(), &spec(), Some(128)).unwrap();
    for packet in [&long, &short] {
        writer.packet(Time::ZERO, 0, CaptureDirection::FromHost, packet);
    }
    writer.finish(Time::from_secs(5)).unwrap();
    let file = fs::read(scratch.file()).unwrap();
    // s4.2: the snapshot length of the interface; s4.3: captured and original length, then the
    // packet.
    let numbers = |numbers: [u32; 2]| numbers.map(u32::to_le_bytes).concat();
    let has = |bytes: &[u8]| file.windows(bytes.len()).any(|found| found == bytes);
    assert!(has(&[&[12, 0, 0, 0, 128, 0, 0, 0][..]].concat()));
    assert!(has(&[numbers([128, 1499]), long[..128].to_vec()].concat()) && !has(&long[..129]));
    assert!(has(&[numbers([128, 128]), short.clone()].concat()));
    let mut reader = CaptureReader::new(&scratch.file(), Cursor::new(file.clone()), Some(&nodes())).unwrap();
    for packet in [&long, &short] {
        let read = reader.next().unwrap().unwrap();
        assert_eq!((read.bytes, read.len), (&packet[..128], packet.len()));
    }
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn the_bytes_are_those_of_the_draft() {
    let file = write("golden", &[(0x1_0000_0002, 2, CaptureDirection::FromHost, ipv4(2, 1, 21))]);
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());

    // s4.1: type, length, byte-order magic, version 1.0, section length unknown.
    let len = u32_at(4) as usize;
    assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert_eq!(file[8..24], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    // opt_comment is 1, shb_userappl 4.
    let comment = format!("Two hosts\nseed 7, run 0, scenario {:016x}", fingerprint(&spec()));
    assert_eq!(file[24..28], [1, 0, comment.len() as u8, 0]);
    assert_eq!(&file[28..28 + comment.len()], comment.as_bytes());
    let at = 28 + comment.len().next_multiple_of(4);
    assert_eq!(file[at..at + 2], [4, 0]);
    assert_eq!(&file[at + 4..at + 13], b"ackclock ");
    assert_eq!(u32_at(len - 4) as usize, len);
    let file = &file[len..];

    // s4.2: DLT_RAW is 12, snaplen 262144 = 0x40000; if_name 2, if_description 3, if_tsresol 9.
    let left = [
        &[1, 0, 0, 0, 48, 0, 0, 0, 12, 0, 0, 0, 0, 0, 4, 0, 2, 0, 4, 0][..],
        b"left\x03\0\x04\0ack0\x09\0\x01\0\x09\0\0\0\0\0\0\0",
        &[48, 0, 0, 0],
    ]
    .concat();
    assert_eq!(file[..48], left);
    // `right` has five letters and three bytes of padding.
    let right = [
        &[1, 0, 0, 0, 52, 0, 0, 0, 12, 0, 0, 0, 0, 0, 4, 0, 2, 0, 5, 0][..],
        b"right\0\0\0\x03\0\x04\0ack1\x09\0\x01\0\x09\0\0\0\0\0\0\0",
        &[52, 0, 0, 0],
    ]
    .concat();
    assert_eq!(file[48..100], right);
    let file = &file[100..];
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());

    // s4.6: interface, time, isb_starttime is 2 with 8 bytes: 8 + 4 + 8 + 12 + 4 + 4 = 40 bytes.
    let time = &file[12..20];
    for interface in [0, 1] {
        let statistics =
            [&[5, 0, 0, 0, 40, 0, 0, 0, interface, 0, 0, 0][..], time, &[2, 0, 8, 0], time, &[0; 4], &[40, 0, 0, 0]];
        assert_eq!(file[40 * usize::from(interface)..][..40], statistics.concat());
    }
    let start = (u64::from(u32_at(12)) << 32) | u64::from(u32_at(16));
    let file = &file[80..];

    // s4.3: interface 1, the upper half of the time first, two lengths; 21 bytes and three of
    // padding; epb_flags is 2 with outbound 2; 32 + 24 + 12 = 68 bytes.
    let packet = &file[..68];
    let time = start + 0x1_0000_0002;
    let halves = [((time >> 32) as u32).to_le_bytes(), (time as u32).to_le_bytes()].concat();
    assert_eq!(packet[..12], [6, 0, 0, 0, 68, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(packet[12..20], halves);
    assert_eq!(packet[20..28], [21, 0, 0, 0, 21, 0, 0, 0]);
    assert_eq!(packet[28..49], ipv4(2, 1, 21));
    assert_eq!(packet[49..], [0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 68, 0, 0, 0]);

    // Statistics of both again: isb_endtime is 3, isb_ifrecv 4; 40 + 12 + 12 = 64 bytes.
    let last = &file[68..];
    assert_eq!(last.len(), 128);
    assert_eq!(last[4], 64);
    assert_eq!(last[32..36], [3, 0, 8, 0]);
    let end = start + 5_000_000_000;
    assert_eq!(last[36..44], [((end >> 32) as u32).to_le_bytes(), (end as u32).to_le_bytes()].concat());
    assert_eq!(last[44..56], [4, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(last[64 + 44..64 + 56], [4, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0]);

    // The wall clock, within the hour, however the test is held up.
    #[expect(clippy::disallowed_methods, reason = "what a clock on the wall shows")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(start <= now && now - start < 3_600_000_000_000);
}

#[test]
fn a_file_has_its_name_once_it_is_whole() {
    let scratch = ScratchFile::new("hidden");
    let mut writer = CaptureWriter::create(&scratch.file(), &spec(), None).unwrap();
    writer.packet(Time::ZERO, 0, CaptureDirection::FromHost, &ipv4(1, 2, 40));
    assert_eq!(scratch.names(), [".run.pcapng.partial"]);
    drop(writer);
    assert_eq!(scratch.names(), [""; 0]);
    // The partial file of a killed run is overwritten.
    fs::write(scratch.0.join(".run.pcapng.partial"), vec![1; 100_000]).unwrap();
    let writer = CaptureWriter::create(&scratch.file(), &spec(), None).unwrap();
    writer.finish(Time::from_secs(1)).unwrap();
    assert_eq!(scratch.names(), ["run.pcapng"]);
    assert_eq!(read(fs::read(scratch.file()).unwrap()), Ok((Vec::new(), Some(Time::from_secs(1)))));
}

#[test]
fn a_file_that_was_cut_is_never_whole() {
    let file = write("cut", &some_packets());
    // As long as nothing says that it is ours: no packets, and of no host.
    let header = u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize;
    for len in 0..file.len() {
        if len == header {
            continue;
        }
        let error = read(file[..len].to_vec()).unwrap_err();
        let told = ["cut", "too short", "header", "the time at which the run began"];
        assert!(told.iter().any(|word| error.contains(word)), "{len}: {error}");
    }
}

#[test]
fn packets_that_are_missing_are_noticed() {
    let file = write("missing", &some_packets());
    // The first packet: type 6 and 44 + 40 bytes.
    let at = file.windows(8).position(|bytes| bytes == [6, 0, 0, 0, 84, 0, 0, 0]).unwrap();
    let file = [&file[..at], &file[at + 84..]].concat();
    assert!(read(file).unwrap_err().contains("count 3 packets of an interface that has 2"));
}

#[test]
fn a_full_disk_is_told() {
    let mut writer = CaptureWriter::create(Path::new("/dev/full"), &spec(), None).unwrap();
    let packet = ipv4(1, 2, 1500);
    let mut taken = 0;
    while !writer.failed() {
        writer.packet(Time::ZERO, 0, CaptureDirection::FromHost, &packet);
        taken += 1;
        assert!(taken < 100_000_000);
    }
    let Err(LiveError::File { source, .. }) = writer.finish(Time::ZERO) else { panic!() };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);

    // Also if it is noticed at the end alone.
    let writer = CaptureWriter::create(Path::new("/dev/full"), &spec(), None).unwrap();
    let Err(LiveError::File { source, .. }) = writer.finish(Time::ZERO) else { panic!() };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
}

/// Wherever the disk is full: all packets that are whole are there, less what the end of a capture
/// takes.
#[test]
fn of_a_full_disk_all_whole_blocks_are_a_capture() {
    let packets: Vec<Packet> = (0..12).map(|n| (1000 * n, 0, CaptureDirection::FromHost, ipv4(1, 2, 100))).collect();
    let chunk = write("blocks", &packets);
    let scratch = ScratchFile::new("full-disk");
    let end = |extent: &salvage::BlockExtent| writer::statistics(0, extent.last, &extent.packets);
    let room = writer::statistics(0, 0, &[0, 0]).len();
    let first = chunk.windows(4).position(|word| word == 6u32.to_le_bytes()).unwrap();
    for (number, written) in (0..chunk.len()).enumerate() {
        // The second of two chunks, of which the first one is there.
        let before = &chunk[..first];
        let after = &chunk[first..];
        let path = scratch.0.join(format!("{number}"));
        let mut blocks = salvage::BlockFile::new(fs::File::create(&path).unwrap(), 2, 0, room);
        let kept = if written < first {
            std::io::Write::write_all(&mut fs::File::options().append(true).open(&path).unwrap(), &chunk[..written])
                .unwrap();
            blocks.keep(&chunk, written, end)
        } else {
            blocks.write(before).unwrap();
            std::io::Write::write_all(&mut fs::File::options().append(true).open(&path).unwrap(), after).unwrap();
            blocks.keep(after, written - first, end)
        };
        // 44 bytes around each packet of 100, which needs no padding.
        let whole = (written.saturating_sub(first + room) / 144).min(packets.len());
        assert_eq!(kept, whole > 0, "{written}");
        if !kept {
            continue;
        }
        let file = fs::read(&path).unwrap();
        assert!(file.len() <= written, "{written}: {}", file.len());
        let (found, _) = read(file).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(found, packets[..whole], "{written}");
    }
}

#[test]
fn a_disk_that_does_not_keep_up_is_told() {
    let scratch = ScratchFile::new("stalled");
    let pipe = scratch.0.join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let nonblocking = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let mut reader = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(&pipe).unwrap();
    let mut writer = CaptureWriter::create(&pipe, &spec(), None).unwrap();
    let packet = ipv4(1, 2, 1500);
    let mut taken = 0;
    while !writer.failed() {
        writer.packet(Time::ZERO, 0, CaptureDirection::FromHost, &packet);
        taken += 1;
    }
    // Nobody reads. A block has 1544 bytes: 1024 chunks of 262144 / 1544 = 169 packets, and one
    // more.
    assert!((1024 * 169..1026 * 170).contains(&taken), "{taken}");
    // It is read at last, so that the thread can end.
    let drain = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    });
    let Err(LiveError::File { source, .. }) = writer.finish(Time::ZERO) else { panic!() };
    assert!(source.to_string().contains("cannot keep up: 256 MiB are waiting"), "{source}");
    drain.join().unwrap();
}

#[test]
fn a_place_that_is_not_there_is_told_before_anything() {
    for path in ["/nonexistent-ackt/run.pcapng", "/", ".."] {
        assert!(matches!(CaptureWriter::create(Path::new(path), &spec(), None), Err(LiveError::File { .. })), "{path}");
    }
}

#[test]
fn a_capture_takes_the_place_of_a_capture_and_of_no_other_file() {
    let scratch = ScratchFile::new("replaced");
    let path = scratch.file();
    for _ in 0..2 {
        CaptureWriter::create(&path, &spec(), None).unwrap().finish(Time::ZERO).unwrap();
    }
    fs::write(&path, "").unwrap();
    CaptureWriter::create(&path, &spec(), None).unwrap().finish(Time::ZERO).unwrap();
    fs::write(&path, "a thesis").unwrap();
    let Err(LiveError::File { source, .. }) = CaptureWriter::create(&path, &spec(), None) else { panic!() };
    assert!(source.to_string().contains("it is no capture"), "{source}");
    assert_eq!(fs::read(&path).unwrap(), b"a thesis");
}

#[test]
fn the_scenario_is_known_by_what_decides() {
    let file = write("fingerprint", &[]);
    let reader = CaptureReader::new(Path::new("x"), Cursor::new(file), Some(&nodes())).unwrap();
    let mut same = spec();
    same.title = "Another title, scenario 12".to_owned();
    let live = same.live.as_mut().unwrap();
    live.clock = Clock::Replay("x".into());
    live.scheduling.spin = Spin::Fixed(Span::from_millis(1));
    assert_eq!(reader.scenario(), Some(fingerprint(&same)));
    let mut other = spec();
    other.seed = 8;
    assert_ne!(reader.scenario(), Some(fingerprint(&other)));
    let mut other = spec();
    other.live.as_mut().unwrap().nodes[0].mtu = 1400;
    assert_ne!(reader.scenario(), Some(fingerprint(&other)));
}

#[test]
fn a_title_of_any_length_fits() {
    let scratch = ScratchFile::new("title");
    let spec = RunSpec { title: "ü scenario ".repeat(10_000), ..spec() };
    let path = scratch.file();
    CaptureWriter::create(&path, &spec, None).unwrap().finish(Time::ZERO).unwrap();
    let reader = CaptureReader::open(&path, Some(&nodes())).unwrap();
    assert_eq!(reader.scenario(), Some(fingerprint(&spec)));
}

#[test]
fn tcpdump_reads_it() {
    let scratch = ScratchFile::new("tcpdump");
    let mut writer = CaptureWriter::create(&scratch.file(), &spec(), None).unwrap();
    for (at, node, way, bytes) in &some_packets()[..3] {
        writer.packet(Time::from_nanos(*at), *node, *way, bytes);
    }
    writer.finish(Time::from_secs(5)).unwrap();
    let run = Command::new("tcpdump").args(["-n", "--nano", "-ttttt", "-r"]).arg(scratch.file()).output();
    let Ok(output) = run else {
        return ackclock_testkit::skipped("capture: tcpdump reads it", "no tcpdump");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" IP ")).collect();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // -ttttt is the time since the first packet.
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("00:00:00.000000000") && lines[0].contains("10.0.0.1 > 10.0.0.2"), "{text}");
    assert!(lines[2].contains("00:00:01.000000007") && lines[2].contains("10.0.0.2 > 10.0.0.1"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever bytes are wrong in it: an answer, and no panic.
    #[test]
    fn any_change_of_a_capture_is_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        static FILE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| write("mutated", &some_packets()));
        let mut file = FILE.clone();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        let _ = read(file);
    }

    /// The same of nothing but bytes behind the beginning of each format.
    #[test]
    fn any_bytes_are_survived(magic in 0..6usize, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let beginnings: [&[u8]; 6] = [
            &[],
            &[0x0a, 0x0d, 0x0d, 0x0a],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28],
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0],
            &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101],
        ];
        let _ = read([beginnings[magic], &bytes].concat());
    }
}
