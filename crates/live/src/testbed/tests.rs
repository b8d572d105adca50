//! On devices and namespaces of the tests' own; without the rights for them they are skipped, and
//! say so.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ackclock_sim::spec::{Clock, PipeSpec, RouterSpec};
use ackclock_testkit::can_go_live;

use super::*;
use crate::Offload;

mod interface;
mod watch;

/// Tells a process that it is the one that is going to be killed.
const VICTIM: &str = "ACKCLOCK_TEST_VICTIM";

/// A host with a device in a namespace of its own, which is no other test's.
fn node(name: &str, addresses: &[&str]) -> NodeSpec {
    let process = std::env::var(VICTIM).unwrap_or_else(|_| std::process::id().to_string());
    let addresses = addresses.iter().map(|address| {
        let (address, length) = address.split_once('/').expect("a prefix");
        (address.parse().expect("an address"), length.parse().expect("a length"))
    });
    let netns = Some(format!("ackt-{name}-{process}"));
    NodeSpec {
        name: name.into(),
        tun: Some("ack0".into()),
        addresses: addresses.collect(),
        netns,
        mtu: 1500,
        ..Default::default()
    }
}

/// Two hosts, or more, of which the first two have a path between them.
fn spec(nodes: Vec<NodeSpec>) -> LiveSpec {
    let pipe = PipeSpec { between: [0, 1], path: Vec::new(), split: None, router: None };
    LiveSpec {
        clock: Clock::Real,
        pipes: if nodes.len() > 1 { vec![pipe] } else { Vec::new() },
        nodes,
        commands: Vec::new(),
        scheduling: Default::default(),
        offload: false,
        lateness_limit: None,
        drain: false,
    }
}

fn pair(name: &str) -> LiveSpec {
    let (left, right) = (format!("{name}l"), format!("{name}r"));
    spec(vec![node(&left, &["10.77.0.1/24", "fd77::1/64"]), node(&right, &["10.77.0.2/24", "fd77::2/64"])])
}

fn netns(spec: &LiveSpec, node: usize) -> PathBuf {
    Path::new("/run/netns").join(spec.nodes[node].netns.as_ref().expect("a namespace"))
}

/// Calls `f` in the namespace of a host: sockets that it makes are there.
fn at<T: Send>(testbed: &Testbed, node: usize, f: impl FnOnce() -> io::Result<T> + Send) -> T {
    namespace::inside(testbed.namespace(node), f).expect("a thread in the namespace")
}

/// The next packet from a device, which comes within some seconds.
fn read(device: &TunDevice) -> Vec<u8> {
    let mut buffer = [0; 1501];
    for _ in 0..10_000 {
        match device.read(&mut buffer) {
            Ok(read) => return buffer[..read].to_vec(),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
        thread::sleep(Duration::from_micros(100));
    }
    panic!("no packet")
}

fn is_quiet(device: &TunDevice) -> bool {
    matches!(device.read(&mut [0; 1501]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Runs a command in the namespace of a host; what it prints.
fn sh(testbed: &Testbed, node: usize, run: &str) -> String {
    let mut shell = Command::new("/bin/sh");
    let child = testbed.spawn(node, shell.args(["-c", run]).stdout(Stdio::piped())).expect("a program");
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success(), "{run}");
    String::from_utf8(output.stdout).expect("text")
}

fn device(testbed: &Testbed, node: usize) -> &TunDevice {
    testbed.device(node).expect("a device")
}

#[test]
fn what_one_host_sends_is_read_and_what_is_written_the_other_receives() {
    if !can_go_live("testbed: packets", &[]) {
        return;
    }
    let spec = pair("pk");
    let testbed = Testbed::set_up(&spec).expect("a testbed");
    for (from, to) in [
        (IpAddr::from(Ipv4Addr::new(10, 77, 0, 1)), IpAddr::from(Ipv4Addr::new(10, 77, 0, 2))),
        ("fd77::1".parse().expect("an address"), "fd77::2".parse().expect("an address")),
    ] {
        let receiver = at(&testbed, 1, || UdpSocket::bind((to, 0)));
        let sender = at(&testbed, 0, || UdpSocket::bind((from, 0)));
        receiver.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket");
        let port = receiver.local_addr().expect("a socket").port();
        // 20 bytes of IPv4 or 40 of IPv6, 8 of UDP.
        sender.send_to(b"forth", (to, port)).expect("sent");
        let packet = read(device(&testbed, 0));
        assert_eq!(packet.len(), if from.is_ipv4() { 20 } else { 40 } + 8 + 5);
        assert!(packet.ends_with(b"forth"));
        assert!(is_quiet(device(&testbed, 0)) && is_quiet(device(&testbed, 1)), "nothing goes by itself");
        device(&testbed, 1).write(&packet, &[], Offload::default()).expect("written");
        let mut buffer = [0; 100];
        let (read, source) = receiver.recv_from(&mut buffer).expect("received");
        assert_eq!((&buffer[..read], source), (&b"forth"[..], sender.local_addr().expect("a socket")));
    }
    assert_eq!(testbed.dropped(0).expect("counted"), 0);
}

#[test]
fn a_device_is_silent_until_its_host_sends() {
    if !can_go_live("testbed: silence", &[]) {
        return;
    }
    let testbed = Testbed::set_up(&pair("si")).expect("a testbed");
    // Router solicitations would come within a second (RFC 4861 section 6.3.7), reports of
    // multicast groups at once.
    thread::sleep(Duration::from_millis(1200));
    assert!(is_quiet(device(&testbed, 0)) && is_quiet(device(&testbed, 1)));
}

/// The ones' complement sum of an IPv4 packet's segment with its pseudo-header (RFC 9293 section
/// 3.1), and of its header; both are all ones if the checksums are right.
fn sums(packet: &[u8]) -> [u16; 2] {
    let add = |sum: u32, bytes: &[u8]| {
        let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        words.fold(sum, |sum, word| sum + word)
    };
    let fold = |mut sum: u32| {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    };
    let header = usize::from(packet[0] & 15) * 4;
    let pseudo = add((packet.len() - header) as u32 + u32::from(packet[9]), &packet[12..20]);
    [fold(add(0, &packet[..header])), fold(add(pseudo, &packet[header..]))]
}

#[test]
fn the_kernel_hands_over_whole_packets_with_checksums() {
    if !can_go_live("testbed: segmentation and checksums", &[]) {
        return;
    }
    const BYTES: usize = 4 << 20;
    let testbed = Testbed::set_up(&pair("ck")).expect("a testbed");
    let listener = at(&testbed, 1, || TcpListener::bind("10.77.0.2:5000"));
    let over = AtomicBool::new(false);
    let lengths = thread::scope(|scope| {
        let relay = scope.spawn(|| {
            let mut lengths = [0, 0];
            // Longer than any packet may be.
            let mut buffer = vec![0; 1 << 17];
            while !over.load(Ordering::Relaxed) {
                for [from, to] in [[0, 1], [1, 0]] {
                    while let Ok(read) = device(&testbed, from).read(&mut buffer) {
                        let packet = &buffer[..read];
                        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), read);
                        assert_eq!(sums(packet), [0xffff, 0xffff], "{packet:02x?}");
                        lengths[from] = lengths[from].max(read);
                        device(&testbed, to).write(packet, &[], Offload::default()).expect("written");
                    }
                }
                thread::yield_now();
            }
            lengths
        });
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).map(|_| all.len())
        });
        let mut sender = at(&testbed, 0, || TcpStream::connect("10.77.0.2:5000"));
        sender.write_all(&vec![7; BYTES]).expect("sent");
        drop(sender);
        let received = receiver.join().expect("a receiver").expect("received");
        assert_eq!(received, BYTES);
        over.store(true, Ordering::Relaxed);
        relay.join().expect("a relay")
    });
    assert_eq!(lengths[0], 1500, "segments as long as the MTU, cut by the kernel");
    assert!(lengths[1] < 1500);
}

#[test]
fn hosts_reach_each_other_without_a_common_prefix() {
    if !can_go_live("testbed: routes", &[]) {
        return;
    }
    let mut spec = spec(vec![
        node("rl", &["10.1.0.1/32", "fd01::1/128"]),
        node("rr", &["10.2.0.1/24", "10.1.0.9/24", "fd02::1/64"]),
        node("ro", &["10.3.0.1/24"]),
    ]);
    spec.pipes[0].router = Some(RouterSpec {
        address: Ipv4Addr::new(192, 0, 0, 8),
        address6: "fdff::8".parse().expect("an address"),
        mtu: None,
    });
    let testbed = Testbed::set_up(&spec).expect("a testbed");
    let reaches = |node: usize, to: &str| {
        at(&testbed, node, || {
            let to: SocketAddr = to.parse().expect("an address");
            let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            Ok(UdpSocket::bind(from)?.send_to(b"?", to).is_ok())
        })
    };
    for (node, to) in [
        (0, "10.2.0.1:9"),
        (0, "10.1.0.9:9"),
        (0, "[fd02::1]:9"),
        (0, "192.0.0.8:9"),
        (0, "[fdff::8]:9"),
        (1, "10.1.0.1:9"),
        (1, "[fd01::1]:9"),
    ] {
        assert!(reaches(node, to), "host {node} has no way to {to}");
        assert!(read(device(&testbed, node)).ends_with(b"?"));
    }
    // No path leads there.
    assert!(!reaches(0, "10.3.0.1:9") && !reaches(2, "10.1.0.1:9"));
}

#[test]
fn what_a_device_cannot_hold_is_counted() {
    if !can_go_live("testbed: counts", &[]) {
        return;
    }
    let testbed = Testbed::set_up(&pair("ct")).expect("a testbed");
    let sender = at(&testbed, 0, || UdpSocket::bind("10.77.0.1:0"));
    const SENT: usize = 20_000;
    for _ in 0..SENT {
        let _ = sender.send_to(b"?", "10.77.0.2:9");
    }
    let dropped = testbed.dropped(0).expect("counted");
    let mut held = 0;
    while device(&testbed, 0).read(&mut [0; 1501]).is_ok() {
        held += 1;
    }
    // The ring has them all, or they are lost: the device's qdisc holds nothing back, and never
    // acts.
    assert_eq!((held, dropped), (16_384, SENT as u64 - 16_384));
    assert_eq!(testbed.dropped(1).expect("counted"), 0);
}

#[test]
fn a_device_that_vanishes_says_so() {
    if !can_go_live("testbed: a device that vanishes", &["ip"]) {
        return;
    }
    let spec = pair("va");
    let testbed = Testbed::set_up(&spec).expect("a testbed");
    let mut gone = testbed.spawn(0, Command::new("ip").args(["link", "delete", "ack0"])).expect("ip");
    assert!(gone.wait().expect("ip").success());
    let error = device(&testbed, 0).read(&mut [0; 1501]).expect_err("no device");
    assert_eq!(error.raw_os_error(), Some(nix::errno::Errno::EBADFD as i32));
    assert!(testbed.dropped(0).is_err());
    drop(testbed);
    assert!(!netns(&spec, 0).exists());
}

#[test]
fn a_namespace_that_was_there_is_used_and_stays() {
    if !can_go_live("testbed: a namespace of somebody else's", &["ip"]) {
        return;
    }
    let spec = pair("ex");
    let name = spec.nodes[0].netns.as_deref().expect("a namespace");
    let ip = |args: &[&str]| Command::new("ip").args(args).output().expect("ip").status.success();
    assert!(ip(&["netns", "add", name]));
    let _removed = Removed(name);
    let testbed = Testbed::set_up(&spec).expect("a testbed");
    assert!(ip(&["-n", name, "link", "show", "ack0"]));
    drop(testbed);
    assert!(netns(&spec, 0).exists() && !netns(&spec, 1).exists());
    assert!(!ip(&["-n", name, "link", "show", "ack0"]));
    // A device that is there already is somebody else's.
    assert!(ip(&["-n", name, "tuntap", "add", "ack0", "mode", "tun"]));
    let error = Testbed::set_up(&spec).expect_err("a device that is there").to_string();
    assert!(error.contains("a device ack0 already exists"), "{error}");
}

/// A namespace that a test has made by itself, and that goes with this.
struct Removed<'a>(&'a str);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", self.0]).status();
    }
}

#[test]
fn two_runs_do_not_share_a_namespace() {
    if !can_go_live("testbed: two runs", &[]) {
        return;
    }
    let spec = pair("tw");
    let testbed = Testbed::set_up(&spec).expect("a testbed");
    let error = Testbed::set_up(&spec).expect_err("a second one").to_string();
    assert!(error.contains(&format!("belongs to another run (process {})", std::process::id())), "{error}");
    drop(testbed);
    drop(Testbed::set_up(&spec).expect("one after another"));
    assert!(!netns(&spec, 0).exists() && !netns(&spec, 1).exists());
}

#[test]
fn programs_are_gone_with_the_testbed() {
    if !can_go_live("testbed: programs", &["setsid", "sleep"]) {
        return;
    }
    let spec = pair("pr");
    let testbed = Testbed::set_up(&spec).expect("a testbed");
    let mut shell = Command::new("sh");
    shell.args(["-c", "setsid sleep 1000 > /dev/null & echo $!; readlink /proc/self/ns/net"]).stdout(Stdio::piped());
    let output = testbed.spawn(1, &mut shell).expect("a shell").wait_with_output().expect("a shell").stdout;
    let output = String::from_utf8(output).expect("text");
    let (daemon, namespace) = output.trim().split_once('\n').expect("two lines");
    let inode = testbed.namespace(1).expect("a namespace").id();
    assert_eq!(namespace::NamespaceId::of_process(daemon).expect("a process"), inode);
    assert_ne!(namespace::NamespaceId::of_process("self").expect("a process"), inode);
    assert!(namespace.starts_with("net:["));
    drop(testbed);
    assert!(!is_running(daemon));
}

/// Returns `true` if a process runs; a zombie does not.
fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

/// The one that is killed: not a test by itself.
#[test]
#[ignore = "it waits to be killed"]
fn victim() {
    if std::env::var(VICTIM).is_err() {
        return;
    }
    let testbed = Testbed::set_up(&pair("vi")).expect("a testbed");
    let mut children = Vec::new();
    for node in 0..2 {
        children.push(testbed.spawn(node, Command::new("sleep").arg("1000")).expect("sleep"));
    }
    thread::sleep(Duration::from_secs(1000));
}

#[test]
fn nothing_remains_of_killed_runs_after_the_next() {
    if !can_go_live("testbed: killed runs", &["sleep"]) {
        return;
    }
    let process = std::process::id().to_string();
    let spec = pair("vi");
    let mut found = 0;
    for round in 0..20 {
        let mut victim = Command::new(std::env::current_exe().expect("a test"));
        victim.args(["--exact", "testbed::tests::victim", "--ignored"]).env(VICTIM, &process);
        let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a test");
        // From before it does anything until after its programs have started; the steps are no
        // multiple of anything.
        thread::sleep(Duration::from_micros(1000 + 3700 * round));
        victim.kill().expect("killed");
        victim.wait().expect("killed");
        let left = netns(&spec, 0).exists() || netns(&spec, 1).exists();
        found += u32::from(left);
        if round % 2 == 0 {
            // Another scenario.
            drop(Testbed::set_up(&pair("vo")).expect("a testbed"));
            assert!(!netns(&spec, 0).exists() && !netns(&spec, 1).exists(), "round {round}");
        } else {
            let testbed = Testbed::set_up(&spec).expect("a testbed");
            assert!(is_quiet(device(&testbed, 0)));
        }
        // It is there only as long as there are runs.
        let mut noted = std::fs::read_dir(places::runs()).into_iter().flatten().flatten();
        let token = format!("{}-", victim.id());
        assert!(!noted.any(|file| file.file_name().to_string_lossy().starts_with(&token)), "round {round}");
        assert_eq!(programs(&process), Vec::<String>::new(), "round {round}");
    }
    assert!(found > 0, "no victim came far enough to leave something");
}

#[test]
fn runs_that_begin_and_end_at_once_wait_for_each_other() {
    if !can_go_live("testbed: the lock", &[]) {
        return;
    }
    // The last one to end removes the directory, while others make it.
    let inside = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..5000 {
                    let lock = record::RunsLock::take().unwrap_or_else(|error| panic!("round {round}: {error}"));
                    assert!(!inside.swap(true, Ordering::Relaxed), "two have the lock");
                    lock.is_writable().expect("a directory");
                    inside.store(false, Ordering::Relaxed);
                }
            });
        }
    });
}

#[test]
fn a_run_is_over_when_its_process_is_gone_and_what_it_was_starting_has_let_go() {
    let path = std::env::temp_dir().join(format!("ackt-note-{}", std::process::id()));
    let note = std::fs::File::create(&path).expect("a file");
    note.lock().expect("locked");
    let own = format!("{}-{}-0", std::process::id(), record::start_time("self").expect("a time"));
    assert!(leftovers::abandoned(&own, &path).expect("a file").is_none(), "it is alive");
    thread::scope(|scope| {
        // As a program does that was forked and not yet executed when its run was killed.
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            note.unlock().expect("unlocked");
        });
        // No process has the number 0; the number of this one with another start is that of one
        // that is gone.
        let gone = format!("{}-1-0", std::process::id());
        assert!(leftovers::abandoned("0-0-0", &path).expect("a file").is_some());
        assert!(leftovers::abandoned(&gone, &path).expect("a file").is_some());
    });
    std::fs::remove_file(&path).expect("removed");
}

/// Processes that victims have started.
fn programs(process: &str) -> Vec<String> {
    let mark = format!("{VICTIM}={process}");
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ours = |pid: &String| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
    };
    pids.filter(|pid| pid.parse::<u32>().is_ok()).filter(ours).collect()
}

#[test]
fn what_cannot_be_named_is_told_before_anything_is_made() {
    let mut spec = pair("na");
    spec.nodes[0].tun = Some("a-name-of-16-byte".into());
    spec.nodes[1].netns = Some("../left".into());
    let error = check(&spec).expect_err("bad names").to_string();
    assert!(error.contains("at most 15 bytes, and \"a-name-of-16-byte\" has more"), "{error}");
    assert!(error.contains("\"../left\" is not a valid network namespace name"), "{error}");
    for name in ["", ".", "..", "a b", "a/b", "a%d", "a:b"] {
        spec.nodes[0].tun = Some(name.into());
        let error = check(&spec).expect_err("a bad name").to_string();
        assert!(error.contains(&format!("{name:?} is not a valid device name")), "{error}");
    }
}

#[test]
fn two_hosts_of_a_path_are_in_two_namespaces() {
    let mut spec = pair("ns");
    spec.nodes[1].netns = spec.nodes[0].netns.clone();
    let error = check(&spec).expect_err("one namespace").to_string();
    assert!(error.contains("hosts nsl and nsr have the same device"), "{error}");
    assert!(error.contains("hosts nsl and nsr are in one network namespace"), "{error}");
    // Hosts in this process have none.
    spec.nodes[1].tun = None;
    spec.nodes[1].netns = None;
    let problems = check(&spec).map_or_else(|error| error.to_string(), |()| String::new());
    assert!(!problems.contains("hosts nsl and nsr"), "{problems}");
}

#[test]
fn addresses_are_reached_as_soon_as_there_is_a_testbed() {
    if !can_go_live("testbed: routes", &[]) {
        return;
    }
    // The route of an address comes after it, by a worker of the kernel.
    for _ in 0..20 {
        let testbed = Testbed::set_up(&pair("rt")).expect("a testbed");
        for (node, address) in [(0, "fd770000000000000000000000000001"), (1, "fd770000000000000000000000000002")] {
            let routes = at(&testbed, node, || std::fs::read_to_string("/proc/thread-self/net/ipv6_route"));
            let flags = |line: &str| u32::from_str_radix(line.split_ascii_whitespace().nth(8)?, 16).ok();
            let mut whole = routes.lines().filter(|line| line.starts_with(&format!("{address} 80 ")));
            let local = whole.any(|line| flags(line).is_some_and(|flags| flags >> 31 == 1));
            assert!(local, "{routes}");
        }
    }
}
