//! `application = { kind = "web", ... }`: a browser that loads pages.

use ackclock_sim::spec::Application;
use ackclock_traffic::WebPattern;

use crate::distribution::{self, Unit};
use crate::fields::Fields;
use crate::keys;
use crate::quantity::{Flag, OrOff, Whole};

/// The most connections of a browser.
const MAX_CONNECTIONS: u64 = 1000;

/// Reads the keys of a browser. `None` was reported.
pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Application> {
    let page = distribution::read(fields, ("page", "size of a page's document"), Unit::Bytes);
    let objects = distribution::read(fields, ("objects", "objects of a page"), Unit::Count);
    let object = distribution::read(fields, ("object", "size of an object"), Unit::Bytes);
    let request = distribution::read_or(fields, keys::REQUEST_SIZE, Unit::Bytes, 300.0);
    let think = distribution::read_or(fields, keys::THINK, Unit::TimeOrNone, 0.0);
    let pages = fields.or(("pages", "how many pages"), None, OrOff(Whole(1, u64::MAX >> 8)));
    let connections =
        fields.or(("connections", "largest number of concurrent connections"), 6, Whole(1, MAX_CONNECTIONS)) as usize;
    let persistent = fields.or(keys::PERSISTENT, true, Flag);
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
