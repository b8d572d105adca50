//! Logs of hosts: segments and measurements. Rows are never late, and so already in order of time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ackclock_cc::{DelayState, EnhancedRtt};
use ackclock_mptcp::{Connection, Subflow};
use ackclock_packet::Segment;
use ackclock_tcp::{CaState, ControlBlock, Endpoint, State};
use ackclock_trace::{
    ErttRecord, ErttSink, GradientRecord, SiftrConnection, SiftrRecord, SiftrSink, Skipped, siftr_flags as flags,
};
use ackclock_units::Time;

use crate::build::{RECEIVER_PORT, SENDER_PORT};
use crate::flow::subflow_number;
use crate::host::Host;
use crate::index::{FlowId, HostId, IndexVec};
use crate::record::SenderId;

/// Rows between two writes.
const BATCH: usize = 64;

/// Log rows of hosts that have not been written yet.
#[derive(Debug)]
pub(crate) struct HostLog {
    segments: Option<Vec<SiftrRecord>>,
    measurements: Option<Measurements>,
}

#[derive(Debug)]
struct Measurements {
    rows: Vec<ErttMeasurement>,
    /// Rows of each flow so far.
    seen: IndexVec<FlowId, u64>,
    /// The same of subflows, by their flow and their port.
    of_subflows: BTreeMap<(FlowId, u16), u64>,
}

/// A sender's measurement, and its controller's state afterwards.
#[derive(Clone, Copy, Debug)]
struct ErttMeasurement {
    at: Time,
    source: SenderId,
    rtt: EnhancedRtt,
    cwnd: u64,
    inferred: Option<DelayState>,
}

impl ErttMeasurement {
    fn new(at: Time, source: SenderId, rtt: EnhancedRtt, sender: &Endpoint) -> ErttMeasurement {
        let inferred = sender.sender().congestion_control().inspect().delay;
        ErttMeasurement { at, source, rtt, cwnd: sender.sender().cwnd(), inferred }
    }

    fn record<'a>(&self, flow: &'a str) -> ErttRecord<'a> {
        let ErttMeasurement { at, source, rtt: of, cwnd, inferred } = *self;
        let gradients = |inferred: DelayState| GradientRecord {
            min_ms: inferred.gradient_min_ms,
            max_ms: inferred.gradient_max_ms,
            queue: inferred.queue.name(),
            shadow: inferred.shadow,
        };
        ErttRecord {
            at,
            flow,
            subflow: source.subflow(),
            number: of.measurements,
            marked: of.marked,
            bytes_in_marked: of.bytes_in_marked,
            rtt: of.rtt,
            min: of.min,
            max: of.max,
            delayed_acks: of.delayed_acks,
            cwnd,
            gradients: inferred.map(gradients),
        }
    }
}

impl HostLog {
    /// A log of segments, of measurements of this many flows, or of both; `None` for neither.
    pub(crate) fn new(segments: bool, measurements: Option<usize>) -> Option<Box<HostLog>> {
        (segments || measurements.is_some()).then(|| {
            let measurements = measurements.map(|flows| Measurements {
                rows: Vec::new(),
                seen: std::iter::repeat_n(0, flows).collect(),
                of_subflows: BTreeMap::new(),
            });
            Box::new(HostLog { segments: segments.then(Vec::new), measurements })
        })
    }

    /// A segment arrives at a host over a path, which has not seen it, or has just left it.
    pub(crate) fn segment(
        &mut self,
        at: Time,
        (host, state): (HostId, &Host),
        (path, segment): (usize, &Segment),
        inbound: bool,
    ) {
        let Some(rows) = &mut self.segments else { return };
        let ((port, peer_port), connection) = match state {
            Host::Endpoint(endpoint) if host.is_sender() => ((SENDER_PORT, RECEIVER_PORT), connection(endpoint)),
            Host::Endpoint(endpoint) => ((RECEIVER_PORT, SENDER_PORT), connection(endpoint)),
            Host::Mptcp(all) if inbound => {
                let subflow = all.subflow_of(path, segment);
                ((segment.destination_port, segment.source_port), subflow_connection(subflow))
            }
            Host::Mptcp(all) => {
                ((segment.source_port, segment.destination_port), subflow_connection(all.last_subflow()))
            }
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => return,
        };
        let (host, peer) = (host.number(), host.peer().number());
        rows.push(SiftrRecord { at, inbound, host, peer, port, peer_port, connection });
    }

    /// The sender of a flow has taken an ACK in.
    pub(crate) fn acknowledged(&mut self, at: Time, flow: FlowId, sender: &Endpoint) {
        let Some(Measurements { rows, seen, .. }) = &mut self.measurements else { return };
        let Some(measured) = sender.sender().congestion_control().inspect().enhanced_rtt else { return };
        while seen.get(flow).is_none() {
            seen.push(0);
        }
        if measured.measurements > 0 && measured.measurements != seen[flow] {
            seen[flow] = measured.measurements;
            rows.push(ErttMeasurement::new(at, SenderId::of(flow), measured, sender));
        }
    }

    /// The sender of a flow of several subflows has taken an ACK in that came over a path.
    pub(crate) fn acknowledged_over(&mut self, at: Time, flow: FlowId, path: usize, sender: &Connection) {
        let Some(Measurements { rows, of_subflows, .. }) = &mut self.measurements else { return };
        let Some(subflow) = sender.subflows().iter().find(|subflow| subflow.path() == path) else { return };
        let Some(measured) = subflow.endpoint().sender().congestion_control().inspect().enhanced_rtt else { return };
        let seen = of_subflows.entry((flow, subflow.endpoint().ports().local)).or_default();
        if *seen != measured.measurements {
            *seen = measured.measurements;
            let source = SenderId { flow, subflow: subflow_number(path) };
            rows.push(ErttMeasurement::new(at, source, measured, subflow.endpoint()));
        }
    }

    /// Returns true if the buffered rows should be written.
    pub(crate) fn is_full(&self) -> bool {
        let measurements = self.measurements.as_ref().map_or(0, |measurements| measurements.rows.len());
        self.segments.as_ref().map_or(0, Vec::len).max(measurements) >= BATCH
    }

    /// Hands all rows on.
    pub(crate) fn hand_on<'a>(
        &mut self,
        flow: impl Fn(FlowId) -> &'a str,
        siftr: Option<&mut (dyn SiftrSink + '_)>,
        ertt: Option<&mut (dyn ErttSink + '_)>,
    ) -> ControlFlow<()> {
        if let (Some(rows), Some(sink)) = (&mut self.segments, siftr) {
            rows.drain(..).try_for_each(|row| sink.record(&row))?;
        }
        if let (Some(Measurements { rows, .. }), Some(sink)) = (&mut self.measurements, ertt) {
            rows.drain(..).try_for_each(|row| sink.record(&row.record(flow(row.source.flow))))?;
        }
        ControlFlow::Continue(())
    }
}

/// The fields that SIFTR reads of a connection. One that is being accepted is in the SYN cache, and
/// has no socket before the handshake is over.
fn connection(endpoint: &Endpoint) -> Result<SiftrConnection, Skipped> {
    let block = ControlBlock::of(endpoint);
    // TCPS_* of tcp_fsm.h.
    let state = match block.state {
        State::Closed | State::Listen | State::SynReceived => return Err(Skipped::NoSocket),
        State::TimeWait => return Err(Skipped::NoControlBlock),
        State::SynSent => 2,
        State::Established => 4,
        State::CloseWait => 5,
        State::FinWait1 => 6,
        State::Closing => 7,
        State::LastAck => 8,
        State::FinWait2 => 9,
    };
    Ok(SiftrConnection {
        ssthresh: Some(block.ssthresh).filter(|&ssthresh| ssthresh < u64::MAX),
        cwnd: block.cwnd,
        peer_window: block.peer_window,
        window: block.window,
        peer_shift: block.peer_shift,
        shift: block.shift,
        state,
        mss: block.mss,
        srtt: block.srtt,
        sack: block.sack,
        flags: flags_of(&block),
        rto: block.rto,
        send_buffer: block.send_buffer,
        queued: block.queued,
        receive_buffer: block.receive_buffer,
        unread: block.unread,
        outstanding: block.outstanding,
        reassembly: block.out_of_order,
    })
}

/// The same of a subflow; a segment of none has no socket.
fn subflow_connection(subflow: Option<&Subflow>) -> Result<SiftrConnection, Skipped> {
    subflow.map_or(Err(Skipped::NoSocket), |subflow| connection(subflow.endpoint()))
}

fn flags_of(block: &ControlBlock) -> u32 {
    [
        (block.ack_now, flags::ACKNOW),
        (block.ack_delayed, flags::DELACK),
        (!block.nagle, flags::NODELAY),
        (block.fin_sent, flags::SENTFIN),
        (block.scaling, flags::REQ_SCALE | flags::RCVD_SCALE),
        (block.timestamps, flags::REQ_TSTMP | flags::RCVD_TSTMP),
        (block.sack, flags::SACK_PERMIT),
        (block.ecn, flags::ECN_PERMIT),
        (block.cwr, flags::ECN_SND_CWR),
        (block.echoing, flags::ECN_SND_ECE),
        // ENTER_RECOVERY sets both.
        (block.ca_state == CaState::Recovery, flags::FASTRECOVERY | flags::CONGRECOVERY),
        (block.ca_state == CaState::Cwr, flags::CONGRECOVERY),
    ]
    .into_iter()
    .filter(|(set, _)| *set)
    .fold(0, |all, (_, flag)| all | flag)
}
