//! Between two kernels, behind devices: what they make of it.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ackclock_sim::spec::{Clock, LiveSpec, NodeSpec, PipeSpec};
use ackclock_testkit::can_go_live;

use super::*;
use crate::Offload;
use crate::testbed::Testbed;

/// Two hosts with MTUs of 1500 bytes and a router between them that takes `mtu`.
struct Bed {
    testbed: Testbed,
    mtu: u16,
}

impl Bed {
    /// `None`, and said why, if there can be none here.
    fn set_up(name: &str, mtu: u16) -> Option<Bed> {
        let node = |side: &str, number: u8| NodeSpec {
            name: side.into(),
            tun: Some("ack0".into()),
            addresses: vec![
                ([10, 78, number, 1].into(), 24),
                (Ipv6Addr::new(0xfd78, 0, 0, number.into(), 0, 0, 0, 1).into(), 64),
            ],
            netns: Some(format!("ackt-{name}-{side}-{}", std::process::id())),
            mtu: 1500,
            ..Default::default()
        };
        let spec = LiveSpec {
            clock: Clock::Real,
            nodes: vec![node("left", 1), node("right", 2)],
            pipes: vec![PipeSpec { between: [0, 1], path: Vec::new(), split: None, router: Some(SPEC) }],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        };
        if !can_go_live(&format!("router: {name}"), &["ping"]) {
            return None;
        }
        Some(Bed { testbed: Testbed::set_up(&spec).expect("a testbed"), mtu })
    }

    /// The output of commands of the left host, while packets are forwarded.
    fn run<const N: usize>(&self, commands: [&str; N]) -> [String; N] {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| self.forward(&done));
            let printed = commands.map(|command| {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", command]).stdout(Stdio::piped()).stderr(Stdio::inherit());
                let output = self.testbed.spawn(0, &mut shell).and_then(|child| child.wait_with_output());
                String::from_utf8_lossy(&output.expect("a shell").stdout).into_owned()
            });
            done.store(true, Ordering::Relaxed);
            printed
        })
    }

    #[expect(clippy::disallowed_methods, reason = "kernels have a clock")]
    fn forward(&self, done: &AtomicBool) {
        let start = Instant::now();
        let devices = [0, 1].map(|node| self.testbed.device(node).expect("a device"));
        let mut routers = [router(self.mtu), router(self.mtu)];
        let (mut buffer, mut out, mut message) = ([0; 2000], [0; 2000], Vec::new());
        while !done.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
            for (node, router) in routers.iter_mut().enumerate() {
                while let Ok(len) = devices[node].read(&mut buffer) {
                    let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
                    let packet = &mut buffer[..len];
                    let header = Header::read(packet).expect("kernels write right headers");
                    let other = devices[1 - node];
                    match router.forward(now, &header, packet, &mut message) {
                        ForwardDecision::Whole => other.write(packet, &[], Offload::default()).expect("room"),
                        ForwardDecision::Fragments => {
                            let mut pieces = Fragments::new(&header, packet, router.mtu());
                            while let Some(len) = pieces.next_into(&mut out) {
                                other.write(&out[..len], &[], Offload::default()).expect("room");
                            }
                        }
                        ForwardDecision::Discarded(_) if message.is_empty() => {}
                        ForwardDecision::Discarded(_) => {
                            devices[node].write(&message, &[], Offload::default()).expect("room");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn kernels_believe_what_the_next_link_takes() {
    let Some(bed) = Bed::set_up("mtu", 1400) else { return };
    let [four, route, six, route6] = bed.run([
        "ping -c 2 -i 0.2 -W 2 -M do -s 1450 10.78.2.1",
        "ip route get 10.78.2.1",
        "ping -c 2 -i 0.2 -W 2 -M do -s 1430 fd78:0:0:2::1",
        "ip route get fd78:0:0:2::1",
    ]);
    assert!(four.contains("From 192.0.0.8") && four.contains("mtu = 1400"), "{four}");
    assert!(route.contains("mtu 1400"), "{route}");
    assert!(six.contains("From 100:0:0:1::8") && six.contains("mtu=1400"), "{six}");
    assert!(route6.contains("mtu 1400"), "{route6}");
}

#[test]
fn kernels_hear_where_hops_run_out() {
    let Some(bed) = Bed::set_up("ttl", 1500) else { return };
    let [four, six, further] = bed.run([
        "ping -c 1 -W 2 -t 1 10.78.2.1",
        "ping -c 1 -W 2 -t 1 fd78:0:0:2::1",
        "ping -c 1 -W 2 -t 2 10.78.2.1; ping -c 1 -W 2 -t 2 fd78:0:0:2::1",
    ]);
    assert!(four.contains("From 192.0.0.8") && four.contains("Time to live exceeded"), "{four}");
    assert!(six.contains("From 100:0:0:1::8") && six.contains("Hop limit"), "{six}");
    assert_eq!(further.matches(" 0% packet loss").count(), 2, "{further}");
}

#[test]
fn kernels_put_fragments_together() {
    // 3008 bytes are cut by the kernel at 1500 and here again, and so is the reply; with 60 bytes
    // of header a piece holds 592.
    let Some(bed) = Bed::set_up("fragments", 653) else { return };
    let [plain, recorded] = bed
        .run(["ping -c 3 -i 0.2 -W 2 -M dont -s 3000 10.78.2.1", "ping -c 3 -i 0.2 -W 2 -M dont -R -s 3000 10.78.2.1"]);
    for printed in [plain, recorded] {
        assert!(printed.contains("3 received") && !printed.contains("wrong data"), "{printed}");
    }
}
