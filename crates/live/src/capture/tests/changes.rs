//! Changes of a run in its capture.

use super::*;
use crate::capture::Changes;

fn set(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Changes before a packet, between two, and at the end.
fn changed(name: &str) -> Vec<u8> {
    let scratch = ScratchFile::new(name);
    let mut writer = CaptureWriter::create(&scratch.file(), &spec(), None).unwrap();
    writer.change(Time::from_nanos(1), &set(&["links.a.rate=5mbit"]));
    writer.packet(Time::from_micros(1), 0, CaptureDirection::FromHost, &ipv4(1, 2, 40));
    writer.change(Time::from_nanos(1001), &set(&["links.a.rate=1mbit", "links.a.delay=\"40ms\""]));
    writer.change(Time::from_nanos(1002), &set(&["links.a.queue.limit=7p"]));
    // It was due before, and written late.
    writer.packet(Time::from_nanos(900), 2, CaptureDirection::ToHost, &ipv4(1, 2, 40));
    writer.packet(Time::from_millis(2), 2, CaptureDirection::FromHost, &ipv4(2, 1, 40));
    writer.change(Time::from_secs(4), &set(&["links.a.up=false"]));
    writer.finish(Time::from_secs(5)).unwrap();
    fs::read(scratch.file()).unwrap()
}

fn read_changes(file: Vec<u8>) -> Result<Vec<(usize, Changes)>, String> {
    let mut reader = CaptureReader::new(Path::new("x.pcapng"), Cursor::new(file), Some(&nodes()))
        .map_err(|error| error.to_string())?;
    let (mut all, mut packets) = (Vec::new(), 0);
    while let Some(packet) = reader.next().map_err(|error| error.to_string())? {
        all.extend(packet.changes.iter().map(|change| (packets, change.clone())));
        packets += 1;
    }
    all.extend(reader.last_changes().iter().map(|change| (packets, change.clone())));
    assert_eq!(reader.end(), Some(Time::from_secs(5)));
    Ok(all)
}

#[test]
fn changes_have_their_place_among_the_packets() {
    let expected = [
        (0, (Time::from_nanos(1), set(&["links.a.rate=5mbit"]))),
        (1, (Time::from_nanos(1001), set(&["links.a.rate=1mbit", "links.a.delay=\"40ms\""]))),
        (1, (Time::from_nanos(1002), set(&["links.a.queue.limit=7p"]))),
        (3, (Time::from_secs(4), set(&["links.a.up=false"]))),
    ];
    assert_eq!(read_changes(changed("changes")).unwrap(), expected);
}

#[test]
fn a_change_is_a_comment_of_interface_statistics() {
    let file = changed("change-bytes");
    let at = file.windows(5).position(|bytes| bytes == b"set l").unwrap();
    // s4.6: block type 5, length, interface 0, timestamp; opt_comment is 1.
    assert_eq!(file[at - 24..at - 20], [5, 0, 0, 0]);
    let len = u32::from_le_bytes(file[at - 20..at - 16].try_into().unwrap()) as usize;
    assert_eq!((&file[at - 16..at - 12], &file[at - 4..at]), (&[0; 4][..], &[1, 0, 22, 0][..]));
    assert_eq!(&file[at..at + 22], b"set links.a.rate=5mbit");
    assert_eq!(file[at - 24 + len - 4..at - 24 + len], (len as u32).to_le_bytes());
}

#[test]
fn many_changes_are_in_many_chunks() {
    let scratch = ScratchFile::new("change-chunks");
    let mut writer = CaptureWriter::create(&scratch.file(), &spec(), None).unwrap();
    let long = "x".repeat(1000);
    (0..3000).for_each(|n| writer.change(Time::from_nanos(n + 1), std::slice::from_ref(&long)));
    writer.finish(Time::from_secs(5)).unwrap();
    let found = read_changes(fs::read(scratch.file()).unwrap()).unwrap();
    assert_eq!(found.len(), 3000);
    assert!(found.iter().all(|(_, (_, set))| set[..] == [long.clone()]));
}

proptest! {
    #[test]
    fn any_damage_of_changes_is_survived(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        static FILE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| changed("change-mutated"));
        let mut file = FILE.clone();
        for (at, value) in damage {
            let at = at.index(file.len());
            file[at] = value;
        }
        let _ = read(file);
    }
}
