//! An end of a flow, of any kind (ackclock's, smoltcp's, outside), behind one interface.

use ackclock_cc::CongestionControl;
use ackclock_mptcp::Connection;
use ackclock_packet::{Flags, Segment};
use ackclock_tcp::{Acknowledgment, Endpoint, IcmpError, SentAs, Shutdown, Stamp, State, Stats};
use ackclock_units::{Ecn, Span, Time};

use crate::datagrams::Datagrams;
use crate::error::RunError;
use crate::stock::Stock;
use crate::watch::HeaderWatch;

#[derive(Debug)]
pub(crate) enum Host {
    Endpoint(Box<Endpoint>),
    Smoltcp(Box<Stock>),
    /// An end of several subflows.
    Mptcp(Box<Connection>),
    /// A host outside, watched through its headers.
    Outside(Box<HeaderWatch>),
    /// No end of a connection.
    Datagrams(Box<Datagrams>),
}

/// A socket that an application writes to.
pub(crate) trait Writable {
    fn write(&mut self, now: Time, bytes: u64) -> u64;

    /// Returns true if the socket has become writable for an application that waits for that.
    fn is_writable(&mut self) -> bool;

    /// The bytes that an application which writes `bytes` at a time may write in one call instead.
    fn writes_at_once(&self, bytes: u64) -> u64;
}

impl Writable for Endpoint {
    #[inline]
    fn write(&mut self, _: Time, bytes: u64) -> u64 {
        Endpoint::write(self, bytes)
    }

    #[inline]
    fn is_writable(&mut self) -> bool {
        self.sender_mut().is_writable()
    }

    #[inline]
    fn writes_at_once(&self, bytes: u64) -> u64 {
        self.sender().writes_at_once(bytes)
    }
}

impl Writable for Host {
    fn write(&mut self, now: Time, bytes: u64) -> u64 {
        match self {
            Host::Endpoint(endpoint) => endpoint.write(bytes),
            Host::Smoltcp(stock) => stock.write(now, bytes),
            Host::Mptcp(connection) => connection.write(now, bytes),
            Host::Outside(_) | Host::Datagrams(_) => 0,
        }
    }

    fn is_writable(&mut self) -> bool {
        match self {
            Host::Endpoint(endpoint) => endpoint.is_writable(),
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) => true,
            // Its application writes by itself.
            Host::Datagrams(_) => false,
        }
    }

    fn writes_at_once(&self, bytes: u64) -> u64 {
        match self {
            Host::Endpoint(endpoint) => endpoint.writes_at_once(bytes),
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) | Host::Datagrams(_) => u64::MAX,
        }
    }
}

/// The counts of all subflows together.
pub(crate) fn totals(connection: &Connection) -> Stats {
    connection.subflows().iter().fold(Stats::default(), |sum, subflow| sum + subflow.totals())
}

/// The range of the stream that a segment carries that an endpoint has just sent, if it does; a FIN
/// is the byte after the last one.
#[inline]
pub(crate) fn range_sent(endpoint: &Endpoint, segment: &Segment) -> Option<(u64, u64)> {
    let fin = segment.flags.contains(Flags::FIN) && endpoint.sender().sent_as() != SentAs::Ack;
    let len = u64::from(segment.payload.len) + u64::from(fin);
    (len > 0).then_some((segment.payload.offset, segment.payload.offset + len))
}

impl Host {
    pub(crate) fn connect(&mut self, now: Time) {
        match self {
            Host::Endpoint(endpoint) => endpoint.connect(),
            Host::Smoltcp(stock) => stock.connect(now),
            Host::Mptcp(connection) => connection.connect(),
            Host::Outside(_) => {}
            Host::Datagrams(end) => end.open(now),
        }
    }

    pub(crate) fn listen(&mut self) {
        match self {
            Host::Endpoint(endpoint) => endpoint.listen(),
            Host::Smoltcp(stock) => stock.listen(),
            Host::Mptcp(connection) => connection.listen(),
            Host::Outside(_) | Host::Datagrams(_) => {}
        }
    }

    /// The application reads everything there is.
    pub(crate) fn read_all(&mut self, now: Time) {
        match self {
            Host::Endpoint(endpoint) => endpoint.read_arrived(now),
            Host::Smoltcp(stock) => _ = stock.read(now),
            Host::Mptcp(connection) => _ = connection.read(u64::MAX),
            Host::Outside(_) | Host::Datagrams(_) => {}
        }
    }

    pub(crate) fn close(&mut self, now: Time) {
        match self {
            Host::Endpoint(endpoint) => endpoint.shutdown(Shutdown::Write),
            Host::Smoltcp(stock) => stock.close(now),
            Host::Mptcp(connection) => connection.shutdown(now),
            Host::Outside(_) => {}
            Host::Datagrams(end) => end.close(),
        }
    }

    /// Closes hard: RST to the peer.
    pub(crate) fn abort(&mut self, now: Time) {
        match self {
            Host::Endpoint(endpoint) => endpoint.abort(),
            Host::Smoltcp(stock) => stock.abort(now),
            Host::Mptcp(connection) => connection.abort(),
            Host::Outside(_) => {}
            Host::Datagrams(end) => end.close(),
        }
    }

    /// A segment has arrived over the path with this number.
    pub(crate) fn input(&mut self, now: Time, path: usize, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        match self {
            Host::Endpoint(endpoint) => endpoint.input(now, segment, ecn),
            Host::Mptcp(connection) => connection.input(now, path, segment, ecn),
            Host::Smoltcp(stock) => {
                stock.input(now, segment, ecn);
                Acknowledgment::default()
            }
            Host::Outside(_) | Host::Datagrams(_) => Acknowledgment::default(),
        }
    }

    /// An ICMP error about a segment that it has sent over the path with this number. smoltcp's
    /// sockets are not told of any.
    pub(crate) fn icmp(&mut self, now: Time, path: usize, error: &IcmpError) {
        match self {
            Host::Endpoint(endpoint) => endpoint.icmp(now, error),
            Host::Mptcp(connection) => connection.icmp(now, path, error),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => {}
        }
    }

    /// Returns true if the last segment sent belongs to the same unit as the one before it.
    #[inline]
    pub(crate) fn continues_unit(&self) -> bool {
        matches!(self, Host::Endpoint(endpoint) if endpoint.sender().continues_unit())
    }

    pub(crate) fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        match self {
            Host::Endpoint(endpoint) => endpoint.transmit(now, out),
            Host::Smoltcp(stock) => stock.transmit(now, out),
            Host::Mptcp(connection) => connection.transmit(now, out),
            Host::Outside(_) | Host::Datagrams(_) => None,
        }
    }

    /// The range of the stream that a segment just sent carries, if it does.
    pub(crate) fn range_of(&self, segment: &Segment) -> Option<(u64, u64)> {
        match self {
            Host::Endpoint(endpoint) => range_sent(endpoint, segment),
            // What its subflows send is judged by their own streams.
            Host::Mptcp(_) => None,
            // It does not tell where a FIN without data is.
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => {
                let (from, len) = (segment.payload.offset, segment.payload.len);
                (len > 0).then_some((from, from + u64::from(len)))
            }
        }
    }

    /// The reason of the segment just sent; `by_timer` is true if a timer was due.
    pub(crate) fn sent_as(&self, by_timer: bool) -> SentAs {
        match self {
            Host::Endpoint(endpoint) => endpoint.sender().sent_as(),
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) | Host::Datagrams(_) if by_timer => SentAs::Timeout,
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) | Host::Datagrams(_) => SentAs::FastRetransmit,
        }
    }

    /// The time of a segment that was sent just now, as the host orders its segments.
    pub(crate) fn stamp(&self, now: Time) -> Stamp {
        match self {
            Host::Endpoint(endpoint) => endpoint.sender().stamp(now),
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) | Host::Datagrams(_) => Stamp::first(now),
        }
    }

    /// Returns true if a range of the peer's stream has arrived and was kept; always true for hosts
    /// other than ackclock's endpoints.
    pub(crate) fn holds(&self, from: u64, to: u64) -> bool {
        match self {
            Host::Endpoint(endpoint) => endpoint.receiver().holds(from, to),
            Host::Mptcp(connection) => connection.holds(from, to),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => true,
        }
    }

    /// Smoothed RTT, if the host reports it.
    pub(crate) fn srtt(&self) -> Option<Span> {
        match self {
            Host::Endpoint(endpoint) => endpoint.sender().rtt().srtt(),
            Host::Mptcp(connection) => connection.srtt(),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => None,
        }
    }

    pub(crate) fn next_deadline(&self, now: Time) -> Time {
        match self {
            Host::Endpoint(endpoint) => endpoint.next_deadline(),
            Host::Smoltcp(stock) => stock.next_deadline(now),
            Host::Mptcp(connection) => connection.next_deadline(),
            Host::Outside(_) => Time::NEVER,
            Host::Datagrams(end) => end.next_at(),
        }
    }

    pub(crate) fn on_deadline(&mut self, now: Time) {
        match self {
            Host::Endpoint(endpoint) => endpoint.on_deadline(now),
            Host::Smoltcp(stock) => stock.on_deadline(now),
            Host::Mptcp(connection) => connection.on_deadline(now),
            Host::Outside(_) | Host::Datagrams(_) => {}
        }
    }

    /// The handshake is over, and the connection with it not yet.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Host::Endpoint(endpoint) => {
                !matches!(endpoint.state(), State::Closed | State::Listen | State::SynSent | State::SynReceived)
            }
            Host::Smoltcp(stock) => stock.is_established(),
            Host::Mptcp(connection) => connection.is_open(),
            Host::Outside(_) => true,
            Host::Datagrams(end) => end.is_open(),
        }
    }

    /// Both sides have closed and everything is acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Host::Endpoint(endpoint) => endpoint.is_finished(),
            Host::Smoltcp(stock) => stock.is_time_wait() || stock.is_closed(),
            Host::Mptcp(connection) => connection.is_finished(),
            Host::Outside(watch) => watch.is_finished(),
            Host::Datagrams(_) => false,
        }
    }

    /// No connection is open any more, whether it came to a good end or not.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Host::Endpoint(endpoint) => endpoint.is_finished() || endpoint.state() == State::Closed,
            Host::Smoltcp(stock) => stock.is_time_wait() || stock.is_closed(),
            Host::Mptcp(connection) => connection.is_finished() || connection.is_over(),
            Host::Outside(watch) => watch.is_over(),
            Host::Datagrams(_) => false,
        }
    }

    pub(crate) fn peer_finished(&self) -> bool {
        match self {
            Host::Endpoint(endpoint) => endpoint.receiver().is_finished(),
            Host::Smoltcp(stock) => stock.peer_finished(),
            Host::Mptcp(connection) => connection.peer_finished(),
            Host::Outside(_) | Host::Datagrams(_) => false,
        }
    }

    pub(crate) fn acked_bytes(&self) -> u64 {
        match self {
            Host::Endpoint(endpoint) => endpoint.sender().sequence().acked_bytes(),
            Host::Smoltcp(stock) => stock.acked_bytes(),
            Host::Mptcp(connection) => connection.acked_bytes(),
            Host::Outside(watch) => watch.counts().progress.acked_bytes,
            Host::Datagrams(_) => 0,
        }
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        match self {
            Host::Endpoint(endpoint) => endpoint.receiver().delivered(),
            Host::Smoltcp(stock) => stock.delivered_bytes(),
            Host::Mptcp(connection) => connection.delivered_bytes(),
            Host::Outside(watch) => watch.counts().progress.delivered_bytes,
            Host::Datagrams(end) => end.delivered(),
        }
    }

    /// Bytes that arrived, including those beyond gaps, if the host reports them.
    pub(crate) fn received_bytes(&self) -> u64 {
        match self {
            Host::Endpoint(endpoint) => endpoint.receiver().received(),
            Host::Mptcp(connection) => connection.received_bytes(),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => self.delivered_bytes(),
        }
    }

    /// Replaces the congestion control; a stock socket keeps its own.
    pub(crate) fn set_congestion_control(&mut self, now: Time, cc: Box<dyn CongestionControl>) {
        match self {
            Host::Endpoint(endpoint) => endpoint.set_congestion_control(now, cc),
            // Its subflows have one each, of the group's kind.
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) | Host::Datagrams(_) => {}
        }
    }

    /// The congestion window in bytes, if the host reports it.
    pub(crate) fn cwnd(&self) -> Option<u64> {
        match self {
            Host::Endpoint(endpoint) => Some(endpoint.sender().cwnd()),
            Host::Mptcp(connection) => Some(connection.cwnd()),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => None,
        }
    }

    pub(crate) fn sent_packets(&self) -> u64 {
        match self {
            Host::Endpoint(endpoint) => endpoint.sender().stats().data_packets(),
            Host::Smoltcp(stock) => stock.stats().sent.sent_packets,
            Host::Mptcp(connection) => totals(connection).data_packets(),
            Host::Outside(watch) => watch.counts().sent.sent_packets,
            Host::Datagrams(end) => end.sent(),
        }
    }

    /// Checks that no wrong data was received and no controller from outside has failed.
    ///
    /// # Errors
    ///
    /// The failure, with the name of `flow`.
    pub(crate) fn check(&self, flow: &str) -> Result<(), RunError> {
        let failed = match self {
            Host::Endpoint(endpoint) => endpoint.sender().congestion_control().inspect().failure,
            Host::Mptcp(connection) => connection.controller_failure(),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => None,
        };
        if let Some(failure) = failed {
            return Err(RunError::Own { of: format!("flow {flow}"), failure: failure.clone() });
        }
        match self {
            Host::Endpoint(endpoint) => match endpoint.receiver().integrity_error() {
                Some(offset) => Err(RunError::Integrity { flow: flow.to_owned(), offset }),
                None => Ok(()),
            },
            Host::Smoltcp(stock) => match stock.integrity_error() {
                Some(error) => Err(RunError::Stock { flow: flow.to_owned(), error }),
                None => Ok(()),
            },
            Host::Mptcp(connection) => match connection.integrity_error() {
                Some(offset) => Err(RunError::Integrity { flow: flow.to_owned(), offset }),
                None => Ok(()),
            },
            Host::Outside(_) | Host::Datagrams(_) => Ok(()),
        }
    }
}
