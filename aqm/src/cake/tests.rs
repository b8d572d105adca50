use ackclock_units::{Ecn, Rate};

use super::*;

/// A packet with all that CAKE looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Coded {
    id: u32,
    bytes: u32,
    flow: u64,
    hosts: [u64; 2],
    dscp: u8,
    ecn: Ecn,
}

impl Queued for Coded {
    fn wire_len(&self) -> u32 {
        self.bytes
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn flow_hash(&self) -> u64 {
        self.flow
    }

    fn host_hashes(&self) -> [u64; 2] {
        self.hosts
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn wash(&mut self) {
        self.dscp = 0;
    }
}

const EF: u8 = 46;
const CS1: u8 = 8;

fn packet(id: u32, bytes: u32) -> Coded {
    Coded { id, bytes, flow: 0, hosts: [0, 1], dscp: 0, ecn: Ecn::NotEct }
}

fn cake(config: CakeConfig) -> Cake<Coded> {
    Cake::new(config, Random::for_component(1, 0, "cake"))
}

fn mbit(rate: u64) -> Option<Rate> {
    Rate::from_bps(rate * 1_000_000)
}

fn with_bandwidth(bandwidth: Option<Rate>) -> CakeConfig {
    CakeConfig { bandwidth, ..CakeConfig::default() }
}

/// The variable of this name.
fn shown(cake: &Cake<Coded>, name: &str) -> Variable {
    let mut found = None;
    cake.variables(&mut |variable, value| {
        if variable == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no variable {name}"))
}

/// The numbers of the packets that leave until nothing does at `now`, and the next time.
fn served(cake: &mut Cake<Coded>, now: Time) -> (Vec<u32>, Option<Time>) {
    let mut drops = Drops::new();
    let mut sent = Vec::new();
    loop {
        match cake.dequeue(now, &mut drops) {
            Dequeue::Packet(entry) => sent.push(entry.packet.id),
            Dequeue::NotBefore(next) => return (sent, Some(next)),
            Dequeue::Empty => return (sent, None),
        }
    }
}

mod lengths {
    use super::*;

    fn on_link(framing: Option<Framing>, len: u32) -> u32 {
        CakeConfig { framing, ..CakeConfig::default() }.overhead().of(len)
    }

    /// tc-cake(8): "overhead 38 mpu 84", and the sizes of its second example: 28 and 1500 bytes are
    /// 84 and 1538.
    #[test]
    fn ethernet_is_that_of_the_manual_page() {
        assert_eq!([28, 1500].map(|len| on_link(Some(Framing::Ethernet), len)), [84, 1538]);
    }

    /// 48 bytes in each cell of 53, the last one padded. 1478 + 10 = 31 * 48 bytes are 1643; one
    /// byte more takes another cell. 40 + 8 bytes fill a cell.
    #[test]
    fn atm_counts_cells() {
        assert_eq!([1478, 1479].map(|len| on_link(Some(Framing::PppoaVcmux), len)), [1643, 1696]);
        assert_eq!([40, 41].map(|len| on_link(Some(Framing::IpoaVcmux), len)), [53, 106]);
        // 1500 + 48 are 33 cells.
        assert_eq!(on_link(Some(Framing::Conservative), 1500), 33 * 53);
    }

    /// A byte more for each 64 or part of it: 1500 + 30 have 24 of them.
    #[test]
    fn ptm_counts_parts_of_64_bytes() {
        assert_eq!([1500, 34, 35].map(|len| on_link(Some(Framing::PppoePtm), len)), [1554, 65, 67]);
    }

    /// The least length counts after the overhead and before the cells: 20 + 18 bytes are 64.
    #[test]
    fn what_is_given_takes_the_place_of_the_keyword() {
        assert_eq!(on_link(Some(Framing::Docsis), 20), 64);
        let atm = CakeConfig { framing: Some(Framing::Docsis), atm: Some(Atm::Atm), ..CakeConfig::default() };
        assert_eq!(atm.overhead().of(20), 2 * 53);
        let less = CakeConfig { framing: Some(Framing::Docsis), overhead: Some(-14.0), ..CakeConfig::default() };
        assert_eq!([1514, 14].map(|len| less.overhead().of(len)), [1500, 64]);
        let none = CakeConfig { overhead: Some(-64.0), ..CakeConfig::default() };
        assert_eq!([64, 20].map(|len| none.overhead().of(len)), [0, 0]);
        for wrong in [0.5, -65.0, 257.0, f64::NAN] {
            assert!(CakeConfig { overhead: Some(wrong), ..CakeConfig::default() }.problem().is_some());
        }
    }
}

mod tins {
    use super::*;

    /// Rates of 8 bit/s, quanta of flows, targets and intervals in microseconds, by tin.
    fn tins(config: CakeConfig) -> Vec<(u64, u32, u64, u64)> {
        let law = |tin: &Tin| [tin.law.target, tin.law.interval].map(Span::as_micros);
        let all = |tin: &Tin| (tin.threshold, tin.flow_quantum, law(tin)[0], law(tin)[1]);
        cake(config).tins.iter().map(all).collect()
    }

    /// tc-cake(8), its example at 100 Mbit/s: 100 Mbit, 6250 kbit and 25 Mbit, quanta of 1514, 300
    /// and 762, and 5,000,000 bytes of memory.
    #[test]
    fn shares_are_those_of_the_manual_page() {
        let config = with_bandwidth(mbit(100));
        assert_eq!(config.memory(), 5_000_000);
        let expected = [(12_500_000, 1514), (781_250, 300), (3_125_000, 762)];
        assert_eq!(tins(config), expected.map(|(rate, quantum)| (rate, quantum, 5_000, 100_000)));
    }

    /// At 1 Mbit/s a packet of 1514 bytes takes 12.112 ms, and one and a half of them 18.168 ms,
    /// which the interval exceeds by 13.168 ms more than 100. The sixteenth of the rate is 7812
    /// bytes/s: 193.804 ms, 290.706 ms and for the interval twice that. The fourth: 48.448 ms,
    /// 72.672 ms, 167.672 ms.
    #[test]
    fn slow_tins_have_longer_targets() {
        let at_1_mbit = tins(with_bandwidth(mbit(1)));
        let delays: Vec<_> = at_1_mbit.iter().map(|&(_, _, target, interval)| (target, interval)).collect();
        assert_eq!(delays, [(18_168, 113_168), (290_706, 581_413), (72_672, 167_672)]);
    }

    /// `cake_config_diffserv4`, and seven eighths from tin to tin for eight of them.
    #[test]
    fn modes_have_their_shares() {
        let rates = |diffserv| tins(CakeConfig { diffserv, ..with_bandwidth(mbit(64)) });
        let quanta = |diffserv: Diffserv| diffserv.shares(0).iter().map(|share| share.1).collect::<Vec<_>>();
        let rates = |diffserv| rates(diffserv).iter().map(|tin| tin.0).collect::<Vec<_>>();
        assert_eq!(rates(Diffserv::Besteffort), [8_000_000]);
        assert_eq!(rates(Diffserv::Diffserv4), [8_000_000, 500_000, 4_000_000, 2_000_000]);
        assert_eq!(quanta(Diffserv::Diffserv4), [1024, 64, 512, 256]);
        assert_eq!(quanta(Diffserv::Diffserv3), [1024, 64, 256]);
        let eighths = [8_000_000, 7_000_000, 6_125_000, 5_359_375, 4_689_453, 4_103_271, 3_590_362, 3_141_566];
        for diffserv in [Diffserv::Precedence, Diffserv::Diffserv8] {
            assert_eq!(rates(diffserv), eighths);
            assert_eq!(quanta(diffserv), [256, 224, 196, 171, 149, 130, 113, 98]);
        }
    }

    /// tc's presets have a twentieth of the time as target; without a rate there is no memory for
    /// it, and the most is that of 10,240 packets.
    #[test]
    fn the_rtt_sets_target_interval_and_memory() {
        for (rtt, target, interval) in [
            (CakeRtt::Datacentre, 5, 100),
            (CakeRtt::Metro, 500, 10_000),
            (CakeRtt::Interplanetary, 50_000_000, 1_000_000_000),
            (CakeRtt::Of(Span::from_millis(50)), 2500, 50_000),
            // At least a microsecond each.
            (CakeRtt::Of(Span::from_nanos(1)), 1, 1),
        ] {
            let config = CakeConfig { rtt, ..CakeConfig::default() };
            // An interval is at least two targets.
            let expected = (0, 1514, target, interval.max(2 * target));
            assert_eq!(tins(config.clone()), [expected; 3]);
            assert_eq!(config.memory(), 10_240 * 1514);
        }
        // 1 Mbit/s in 100 ms, four times, is 50,000 bytes.
        assert_eq!(with_bandwidth(mbit(1)).memory(), 4 << 20);
        assert_eq!(with_bandwidth(mbit(10_000)).memory(), 10_240 * 1514);
        assert_eq!(CakeConfig { memlimit: Some(9), ..with_bandwidth(mbit(1)) }.memory(), 9);
    }

    /// The codepoints that the source lists, by its comments on each mode.
    #[test]
    fn codepoints_have_their_tins() {
        let tins = |diffserv: Diffserv, codepoints: &[u8]| {
            let index = diffserv.index();
            codepoints.iter().map(|&dscp| index[usize::from(dscp)]).collect::<Vec<_>>()
        };
        // LE, CS1, DF, AF11, AF43, CS4, CS5, VA, EF, CS6, CS7.
        let all = [1, 8, 0, 10, 38, 32, 40, 44, 46, 48, 56];
        assert_eq!(tins(Diffserv::Diffserv3, &all), [1, 1, 0, 0, 0, 0, 0, 2, 2, 2, 2]);
        assert_eq!(tins(Diffserv::Diffserv4, &all), [1, 1, 0, 0, 2, 3, 3, 3, 3, 3, 3]);
        assert_eq!(tins(Diffserv::Diffserv8, &all), [0, 1, 2, 1, 3, 6, 6, 6, 6, 7, 7]);
        // TOS4, CS2, AF21, CS3, AF31, TOS2.
        let others = [4, 16, 18, 24, 26, 2];
        assert_eq!(tins(Diffserv::Diffserv3, &others), [2, 0, 0, 0, 0, 0]);
        assert_eq!(tins(Diffserv::Diffserv4, &others), [2, 2, 2, 2, 2, 0]);
        assert_eq!(tins(Diffserv::Diffserv8, &others), [4, 5, 4, 3, 3, 1]);
        assert_eq!(tins(Diffserv::Precedence, &[0, 7, 8, 63]), [0, 0, 1, 7]);
        assert_eq!(tins(Diffserv::Besteffort, &all), [0; 11]);
    }

    /// Below its threshold voice goes first. 1000 bytes take 4 ms at the quarter of a Mbyte/s that
    /// is voice's; once it is ahead, best effort is below its own threshold and goes. Of those that
    /// are both ahead the one whose time comes first goes.
    #[test]
    fn voice_goes_first_below_its_threshold() {
        let mut cake = cake(with_bandwidth(mbit(8)));
        let mut drops = Drops::new();
        for id in 0..4 {
            cake.enqueue(Time::ZERO, packet(id, 1000), &mut drops);
        }
        for id in 10..14 {
            cake.enqueue(Time::ZERO, Coded { dscp: EF, ..packet(id, 1000) }, &mut drops);
        }
        let sent: Vec<u32> = (0..8).flat_map(|ms| served(&mut cake, Time::from_millis(ms)).0).collect();
        // At 0 both are on time, and voice is the later tin; then it is to wait until 4, and again
        // until 8. Best effort is due at 1, 2, 3, 4: at 4 both are due again.
        assert_eq!(sent, [10, 0, 1, 2, 11, 3, 12, 13]);
    }

    /// Without a shaper tins have turns of 1024, 64 and 256 bytes.
    #[test]
    fn tins_take_turns_without_a_shaper() {
        let mut cake = cake(CakeConfig::default());
        let mut drops = Drops::new();
        for id in 0..2000 {
            for (tin, dscp) in [0, CS1, EF].into_iter().enumerate() {
                cake.enqueue(Time::ZERO, Coded { dscp, ..packet(tin as u32, 64) }, &mut drops);
            }
            assert!(drops.is_empty(), "{id}");
        }
        let mut shares = [0u32; 3];
        for _ in 0..21 * 50 {
            let entry = cake.dequeue(Time::ZERO, &mut drops).packet().expect("one waits");
            shares[entry.packet.id as usize] += 1;
        }
        // 16 : 1 : 4 of 21, but for the turns that are not over.
        assert!(
            shares.iter().zip([800, 50, 200]).all(|(&share, of): (&u32, u32)| share.abs_diff(of) <= 17),
            "{shares:?}"
        );
    }

    #[test]
    fn washing_comes_after_the_tin() {
        let mut cake = cake(CakeConfig { wash: true, ..CakeConfig::default() });
        let mut drops = Drops::new();
        cake.enqueue(Time::ZERO, Coded { dscp: EF, ..packet(1, 100) }, &mut drops);
        assert_eq!(shown(&cake, "tin"), Variable::Count(2));
        let entry = cake.dequeue(Time::ZERO, &mut drops).packet().expect("it waits");
        assert_eq!(entry.packet.dscp, 0);
    }
}

mod shaper {
    use super::*;

    /// 8 Mbit/s is a microsecond for each byte. Packets of 1500 bytes leave 1.5 ms apart, the first
    /// at once; after a pause there is no burst.
    #[test]
    fn packets_leave_at_the_rate_without_bursts() {
        let mut cake = cake(with_bandwidth(mbit(8)));
        let mut drops = Drops::new();
        let at = Time::from_micros;
        for id in 0..3 {
            cake.enqueue(at(100), packet(id, 1500), &mut drops);
        }
        assert_eq!(served(&mut cake, at(100)), (vec![0], Some(at(1600))));
        assert_eq!(served(&mut cake, at(1599)), (vec![], Some(at(1600))));
        // Asking late is made up for: the third is still due at 3.1 ms.
        assert_eq!(served(&mut cake, at(2000)), (vec![1], Some(at(3100))));
        assert_eq!(served(&mut cake, at(3100)), (vec![2], None));
        // The last one has its time after an arrival before the end, and a pause is forgotten.
        cake.enqueue(at(4000), packet(3, 500), &mut drops);
        assert_eq!(served(&mut cake, at(4000)), (vec![], Some(at(4600))));
        assert_eq!(served(&mut cake, at(4600)), (vec![3], None));
        for id in 4..6 {
            cake.enqueue(at(50_000), packet(id, 500), &mut drops);
        }
        assert_eq!(served(&mut cake, at(50_000)), (vec![4], Some(at(50_500))));
    }

    /// The length on the link counts: 1478 + 10 bytes take 1643 us.
    #[test]
    fn the_overhead_takes_time() {
        let framing = Some(Framing::PppoaVcmux);
        let mut cake = cake(CakeConfig { framing, ..with_bandwidth(mbit(8)) });
        let mut drops = Drops::new();
        for id in 0..2 {
            cake.enqueue(Time::ZERO, packet(id, 1478), &mut drops);
        }
        assert_eq!(served(&mut cake, Time::ZERO), (vec![0], Some(Time::from_micros(1643))));
        let sizes = ["min_network_size", "max_network_size", "min_adj_size", "max_adj_size"];
        assert_eq!(sizes.map(|name| shown(&cake, name)), [1478.0, 1478.0, 1643.0, 1643.0].map(Variable::Bytes));
    }

    /// Dropped packets count at `ingress`: the failsafe lets a packet go after one and a half times
    /// that of the last packet sent, however many were dropped.
    #[test]
    fn dropped_packets_count_at_ingress() {
        for (ingress, next) in [(false, 1000), (true, 1500)] {
            let config = CakeConfig { ingress, memlimit: Some(4 * 1576), ..with_bandwidth(mbit(8)) };
            let mut cake = cake(config);
            let mut drops = Drops::new();
            cake.enqueue(Time::ZERO, packet(0, 1000), &mut drops);
            assert_eq!(served(&mut cake, Time::ZERO).0, [0]);
            for id in 1..7 {
                cake.enqueue(Time::ZERO, packet(id, 1000), &mut drops);
            }
            assert_eq!(drops.iter().map(|drop| drop.packet.id).collect::<Vec<_>>(), [1, 2]);
            // 1 ms for the one sent, 2 ms more for the two that were dropped.
            assert_eq!(served(&mut cake, Time::ZERO), (vec![], Some(Time::from_micros(next))), "{ingress}");
        }
    }

    /// `cake_set_rate`: below 64 bytes/s the time of a byte is that of 64.
    #[test]
    fn the_least_rate_is_64_bytes_per_second() {
        for bits in [1, 8, 512] {
            let config = with_bandwidth(Rate::from_bps(bits));
            let pace = cake(config).shaper.pace;
            assert_eq!(pace.time(64), Span::from_secs(1), "{bits}");
        }
    }
}

mod queues {
    use super::*;

    fn hashes(flow: u32, hosts: [u32; 2]) -> Hashes {
        Hashes { flow, hosts }
    }

    fn tin() -> Tin {
        let mut tin = Tin::new();
        tin.configure((0, 65_535), 1514, [Span::from_millis(5), Span::from_millis(100)]);
        tin
    }

    /// Flows whose hashes name the same queue take the eight of its set, the next one shares the
    /// first choice, and one that is back finds its queue.
    #[test]
    fn eight_flows_of_a_set_have_queues_of_their_own() {
        let (mut tin, mut random) = (tin(), Random::for_component(1, 0, "queues"));
        let mut queue_of = |n: u32| {
            let flow = tin.classify(FlowMode::Flows, hashes(1024 * n + 1029, [0; 2]));
            tin.grew(flow, FlowMode::Flows, &mut random);
            flow
        };
        // 1029 % 1024 = 5: its set is 0 to 7.
        assert_eq!((0..8).map(&mut queue_of).collect::<Vec<_>>(), [5, 6, 7, 0, 1, 2, 3, 4]);
        assert_eq!(queue_of(3), 0);
        assert_eq!(queue_of(8), 5);
        // It has taken the queue over.
        assert_eq!([queue_of(8), queue_of(0)], [5, 5]);
        let stats = &tin.stats;
        assert_eq!((stats.misses, stats.indirect, stats.collisions), (8, 1, 2));
    }

    /// `cake_get_flow_quantum`: 1514 * floor(65535 / 3) / 2^16 = 504.66, rounded by chance to
    /// either side; the host with more flows counts.
    #[test]
    fn turns_are_divided_by_the_flows_of_the_host() {
        let (mut tin, mut random) = (tin(), Random::for_component(1, 0, "queues"));
        let mode = FlowMode::TripleIsolate;
        // Three flows from host 10 to hosts 20, 21 and 22.
        for n in 0..3 {
            let flow = tin.classify(mode, hashes(n, [10, 20 + n]));
            tin.grew(flow, mode, &mut random);
            // Its first turn is over while it waits.
            let mut slab = Slab::new();
            slab.push(&mut tin.flows[flow].queue, Entry { packet: 0, enqueued_at: Time::ZERO });
            tin.flows[flow].deficit = 0;
            tin.next_turn(flow, mode, &mut random);
        }
        assert_eq!((tin.sparse_flows, tin.bulk_flows), (0, 3));
        let mut turns = 0;
        for _ in 0..10_000 {
            tin.flows[0].deficit = 0;
            tin.next_turn(0, mode, &mut random);
            assert!([504, 505].contains(&tin.flows[0].deficit));
            turns += tin.flows[0].deficit;
        }
        // Standard deviation of the mean: 0.005.
        assert!((f64::from(turns) / 10_000.0 - 504.66).abs() < 0.02, "{turns}");
        // Fair among receivers alone they do not share.
        tin.flows[0].deficit = 0;
        tin.next_turn(0, FlowMode::DualDsthost, &mut random);
        assert!([1513, 1514].contains(&tin.flows[0].deficit));
    }

    /// One flow of a host against eight of another: by flows a ninth each, by hosts half, whichever
    /// side the hosts are on. The hosts of the other side have a flow each: were they one host, it
    /// would have nine flows, more than either, and triple isolation would divide by these.
    #[test]
    fn hosts_share_the_link() {
        let share = |flowmode, hosts: fn(u64, u64) -> [u64; 2]| {
            let mut cake = cake(CakeConfig { flowmode, ..CakeConfig::default() });
            let mut drops = Drops::new();
            for n in 0..9 * 1000 {
                let flow = u64::from(n % 9);
                let packet = Coded { flow, hosts: hosts(u64::from(flow == 0), flow), ..packet(n % 9, 1000) };
                cake.enqueue(Time::ZERO, packet, &mut drops);
            }
            let sent = (0..1800).filter_map(|_| cake.dequeue(Time::ZERO, &mut drops).packet());
            let of_one = sent.filter(|entry| entry.packet.id == 0).count();
            assert!(drops.is_empty());
            // Within 1 %.
            (of_one as f64 / 18.0).round()
        };
        let (sending, receiving) = (|host, other| [host, 100 + other], |host, other| [100 + other, host]);
        let modes = [
            (FlowMode::Flows, 11.0, 11.0),
            (FlowMode::TripleIsolate, 50.0, 50.0),
            (FlowMode::DualSrchost, 50.0, 11.0),
            (FlowMode::DualDsthost, 11.0, 50.0),
            (FlowMode::Srchost, 50.0, 11.0),
            (FlowMode::Dsthost, 11.0, 50.0),
            (FlowMode::Hosts, 11.0, 11.0),
        ];
        for (mode, by_sender, by_receiver) in modes {
            assert_eq!([share(mode, sending), share(mode, receiving)], [by_sender, by_receiver], "{mode:?}");
        }
        let one_server = |host, _| [host, 7];
        assert_eq!([FlowMode::Hosts, FlowMode::TripleIsolate].map(|mode| share(mode, one_server)), [50.0, 11.0]);
    }

    /// Sparse flows are served before bulk flows, and are counted as what they are.
    #[test]
    fn sparse_flows_go_first() {
        let mut cake = cake(CakeConfig::default());
        let mut drops = Drops::new();
        for id in 0..10 {
            cake.enqueue(Time::ZERO, packet(id, 1500), &mut drops);
        }
        for id in 0..4 {
            assert_eq!(cake.dequeue(Time::ZERO, &mut drops).packet().map(|entry| entry.packet.id), Some(id));
        }
        assert_eq!([shown(&cake, "sparse_flows"), shown(&cake, "bulk_flows")], [0, 1].map(Variable::Count));
        cake.enqueue(Time::ZERO, Coded { flow: 1, ..packet(20, 100) }, &mut drops);
        assert_eq!([shown(&cake, "sparse_flows"), shown(&cake, "bulk_flows")], [1, 1].map(Variable::Count));
        assert_eq!(served(&mut cake, Time::ZERO).0, [20, 4, 5, 6, 7, 8, 9]);
    }

    /// The packet at the head of the longest queue goes, whatever its tin; packets of 1000 bytes
    /// take 1576 of memory.
    #[test]
    fn the_longest_queue_loses_its_head() {
        let mut cake = cake(CakeConfig { memlimit: Some(5 * 1576), ..CakeConfig::default() });
        let mut drops = Drops::new();
        for (id, flow, dscp) in [(0, 0, 0), (1, 1, EF), (2, 1, EF), (3, 1, EF), (4, 2, 0)] {
            cake.enqueue(Time::from_secs(1), Coded { flow, dscp, ..packet(id, 1000) }, &mut drops);
        }
        assert!(drops.is_empty());
        cake.enqueue(Time::from_secs(1), Coded { flow: 3, ..packet(5, 1000) }, &mut drops);
        assert_eq!(
            drops.iter().map(|drop| (drop.packet.id, drop.reason)).collect::<Vec<_>>(),
            [(1, DropReason::Memory)]
        );
        // BLUE is up by a step of 1/256 in a flow that does not respond.
        assert_eq!(cake.probe().probability, Some(1.0 / 256.0));
        assert_eq!(shown(&cake, "unresponsive_flows"), Variable::Count(1));
        assert_eq!(shown(&cake, "memory_used"), Variable::Bytes(6.0 * 1576.0));
        assert_eq!(shown(&cake, "tin"), Variable::Count(2));
    }

    /// A new heap has the longest of all queues at its top, and queues that grow rise in it.
    #[test]
    fn the_heap_finds_the_longest() {
        let mut longest = Longest::new();
        let mut random = Random::for_component(1, 0, "heap");
        let bytes: Vec<u32> = (0..8192).map(|_| random.below(1_000_000) as u32).collect();
        bytes.iter().enumerate().for_each(|(id, &bytes)| longest.add(id, bytes));
        let expected = bytes.iter().max().map(|&most| u64::from(most));
        let top = longest.top();
        assert_eq!(Some(longest.backlog(top)), expected);
        longest.add(4711, 1_000_000);
        assert_eq!(longest.top(), 4711);
        assert_eq!(of_id(id(7, 1023)), (7, 1023));
    }

    /// `cobalt_vars_init` leaves the reciprocal root at 0: of a queue that never signalled, the
    /// second head above the target is dropped, and later episodes begin an interval after they
    /// were noticed. The flow decays until nothing is left of it.
    #[test]
    fn the_first_signal_comes_at_once() {
        let mut cake = cake(CakeConfig::default());
        let mut drops = Drops::new();
        for id in 0..5 {
            cake.enqueue(Time::ZERO, packet(id, 1000), &mut drops);
        }
        let dequeue = |cake: &mut Cake<Coded>, ms, drops: &mut Drops<Coded>| {
            cake.dequeue(Time::from_millis(ms), drops).packet().map(|entry| entry.packet.id)
        };
        assert_eq!(dequeue(&mut cake, 6, &mut drops), Some(0));
        assert_eq!(dequeue(&mut cake, 7, &mut drops), Some(2));
        assert_eq!(
            drops.iter().map(|drop| (drop.packet.id, drop.reason)).collect::<Vec<_>>(),
            [(1, DropReason::Delay)]
        );
        // The next one is due 100 / sqrt(2) ms after the first.
        assert_eq!(dequeue(&mut cake, 70, &mut drops), Some(3));
        assert_eq!((dequeue(&mut cake, 71, &mut drops), drops.len()), (Some(4), 1));
        assert_eq!(dequeue(&mut cake, 72, &mut drops), None);
        // Another flow that has turns gives it its own, each of which takes one signal back when it
        // is due: the last one at 277 ms, and it is forgotten.
        let Variable::Count(first) = shown(&cake, "flow") else { panic!("a number") };
        for ms in [150, 180, 280, 400] {
            for id in 10..15 {
                cake.enqueue(Time::from_millis(ms), Coded { flow: 9, ..packet(id, 1500) }, &mut drops);
            }
            assert_eq!(served(&mut cake, Time::from_millis(ms)).0, [10, 11, 12, 13, 14]);
        }
        assert!(cake.tins[0].flows[first as usize].cobalt.is_at_rest(Time::from_millis(400)));
        assert_eq!((cake.tins[0].decaying_flows, cake.tins[0].bulk_flows), (0, 1));
    }
}

mod headers {
    use super::*;
    use crate::{AckHeader, Headers};

    fn offer(cake: &mut Cake<Coded>, packet: Coded, number: u32, drops: &mut Drops<Coded>) {
        let ack = AckHeader { number, ecn: [false; 2], says_more: false, timestamps: None, sack: &[] };
        cake.look(Headers { hosts: [1, 2], ack: Some(ack) });
        cake.enqueue(Time::ZERO, packet, drops);
    }

    /// The filter leaves two of four ACKs, or the last. The ACK that goes is in no books any more,
    /// and those of another flow are left alone although all share a queue.
    #[test]
    fn acks_are_filtered_by_connection() {
        let flowmode = FlowMode::Flowblind;
        for (ack_filter, stay) in [
            (None, &[0, 1, 2, 3, 4, 5][..]),
            (Some(AckFilter::Enabled), &[2, 3, 4, 5]),
            (Some(AckFilter::Aggressive), &[3, 4, 5]),
        ] {
            let mut cake = cake(CakeConfig { ack_filter, flowmode, ..CakeConfig::default() });
            assert_eq!(cake.looks(), ack_filter.is_some());
            let mut drops = Drops::new();
            for id in 0..4 {
                offer(&mut cake, Coded { flow: 1, ..packet(id, 66) }, id, &mut drops);
            }
            offer(&mut cake, Coded { flow: 2, ..packet(4, 66) }, 4, &mut drops);
            // One that shows nothing, as of an application over UDP.
            cake.enqueue(Time::ZERO, Coded { flow: 1, ..packet(5, 66) }, &mut drops);
            assert!(drops.iter().all(|drop| drop.reason == DropReason::Ack));
            assert!(cake.counters().balance(cake.backlog()));
            assert_eq!(shown(&cake, "ack_drops"), Variable::Count(drops.len() as u64));
            assert_eq!(shown(&cake, "memory"), Variable::Bytes(f64::from(stay.len() as u32) * 642.0));
            assert_eq!(shown(&cake, "flow_backlog"), Variable::Bytes(f64::from(stay.len() as u32) * 66.0));
            assert_eq!(served(&mut cake, Time::ZERO).0, stay, "{ack_filter:?}");
        }
    }

    /// Shown hosts count more than those of the packet, and only for the packet that comes next.
    #[test]
    fn hosts_are_those_that_were_shown() {
        let mut cake = cake(CakeConfig { flowmode: FlowMode::Srchost, ..CakeConfig::default() });
        let mut drops = Drops::new();
        let mut flow_of = |hosts: Option<[u64; 2]>, own: u64| {
            if let Some(hosts) = hosts {
                cake.look(Headers { hosts, ack: None });
            }
            cake.enqueue(Time::ZERO, Coded { hosts: [own, 0], ..packet(0, 100) }, &mut drops);
            shown(&cake, "flow")
        };
        let first = flow_of(Some([1, 2]), 3);
        assert_eq!(flow_of(Some([1, 4]), 5), first);
        assert_eq!(flow_of(None, 1), first);
        assert_ne!(flow_of(None, 3), first);
    }
}

/// Tins that are no more lose their packets; the shaper and the limit change at once.
#[test]
fn parameters_change_at_run_time() {
    let mut cake = cake(CakeConfig::default());
    let mut drops = Drops::new();
    for (id, dscp) in [(0, 0), (1, CS1), (2, EF), (3, 0)] {
        cake.enqueue(Time::ZERO, Coded { dscp, ..packet(id, 1000) }, &mut drops);
    }
    let one = CakeConfig { diffserv: Diffserv::Besteffort, ..with_bandwidth(mbit(8)) };
    cake.change(Time::ZERO, &one, &mut drops).expect("parameters of its own");
    let purged: Vec<_> = drops.drain(..).map(|drop| (drop.packet.id, drop.reason)).collect();
    assert_eq!(purged, [(1, DropReason::Purge), (2, DropReason::Purge)]);
    assert!(cake.counters().balance(cake.backlog()));
    assert_eq!(served(&mut cake, Time::ZERO), (vec![0], Some(Time::from_millis(1))));
    let slower = CakeConfig { overhead: Some(100.0), ..one };
    cake.change(Time::ZERO, &slower, &mut drops).expect("parameters of its own");
    cake.enqueue(Time::ZERO, packet(4, 1000), &mut drops);
    assert_eq!(served(&mut cake, Time::from_millis(1)), (vec![3], Some(Time::from_micros(2100))));
    let eight = CakeConfig { diffserv: Diffserv::Diffserv8, ..slower.clone() };
    cake.change(Time::ZERO, &eight, &mut drops).expect("parameters of its own");
    cake.enqueue(Time::ZERO, Coded { dscp: EF, ..packet(5, 1000) }, &mut drops);
    assert_eq!(shown(&cake, "tin"), Variable::Count(6));
    let other = CakeConfig { hash_seed: Some(1), ..slower.clone() };
    assert_eq!(cake.change(Time::ZERO, &other, &mut drops), Err(ChangeError::Fixed("hash_seed")));
    let wrong = CakeConfig { overhead: Some(0.5), ..slower };
    assert!(matches!(cake.change(Time::ZERO, &wrong, &mut drops), Err(ChangeError::Invalid(_))));
}
