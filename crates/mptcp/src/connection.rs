//! The connection: its state, and the calls of the application.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ackclock_cc::{CongestionControl, Subflow as Sibling};
use ackclock_packet::Segment;
use ackclock_tcp::{Config, Endpoint, Error, Ports, State};
use ackclock_units::outside::Failure;
use ackclock_units::{Random, Span, Time};

use crate::config::{MAX_SUBFLOWS, MptcpConfig};
use crate::keys;
use crate::ranges::Ranges;
use crate::scheduler::{Candidate, Scheduler};
use crate::subflow::{Stage, Subflow};

/// A bound of stream lengths, in bytes.
pub(crate) const LONGEST: u64 = 1 << 60;

/// Bytes of options that every data segment carries: DSS with a short data acknowledgment and a
/// mapping with a long data sequence number, and its padding.
const DSS_LEN: u8 = 24;
/// Bytes of options with a long data acknowledgment instead.
const LONG_DSS_LEN: u8 = 28;

/// Creates the congestion controller of a subflow on a path.
pub type MakeController = Box<dyn FnMut(usize) -> Box<dyn CongestionControl> + Send>;

/// The protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not negotiated yet.
    Opening,
    /// MPTCP, confirmed once the peer has shown that it uses MPTCP as well.
    Multipath { confirmed: bool },
    /// Plain TCP on the initial subflow (RFC 8684 section 3.7).
    Plain,
}

/// The sending half of the connection. Positions are offsets in the application's stream.
#[derive(Debug, Default)]
pub(crate) struct SendHalf {
    /// Our initial data sequence number.
    pub(crate) initial: u64,
    /// Bytes that the application has written.
    pub(crate) written: u64,
    /// The application has closed the stream.
    pub(crate) closed: bool,
    /// The first byte that no subflow was given.
    pub(crate) next: u64,
    /// The first byte that the peer's connection has not acknowledged.
    pub(crate) una: u64,
    /// The right edge of the peer's window.
    pub(crate) window_end: u64,
    /// The largest window so far, in bytes.
    pub(crate) max_window: u64,
    /// DATA_FIN was sent, and was acknowledged.
    pub(crate) fin_sent: bool,
    pub(crate) fin_acked: bool,
    /// Data of failed subflows, to be sent on another one.
    pub(crate) reinject: Ranges,
    /// The end of the data that was retransmitted because the window was full.
    pub(crate) opportune: u64,
    /// The retransmission timer of the connection.
    pub(crate) timer: Time,
    pub(crate) expiries: u32,
}

/// The receiving half of the connection.
#[derive(Debug, Default)]
pub(crate) struct ReceiveHalf {
    /// The peer's initial data sequence number.
    pub(crate) initial: u64,
    /// The first byte that is missing.
    pub(crate) next: u64,
    /// Bytes that the application has read.
    pub(crate) read: u64,
    /// Data beyond gaps.
    pub(crate) beyond: Ranges,
    /// The right edge of the advertised window.
    pub(crate) edge: u64,
    /// Size of the receive buffer, in bytes.
    pub(crate) buffer: u64,
    /// A mapping has arrived.
    pub(crate) is_mapped: bool,
    /// The peer's last data sequence number had 64 bits.
    pub(crate) is_long: bool,
    /// A data sequence number had 64 bits: there is room for as long an acknowledgment.
    pub(crate) was_long: bool,
    /// The length of the stream, once DATA_FIN has arrived.
    pub(crate) fin: Option<u64>,
    /// Bytes that arrived more than once.
    pub(crate) duplicate: u64,
    /// Bytes that arrived beyond the window or the end of the stream.
    pub(crate) refused: u64,
    /// The most bytes beyond gaps.
    pub(crate) most_beyond: u64,
    /// The first offset at which the data was wrong.
    pub(crate) integrity_error: Option<u64>,
}

impl ReceiveHalf {
    /// Accepts data that has arrived. Data beyond the window or the end is dropped, and not
    /// acknowledged.
    pub(crate) fn take(&mut self, data: Range<u64>) {
        let len = data.end - data.start;
        let end = data.end.min(self.fin.unwrap_or(u64::MAX));
        if data.end <= self.next || data.start >= LONGEST || self.beyond.contain(data.clone()) {
            self.duplicate += len;
        } else if end > self.edge.max(self.read + self.buffer) || end <= data.start {
            self.refused += len;
        } else if data.start <= self.next {
            self.next = self.beyond.advance(end);
        } else {
            self.beyond.insert(data.start..end);
            self.most_beyond = self.most_beyond.max(self.beyond.len());
        }
    }

    /// Bytes of options on every data segment.
    pub(crate) fn dss_len(&self) -> u8 {
        if self.was_long { LONG_DSS_LEN } else { DSS_LEN }
    }
}

/// One end of an MPTCP connection.
///
/// The driver calls [`Connection::input`] for every packet that arrives, with the number of its
/// path; [`Connection::on_deadline`] at [`Connection::next_deadline`]; and [`Connection::transmit`]
/// after each of these and each call of the application, until it returns `None`.
pub struct Connection {
    pub(crate) config: MptcpConfig,
    pub(crate) tcp: Arc<Config>,
    pub(crate) make_controller: MakeController,
    pub(crate) random: Random,
    pub(crate) ports: Ports,
    pub(crate) is_client: bool,
    pub(crate) mode: Mode,
    /// Our key, and the peer's once it is known.
    pub(crate) key: u64,
    pub(crate) peer_key: Option<u64>,
    pub(crate) subflows: Vec<Subflow>,
    /// Subflows opened so far.
    pub(crate) opened: u16,
    /// A further subflow has been open.
    pub(crate) joined: bool,
    /// The peer refuses further subflows to the initial one's address (flag C of MP_CAPABLE).
    pub(crate) no_join: bool,
    pub(crate) scheduler: Scheduler,
    pub(crate) sending: SendHalf,
    pub(crate) receiving: ReceiveHalf,
    /// Our announced addresses that the peer has not confirmed.
    pub(crate) announced: Vec<Announced>,
    /// Paths that must not be used.
    pub(crate) removed: Vec<usize>,
    /// The number of paths that the connection had from the start.
    pub(crate) configured: usize,
    /// Replies to segments of no subflow, with their paths.
    pub(crate) replies: VecDeque<(usize, Segment)>,
    /// The path and the subflow of the last segment that was sent.
    pub(crate) last: (usize, Option<usize>),
    /// The connection was aborted: every subflow is reset.
    pub(crate) aborted: bool,
    /// The subflows' loss declarations are recorded.
    pub(crate) observes_losses: bool,
    pub(crate) error: Option<Error>,
    /// Scratch space of the scheduler; valid within a call only.
    pub(crate) candidates: Vec<Candidate>,
    /// Scratch space: the subflows as a coupled controller sees them.
    siblings: Vec<Sibling>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("mode", &self.mode)
            .field("subflows", &self.subflows)
            .field("sending", &self.sending)
            .field("receiving", &self.receiving)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A closed connection. `tcp` are the settings of every subflow, and `ports` those of the
    /// initial one; `random` draws keys and initial numbers. Up to [`MAX_SUBFLOWS`] paths of
    /// `config` are used; an empty list stands for one path with unspecified addresses.
    pub fn new(
        mut config: MptcpConfig,
        tcp: Config,
        make_controller: MakeController,
        ports: Ports,
        mut random: Random,
    ) -> Connection {
        if config.paths.is_empty() {
            let nowhere = std::net::Ipv4Addr::UNSPECIFIED.into();
            config.paths.push(crate::Path { local: nowhere, remote: nowhere, backup: false });
        }
        config.paths.truncate(MAX_SUBFLOWS);
        let key = random.bits();
        let scheduler = Scheduler::new(config.scheduler);
        let configured = config.paths.len();
        // Header prediction would decide a burst before the next mapping is known.
        let tcp = Arc::new(Config { header_prediction: false, ..tcp.with_shared_window() });
        let buffer = tcp.receive_buffer;
        let sending = SendHalf { initial: keys::initial_sequence(key), timer: Time::NEVER, ..SendHalf::default() };
        let mut connection = Connection {
            config,
            tcp,
            make_controller,
            random,
            ports,
            is_client: false,
            mode: Mode::Opening,
            key,
            peer_key: None,
            subflows: Vec::new(),
            opened: 0,
            joined: false,
            no_join: false,
            scheduler,
            sending,
            receiving: ReceiveHalf { buffer, ..ReceiveHalf::default() },
            announced: Vec::new(),
            removed: Vec::new(),
            configured,
            replies: VecDeque::new(),
            last: (0, None),
            aborted: false,
            observes_losses: false,
            error: None,
            candidates: Vec::new(),
            siblings: Vec::new(),
        };
        connection.open(0, ports, Stage::Opening);
        connection
    }

    /// Opens a subflow on a path, in the place of one there that has ended, if any; returns its
    /// index.
    pub(crate) fn open(&mut self, path: usize, ports: Ports, stage: Stage) -> usize {
        let mut endpoint = Endpoint::new(
            Arc::clone(&self.tcp),
            (self.make_controller)(path),
            ports,
            self.random.bits() as u32,
            self.random.bits() as u32,
        );
        endpoint.sender_mut().reserve_options(self.receiving.dss_len());
        if self.observes_losses {
            endpoint.sender_mut().scoreboard_mut().observe_losses();
        }
        let mut subflow = Subflow::new(endpoint, path, stage);
        subflow.backup = self.config.paths[path].backup;
        subflow.address_ids = [self.address_id(path), path as u8];
        self.opened = self.opened.saturating_add(1);
        let old = self.subflows.iter().position(|old| old.path == path && old.stage == Stage::Closed);
        if let Some(index) = old {
            subflow.past = self.subflows[index].totals();
            subflow.carried = self.subflows[index].carried;
            self.subflows[index] = subflow;
            self.scheduler.forget(index);
            return index;
        }
        self.subflows.push(subflow);
        self.subflows.len() - 1
    }

    /// Informs the controller of a subflow about its siblings, if it is coupled.
    pub(crate) fn couple(&mut self, index: usize) {
        if !self.subflows[index].endpoint.sender().is_coupled() || !self.subflows[index].is_open() {
            return;
        }
        self.siblings.clear();
        let mut own = 0;
        for (number, subflow) in self.subflows.iter_mut().enumerate().filter(|(_, subflow)| subflow.is_open()) {
            if number == index {
                own = self.siblings.len();
            }
            self.siblings.push(subflow.endpoint.sender_mut().as_sibling());
        }
        self.subflows[index].endpoint.sender_mut().couple(own, &self.siblings);
    }

    /// Opens the connection actively.
    pub fn connect(&mut self) {
        self.is_client = true;
        self.subflows[0].endpoint.connect();
    }

    /// Opens the connection passively.
    pub fn listen(&mut self) {
        self.subflows[0].endpoint.listen();
    }

    /// Writes up to `bytes` bytes, as the application; returns the number accepted.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        if self.sending.closed || self.is_over() {
            return 0;
        }
        let taken = bytes.min(self.send_space());
        self.sending.written += taken;
        self.push(now);
        taken
    }

    /// Free bytes of the send buffer.
    pub fn send_space(&self) -> u64 {
        self.config.send_buffer.saturating_sub(self.sending.written.saturating_sub(self.sending.una))
    }

    /// Reads up to `most` bytes, as the application; returns the number read.
    pub fn read(&mut self, most: u64) -> u64 {
        let taken = most.min(self.unread());
        self.receiving.read += taken;
        if self.mode == Mode::Plain {
            let subflow = &mut self.subflows[0];
            let more = self.receiving.read.saturating_sub(subflow.taken);
            subflow.taken += subflow.endpoint.read(more);
        } else if taken > 0 {
            self.update_window();
        }
        taken
    }

    /// Sends a window update once two segments or half of the buffer have become free (RFC 9293
    /// section 3.8.6.2.2).
    fn update_window(&mut self) {
        let receiving = &self.receiving;
        let gained = (receiving.read + receiving.buffer).saturating_sub(receiving.edge);
        let left = receiving.edge.saturating_sub(receiving.next);
        let Some(subflow) = self.subflows.iter_mut().find(|subflow| subflow.is_open()) else { return };
        let two = 2 * u64::from(subflow.endpoint.sender().full_payload());
        // With an open window, further data elicits an ACK.
        if left < two && gained >= two.min(receiving.buffer / 2) {
            subflow.endpoint.acknowledge_now();
        }
    }

    /// Bytes received in order and not read.
    pub fn unread(&self) -> u64 {
        self.receiving.next.saturating_sub(self.receiving.read)
    }

    /// Closes the stream, as the application: DATA_FIN follows the last byte.
    pub fn shutdown(&mut self, now: Time) {
        self.sending.closed = true;
        self.push(now);
    }

    /// Aborts the connection: MP_FASTCLOSE and RST on every subflow (RFC 8684 section 3.5, option
    /// R).
    pub fn abort(&mut self) {
        self.aborted = true;
        for subflow in &mut self.subflows {
            subflow.endpoint.abort();
        }
    }

    /// Bytes of our stream that the peer's connection has acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        self.sending.una
    }

    /// Bytes of the peer's stream that arrived in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.receiving.next
    }

    /// Bytes of the peer's stream that arrived, including those beyond gaps of the stream or a
    /// subflow.
    pub fn received_bytes(&self) -> u64 {
        let held = |endpoint: &Endpoint| endpoint.receiver().received() - endpoint.receiver().delivered();
        let held: u64 = self.subflows.iter().map(|subflow| held(&subflow.endpoint)).sum();
        self.receiving.next + self.receiving.beyond.len() + held
    }

    /// Returns `true` if a range of the peer's stream has arrived.
    pub fn holds(&self, from: u64, to: u64) -> bool {
        to <= self.receiving.next || self.receiving.beyond.contain(from.max(self.receiving.next)..to)
    }

    /// The first stream offset at which the data was wrong.
    pub fn integrity_error(&self) -> Option<u64> {
        let of_subflows = self.subflows.iter().filter_map(|subflow| subflow.endpoint.receiver().integrity_error());
        self.receiving.integrity_error.into_iter().chain(of_subflows).min()
    }

    /// The failure of a subflow's congestion controller from outside, if any.
    pub fn controller_failure(&self) -> Option<&Failure> {
        self.subflows.iter().find_map(|subflow| subflow.endpoint.sender().congestion_control().inspect().failure)
    }

    /// Returns `true` if the peer has closed and every byte has arrived.
    pub fn peer_finished(&self) -> bool {
        match self.mode {
            Mode::Plain => self.subflows[0].endpoint.receiver().is_finished(),
            _ => self.receiving.fin == Some(self.receiving.next),
        }
    }

    /// Returns `true` if the handshake is complete and the connection is not closed.
    pub fn is_open(&self) -> bool {
        let is_open = |subflow: &Subflow| {
            !matches!(subflow.endpoint.state(), State::Closed | State::Listen | State::SynSent | State::SynReceived)
        };
        self.subflows.iter().any(is_open)
    }

    /// Returns `true` if both sides have closed and everything is acknowledged.
    pub fn is_finished(&self) -> bool {
        let all = self.sending.closed && self.sending.una == self.sending.written;
        match self.mode {
            Mode::Plain => self.subflows[0].endpoint.is_finished(),
            _ => {
                all && self.sending.fin_acked
                    && self.peer_finished()
                    && self
                        .subflows
                        .iter()
                        .all(|subflow| subflow.endpoint.is_finished() || subflow.endpoint.state() == State::Closed)
            }
        }
    }

    /// Returns `true` if no subflow is open, and none will be.
    pub fn is_over(&self) -> bool {
        let is_over = |subflow: &Subflow| {
            subflow.endpoint.is_finished()
                || subflow.endpoint.state() == State::Closed && subflow.endpoint.sender().sequence().nxt() > 0
        };
        self.error.is_some() || self.subflows.iter().all(is_over)
    }

    /// The error that ended the connection; `None` if both sides closed it.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// Returns `true` if the connection uses MPTCP.
    pub fn is_multipath(&self) -> bool {
        matches!(self.mode, Mode::Multipath { .. })
    }

    /// Returns `true` if the connection has fallen back to plain TCP.
    pub fn is_plain(&self) -> bool {
        self.mode == Mode::Plain
    }

    /// The token that identifies this connection in a SYN with MP_JOIN.
    pub fn token(&self) -> u32 {
        keys::token(self.key)
    }

    /// The subflows, the initial one first.
    pub fn subflows(&self) -> &[Subflow] {
        &self.subflows
    }

    /// The path of the segment that [`Connection::transmit`] returned last.
    pub fn last_path(&self) -> usize {
        self.last.0
    }

    /// The subflow of the segment that [`Connection::transmit`] returned last; `None` if it has
    /// none.
    pub fn last_subflow(&self) -> Option<&Subflow> {
        self.subflows.get(self.last.1?)
    }

    /// Bytes beyond gaps in the stream: the present and the largest number.
    pub fn reordered_bytes(&self) -> (u64, u64) {
        (self.receiving.beyond.len(), self.receiving.most_beyond)
    }

    /// The sum of the open subflows' congestion windows, in bytes.
    pub fn cwnd(&self) -> u64 {
        self.subflows.iter().filter(|subflow| subflow.is_open()).map(|subflow| subflow.endpoint.sender().cwnd()).sum()
    }

    /// The smallest smoothed RTT of the open subflows.
    pub fn srtt(&self) -> Option<Span> {
        self.subflows
            .iter()
            .filter(|subflow| subflow.is_open())
            .filter_map(|subflow| subflow.endpoint.sender().rtt().srtt())
            .min()
    }

    /// The time at which [`Connection::on_deadline`] is due.
    pub fn next_deadline(&self) -> Time {
        let subflows = self.subflows.iter().map(Subflow::next_deadline);
        let announced = self.announced.iter().map(|announced| announced.again_at);
        subflows.chain(announced).fold(self.sending.timer, Time::min)
    }

    /// Replaces the congestion controllers of all subflows, present and future.
    pub fn set_congestion_control(&mut self, now: Time, make_controller: MakeController) {
        self.make_controller = make_controller;
        for subflow in &mut self.subflows {
            let controller = (self.make_controller)(subflow.path);
            subflow.endpoint.set_congestion_control(now, controller);
        }
    }
}

pub(crate) fn is_synchronized(state: State) -> bool {
    !matches!(state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
}

/// A local address that was announced to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    pub(crate) path: usize,
    /// The time of the next announcement.
    pub(crate) again_at: Time,
    pub(crate) wait: Span,
    pub(crate) times: u32,
}
