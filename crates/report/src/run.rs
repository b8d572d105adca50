//! The records of runs: series, decisions of queues, and what a sender learnt.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;

use anyhow::Context;
use csv::{Reader, StringRecord};
use serde_json::{Map, Value, json};

use crate::columns::numbers;
use crate::read::{CollectedRuns, OutputDir};

/// The most numbers in a page: some 8 bytes each.
const MOST_NUMBERS: usize = 3_000_000;

/// The most points of a kind in one picture of a record of all packets: beyond them every second
/// one is left out, and so on.
const MOST_POINTS: usize = 20_000;

/// The greatest displacement that has a bar of its own, as in summaries.
const MOST_DISPLACED: i64 = 256;

/// The most flows of which there is a sequence diagram.
const MOST_FLOWS: usize = 8;

/// The contents of a report.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The runs of sweeps whose records are shown, by their index; without any the first repetition
    /// of each point, as far as there is room.
    pub runs: Vec<u64>,
}

/// The records of the requested runs, or of the first repetitions.
pub(crate) fn all(results: &CollectedRuns, options: &Options, notes: &mut Vec<String>) -> anyhow::Result<Vec<Value>> {
    let asked = |run: &usize| options.runs.contains(&results.runs[*run].index);
    let runs: Vec<usize> = match options.runs.is_empty() {
        true => results.first_runs(),
        false => (0..results.runs.len()).filter(asked).collect(),
    };
    if let Some(missing) = options.runs.iter().find(|&&run| !results.runs.iter().any(|found| found.index == run)) {
        anyhow::bail!("there is no run {missing}; runs count from 0");
    }
    let (mut found, mut left) = (Vec::new(), MOST_NUMBERS);
    for (number, &run) in runs.iter().enumerate() {
        let Some(records) = of(results, run)? else { continue };
        let size = size_of(&records);
        if size > left {
            let shown = found.len();
            notes.push(format!("Records of {shown} of {} runs are shown: --run N chooses others.", runs.len()));
            if shown == 0 && number == 0 {
                notes.push("Longer intervals of the series, or a shorter run, have fewer points.".to_owned());
            }
            break;
        }
        left -= size;
        found.push(records);
    }
    Ok(found)
}

/// The number of scalars in a value.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(size_of).sum(),
        Value::Object(keys) => keys.values().map(size_of).sum(),
        _ => 1,
    }
}

/// The records of a run; `None` without any.
fn of(results: &CollectedRuns, run: usize) -> anyhow::Result<Option<Value>> {
    let of = &results.runs[run];
    let output = &results.outputs[of.output];
    let series = open(output, of.index, "series.csv")?.map(series).transpose()?;
    let queue = open(output, of.index, "queue.csv")?.map(queue).transpose()?;
    let tcp = open(output, of.index, "tcp.csv")?.map(tcp).transpose()?;
    let reordering = open(output, of.index, "reordering.csv")?.map(reordering).transpose()?;
    let gradients = open(output, of.index, "ertt.csv")?.map(gradients).transpose()?.filter(|found| !found.is_empty());
    let displacements = open(output, of.index, "displacement.csv")?.map(displacements).transpose()?;
    let displacements = displacements.filter(|found| !found.is_empty());
    let has_flows = gradients.is_some() || displacements.is_some();
    if series.is_none() && queue.is_none() && tcp.is_none() && reordering.is_none() && !has_flows {
        return Ok(None);
    }
    let (queues, sent) = queue.unwrap_or_default();
    let sequences = sequences(sent, tcp.unwrap_or_default());
    Ok(Some(json!({
        "run": run,
        "name": results.name_of(run),
        "duration_s": of.duration_s,
        "series": series,
        "queues": queues,
        "sequences": sequences,
        "gradients": gradients.unwrap_or_default(),
        "displacements": displacements.unwrap_or_default(),
        "reordering": reordering,
        "densities": of.densities,
        "changes": of.changes,
    })))
}

/// A record with its name, for errors.
struct CsvSheet {
    name: String,
    reader: Reader<File>,
    columns: BTreeMap<String, usize>,
}

/// Opens a record of a run, if it was written.
fn open(output: &OutputDir, index: u64, file: &str) -> anyhow::Result<Option<CsvSheet>> {
    let name = match output.is_sweep {
        true => {
            let folder = |digits: usize| format!("runs/{index:0digits$}/{file}");
            // As many digits as the number of the last run has.
            (4..=20).map(folder).find(|name| output.has(name)).unwrap_or_default()
        }
        false => file.to_owned(),
    };
    if !output.has(&name) {
        return Ok(None);
    }
    let path = output.dir.join(&name);
    let mut reader = Reader::from_reader(output.open(&name)?);
    let header = reader.headers().with_context(|| format!("cannot read {}", path.display()))?;
    let columns = header.iter().enumerate().map(|(place, name)| (name.to_owned(), place)).collect();
    Ok(Some(CsvSheet { name: path.display().to_string(), reader, columns }))
}

impl CsvSheet {
    /// The place of a column.
    fn column(&self, name: &str) -> anyhow::Result<usize> {
        self.columns.get(name).copied().with_context(|| format!("{} has no column `{name}`", self.name))
    }

    /// The next row.
    fn next(&mut self, row: &mut StringRecord) -> anyhow::Result<bool> {
        self.reader.read_record(row).with_context(|| format!("cannot read {}", self.name))
    }
}

fn number(row: &StringRecord, place: usize) -> Option<f64> {
    row.get(place)?.parse().ok()
}

/// The columns of flows, groups and links over time; classes are drawn as links are.
fn series(mut sheet: CsvSheet) -> anyhow::Result<Value> {
    let [from, to, kind, id] = ["from_s", "to_s", "kind", "id"].map(|name| sheet.column(name));
    let (from, to, kind, id) = (from?, to?, kind?, id?);
    let metrics: Vec<(String, usize)> = (sheet.columns.iter())
        .filter(|&(_, &place)| ![from, to, kind, id].contains(&place))
        .map(|(name, &place)| (name.clone(), place))
        .collect();
    let mut order: Vec<(String, String)> = Vec::new();
    let mut found: BTreeMap<(String, String), Vec<Vec<Option<f64>>>> = BTreeMap::new();
    let mut row = StringRecord::new();
    while sheet.next(&mut row)? {
        let kind = if row[kind] == *"class" { "link" } else { &row[kind] };
        let key = (kind.to_owned(), row[id].to_owned());
        let columns = found.entry(key).or_insert_with_key(|key| {
            order.push(key.clone());
            vec![Vec::new(); metrics.len() + 2]
        });
        let values = [from, to].into_iter().chain(metrics.iter().map(|metric| metric.1));
        columns.iter_mut().zip(values).for_each(|(column, place)| column.push(number(&row, place)));
    }
    let all = order.into_iter().filter_map(|key| {
        let columns = found.remove(&key)?;
        let mut values = Map::new();
        let names = ["from_s", "to_s"].into_iter().chain(metrics.iter().map(|metric| metric.0.as_str()));
        for (name, column) in names.zip(&columns).filter(|(_, column)| column.iter().any(Option::is_some)) {
            values.insert(name.to_owned(), numbers(column.iter().copied()));
        }
        Some(json!({ "kind": key.0, "id": key.1, "values": values }))
    });
    Ok(all.collect())
}

/// Reordering over time: columns for each flow and place.
fn reordering(mut sheet: CsvSheet) -> anyhow::Result<Value> {
    const COLUMNS: [&str; 10] = [
        "time_s",
        "reordered_ratio",
        "early",
        "on_time",
        "late",
        "displacement_min",
        "displacement_p25",
        "displacement_p50",
        "displacement_p75",
        "displacement_max",
    ];
    // Files had none before.
    const LATER: &str = "duplicates";
    let (flow, tap) = (sheet.column("flow")?, sheet.column("tap")?);
    let names: Vec<&str> = COLUMNS.into_iter().chain(sheet.columns.contains_key(LATER).then_some(LATER)).collect();
    let places = names.iter().map(|name| sheet.column(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut found: Vec<(String, Vec<Vec<Option<f64>>>)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut row = StringRecord::new();
    while sheet.next(&mut row)? {
        let name = format!("{} at {}", &row[flow], &row[tap]);
        let at = *known.entry(name).or_insert_with_key(|name| {
            found.push((name.clone(), vec![Vec::new(); names.len()]));
            found.len() - 1
        });
        found[at].1.iter_mut().zip(&places).for_each(|(column, &place)| column.push(number(&row, place)));
    }
    let object = |(name, columns): (String, Vec<Vec<Option<f64>>>)| {
        let values: Map<String, Value> =
            names.iter().zip(columns).map(|(name, column)| ((*name).to_owned(), numbers(column.into_iter()))).collect();
        json!({ "id": name, "values": values })
    };
    Ok(found.into_iter().map(object).collect())
}

/// Points of which every second one is left out whenever there are too many.
#[derive(Debug)]
struct Thinned {
    points: Vec<Vec<f64>>,
    every: usize,
    seen: usize,
}

impl Default for Thinned {
    fn default() -> Thinned {
        Thinned { points: Vec::new(), every: 1, seen: 0 }
    }
}

impl Thinned {
    fn add(&mut self, point: &[f64]) {
        if self.seen.is_multiple_of(self.every) {
            if self.points.len() == MOST_POINTS {
                let mut place = 0;
                self.points.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.points.push(point.to_vec());
            }
        }
        self.seen += 1;
    }

    fn json(&self) -> Value {
        let points = self.points.iter().map(|point| numbers(point.iter().copied().map(Some)));
        json!({ "points": points.collect::<Vec<_>>(), "of": self.seen })
    }
}

/// The data that flows sent, and the dropped part.
type Sent = BTreeMap<String, [Thinned; 2]>;

/// The decisions of queues, by link direction, and the segments that flows sent into the first of
/// them.
fn queue(mut sheet: CsvSheet) -> anyhow::Result<(Map<String, Value>, Sent)> {
    let names = ["time_s", "link", "flow", "seq_bytes", "action", "sojourn_ms", "probability", "backlog_packets"];
    let places = names.iter().map(|name| sheet.column(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let [time, link, flow, seq, action, sojourn, probability, backlog] = places[..] else {
        return Ok(Default::default());
    };
    let mut links: Vec<(String, BTreeMap<&str, Thinned>)> = Vec::new();
    let mut sent = Sent::new();
    // The link on which a flow's data was seen first.
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut row = StringRecord::new();
    while sheet.next(&mut row)? {
        let Some(at) = number(&row, time) else { continue };
        let place = links.iter().position(|known| known.0 == row[link]).unwrap_or_else(|| {
            links.push((row[link].to_owned(), BTreeMap::new()));
            links.len() - 1
        });
        let kinds = &mut links[place].1;
        let waited = number(&row, sojourn).unwrap_or(0.0);
        match &row[action] {
            "dequeue" => kinds.entry("delay_ms").or_default().add(&[at, waited]),
            "drop" => kinds.entry("drops").or_default().add(&[at, waited]),
            "mark" => kinds.entry("marks").or_default().add(&[at, waited]),
            _ => {}
        }
        if let Some(probability) = number(&row, probability) {
            kinds.entry("probability").or_default().add(&[at, probability]);
        }
        if let Some(backlog) = number(&row, backlog) {
            kinds.entry("backlog").or_default().add(&[at, backlog]);
        }
        let is_offer = &row[action] == "enqueue" || (&row[action] == "drop" && row[sojourn].is_empty());
        if let Some(seq) = number(&row, seq) {
            let flow = &row[flow];
            if !first.contains_key(flow) {
                first.insert(flow.to_owned(), row[link].to_owned());
            }
            if first[flow] == row[link] && (sent.contains_key(flow) || sent.len() < MOST_FLOWS) {
                let [offered, dropped] = sent.entry(flow.to_owned()).or_default();
                if is_offer {
                    offered.add(&[at, seq]);
                }
                if &row[action] == "drop" {
                    dropped.add(&[at, seq]);
                }
            }
        }
    }
    let links = links.into_iter().map(|(link, kinds)| {
        let kinds: Map<String, Value> = kinds.iter().map(|(&kind, points)| (kind.to_owned(), points.json())).collect();
        (link, Value::Object(kinds))
    });
    Ok((links.collect(), sent))
}

/// The ACKs of a flow, and its retransmissions.
#[derive(Debug, Default)]
struct AckHistory {
    acked: Thinned,
    /// The end of what was SACKed.
    sacked: Thinned,
    again: Thinned,
    lost: Thinned,
}

fn tcp(mut sheet: CsvSheet) -> anyhow::Result<BTreeMap<String, AckHistory>> {
    let names = ["time_s", "flow", "event", "ack_bytes", "fackets_out", "seq_bytes", "len_bytes", "since_s"];
    let places = names.iter().map(|name| sheet.column(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let [time, flow, event, ack, fackets, seq, len, since] = places[..] else { return Ok(BTreeMap::new()) };
    // Earlier versions had none.
    let subflow = sheet.columns.get("subflow").copied();
    let mut flows: BTreeMap<String, AckHistory> = BTreeMap::new();
    let mut row = StringRecord::new();
    while sheet.next(&mut row)? {
        let name = flow_of(&row, flow, subflow);
        if !flows.contains_key(&*name) && flows.len() == MOST_FLOWS {
            continue;
        }
        let learnt = flows.entry(name.into_owned()).or_default();
        match &row[event] {
            "ack" => {
                let (Some(at), Some(ack)) = (number(&row, time), number(&row, ack)) else { continue };
                learnt.acked.add(&[at, ack]);
                if let Some(fackets) = number(&row, fackets).filter(|&fackets| fackets > 0.0) {
                    learnt.sacked.add(&[at, ack, fackets]);
                }
            }
            kind => {
                let (Some(at), Some(seq)) = (number(&row, since), number(&row, seq)) else { continue };
                let to = seq + number(&row, len).unwrap_or(0.0);
                let points = if kind == "retransmission" { &mut learnt.again } else { &mut learnt.lost };
                points.add(&[at, seq, to]);
            }
        }
    }
    Ok(flows)
}

/// The gradients of delay inferred by controllers, by flow: `points` of time, both gradients in ms,
/// index in `states` of the state of the queue, congestion window and shadow window in bytes.
fn gradients(mut sheet: CsvSheet) -> anyhow::Result<Map<String, Value>> {
    const STATES: [&str; 5] = ["unknown", "empty", "falling", "rising", "full"];
    // Earlier versions had none.
    if !sheet.columns.contains_key("queue_state") {
        return Ok(Map::new());
    }
    let names = ["time_s", "gradient_min_ms", "gradient_max_ms", "cwnd_bytes", "shadow_window_bytes"];
    let places = names.iter().map(|name| sheet.column(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let (flow, subflow, state) = (sheet.column("flow")?, sheet.column("subflow")?, sheet.column("queue_state")?);
    let mut flows: BTreeMap<String, Thinned> = BTreeMap::new();
    let mut row = StringRecord::new();
    while sheet.next(&mut row)? {
        let Some(state) = STATES.iter().position(|known| *known == &row[state]) else { continue };
        let values: Vec<f64> = places.iter().filter_map(|&place| number(&row, place)).collect();
        let [at, min, max, cwnd, shadow] = values[..] else { continue };
        let name = flow_of(&row, flow, Some(subflow));
        if !flows.contains_key(&*name) && flows.len() == MOST_FLOWS {
            continue;
        }
        flows.entry(name.into_owned()).or_default().add(&[at, min, max, state as f64, cwnd, shadow]);
    }
    let object = |(flow, points): (String, Thinned)| {
        let mut object = points.json();
        object["states"] = json!(STATES);
        (flow, object)
    };
    Ok(flows.into_iter().map(object).collect())
}

/// The displacements of the packets of flows: `points` of time and displacement, and their
/// `density`: displacements with their shares, ascending.
fn displacements(mut sheet: CsvSheet) -> anyhow::Result<Map<String, Value>> {
    let [time, flow, displacement] = ["time_s", "flow", "displacement"].map(|name| sheet.column(name));
    let (time, flow, displacement) = (time?, flow?, displacement?);
    let mut flows: BTreeMap<String, (Thinned, BTreeMap<i64, u64>)> = BTreeMap::new();
    let mut row = StringRecord::new();
    while sheet.next(&mut row)? {
        let (Some(at), Some(by)) = (number(&row, time), number(&row, displacement)) else { continue };
        if !flows.contains_key(&row[flow]) && flows.len() == MOST_FLOWS {
            continue;
        }
        let (points, counts) = flows.entry(row[flow].to_owned()).or_default();
        points.add(&[at, by]);
        *counts.entry(by as i64).or_default() += 1;
    }
    let object = |(flow, (points, counts)): (String, (Thinned, BTreeMap<i64, u64>))| {
        let share = |count: u64| count as f64 / points.seen as f64;
        let shown = counts.into_iter().filter(|(by, _)| by.abs() <= MOST_DISPLACED);
        let density = shown.map(|(by, count)| numbers([by as f64, share(count)].into_iter().map(Some)));
        let mut object = points.json();
        object["density"] = density.collect();
        (flow, object)
    };
    Ok(flows.into_iter().map(object).collect())
}

/// The flow of a row, or its subflow.
fn flow_of(row: &StringRecord, flow: usize, subflow: Option<usize>) -> Cow<'_, str> {
    match subflow.and_then(|subflow| row.get(subflow)).filter(|subflow| !subflow.is_empty()) {
        Some(subflow) => Cow::Owned(format!("{}.subflow{subflow}", &row[flow])),
        None => Cow::Borrowed(&row[flow]),
    }
}

/// The sequence diagram of each flow.
fn sequences(sent: Sent, learnt: BTreeMap<String, AckHistory>) -> Map<String, Value> {
    let mut flows: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (flow, [offered, dropped]) in &sent {
        let all = flows.entry(flow.clone()).or_default();
        all.insert("sent".to_owned(), offered.json());
        all.insert("dropped".to_owned(), dropped.json());
    }
    for (flow, learnt) in &learnt {
        let all = flows.entry(flow.clone()).or_default();
        let kinds =
            [("acked", &learnt.acked), ("sacked", &learnt.sacked), ("again", &learnt.again), ("lost", &learnt.lost)];
        all.extend(kinds.map(|(kind, points)| (kind.to_owned(), points.json())));
    }
    flows.into_iter().map(|(flow, all)| (flow, Value::Object(all))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_point_is_left_out_when_there_are_too_many() {
        let mut thinned = Thinned::default();
        let most = MOST_POINTS as u32;
        for number in 0..5 * most {
            thinned.add(&[f64::from(number)]);
        }
        assert_eq!((thinned.seen, thinned.every), (5 * MOST_POINTS, 8));
        assert!(thinned.points.iter().enumerate().all(|(place, point)| point[0] == 8.0 * place as f64));
        assert_eq!(thinned.points.len(), 5 * MOST_POINTS / 8);
    }
}
