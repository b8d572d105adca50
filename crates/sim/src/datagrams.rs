//! Ends of a flow of datagrams: one that sends, and one that measures or answers.

use std::collections::VecDeque;

use ackclock_trace::{DatagramSummary, Spread};
use ackclock_units::{Ecn, Random, Time};

use self::call::VoiceCall;
use self::reception::Reception;
use self::source::DatagramSource;
use crate::spec::{DATAGRAM_HEADERS, DatagramApplication, DatagramSpec};
use crate::stock::ConnectionEnd;

mod call;
mod loss_periods;
mod reception;
mod source;

/// A datagram on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramInFlight {
    /// The datagram's number in its flow, from 0 in the order of sending; an answer has its
    /// request's.
    pub(crate) number: u64,
    /// Time of sending; an answer has the time of its request.
    pub(crate) sent: Time,
    /// Payload bytes.
    pub(crate) len: u32,
}

impl DatagramInFlight {
    /// Bytes of the whole packet.
    pub(crate) fn wire_len(self) -> u32 {
        DATAGRAM_HEADERS + self.len
    }
}

/// The requests that have arrived at the end that answers them.
#[derive(Debug, Default)]
struct EchoRequests {
    /// All before this one have arrived or are given up.
    decided: u64,
    /// Arrival of the requests from `decided` on.
    later: VecDeque<bool>,
}

impl EchoRequests {
    /// The reordering bound: a request that this many later ones have overtaken counts as lost.
    const MOST: usize = 4096;

    /// `false` if a copy of it had arrived before.
    fn arrived(&mut self, number: u64) -> bool {
        let Some(place) = number.checked_sub(self.decided) else { return false };
        let place = place as usize;
        if place >= self.later.len() {
            self.later.resize(place + 1, false);
        }
        let is_new = !std::mem::replace(&mut self.later[place], true);
        while self.later.len() > EchoRequests::MOST || self.later.front() == Some(&true) {
            self.later.pop_front();
            self.decided += 1;
        }
        is_new
    }
}

/// An end of a flow of datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    application: &'static str,
    ecn: Ecn,
    /// The generator of datagrams at an end that sends by itself.
    source: Option<DatagramSource>,
    sent: u64,
    /// Payload that arrived, copies left out.
    delivered: u64,
    marked: u64,
    /// The measures are taken at this end.
    reception: Option<Box<Reception>>,
    /// The requests that have arrived, at an end that sends back every datagram.
    requests: Option<EchoRequests>,
    /// The answer to send now.
    answer: Option<DatagramInFlight>,
}

impl Datagrams {
    /// `random` is what the application draws from.
    pub(crate) fn new(spec: &DatagramSpec, side: ConnectionEnd, random: Random) -> Datagrams {
        let round_trips = matches!(spec.application, DatagramApplication::Ping { .. });
        let measures = round_trips == matches!(side, ConnectionEnd::Sender);
        let call = match &spec.application {
            DatagramApplication::Voip(call) => Some(VoiceCall::new(call.clone())),
            DatagramApplication::Messages { .. } | DatagramApplication::Ping { .. } => None,
        };
        Datagrams {
            application: spec.application.name(),
            ecn: spec.ecn,
            source: matches!(side, ConnectionEnd::Sender).then(|| DatagramSource::new(spec, random)),
            sent: 0,
            delivered: 0,
            marked: 0,
            reception: measures.then(|| Box::new(Reception::new(call))),
            requests: (round_trips && matches!(side, ConnectionEnd::Receiver)).then(EchoRequests::default),
            answer: None,
        }
    }

    /// The application starts to send.
    pub(crate) fn open(&mut self, now: Time) {
        if let Some(source) = &mut self.source {
            source.open(now);
        }
    }

    /// The application sends no more.
    pub(crate) fn close(&mut self) {
        if let Some(source) = &mut self.source {
            source.close();
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.source.as_ref().is_some_and(DatagramSource::is_open)
    }

    pub(crate) fn next_at(&self) -> Time {
        self.source.as_ref().map_or(Time::NEVER, DatagramSource::next_at)
    }

    /// The next datagram that is to be sent by now, with its codepoint.
    pub(crate) fn transmit(&mut self, now: Time) -> Option<(DatagramInFlight, Ecn)> {
        if let Some(answer) = self.answer.take() {
            return Some((answer, self.ecn));
        }
        let len = self.source.as_mut()?.take(now)?;
        let datagram = DatagramInFlight { number: self.sent, sent: now, len };
        self.sent += 1;
        Some((datagram, self.ecn))
    }

    /// A datagram has arrived. `false` if a copy of it had before.
    pub(crate) fn input(&mut self, now: Time, datagram: DatagramInFlight, ecn: Ecn) -> bool {
        let is_new = match (&mut self.reception, &mut self.requests) {
            (Some(reception), _) => reception.arrived(now, datagram.number, datagram.sent),
            (None, Some(requests)) => {
                // A copy is answered as well.
                self.answer = Some(datagram);
                requests.arrived(datagram.number)
            }
            (None, None) => true,
        };
        if is_new {
            self.delivered += u64::from(datagram.len);
            self.marked += u64::from(ecn == Ecn::Ce);
        }
        is_new
    }

    /// The last copy of a datagram, or of its answer, was lost.
    pub(crate) fn lost(&mut self, number: u64) {
        if let Some(reception) = &mut self.reception {
            reception.lost(number);
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The results of a flow of which this end has `sent`, measured at it or at `peer`.
    pub(crate) fn summary(&self, peer: &Datagrams) -> Option<DatagramSummary> {
        let at = if self.reception.is_some() { self } else { peer };
        let reception = at.reception.as_deref()?;
        let known = reception.received + reception.lost;
        let [jitter_ms, jitter_mean_ms, jitter_max_ms] = reception.jitter.summary();
        Some(DatagramSummary {
            application: self.application,
            sent: self.sent,
            received: reception.received,
            lost: reception.lost,
            loss_ratio: (known > 0).then(|| reception.lost as f64 / known as f64),
            duplicates: reception.duplicates,
            marked: at.marked,
            delay_ms: Spread::of(&reception.delay, 1e-6),
            jitter_ms,
            jitter_mean_ms,
            jitter_max_ms,
            loss_bursts: reception.loss_bursts(),
            reordering: reception.reordering(),
            voice: reception.call.as_ref().map(VoiceCall::summary),
        })
    }
}
