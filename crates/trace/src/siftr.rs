//! `siftr.log`: a line for every segment that a host sends or receives, as FreeBSD's SIFTR writes
//! it.
//!
//! # Source
//! FreeBSD 9.3 `sys/netinet/siftr.c` (version 1.2.4 of the format), `siftr(4)`,
//! `sys/netinet/tcp_var.h` and `tcp_fsm.h`.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

use crate::rows::{CsvRows, decimals, whole};

/// The value of `hz`: ticks of 1 ms.
const HZ: u64 = 1000;
/// `TCP_RTT_SCALE`: parts of a tick in which the smoothed RTT is given.
const RTT_SCALE: u64 = 32;
/// A threshold that is not reached: `TCP_MAXWIN << TCP_MAX_WINSHIFT`.
const MAX_WINDOW: u64 = 65_535 << 14;
/// The network of the hosts, 10.0.0.0; the first is 10.0.0.1.
const NETWORK: u32 = 10 << 24;

/// Bits of `t_flags` (`TF_*`).
#[allow(missing_docs, reason = "the flags of tcp_var.h by their names")]
pub mod flags {
    pub const ACKNOW: u32 = 0x1;
    pub const DELACK: u32 = 0x2;
    pub const NODELAY: u32 = 0x4;
    pub const SENTFIN: u32 = 0x10;
    pub const REQ_SCALE: u32 = 0x20;
    pub const RCVD_SCALE: u32 = 0x40;
    pub const REQ_TSTMP: u32 = 0x80;
    pub const RCVD_TSTMP: u32 = 0x100;
    pub const SACK_PERMIT: u32 = 0x200;
    pub const FASTRECOVERY: u32 = 0x10_0000;
    pub const ECN_PERMIT: u32 = 0x400_0000;
    pub const ECN_SND_CWR: u32 = 0x800_0000;
    pub const ECN_SND_ECE: u32 = 0x1000_0000;
    pub const CONGRECOVERY: u32 = 0x2000_0000;
}

/// A segment at a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiftrRecord {
    /// Time: before an incoming segment is processed, after an outgoing one is sent.
    pub at: Time,
    /// True for an incoming segment.
    pub inbound: bool,
    /// Number of the host, from 0.
    pub host: u32,
    /// Number of its peer.
    pub peer: u32,
    /// The host's port.
    pub port: u16,
    /// The peer's port.
    pub peer_port: u16,
    /// The connection, if there is one that SIFTR would log.
    pub connection: Result<SiftrConnection, Skipped>,
}

/// The reason why there is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The connection has no socket yet: it is in the SYN cache (`inpcb`).
    NoSocket,
    /// The connection has no control block any more: it is in TIME-WAIT (`tcpcb`).
    NoControlBlock,
}

/// The control block of a connection, in the order of the log's fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiftrConnection {
    /// Slow start threshold, bytes; `None` before there is one.
    pub ssthresh: Option<u64>,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// The peer's window, bytes.
    pub peer_window: u64,
    /// The window offered, bytes.
    pub window: u64,
    /// Window scale of the peer.
    pub peer_shift: u8,
    /// The host's window scale.
    pub shift: u8,
    /// `TCPS_*` of `tcp_fsm.h`.
    pub state: u8,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// SACK is in use.
    pub sack: bool,
    /// [`flags`].
    pub flags: u32,
    /// Retransmission timeout.
    pub rto: Span,
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Bytes in it.
    pub queued: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Bytes in it that are in order.
    pub unread: u64,
    /// Bytes sent and not acknowledged, SACKed ones included.
    pub outstanding: u64,
    /// Segments in the reassembly queue.
    pub reassembly: u64,
}

/// The destination of a run's records, in order of time.
pub trait SiftrSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &SiftrRecord) -> ControlFlow<()>;
}

/// Writes records as SIFTR does. Time 0 is the beginning of the run.
///
/// - A line when logging begins and one when it ends: pairs of key and value with tabs between.
/// - For every segment 26 fields with commas between: direction (`i`, `o`); hash, always 0; time in
///   s; own address and port; foreign address and port; slow start threshold; congestion window; 0
///   (once a bandwidth-controlled window); the peer's window; the window offered; the two window
///   scales, the peer's first; state; MSS; smoothed RTT in 1/32 ms; SACK (1, 0); flags;
///   retransmission timeout in ms; size of the send buffer, bytes in it; size of the receive
///   buffer, bytes in it; bytes in flight; segments in the reassembly queue. Sizes are in bytes.
///
/// Every host has an address of its own: the sender of the first flow is 10.0.0.1, its receiver
/// 10.0.0.2, and so on.
///
/// # Departures
/// - One log has all hosts; a kernel's has the connections of one.
/// - `sysname` is `ackclock`.
/// - The reassembly queue keeps bytes, not segments: what is counted are as many of the peer's
///   largest size as they come to.
#[derive(Debug)]
pub struct SiftrLog<W> {
    rows: CsvRows<W>,
    inbound: SegmentTally,
    outbound: SegmentTally,
    /// The ports of each host that have a line.
    logged: Vec<Vec<u16>>,
    /// The same with peer and ports, in the order of their first lines.
    flows: Vec<(u32, u16, u32, u16)>,
}

/// Segments of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentTally {
    packets: u64,
    no_socket: u64,
    no_control_block: u64,
}

impl<W: Write> SiftrLog<W> {
    /// A log that has just been enabled.
    pub fn new(out: W) -> SiftrLog<W> {
        let version = |part: &str| part.parse::<u32>().unwrap_or(0);
        let system = 10_000 * version(env!("CARGO_PKG_VERSION_MAJOR"))
            + 100 * version(env!("CARGO_PKG_VERSION_MINOR"))
            + version(env!("CARGO_PKG_VERSION_PATCH"));
        let enabled = format!(
            "enable_time_secs=0\tenable_time_usecs=000000\tsiftrver=1.2.4\thz={HZ}\ttcp_rtt_scale={RTT_SCALE}\t\
             sysname=ackclock\tsysver={system}\tipmode=4"
        );
        let (inbound, outbound) = Default::default();
        SiftrLog { rows: CsvRows::new(out, &enabled), inbound, outbound, logged: Vec::new(), flows: Vec::new() }
    }

    /// Disables it at the end of the run, writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(mut self, end: Time) -> io::Result<W> {
        let SiftrLog { rows, inbound, outbound, flows, .. } = &mut self;
        // What it breaks off is told below.
        let _ = rows.add(|out| {
            let micros = end.as_nanos() / 1000;
            write!(out, "disable_time_secs={}\tdisable_time_usecs={:06}", micros / 1_000_000, micros % 1_000_000)?;
            write!(out, "\tnum_inbound_tcp_pkts={}\tnum_outbound_tcp_pkts={}", inbound.packets, outbound.packets)?;
            write!(out, "\ttotal_tcp_pkts={}", inbound.packets + outbound.packets)?;
            let mut total = 0;
            for (why, of) in [
                ("malloc", (|_| 0) as fn(&SegmentTally) -> u64),
                ("mtx", |_| 0),
                ("tcpcb", |tally| tally.no_control_block),
                ("inpcb", |tally| tally.no_socket),
            ] {
                for (way, tally) in [("in", &*inbound), ("out", &*outbound)] {
                    write!(out, "\tnum_{way}bound_skipped_pkts_{why}={}", of(tally))?;
                    total += of(tally);
                }
            }
            write!(out, "\ttotal_skipped_tcp_pkts={total}\tflow_list=")?;
            for &(host, port, peer, peer_port) in flows.iter() {
                address(out, host);
                out.push(';');
                whole(out, port.into());
                out.push('-');
                address(out, peer);
                out.push(';');
                whole(out, peer_port.into());
                out.push(',');
            }
            out.push('\n');
            Ok(())
        });
        self.rows.finish()
    }
}

impl<W: Write + fmt::Debug> SiftrSink for SiftrLog<W> {
    fn record(&mut self, record: &SiftrRecord) -> ControlFlow<()> {
        let tally = if record.inbound { &mut self.inbound } else { &mut self.outbound };
        tally.packets += 1;
        let connection = match &record.connection {
            Ok(connection) => connection,
            Err(Skipped::NoSocket) => {
                tally.no_socket += 1;
                return ControlFlow::Continue(());
            }
            Err(Skipped::NoControlBlock) => {
                tally.no_control_block += 1;
                return ControlFlow::Continue(());
            }
        };
        let host = record.host as usize;
        if self.logged.len() <= host {
            self.logged.resize(host + 1, Vec::new());
        }
        if !self.logged[host].contains(&record.port) {
            self.logged[host].push(record.port);
            self.flows.push((record.host, record.port, record.peer, record.peer_port));
        }
        self.rows.add(|out| {
            line(out, record, connection);
            Ok(())
        })
    }
}

fn line(out: &mut String, record: &SiftrRecord, of: &SiftrConnection) {
    out.push_str(if record.inbound { "i,0x00000000," } else { "o,0x00000000," });
    let micros = record.at.as_nanos() / 1000;
    whole(out, micros / 1_000_000);
    decimals(out, micros % 1_000_000, 6);
    for (host, port) in [(record.host, record.port), (record.peer, record.peer_port)] {
        out.push(',');
        address(out, host);
        out.push(',');
        whole(out, port.into());
    }
    let ticks = |span: Span| span.as_nanos() / (1_000_000_000 / HZ);
    let srtt = of.srtt.map_or(0, |srtt| {
        u64::try_from(u128::from(srtt.as_nanos()) * u128::from(RTT_SCALE * HZ) / 1_000_000_000).unwrap_or(u64::MAX)
    });
    for number in [
        of.ssthresh.unwrap_or(MAX_WINDOW),
        of.cwnd,
        0,
        of.peer_window,
        of.window,
        of.peer_shift.into(),
        of.shift.into(),
        of.state.into(),
        of.mss.into(),
        srtt,
        of.sack.into(),
        of.flags.into(),
        ticks(of.rto),
        of.send_buffer,
        of.queued,
        of.receive_buffer,
        of.unread,
        of.outstanding,
        of.reassembly,
    ] {
        out.push(',');
        whole(out, number);
    }
    out.push('\n');
}

/// The address that the host of this number has in records: the sender of the first flow is
/// 10.0.0.1, its receiver 10.0.0.2, and so on.
pub fn host_address(host: u32) -> [u8; 4] {
    NETWORK.wrapping_add(host.wrapping_add(1)).to_be_bytes()
}

fn address(out: &mut String, host: u32) {
    for (index, octet) in host_address(host).into_iter().enumerate() {
        if index > 0 {
            out.push('.');
        }
        whole(out, octet.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_fields_of_siftr_in_their_order() {
        let connection = SiftrConnection {
            ssthresh: None,
            cwnd: 172_312,
            peer_window: 66_560,
            window: 66_608,
            peer_shift: 8,
            shift: 1,
            state: 4,
            mss: 1448,
            // 936 / 32 = 29.25 ticks of 1 ms.
            srtt: Some(Span::from_nanos(29_250_000)),
            sack: true,
            // The flags of siftr(4)'s example.
            flags: flags::SACK_PERMIT
                | flags::RCVD_TSTMP
                | flags::REQ_TSTMP
                | flags::RCVD_SCALE
                | flags::REQ_SCALE
                | flags::NODELAY,
            rto: Span::from_millis(255),
            send_buffer: 33_304,
            queued: 208,
            receive_buffer: 66_608,
            unread: 0,
            outstanding: 208,
            reassembly: 0,
        };
        let segment = |inbound, connection| SiftrRecord {
            at: Time::from_nanos(1_463_551_999),
            inbound,
            host: 0,
            peer: 256,
            port: 22,
            peer_port: 55_931,
            connection,
        };
        let mut log = SiftrLog::new(Vec::new());
        for record in [
            segment(true, Err(Skipped::NoSocket)),
            segment(false, Ok(connection)),
            segment(true, Ok(SiftrConnection { ssthresh: Some(5792), ..connection })),
            segment(false, Err(Skipped::NoControlBlock)),
        ] {
            assert!(log.record(&record).is_continue());
        }
        let text = String::from_utf8(log.finish(Time::from_millis(2500)).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("enable_time_secs=0\tenable_time_usecs=000000\tsiftrver=1.2.4\thz=1000\t"));
        assert_eq!(
            lines[1],
            "o,0x00000000,1.463551,10.0.0.1,22,10.0.1.1,55931,1073725440,172312,0,66560,66608,8,1,4,1448,936,1,996,255,\
             33304,208,66608,0,208,0"
        );
        assert!(lines[2].starts_with("i,") && lines[2].contains(",55931,5792,172312,"), "{}", lines[2]);
        assert_eq!(
            lines[3],
            "disable_time_secs=2\tdisable_time_usecs=500000\tnum_inbound_tcp_pkts=2\tnum_outbound_tcp_pkts=2\t\
             total_tcp_pkts=4\tnum_inbound_skipped_pkts_malloc=0\tnum_outbound_skipped_pkts_malloc=0\t\
             num_inbound_skipped_pkts_mtx=0\tnum_outbound_skipped_pkts_mtx=0\tnum_inbound_skipped_pkts_tcpcb=0\t\
             num_outbound_skipped_pkts_tcpcb=1\tnum_inbound_skipped_pkts_inpcb=1\tnum_outbound_skipped_pkts_inpcb=0\t\
             total_skipped_tcp_pkts=2\tflow_list=10.0.0.1;22-10.0.1.1;55931,"
        );
    }
}
