//! The errors of metrics that do not exist.

use super::subject::{MetricSubject, Part, Shape, UnknownMetric, fields, glob};
use crate::report::{listed, nearest};

/// Says which part of the path is wrong, and what it may have been.
pub(super) fn unknown(text: &str, part: Part, shape: &Shape) -> UnknownMetric {
    let top = || part.top().iter().copied();
    let live = part == Part::Run && !shape.hosts.is_empty();
    let of = match text.split('.').next() {
        Some("flows") => MetricSubject::Flows,
        Some("groups") if part == Part::Run && !shape.groups.is_empty() => MetricSubject::Groups,
        Some("workloads") if part == Part::Run && !shape.workloads.is_empty() => MetricSubject::Workloads,
        Some("links") => MetricSubject::Links,
        Some("commands") if live => MetricSubject::Commands,
        Some("live") if live && text.starts_with("live.hosts.") => MetricSubject::Hosts,
        Some("live") if live => {
            let fields = fields(part, MetricSubject::Live);
            let field = text.strip_prefix("live.").unwrap_or("");
            let near = nearest(field, fields.iter().map(String::as_str))
                .or_else(|| fields.iter().map(String::as_str).find(|known| known.starts_with(&format!("{field}."))));
            let suggestion = near.map(|near| format!("live.{near}"));
            let expected =
                format!("`live.hosts.ID.NAME`, or `live.` and one of {}", listed(fields.iter().map(String::as_str)));
            return UnknownMetric { expected, suggestion };
        }
        first => {
            let first = first.unwrap_or("");
            let further: &[&str] = if live { &["flows", "links", "live", "commands"] } else { &["flows", "links"] };
            let suggestion = nearest(first, top().chain(further.iter().copied()));
            let suggestion = suggestion.map(|name| text.replacen(first, name, 1)).filter(|_| !further.contains(&first));
            let further = if live { ", `live.NAME`, `commands.ID.NAME`" } else { "" };
            let expected = format!("{}{further}, `flows.ID.NAME` or `links.ID.NAME`", listed(top()));
            return UnknownMetric { expected, suggestion };
        }
    };
    let prefix = of.prefix();
    let ids: Vec<String> = shape.ids(of).take(1000).collect();
    let fields = fields(part, of);
    // The part that can be told apart as an id is kept; the rest is compared with every name.
    let rest = &text[prefix.len()..].strip_prefix('.').unwrap_or("");
    let cuts = rest.match_indices('.').map(|(at, _)| at);
    let selected = cuts.filter(|&at| ids.iter().any(|id| glob(&rest[..at], id))).max();
    // A class that there is not, and no field of the workload.
    let is_class = |at: usize| fields.iter().any(|field| rest[at..].ends_with(&format!(".{field}")));
    match selected.filter(|&at| of != MetricSubject::Workloads || !is_class(at)) {
        Some(at) => {
            let (selector, field) = (&rest[..at], &rest[at + 1..]);
            let near = nearest(field, fields.iter().map(String::as_str))
                .or_else(|| fields.iter().map(String::as_str).find(|known| known.starts_with(&format!("{field}."))));
            let suggestion = near.map(|near| format!("{prefix}.{selector}.{near}"));
            let further = if of == MetricSubject::Commands { ", or `json.` and a path in its output" } else { "" };
            UnknownMetric { expected: format!("one of {}{further}", shown(field, &fields)), suggestion }
        }
        None => {
            let known = fields.iter().filter(|field| rest.ends_with(field.as_str())).max_by_key(|field| field.len());
            let selector = known.map_or(*rest, |field| rest[..rest.len() - field.len()].trim_end_matches('.'));
            let near = nearest(selector, ids.iter().map(String::as_str))
                .or_else(|| ids.iter().map(String::as_str).find(|id| id.starts_with(&format!("{selector}."))));
            let suggestion = near.zip(known).map(|(id, field)| format!("{prefix}.{id}.{field}"));
            let some = listed(ids.iter().take(10).map(String::as_str));
            let expected = match ids.is_empty() {
                true => format!("`{prefix}.*.NAME`; the scenario has no {prefix}"),
                false => format!("`{prefix}.ID.NAME` with an id of {some}, or `*` in it"),
            };
            UnknownMetric { expected, suggestion }
        }
    }
}

/// Metrics among which `field` is looked for: those of its first part, or the first parts of all
/// of them.
fn shown(field: &str, fields: &[String]) -> String {
    let first = |name: &str| name.split('.').next().unwrap_or("").to_owned();
    let same: Vec<&str> = fields.iter().map(String::as_str).filter(|known| first(known) == first(field)).collect();
    if !same.is_empty() {
        return listed(same);
    }
    let mut parts: Vec<String> = Vec::new();
    for known in fields {
        let part = if known.contains('.') { format!("{}.NAME", first(known)) } else { known.clone() };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    listed(parts.iter().map(String::as_str))
}
