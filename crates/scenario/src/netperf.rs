//! `application = { kind = "netperf", ... }`: netperf's stream test, again and again.

use ackclock_sim::spec::Application;
use ackclock_traffic::{Exchange, NetperfPattern};
use ackclock_units::Span;

use crate::fields::Fields;
use crate::keys;
use crate::quantity::{Bytes, OrOff, Time, Whole};

/// 64 integers (`netlib.h`).
const MESSAGE: u64 = 256;
const MOST_BYTES: u64 = 1_000_000;

/// Reads the keys of the test.
pub(crate) fn read(fields: &mut Fields<'_>) -> Application {
    let length = fields.or(keys::LENGTH, Span::from_secs(10), Time::Positive);
    let request = fields.or(keys::REQUEST_SIZE, MESSAGE, Bytes(1, MOST_BYTES));
    let response = fields.or(keys::RESPONSE, MESSAGE, Bytes(1, MOST_BYTES));
    let patience =
        fields.or(("patience", "longest wait for a response of netperf"), Span::from_secs(60), Time::Positive);
    let tries =
        fields.or(("tries", "how many tries of netperf, one after another"), None, OrOff(Whole(1, u64::MAX >> 8)));
    Application::Netperf(NetperfPattern { length, control: Exchange { request, response }, patience, tries })
}
