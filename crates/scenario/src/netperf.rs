//! `application = { kind = "netperf", ... }`: netperf's stream test, again and again.

use ackclock_sim::spec::Application;
use ackclock_traffic::{Exchange, NetperfPattern};
use ackclock_units::Span;

use crate::fields::Fields;
use crate::quantity::{Bytes, OrOff, Time, Whole};

/// 64 integers (`netlib.h`).
const MESSAGE: u64 = 256;
const MOST_BYTES: u64 = 1_000_000;

/// Reads the keys of the test.
pub(crate) fn read(fields: &mut Fields<'_>) -> Application {
    let length = fields.or("length", Span::from_secs(10), Time::Positive);
    let request = fields.or("request_size", MESSAGE, Bytes(1, MOST_BYTES));
    let response = fields.or("response", MESSAGE, Bytes(1, MOST_BYTES));
    let patience = fields.or("patience", Span::from_secs(60), Time::Positive);
    let tries = fields.or("tries", None, OrOff(Whole(1, u64::MAX >> 8)));
    Application::Netperf(NetperfPattern { length, control: Exchange { request, response }, patience, tries })
}
