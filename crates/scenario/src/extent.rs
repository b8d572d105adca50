//! Limits and thresholds of a queue in other units than the discipline counts: packets for bytes
//! and the other way round, a time at the link's rate, and bandwidth-delay products.
//!
//! A packet is a full one, 1500 bytes and the framing of the link. A time is multiplied by the rate
//! of the direction. A bandwidth-delay product is this rate times the round trip of a path without
//! queues: the delays of its links, both ways. Without a path it is that of the link itself. That
//! of several paths together, of a flow that is spread over them, is the sum of their rates times
//! the longest of their round trips; the rate of a path is the lowest of its links. Fractions of
//! packets or bytes are rounded up. On a link that changes, all of this is taken at its start, with
//! the mean rate of a trace; in a `schedule`, the rate is that of the change.

use ackclock_sim::spec::Overhead;
use ackclock_units::parameter::{Domain, Parameter};
use ackclock_units::{Rate, Size, Span, parse_size, parse_span};

use crate::document::{Node, Table, Value};
use crate::fields::Fields;
use crate::quantity::{Bytes, Kind, Number, Packets, Problem, RateOrUnlimited, Time};

/// Bytes of a full packet.
const FULL: u32 = 1500;

/// The most bandwidth-delay products.
const MOST_BDP: f64 = 1e6;

/// Alternatives to a size, for errors.
pub(crate) const OTHERS: &str =
    "a time at the link's rate, such as \"50ms\", or bandwidth-delay products, such as \"1bdp\"";

/// The form of a path of a bandwidth-delay product.
const A_PATH: &str = "a table such as { bdp = 1 }, { bdp = 0.5, path = \"FLOW\" } with a flow or a list of links, or \
     { bdp = 1, aggregate = \"FLOW\" } with a flow over several paths";

/// Parameters that are a size, and no part of a queue's length.
const OF_ONE_PACKET: [&str; 5] = ["mtu", "mpu", "quantum", "avpkt", "overhead"];

/// The reference of a queue's sizes.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// Where the queue is.
    pub(crate) link: String,
    /// The rate; `None` is unlimited.
    pub(crate) rate: Option<Rate>,
    /// The framing of packets.
    pub(crate) overhead: Overhead,
}

/// The unit in which a discipline counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Packets,
    /// Either; what is neither becomes bytes.
    Any,
}

/// An amount as it stands in the file.
enum Amount {
    Size(Size),
    Time(Span),
    /// A number of products of the rate and this round trip.
    Products(f64, Span),
    /// A number of products of this rate and this round trip.
    Aggregate(f64, Rate, Span),
}

impl Extent {
    /// The value of a parameter in the unit of its domain; `None` if it is in that unit already, or
    /// is nothing of the kind.
    pub(crate) fn of(&self, fields: &Fields<'_>, of: &Parameter, node: &Node) -> Option<Result<Node, Problem>> {
        let unit = unit(of)?;
        let amount = match &node.value {
            Value::String(text) => match products(text) {
                Some(products) => self.products(fields, products, None),
                None => Ok(amount(text)?),
            },
            Value::Table(table) => self.table(fields, table),
            _ => return None,
        };
        let came_to = amount.and_then(|amount| match (amount, unit) {
            (Amount::Size(size @ Size::Bytes(_)), Unit::Bytes | Unit::Any)
            | (Amount::Size(size @ Size::Packets(_)), Unit::Packets | Unit::Any) => Ok((size, false)),
            (amount, unit) => Ok((self.size(&amount, unit)?, true)),
        });
        match came_to {
            Ok((_, false)) => None,
            Ok((size, true)) => {
                let value = match size {
                    Size::Bytes(bytes) => Bytes(0, u64::MAX).show(&bytes),
                    Size::Packets(packets) => Packets(0, u64::MAX).show(&packets),
                };
                Some(Ok(Node::new(value, node.place.clone())))
            }
            Err(problem) => Some(Err(problem)),
        }
    }

    fn size(&self, amount: &Amount, unit: Unit) -> Result<Size, Problem> {
        let full = u64::from(self.overhead.of(FULL));
        let too_large = || Problem::new("too large", "a size of less than 2^64 bytes");
        let bytes = match *amount {
            Amount::Size(Size::Bytes(bytes)) => bytes,
            Amount::Size(Size::Packets(packets)) => packets.checked_mul(full).ok_or_else(too_large)?,
            Amount::Time(span) => self.bytes_in(span)?,
            Amount::Products(factor, round_trip) => {
                let bits = self.rate()?.as_bps() as f64 * round_trip.as_secs_f64() * factor;
                // Larger values become the largest number there is.
                (bits / 8.0).ceil() as u64
            }
            Amount::Aggregate(factor, rate, round_trip) => {
                (rate.as_bps() as f64 * round_trip.as_secs_f64() * factor / 8.0).ceil() as u64
            }
        };
        Ok(match unit {
            Unit::Packets => Size::Packets(bytes.div_ceil(full)),
            Unit::Bytes | Unit::Any => Size::Bytes(bytes),
        })
    }

    fn rate(&self) -> Result<Rate, Problem> {
        self.rate.ok_or_else(|| {
            let expected = "packets or bytes, such as \"180p\" or \"50kB\", or a link with a rate";
            Problem::new(format!("the rate of `{}` is unlimited", self.link), expected)
        })
    }

    fn bytes_in(&self, span: Span) -> Result<u64, Problem> {
        let work = u128::from(self.rate()?.as_bps()) * u128::from(span.as_nanos());
        Ok(u64::try_from(work.div_ceil(8_000_000_000)).unwrap_or(u64::MAX))
    }

    fn products(&self, fields: &Fields<'_>, factor: f64, path: Option<&Node>) -> Result<Amount, Problem> {
        let links = match path {
            None => vec![self.link.clone()],
            Some(path) => links(fields, path)?,
        };
        let mut round_trip = Span::ZERO;
        for name in &links {
            round_trip += delays(fields, name).ok_or_else(|| {
                Problem::new(format!("the delay of the link `{name}` is not known"), "links with a `delay`")
            })?;
        }
        if round_trip == Span::ZERO {
            let path = links.join("`, `");
            let expected = "a path with a `delay`, or a size in packets, bytes or time";
            return Err(Problem::new(format!("the round trip over `{path}` is 0"), expected));
        }
        Ok(Amount::Products(factor, round_trip))
    }

    fn table(&self, fields: &Fields<'_>, table: &Table) -> Result<Amount, Problem> {
        if let Some(unknown) = table.keys().find(|key| !["bdp", "path", "aggregate"].contains(key)) {
            return Err(Problem::new(format!("unknown key `{unknown}`"), A_PATH));
        }
        let Some(bdp) = table.get("bdp") else { return Err(Problem::new("the key `bdp` is missing", A_PATH)) };
        let factor = Number(f64::MIN_POSITIVE, MOST_BDP).read(&bdp.node).map_err(|problem| {
            Problem::new(format!("bdp: {}", problem.title), format!("a number above 0, up to {MOST_BDP}"))
        })?;
        match (table.get("path"), table.get("aggregate")) {
            (Some(_), Some(_)) => Err(Problem::new("`path` and `aggregate` exclude each other", A_PATH)),
            (path, None) => self.products(fields, factor, path.map(|entry| &entry.node)),
            (None, Some(flow)) => {
                aggregate(fields, &flow.node).map(|(rate, longest)| Amount::Aggregate(factor, rate, longest))
            }
        }
    }
}

/// The rates of all paths of a flow together, and the longest of their round trips.
fn aggregate(fields: &Fields<'_>, flow: &Node) -> Result<(Rate, Span), Problem> {
    let found = flow.str().and_then(|id| self::flow(fields, id));
    let found = found.ok_or_else(|| Problem::new("aggregate: there is no such flow", A_PATH))?;
    let paths = found.get("paths").or_else(|| found.get("subflows")).and_then(|entry| entry.node.array());
    let Some(paths) = paths.filter(|paths| !paths.is_empty()) else {
        return Err(Problem::new("aggregate: the flow has a single path", "a flow with `paths` or `subflows`"));
    };
    let (mut sum, mut longest) = (0u64, Span::ZERO);
    for path in paths {
        let links = listed(path).ok_or_else(|| Problem::new("aggregate: a path is no list of links", A_PATH))?;
        let mut round_trip = Span::ZERO;
        for name in &links {
            round_trip += delays(fields, name).ok_or_else(|| {
                Problem::new(format!("the delay of the link `{name}` is not known"), "links with a `delay`")
            })?;
        }
        let lowest = links.iter().filter_map(|name| rate_of(fields, name)).map(Rate::as_bps).min();
        sum = sum.saturating_add(lowest.ok_or_else(|| {
            Problem::new(format!("no link of `{}` has a rate", links.join("`, `")), "paths with a rate")
        })?);
        longest = longest.max(round_trip);
    }
    if longest == Span::ZERO {
        return Err(Problem::new("aggregate: the round trips are 0", "paths with a `delay`"));
    }
    let rate = Rate::from_bps(sum).ok_or_else(|| Problem::new("aggregate: the rates are 0", "paths with a rate"))?;
    Ok((rate, longest))
}

fn unit(of: &Parameter) -> Option<Unit> {
    let unit = match of.domain {
        Domain::Bytes(..) | Domain::PartOfLimit { packets: false, .. } => Unit::Bytes,
        Domain::Packets(..) | Domain::PartOfLimit { packets: true, .. } => Unit::Packets,
        Domain::Size(..) => Unit::Any,
        _ => return None,
    };
    (!OF_ONE_PACKET.contains(&of.name)).then_some(unit)
}

/// Returns `true` if a parameter may be given in other units.
pub(crate) fn applies(of: &Parameter) -> bool {
    unit(of).is_some()
}

/// The number of bandwidth-delay products that a text says.
fn products(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix("bdp")?.trim_end();
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    number.parse().ok().filter(|&number: &f64| plain && number <= MOST_BDP)
}

fn amount(text: &str) -> Option<Amount> {
    if let Ok(size) = parse_size(text) {
        return Some(Amount::Size(size));
    }
    parse_span(text).ok().map(Amount::Time)
}

/// The links of a path: those that it lists, or those of a flow.
fn links(fields: &Fields<'_>, path: &Node) -> Result<Vec<String>, Problem> {
    let Some(flow) = path.str() else {
        return listed(path).ok_or_else(|| Problem::new("path: neither a flow nor a list of links", A_PATH));
    };
    let Some(found) = self::flow(fields, flow) else {
        return Err(Problem::new(format!("path: there is no flow `{flow}`"), A_PATH));
    };
    found.get("path").and_then(|entry| listed(&entry.node)).ok_or_else(|| {
        Problem::new(format!("path: the flow `{flow}` has no `path` of its own"), "a list of links instead")
    })
}

/// The names that a list has, at least one.
fn listed(node: &Node) -> Option<Vec<String>> {
    let items = node.array().filter(|items| !items.is_empty())?;
    items.iter().map(|item| item.str().map(str::to_owned)).collect()
}

/// The section of the flow with this id.
fn flow<'f>(fields: &Fields<'f>, id: &str) -> Option<&'f Table> {
    let flows = fields.document().and_then(|root| root.get("flows")?.node.array()).unwrap_or_default();
    let is_it = |table: &&Table| table.get("id").and_then(|entry| entry.node.str()) == Some(id);
    flows.iter().filter_map(Node::table).find(is_it)
}

/// The rate of a link on its way forward; `None` if it has none, or a wrong one, which is reported
/// where it is read.
fn rate_of(fields: &Fields<'_>, name: &str) -> Option<Rate> {
    let link = fields.document()?.get("links")?.node.table()?.get(name)?.node.table()?;
    RateOrUnlimited.read(&link.get("rate")?.node).ok()?
}

/// The delays of a link, both ways; `None` if there is no such link, or its delay is wrong, which
/// is reported where it is read.
fn delays(fields: &Fields<'_>, name: &str) -> Option<Span> {
    let link = fields.document()?.get("links")?.node.table()?.get(name)?.node.table()?;
    let delay = |table: &Table, base: Span| match table.get("delay") {
        Some(entry) => Time::Any.read(&entry.node).ok(),
        None => Some(base),
    };
    let forward = delay(link, Span::ZERO)?;
    let reverse = match link.get("reverse").and_then(|entry| entry.node.table()) {
        Some(reverse) => delay(reverse, forward)?,
        None => forward,
    };
    Some(forward + reverse)
}
