//! Numbers with meaning, shared by every crate: [`Time`] and [`Span`] in nanoseconds, [`Rate`] and
//! the [`Serializer`] that carries the sub-nanosecond remainder, [`Ecn`] codepoints, [`Random`]
//! streams, [rings](Ring), maths with the same results, to the bit, on every platform, the parsing of
//! quantities such as `20ms`, `10mbit`, `180p`, `50kB`, the description of [parameters](parameter),
//! and what algorithms [from outside](outside) have in common.

mod ecn;
pub mod maths;
pub mod outside;
pub mod parameter;
mod prefetch;
mod quantity;
mod random;
mod rate;
mod ring;
mod time;

pub use ecn::Ecn;
pub use prefetch::{prefetch, prefetch_part};
pub use quantity::{QuantityError, Size, parse_rate, parse_size, parse_span, quantity};
pub use random::{Random, splitmix64};
pub use rate::{Rate, Serializer};
pub use ring::Ring;
pub use time::{Span, Time};
