//! The context in which a document is read, and the notes taken on the way.

use std::cell::RefCell;
use std::sync::Arc;

use ackclock_sim::spec::Agent;

use crate::document::{Table, Value};
use crate::inputs::{Inputs, NO_INPUTS};
use crate::keys::Keys;
use crate::own::Own;
use crate::report::Report;
use crate::traces::Traces;

/// Defaults that were used one after another for want of keys in a table.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    /// The table that lacks the keys, `links.bottleneck.queue`.
    pub(crate) table: Arc<str>,
    pub(crate) keys: Vec<FilledKey>,
}

/// One of them. There are some 70 for each flow.
#[derive(Clone, Debug)]
pub(crate) struct FilledKey {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// The kind for which this key is read at all, where the table has a `kind`.
    pub(crate) kind: Option<&'static str>,
}

/// The results of reading, apart from the values.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) report: &'a Report,
    /// Algorithms from outside.
    pub(crate) own: &'a Own,
    /// The agents that `cc = "external"` stands for, in an environment: names, the first of which
    /// need not be given.
    pub(crate) agents: &'a [(String, Arc<Agent>)],
    pub(crate) filled: RefCell<Vec<Filled>>,
    /// The tables whose kind was chosen.
    pub(crate) chosen: RefCell<Vec<Arc<str>>>,
    /// The table of keys, if it is recorded.
    pub(crate) keys: Option<RefCell<Keys>>,
    /// The files that a scenario names.
    pub(crate) inputs: &'a Inputs,
    /// The whole document, for what depends on another part of it.
    pub(crate) document: Option<&'a Table>,
    /// Traces that are read once for all points.
    pub(crate) traces: Option<&'a Traces>,
    /// Sizes in other units than those of their keys, with what they came to.
    pub(crate) converted: RefCell<Vec<Converted>>,
}

/// A size in another unit, as it stands in the document and in the unit of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Converted {
    pub(crate) path: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl<'a> Context<'a> {
    pub(crate) fn new(report: &'a Report, own: &'a Own) -> Context<'a> {
        let (filled, chosen, converted) = Default::default();
        let (keys, inputs, document, traces) = (None, &NO_INPUTS, None, None);
        Context { report, own, agents: &[], filled, chosen, keys, inputs, document, traces, converted }
    }
}
