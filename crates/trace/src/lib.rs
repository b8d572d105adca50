//! Records, measures and summaries of a run.
//!
//! [`Summary`] is the result of every run. [`QueueCsv`] writes every decision of a queue
//! ([`QueueRecord`]) during a run, [`TcpCsv`] every ACK of a flow and the truth about its losses
//! and retransmissions ([`TcpRecord`]), [`SiftrLog`] every segment of a host ([`SiftrRecord`]),
//! [`ErttCsv`] what delay-based controllers measure ([`ErttRecord`]), [`FlowCsv`] the flows of
//! workloads ([`FlowRecord`]), [`QlogSeq`] what a sender's loss recovery does ([`QlogRecord`]),
//! [`SeriesCsv`] flows and links over time ([`SeriesRecord`]),
//! [`DisplacementCsv`] how far each packet is from its place ([`DisplacementRecord`]),
//! [`ReorderingCsv`] what a [`ReorderMeter`] measures ([`ReorderingRecord`]), [`PcapNg`] packets.
//! [`statistics`] says what repetitions come to, [`metrics`] how numbers of a summary are called.

mod capture;
mod ertt;
mod flows;
mod histogram;
pub mod metrics;
mod qlog;
mod queue;
mod regular;
mod reordering;
mod rows;
mod series;
mod siftr;
pub mod statistics;
mod summary;
mod tcp;

pub use capture::{CaptureRecord, CaptureSink, PcapNg};
pub use ertt::{ERTT_COLUMNS, ErttCsv, ErttRecord, ErttSink, GradientRecord};
pub use flows::{FLOW_COLUMNS, FlowCsv, FlowRecord, FlowSink, slowdown_millionths};
pub use histogram::{Histogram, SignedHistogram};
pub use qlog::{QlogRecord, QlogSeq, QlogSink};
pub use queue::{QUEUE_COLUMNS, QueueAction, QueueCsv, QueueRecord, QueueSink};
pub use regular::{open_of_size, open_regular};
pub use reordering::{
    DISPLACEMENT_COLUMNS, DISPLACEMENT_THRESHOLD, DisplacementCsv, DisplacementMeter, DisplacementRecord,
    DisplacementSink, MAX_BINS, PacketDisplacement, REORDERING_COLUMNS, ReorderInterval, ReorderMeter, ReorderingCsv,
    ReorderingRecord, ReorderingSink,
};
pub use series::{
    FLOW_NUMBERS, FlowPoint, LINK_NUMBERS, LinkPoint, SeriesCsv, SeriesOf, SeriesRecord, SeriesSink, WatchSink,
};
pub use siftr::{SiftrConnection, SiftrLog, SiftrRecord, SiftrSink, Skipped, flags as siftr_flags, host_address};
pub use summary::{
    ApplicationSummary, BufferDensity, CaStateSeconds, ChangeSummary, CommandSummary, DatagramSummary, Displacement,
    Distribution, FlowSummary, FlowWindow, GroupSummary, IncastSummary, KindSummary, Lateness, Limited, LinkLoad,
    LinkPackets, LinkSummary, LinkWindow, LiveHost, LiveSummary, LoadSummary, LossBursts, LossDeclarations,
    MeanQuantiles, MessagesSummary, MultipathSummary, NReordering, NetperfSummary, PacketReordering, PagesSummary,
    ProbabilitySummary, ProbesSummary, Progress, Quantiles, Reactions, Recoveries, ReorderDensity, ReorderFreeRuns,
    Reordering, RequestsSummary, ResponsivenessSummary, Retransmissions, RoundTrips, SentPackets, Spread,
    SubflowSummary, Summary, VideoSummary, VoiceSummary, WindowSummary, WorkloadSummary, fairness, jain, kinds,
};
pub use tcp::{AckRecord, JudgedSegment, LossVerdict, TCP_COLUMNS, TcpCsv, TcpEvent, TcpRecord, TcpSink};
