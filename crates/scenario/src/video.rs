//! `application = { kind = "video", ... }`: a player of video in segments.

use std::sync::Arc;

use ackclock_sim::spec::Application;
use ackclock_traffic::{Adaptation, Bba, Bola, VideoPattern};
use ackclock_units::{Rate, Span};

use crate::distribution::{self, Unit};
use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::{self, Domain};
use crate::quantity::{Flag, Kind, Number, OneOf, OrOff, PlainRate, Problem, Time};

/// The most bitrates of a ladder.
const MAX_RUNGS: usize = 64;
/// The most segments that a buffer holds.
const MAX_SEGMENTS: u64 = 10_000;
/// The form of a ladder.
const EXAMPLE: &str = "bitrates in ascending order, such as [\"1mbit\", \"2.5mbit\", \"5mbit\"]";

pub(crate) const ALGORITHMS: OneOf<'_> = OneOf { what: "algorithm", names: &["bba", "bola"] };

/// Bitrates in ascending order.
struct Ladder;

impl Kind for Ladder {
    type Held = Arc<[Rate]>;

    fn read(&self, node: &Node) -> Result<Arc<[Rate]>, Problem> {
        let items = node.array().ok_or_else(|| Problem::of_type(EXAMPLE))?;
        if items.is_empty() || items.len() > MAX_RUNGS {
            return Err(Problem::new(format!("{} bitrates", items.len()), format!("from 1 to {MAX_RUNGS}")));
        }
        let rates: Vec<Rate> = items.iter().map(|item| PlainRate.read(item)).collect::<Result<_, _>>()?;
        if let Some(pair) = rates.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Problem::new(format!("{} follows {}", pair[1], pair[0]), EXAMPLE));
        }
        Ok(rates.into())
    }

    fn show(&self, held: &Arc<[Rate]>) -> Value {
        let place = crate::report::Place::new(0, 0..0);
        Value::Array(held.iter().map(|rate| Node::new(PlainRate.show(rate), place.clone())).collect())
    }

    fn domain(&self) -> Domain {
        Domain::List(Box::new(PlainRate.domain()))
    }
}

/// Reads the keys of a player. `None` was reported.
pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Application> {
    let ladder = fields.required(("ladder", "bitrates of the video"), Ladder, EXAMPLE);
    let segment = fields.or(("segment", "duration of a segment"), Span::from_secs(4), Time::Positive);
    let buffer = fields.or(("buffer", "capacity of the player's buffer, in video time"), segment * 15, Time::Positive);
    let startup = fields.or(("startup", "buffer level at which playback begins"), segment, Time::Positive);
    let length = fields.or(keys::LENGTH, None, OrOff(Time::Positive));
    let variation =
        distribution::read_or(fields, ("variation", "factor on the size of each segment"), Unit::Factor, 1.0);
    let request = distribution::read_or(fields, keys::REQUEST_SIZE, Unit::Bytes, 300.0);
    let adaptation =
        fields.choose(("algorithm", "the player's bitrate algorithm"), "bba", &ALGORITHMS, |name, fields| match name {
            "bola" => Adaptation::Bola(Bola {
                gamma_p: fields.or(("gamma_p", "weight of rebuffering in BOLA's utility"), 5.0, Number(0.01, 1000.0)),
            }),
            _ => Adaptation::Bba(bba(fields, segment, buffer)),
        });
    if buffer < segment * 2 || buffer > segment * MAX_SEGMENTS {
        let expected = format!("from 2 to {MAX_SEGMENTS} segments, of {segment} each");
        return refuse(fields, ["buffer", "segment"], &format!("holds {buffer}"), &expected);
    }
    if startup > buffer - segment {
        let title = format!("{startup} would not be in the buffer when it waits for room");
        let expected = format!("at most the buffer less a segment, {}", buffer - segment);
        return refuse(fields, ["startup", "buffer"], &title, &expected);
    }
    if let Adaptation::Bba(bba) = adaptation
        && bba.reservoir + bba.cushion > buffer
    {
        let title =
            format!("a reservoir of {} and a cushion of {} are more than the buffer", bba.reservoir, bba.cushion);
        return refuse(fields, ["algorithm", "buffer"], &title, &format!("at most {buffer} together"));
    }
    Some(Application::Video(VideoPattern {
        segment,
        ladder: ladder?,
        buffer,
        startup,
        length,
        variation: variation?,
        request: request?,
        adaptation,
    }))
}

/// The map of BBA; by default with the shares of the paper's buffer of 240 s, but reaching the
/// highest bitrate before the buffer is full.
fn bba(fields: &mut Fields<'_>, segment: Span, buffer: Span) -> Bba {
    let reservoir = fields.or(
        ("reservoir", "buffer level up to which BBA selects the lowest bitrate"),
        buffer * 90 / 240,
        Time::Any,
    );
    let top = (buffer * 216 / 240).min(buffer - segment);
    let least = Span::from_nanos(1);
    Bba {
        reservoir,
        cushion: fields.or(
            ("cushion", "length of BBA's line from the lowest bitrate to the highest"),
            (top - reservoir).max(least),
            Time::Positive,
        ),
        fast_start: fields.or(("fast_start", "begin as BBA-2 does"), false, Flag),
    }
}

/// Rejects the first of these keys that is there, else the whole.
fn refuse(fields: &mut Fields<'_>, keys: [&'static str; 2], title: &str, expected: &str) -> Option<Application> {
    let found = keys.into_iter().find_map(|key| fields.get(key).map(|entry| (key, &entry.node)));
    if let Some((key, node)) = found {
        fields.reject(key, node, Problem::new(title, expected));
    }
    None
}
