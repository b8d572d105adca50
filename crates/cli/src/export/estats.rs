//! The instruments of a connection, under their names in RFC 4898.
//!
//! # Source
//! RFC 4898, TCP-ESTATS-MIB, whose names Web10G (Linux) and EStats (Windows) have; `tcp.csv`
//! ([`ackclock_trace::tcp`]).
//!
//! # Departures
//! - `CongSignals` counts the beginnings of `CWR`, `Recovery` and `Loss`, `FastRetran` those of
//!   `Recovery` and `Timeouts` those of `Loss`.
//! - A line per ACK in place of polls; `SampleRTT` is that of the ACK or the last one before.
//! - `SmoothedRTT`, `SampleRTT` and `CurRTO` have fractions of a millisecond.
//! - `SegsRetrans` and `OctetsRetrans` count a retransmission once its fate is known, somewhat
//!   after it was sent (docs/records.md).

use std::io::Write;

use anyhow::bail;

use super::run::Run;
use super::sheet;

const COLUMNS: &str = "Time,ThruOctetsAcked,CurCwnd,CurSsthresh,PipeSize,SampleRTT,SmoothedRTT,CurRTO,CountRTT,\
                       SegsRetrans,OctetsRetrans,RetranThresh,FastRetran,CongSignals,Timeouts";

/// The sum of what has happened.
#[derive(Debug, Default)]
struct EventCounts {
    rtts: u64,
    segments_again: u64,
    bytes_again: u64,
    recoveries: u64,
    signals: u64,
    timeouts: u64,
}

/// Writes a line for each ACK of a flow.
pub(super) fn write(run: &Run, flow: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    run.knows_flow(flow)?;
    let Some(mut rows) = run.sheet("tcp.csv")? else {
        return sheet::missing("tcp = true", &run.dir);
    };
    let [time, id, event, acked, cwnd, ssthresh, pipe, rtt, srtt, rto, threshold, state, len, subflow] =
        rows.columns([
            "time_s",
            "flow",
            "event",
            "ack_bytes",
            "cwnd_bytes",
            "ssthresh_bytes",
            "pipe_bytes",
            "rtt_ms",
            "srtt_ms",
            "rto_ms",
            "reordering",
            "ca_state",
            "len_bytes",
            "subflow",
        ])?;
    let (mut counts, mut last_rtt, mut before) = (EventCounts::default(), String::new(), String::new());
    writeln!(out, "{COLUMNS}")?;
    while rows.next()? {
        if rows.text(id) != flow {
            continue;
        }
        if !rows.text(subflow).is_empty() {
            bail!("--flow {flow}: it is a flow over Multipath TCP, which has no variables of one connection");
        }
        match rows.text(event) {
            "ack" => {}
            "retransmission" => {
                counts.segments_again += 1;
                counts.bytes_again += rows.required(len, 0)?;
                continue;
            }
            _ => continue,
        }
        if !rows.text(rtt).is_empty() {
            counts.rtts += 1;
            rows.text(rtt).clone_into(&mut last_rtt);
        }
        counts.enter(&before, rows.text(state));
        rows.text(state).clone_into(&mut before);
        write!(out, "{},{},{},", rows.text(time), rows.text(acked), rows.text(cwnd))?;
        write!(out, "{},{},{last_rtt},", rows.text(ssthresh), rows.text(pipe))?;
        write!(out, "{},{},{},", rows.text(srtt), rows.text(rto), counts.rtts)?;
        write!(out, "{},{},{},", counts.segments_again, counts.bytes_again, rows.text(threshold))?;
        writeln!(out, "{},{},{}", counts.recoveries, counts.signals, counts.timeouts)?;
    }
    Ok(())
}

impl EventCounts {
    /// The congestion state changes.
    fn enter(&mut self, before: &str, state: &str) {
        if before == state {
            return;
        }
        self.recoveries += u64::from(state == "Recovery");
        self.timeouts += u64::from(state == "Loss");
        self.signals += u64::from(matches!(state, "CWR" | "Recovery" | "Loss"));
    }
}
