//! `[record] pcap`: captures of virtual runs agree with the summary, and other programs read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{ackclock, folder, run};
use serde_json::Value;

/// A transfer, a call, and a flow against them, through a queue that marks, drops on arrival and at
/// the head, over a link that loses.
fn busy(queue: &str) -> String {
    format!(
        r#"
schema = 1
run    = {{ duration = "8s" }}

[links.wire]
rate  = "3mbit"
delay = "15ms"
loss  = {{ kind = "iid", probability = 0.002 }}
queue = {queue}

[[flows]]
id    = "f"
path  = ["wire"]
bytes = "1500kB"

[[flows]]
id    = "marked"
path  = ["wire"]
ecn   = true
start = "500ms"

[[flows]]
id          = "call"
path        = ["wire"]
transport   = "udp"
application = "voip"
dscp        = "ef"

[[flows]]
id        = "back"
path      = ["wire"]
direction = "reverse"
"#
    )
}

const PCAP: [&str; 4] = ["--out", "out", "--set", "record.pcap=[\"wire.forward\",\"wire.reverse\",\"f\",\"call.0\"]"];

/// A packet of a capture.
#[derive(Debug)]
struct Packet {
    interface: u32,
    nanos: u64,
    bytes: Vec<u8>,
    length: u32,
    comment: Option<String>,
}

/// The names of the interfaces of a capture, and its packets.
fn read(path: &Path) -> (Vec<String>, Vec<Packet>) {
    let bytes = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let option = |mut at: usize, end: usize, code: u16| {
        while at + 4 <= end {
            let [found, length] =
                [0, 2].map(|from| u16::from_le_bytes(bytes[at + from..at + from + 2].try_into().unwrap()));
            if found == code {
                return Some(String::from_utf8(bytes[at + 4..at + 4 + usize::from(length)].to_vec()).unwrap());
            }
            at += 4 + usize::from(length).next_multiple_of(4);
        }
        None
    };
    let (mut names, mut packets, mut at) = (Vec::new(), Vec::new(), 0);
    while at < bytes.len() {
        let (kind, length) = (word(at), word(at + 4) as usize);
        assert_eq!(word(at + length - 4) as usize, length);
        let end = at + length - 4;
        match kind {
            1 => names.push(option(at + 16, end, 2).expect("a name")),
            6 => {
                let captured = word(at + 20) as usize;
                packets.push(Packet {
                    interface: word(at + 8),
                    nanos: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                    bytes: bytes[at + 28..at + 28 + captured].to_vec(),
                    length: word(at + 24),
                    comment: option(at + 28 + captured.next_multiple_of(4), end, 1),
                });
            }
            _ => {}
        }
        at += length;
    }
    (names, packets)
}

fn summary(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("out/summary.json")).unwrap()).unwrap()
}

#[test]
fn captures_agree_with_the_summary_and_change_nothing_in_it() {
    for queue in [
        "{ kind = \"pfifo\", limit = \"20p\" }",
        "{ kind = \"codel\", limit = \"40p\", ecn = true }",
        "{ kind = \"fq_codel\", limit = \"30p\" }",
        "{ kind = \"pie\", limit = \"40p\", ecn = true }",
    ] {
        let folder = folder("pcap_agrees");
        assert_eq!(run(&folder, busy(queue), &["--out", "out", "-q"]).status, 0);
        let without = summary(&folder);
        assert_eq!(run(&folder, busy(queue), &PCAP).status, 0);
        let with = summary(&folder);
        assert_eq!(with, without, "{queue}");
        for link in with["links"].as_array().unwrap() {
            let name = link["id"].as_str().unwrap();
            let (names, packets) = read(&folder.join(format!("out/{name}.pcapng")));
            assert_eq!(names, ["in", "out", "dropped"].map(|place| format!("{name} {place}")));
            assert!(packets.is_sorted_by_key(|packet| packet.nanos), "{queue}, {name}");
            let count = |interface| packets.iter().filter(|packet| packet.interface == interface).count() as u64;
            assert_eq!(
                [count(0), count(1)],
                [&link["offered"], &link["dequeued"]].map(|n| n.as_u64().unwrap()),
                "{queue}"
            );
            let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
            for packet in packets.iter().filter(|packet| packet.interface == 2) {
                *reasons.entry(packet.comment.as_deref().expect("a reason")).or_default() += 1;
            }
            assert_eq!(serde_json::to_value(&reasons).unwrap(), link["dropped"], "{queue}, {name}");
            // Marks are bits of packets that leave.
            let marked =
                |interface| packets.iter().filter(|one| one.interface == interface && one.bytes[1] & 3 == 3).count();
            assert_eq!(marked(0), 0);
            assert!((marked(1) > 0) == (link["marked"] != 0), "{queue}, {name}");
        }
        // The capture of the transfer has all of its data, and no packet that the other flows sent.
        let flow = &with["flows"][0];
        let (_, packets) = read(&folder.join("out/f.0.sender.pcapng"));
        let out: Vec<&Packet> = packets.iter().filter(|packet| packet.bytes[12..16] == [10, 0, 0, 1]).collect();
        let headers = |packet: &Packet| 20 + u32::from(packet.bytes[32] >> 4) * 4;
        let data: Vec<u32> =
            out.iter().map(|packet| packet.length - headers(packet)).filter(|&data| data > 0).collect();
        assert_eq!(data.len() as u64, flow["sent_packets"].as_u64().unwrap(), "{queue}");
        assert!(data.iter().map(|&data| u64::from(data)).sum::<u64>() >= flow["acked_bytes"].as_u64().unwrap());
        assert!(packets.iter().all(|packet| packet.bytes.len() <= 96 && packet.bytes[13..15] == [0, 0]));
        // The capture of the call has UDP, with its DSCP, and as many datagrams as arrived.
        let (_, packets) = read(&folder.join("out/call.0.receiver.pcapng"));
        let received = with["flows"][2]["datagrams"]["received"].as_u64().unwrap();
        assert_eq!(packets.len() as u64, received, "{queue}");
        assert!(
            packets.iter().all(|packet| packet.bytes[9] == 17 && packet.bytes[1] >> 2 == 46 && packet.length == 200)
        );
    }
}

#[test]
fn sweeps_have_captures_and_repeat_them() {
    let folder = folder("pcap_sweep");
    let text = busy("\"pie\"") + "[sweep]\nrepeat = 2\naxes.\"links.wire.delay\" = [\"5ms\", \"15ms\"]\n";
    assert_eq!(run(&folder, text, &[&PCAP[..], &["--set", "record.pcap_snaplen=40B"]].concat()).status, 0);
    for run in 0..4 {
        let (_, packets) = read(&folder.join(format!("out/runs/000{run}/wire.forward.pcapng")));
        assert!(packets.len() > 1000 && packets.iter().all(|packet| packet.bytes.len() <= 40));
    }
    let verified = ackclock().current_dir(&folder).args(["verify", "out"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&verified.stdout), "out: 25 files the same\n");
}

#[test]
fn what_is_no_place_for_a_capture_is_refused() {
    let folder = folder("pcap_refused");
    for (value, error) in [
        ("[\"wire.forwards\"]", "there is no such link direction or flow"),
        ("[\"wire.forwards\"]", "did you mean `wire.forward`?"),
        ("[\"f.1\"]", "did you mean `f.0`?"),
        ("true", "record.pcap: not the right type"),
        ("[1]", "there is no such link direction or flow"),
    ] {
        let said = run(&folder, busy("\"pie\""), &["--set", &format!("record.pcap={value}")]);
        assert!(said.status == 2 && said.err.contains(error), "{value}: {said:?}");
    }
    let said = run(&folder, busy("\"pie\""), &["--set", "record.pcap_snaplen=10B"]);
    assert!(said.status == 2 && said.err.contains("pcap_snaplen"), "{said:?}");
}

/// A program's output, or `None` where it is not installed.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn output(program: &str, args: &[&str]) -> Option<(String, String)> {
    let Ok(output) = Command::new(program).args(args).output() else {
        eprintln!("skipped: no {program} in PATH");
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

/// One transfer that loses packets in its queue and on the wire, and nothing else.
const TRANSFER: &str = r#"
schema = 1
run    = { duration = "20s" }
record = { pcap = ["wire.forward", "f"] }

[links.wire]
rate  = "5mbit"
delay = "20ms"
loss  = { kind = "iid", probability = 0.002 }
queue = { kind = "pfifo", limit = "30p" }

[[flows]]
id    = "f"
path  = ["wire"]
host  = "linux-6.1"
bytes = "5MB"
"#;

#[test]
fn tcpdump_tshark_and_tcptrace_agree_with_the_summary() {
    let folder = folder("pcap_tools");
    assert_eq!(run(&folder, TRANSFER, &["--out", "out", "-q"]).status, 0);
    let flow = &summary(&folder)["flows"][0];
    let count = |key: &str| flow[key].as_u64().unwrap();
    let path = |name: &str| folder.join("out").join(name).to_str().unwrap().to_owned();
    let (sender, link) = (path("f.0.sender.pcapng"), path("wire.forward.pcapng"));
    assert!(count("retransmitted_packets") > 5, "{flow}");

    if let Some((printed, _)) = output("tcptrace", &["-n", "-l", "-r", &sender]) {
        let of = |name: &str| {
            let line = printed.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
            line.split_whitespace().find_map(|word| word.parse::<f64>().ok()).expect(name)
        };
        assert_eq!(of("unique bytes sent:"), 5e6);
        assert_eq!(of("actual data pkts:") as u64, count("sent_packets"));
        assert_eq!(of("rexmt data pkts:") as u64, count("retransmitted_packets"));
        assert_eq!(of("max sack blks/ack:"), 0.0, "of the sender");
        // tcptrace takes a sample of each segment that an ACK ends at, ours is of the segment that
        // an ACK is for: the ranges agree, and with delayed ACKs the mean does within some percent.
        let quantile = |key: &str| flow["rtt_ms"][key].as_f64().unwrap();
        let mean = of("RTT avg:");
        assert!(quantile("p25") < mean && mean < quantile("p75"), "{mean} {}", flow["rtt_ms"]);
        assert!((of("RTT max:") / quantile("max") - 1.0).abs() < 0.02, "{printed}");
    }
    for file in [&sender, &link] {
        let Some((printed, errors)) = output("tcpdump", &["-nr", file]) else { break };
        let errors: Vec<&str> = errors.lines().filter(|line| !line.starts_with("reading from file")).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(printed.lines().count(), read(Path::new(file)).1.len());
    }
    let wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0";
    let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    let shown = |file: &str, filter: &str| {
        output("tshark", &[&["-r", file, "-Y", filter][..], &checks].concat())
            .map(|(printed, _)| printed.lines().count())
    };
    if let Some(malformed) = shown(&sender, wrong) {
        assert_eq!((malformed, shown(&link, wrong)), (0, Some(0)));
        // Where it doubts it speaks of one out of order.
        let again = shown(&sender, "tcp.analysis.retransmission || tcp.analysis.out_of_order").unwrap();
        assert_eq!(again as u64, count("retransmitted_packets"));
        let dropped = shown(&link, "frame.comment && frame.interface_name == \"wire.forward dropped\"").unwrap();
        let drops = summary(&folder)["links"][0]["dropped"].as_object().unwrap().clone();
        assert_eq!(dropped as u64, drops.values().map(|drops| drops.as_u64().unwrap()).sum::<u64>());
    }
}
