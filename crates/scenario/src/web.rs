//! `application = { kind = "web", ... }`: a browser that loads pages.

use ackclock_sim::spec::Application;
use ackclock_traffic::WebPattern;

use crate::distribution::{self, Unit};
use crate::fields::Fields;
use crate::quantity::{Flag, OrOff, Whole};

/// The most connections of a browser.
const MAX_CONNECTIONS: u64 = 1000;

/// Reads the keys of a browser. `None` was reported.
pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Application> {
    let page = distribution::read(fields, "page", Unit::Bytes);
    let objects = distribution::read(fields, "objects", Unit::Count);
    let object = distribution::read(fields, "object", Unit::Bytes);
    let request = distribution::read_or(fields, "request_size", Unit::Bytes, 300.0);
    let think = distribution::read_or(fields, "think", Unit::TimeOrNone, 0.0);
    let pages = fields.or("pages", None, OrOff(Whole(1, u64::MAX >> 8)));
    let connections = fields.or("connections", 6, Whole(1, MAX_CONNECTIONS)) as usize;
    let persistent = fields.or("persistent", true, Flag);
    Some(Application::Web(WebPattern {
        page: page?,
        objects: objects?,
        object: object?,
        request: request?,
        think: think?,
        pages,
        connections,
        persistent,
    }))
}
