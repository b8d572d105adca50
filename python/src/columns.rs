//! Rows of JSON or CSV as typed columns.
//!
//! A column has the narrowest type that holds all its values: booleans, whole numbers, numbers,
//! text. Without any value it is of numbers. Objects within objects become columns whose names are
//! joined by dots; lists stay JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, NullArray, RecordBatch, RecordBatchOptions,
};
use arrow_schema::{ArrowError, Field, Schema};
use serde_json::{Map, Value};

/// Columns of records whose values are names, whatever they look like.
const NAMES: [&str; 10] = ["kind", "id", "link", "flow", "action", "reason", "event", "ca_state", "workload", "tap"];

#[derive(Debug)]
enum Data {
    Empty(usize),
    Bool(Vec<Option<bool>>),
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Vec<Option<Box<str>>>),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Data::Empty(len) => *len,
            Data::Bool(values) => values.len(),
            Data::Int(values) => values.len(),
            Data::Float(values) => values.len(),
            Data::Text(values) => values.len(),
        }
    }

    fn push_null(&mut self) {
        match self {
            Data::Empty(len) => *len += 1,
            Data::Bool(values) => values.push(None),
            Data::Int(values) => values.push(None),
            Data::Float(values) => values.push(None),
            Data::Text(values) => values.push(None),
        }
    }

    fn push(&mut self, value: &Value) {
        if value.is_null() {
            return self.push_null();
        }
        if let Data::Empty(len) = *self {
            *self = match value {
                Value::Bool(_) => Data::Bool(vec![None; len]),
                Value::Number(number) if number.as_i64().is_some() => Data::Int(vec![None; len]),
                Value::Number(_) => Data::Float(vec![None; len]),
                _ => Data::Text(vec![None; len]),
            };
        }
        match (&mut *self, value) {
            (Data::Bool(values), Value::Bool(value)) => values.push(Some(*value)),
            (Data::Int(values), Value::Number(number)) => match number.as_i64() {
                Some(number) => values.push(Some(number)),
                None => {
                    *self = Data::Float(values.iter().map(|value| value.map(|value| value as f64)).collect());
                    self.push(value);
                }
            },
            (Data::Float(values), Value::Number(number)) => values.push(number.as_f64()),
            (Data::Text(values), value) => values.push(Some(text(value))),
            _ => {
                self.widen();
                self.push(value);
            }
        }
    }

    /// Makes text of everything.
    fn widen(&mut self) {
        fn each<T: Copy + Into<Value>>(values: &[Option<T>]) -> Vec<Option<Box<str>>> {
            values.iter().map(|value| value.map(|value| text(&value.into()))).collect()
        }
        *self = Data::Text(match self {
            Data::Empty(len) => vec![None; *len],
            Data::Bool(values) => each(values),
            Data::Int(values) => each(values),
            Data::Float(values) => each(values),
            Data::Text(values) => std::mem::take(values),
        });
    }

    fn into_array(self, untyped: bool) -> ArrayRef {
        match self {
            Data::Empty(len) if untyped => Arc::new(NullArray::new(len)),
            Data::Empty(len) => Arc::new(Float64Array::new_null(len)),
            Data::Bool(values) => Arc::new(BooleanArray::from(values)),
            Data::Int(values) => Arc::new(Int64Array::from(values)),
            Data::Float(values) => Arc::new(Float64Array::from(values)),
            Data::Text(values) => Arc::new(LargeStringArray::from_iter(values)),
        }
    }
}

fn text(value: &Value) -> Box<str> {
    match value {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

/// Columns that grow row by row, in the order in which they appear.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    names: Vec<String>,
    data: Vec<Data>,
    places: BTreeMap<String, usize>,
    rows: usize,
}

impl Columns {
    /// Has a column, even if no row has a value in it.
    pub(crate) fn declare(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        self.places.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.data.push(Data::Empty(self.rows));
        self.names.len() - 1
    }

    /// Sets a value in the row at hand; the first one of a name stays.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        let place = self.declare(name);
        if self.data[place].len() == self.rows {
            self.data[place].push(value);
        }
    }

    /// Sets all values of an object, those within objects too.
    pub(crate) fn set_all(&mut self, object: &Map<String, Value>) {
        let mut name = String::new();
        self.set_under(&mut name, object);
    }

    fn set_under(&mut self, name: &mut String, object: &Map<String, Value>) {
        for (key, value) in object {
            let length = name.len();
            name.push_str(if length > 0 { "." } else { "" });
            name.push_str(key);
            match value {
                Value::Object(inner) => self.set_under(name, inner),
                value => self.set(name, value),
            }
            name.truncate(length);
        }
    }

    /// Ends the row at hand.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
        for data in self.data.iter_mut().filter(|data| data.len() < self.rows) {
            data.push_null();
        }
    }

    /// Columns without values are of numbers or, if `untyped`, of no type, for somebody who has
    /// more rows of them.
    pub(crate) fn finish(self, untyped: bool) -> Result<RecordBatch, ArrowError> {
        batch(self.names.into_iter().zip(self.data), self.rows, untyped)
    }
}

fn batch(columns: impl Iterator<Item = (String, Data)>, rows: usize, untyped: bool) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, data) in columns {
        let array = data.into_array(untyped);
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}

/// A value of a record.
fn value(text: &str) -> Option<Value> {
    // Neither `inf` nor a name: numbers begin like this.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    match text.parse::<i64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => text.parse::<f64>().ok().map(Value::from).filter(Value::is_number),
    }
}

/// A record: a header, and rows of as many values.
pub(crate) fn of_csv(bytes: &[u8]) -> Result<RecordBatch, String> {
    let told = |error: csv::Error| error.to_string();
    let mut reader = csv::Reader::from_reader(bytes);
    let names: Vec<String> = reader.headers().map_err(told)?.iter().map(str::to_owned).collect();
    // A column with a single name in it is one of names: it has to be known before the first row.
    let mut is_text: Vec<bool> = names.iter().map(|name| NAMES.contains(&name.as_str())).collect();
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(told)? {
        for (cell, is_text) in row.iter().zip(&mut is_text) {
            *is_text |= !cell.is_empty() && value(cell).is_none();
        }
    }
    let mut data: Vec<Data> = names.iter().map(|_| Data::Empty(0)).collect();
    let (mut reader, mut rows) = (csv::Reader::from_reader(bytes), 0);
    while reader.read_record(&mut row).map_err(told)? {
        for ((cell, is_text), data) in row.iter().zip(&is_text).zip(&mut data) {
            match (cell, is_text) {
                ("", _) => data.push_null(),
                (cell, true) => data.push(&cell.into()),
                (cell, false) => data.push(&value(cell).unwrap_or_default()),
            }
        }
        rows += 1;
    }
    batch(names.into_iter().zip(data), rows, false).map_err(|error| error.to_string())
}
