//! A player of video in segments (DASH): it asks for one segment after the other, at a bitrate that
//! it chooses, while it plays what it has.
//!
//! # Source
//! - BBA: Huang, Johari, McKeown, Trunnell, Watson, "A Buffer-Based Approach to Rate Adaptation:
//!   Evidence from a Large Video Streaming Service", SIGCOMM 2014: BBA-0 (algorithm 1, section 4)
//!   and the startup phase of BBA-2 (section 6).
//! - BOLA: Spiteri, Urgaonkar, Sitaraman, "BOLA: Near-Optimal Bitrate Adaptation for Online
//!   Videos", INFOCOM 2016 and IEEE/ACM Transactions on Networking 28(4), 2020: BOLA-BASIC.
//! - Ties between scores go to the higher bitrate, as in dash.js (`BolaRule`); in
//!   the simulator of its authors (sabre) to the lower one.
//!
//! # Departures
//! - BBA's map is that of bitrates also where the sizes of segments vary: there is no chunk map,
//!   nor a reservoir that follows it (BBA-1), nor protection against outages, nor smoothing of
//!   switches (BBA-Others). After the fast start of BBA-2 the fixed reservoir of BBA-0 follows.
//! - BOLA neither shortens its buffer at the beginning and the end of a video (BOLA-FINITE), nor
//!   limits bitrates by throughput (BOLA-O, BOLA-U), nor abandons segments on their way.
//! - All bitrates of a segment vary by the same factor.
//! - The last segment asked for comes whole: nothing is cancelled when it is late.

use std::sync::Arc;

use ackclock_units::{Random, Rate, Span, Time};

use crate::distribution::Distribution;
use crate::request::Exchange;
pub use adaptation::{Adaptation, Bba, Bola};
use adaptation::{Chooser, Situation};

mod adaptation;

/// The parameters of a video and its player.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoPattern {
    /// The length of a segment.
    pub segment: Span,
    /// The bitrates that there are, ascending, at least one.
    pub ladder: Arc<[Rate]>,
    /// The most that the buffer holds, at least two segments.
    pub buffer: Span,
    /// Buffer level at which playback starts, and resumes after the buffer was empty; at most a
    /// segment less than `buffer`, or a segment.
    pub startup: Span,
    /// The length of the video; `None` is without end.
    pub length: Option<Span>,
    /// The sizes of segments, as multiples of what their bitrate and duration make them.
    pub variation: Distribution,
    /// The size of a request, bytes.
    pub request: Distribution,
    /// The bitrate adaptation.
    pub adaptation: Adaptation,
}

/// The state of a player.
#[derive(Clone, Debug)]
pub struct Video {
    pattern: VideoPattern,
    random: Random,
    chooser: Chooser,
    /// Length of video requested so far.
    asked: Span,
    /// Time of the next request; [`Time::NEVER`] while a segment is downloaded, or after the last
    /// one.
    next_at: Time,
    /// The segment that comes.
    coming: Option<RequestedSegment>,
    /// The last one that came, and how long it took.
    last: Option<(RequestedSegment, Span)>,
    playback: Playback,
    report: VideoReport,
    /// Bits per second times nanoseconds of what has come.
    volume: u128,
}

/// A part of a video.
#[derive(Clone, Copy, Debug)]
struct RequestedSegment {
    rung: usize,
    length: Span,
    /// Time of the request.
    since: Time,
}

#[derive(Clone, Copy, Debug)]
enum Playback {
    /// Paused since a time, with a buffer of this length.
    Waiting { since: Time, held: Span },
    /// Playing until a time, with the buffer's contents.
    Playing { until: Time },
}

/// The quality of playback.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VideoReport {
    /// Segments that have come.
    pub segments: u64,
    /// Changes of the bitrate from one segment to the next.
    pub switches: u64,
    /// Time from the start until playback began, if it has.
    pub startup: Option<Span>,
    /// The number of times the buffer was empty during playback.
    pub rebuffers: u64,
    /// Time for which playback has paused with an empty buffer.
    pub rebuffering: Span,
    /// Length of video played.
    pub played: Span,
    /// The mean bitrate of what has come, bit/s; 0 for nothing.
    pub bitrate: f64,
}

impl Video {
    /// A player that requests its first segment at `start`.
    pub fn new(pattern: &VideoPattern, random: Random, start: Time) -> Video {
        let VideoPattern { adaptation, ladder, segment, buffer, .. } = pattern;
        Video {
            chooser: Chooser::new(*adaptation, Arc::clone(ladder), *segment, *buffer),
            pattern: pattern.clone(),
            random,
            asked: Span::ZERO,
            next_at: start,
            coming: None,
            last: None,
            playback: Playback::Waiting { since: start, held: Span::ZERO },
            report: VideoReport::default(),
            volume: 0,
        }
    }

    /// Time of the next request; [`Time::NEVER`] while a segment is downloaded, or after the last
    /// one.
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// The last segment has come.
    pub fn is_done(&self) -> bool {
        self.coming.is_none() && self.next_at == Time::NEVER
    }

    /// The buffer level.
    pub fn level(&self, now: Time) -> Span {
        match self.playback {
            Playback::Waiting { held, .. } => held,
            Playback::Playing { until } => until.since(now),
        }
    }

    /// Asks for a segment, if it is time.
    pub fn make(&mut self, now: Time) -> Option<Exchange> {
        if self.next_at > now || self.next_at == Time::NEVER {
            return None;
        }
        self.next_at = Time::NEVER;
        let length = self.left().min(self.pattern.segment);
        let (last, download) = self.last.map_or((length, None), |(last, took)| (last.length, Some(took)));
        let rung = self.chooser.choose(Situation { level: self.level(now), download, last });
        self.asked += length;
        self.coming = Some(RequestedSegment { rung, length, since: now });
        let factor = self.pattern.variation.draw(&mut self.random);
        let bytes = self.pattern.ladder[rung].as_bps() as f64 * length.as_secs_f64() / 8.0 * factor;
        let request = self.pattern.request.draw_bytes(&mut self.random);
        Some(Exchange { request, response: (bytes.round() as u64).clamp(1, Distribution::MOST_BYTES) })
    }

    /// The length of video not yet requested.
    fn left(&self) -> Span {
        self.pattern.length.map_or(self.pattern.segment, |length| length - self.asked)
    }

    /// Notes the arrival of a segment; returns the time since its request.
    pub fn answered(&mut self, now: Time) -> Option<Span> {
        let segment = self.coming.take()?;
        let took = now.since(segment.since);
        self.report.segments += 1;
        self.report.switches += u64::from(self.last.is_some_and(|(last, _)| last.rung != segment.rung));
        self.volume += u128::from(self.pattern.ladder[segment.rung].as_bps()) * u128::from(segment.length.as_nanos());
        self.last = Some((segment, took));
        let is_last = self.left() == Span::ZERO;
        self.play(now, segment.length, is_last);
        if !is_last {
            // The buffer shrinks only while it plays; before that there is room.
            let room_for = self.pattern.buffer - self.pattern.segment;
            self.next_at = match self.playback {
                Playback::Waiting { .. } => now,
                Playback::Playing { until } => now.max(until - room_for),
            };
        }
        Some(took)
    }

    /// Adds `length` to the buffer.
    fn play(&mut self, now: Time, length: Span, is_last: bool) {
        self.pause(now);
        match &mut self.playback {
            Playback::Playing { until } => *until += length,
            Playback::Waiting { since, held } => {
                *held += length;
                if *held < self.pattern.startup && !is_last {
                    return;
                }
                let waited = now.since(*since);
                match self.report.startup {
                    None => self.report.startup = Some(waited),
                    Some(_) => self.report.rebuffering += waited,
                }
                self.playback = Playback::Playing { until: now + *held };
            }
        }
    }

    /// Playback has paused if the buffer has been empty before.
    fn pause(&mut self, now: Time) {
        if let Playback::Playing { until } = self.playback
            && until < now
        {
            self.report.rebuffers += 1;
            self.playback = Playback::Waiting { since: until, held: Span::ZERO };
        }
    }

    /// The quality of playback until `end`.
    pub fn report(&self, end: Time) -> VideoReport {
        let mut seen = self.clone();
        if !self.is_done() {
            seen.pause(end);
        }
        let mut report = seen.report;
        let came = self.asked - self.coming.map_or(Span::ZERO, |segment| segment.length);
        report.played = match (seen.playback, report.startup) {
            (Playback::Waiting { since, held }, Some(_)) => {
                report.rebuffering += end.since(since);
                came - held
            }
            (Playback::Waiting { .. }, None) => Span::ZERO,
            (Playback::Playing { until }, _) => came - until.since(end),
        };
        if came > Span::ZERO {
            report.bitrate = self.volume as f64 / came.as_nanos() as f64;
        }
        report
    }
}

#[cfg(test)]
mod tests;
