//! Losses on the wire.

use ackclock_emulator::{GilbertElliott, Loss, Markov};

use crate::document::Node;
use crate::fields::Fields;
use crate::quantity::{Number, OneOf, Problem, Whole};

pub(crate) const LOSSES: OneOf =
    OneOf { what: "loss model", names: &["none", "iid", "list", "gilbert-elliott", "markov"] };

pub(super) const LOSS: (&str, &str) = ("loss", "model of losses on the wire");

pub(super) fn read(fields: &mut Fields<'_>) -> Loss {
    fields.choose(LOSS, "none", &LOSSES, |kind, fields| match kind {
        "iid" => Loss::Iid(probability(fields, ("probability", "probability that a packet is lost"))),
        "list" => Loss::List(packets(fields).unwrap_or_default()),
        "gilbert-elliott" => Loss::GilbertElliott(gilbert_elliott(fields)),
        "markov" => Loss::Markov(markov(fields)),
        _ => Loss::None,
    })
}

/// A probability that must be given.
fn probability(fields: &mut Fields<'_>, key: (&'static str, &'static str)) -> f64 {
    fields.required(key, Number(0.0, 1.0), "a probability from 0 to 1").unwrap_or(0.0)
}

/// The names and defaults are those of `tc`: `loss gemodel P [R [1-H [1-K]]]`.
fn gilbert_elliott(fields: &mut Fields<'_>) -> GilbertElliott {
    let p = probability(fields, ("p", "probability of entering the bad state"));
    GilbertElliott {
        p,
        r: fields.or(("r", "probability of returning to the good state"), 1.0 - p, Number(0.0, 1.0)),
        bad: fields.or(("1-h", "loss probability in the bad state"), 1.0, Number(0.0, 1.0)),
        good: fields.or(("1-k", "loss probability in the good state"), 0.0, Number(0.0, 1.0)),
    }
}

/// The names and defaults are those of `tc`: `loss state P13 [P31 [P32 [P23 [P14]]]]`.
fn markov(fields: &mut Fields<'_>) -> Markov {
    let p13 = probability(fields, ("p13", "probability of entering a burst of losses from the gap"));
    let chain = Markov {
        p13,
        p31: fields.or(("p31", "probability of returning from a burst to the gap"), 1.0 - p13, Number(0.0, 1.0)),
        p32: fields.or(("p32", "probability of a reception within a burst"), 0.0, Number(0.0, 1.0)),
        p23: fields.or(("p23", "probability of a loss after a reception within a burst"), 1.0, Number(0.0, 1.0)),
        p14: fields.or(("p14", "probability of an isolated loss in the gap"), 0.0, Number(0.0, 1.0)),
    };
    leave_a_state(fields, ("p32", chain.p32), ("p31", chain.p31));
    leave_a_state(fields, ("p14", chain.p14), ("p13", chain.p13));
    chain
}

/// Two ways out of a state are no more likely than one of them.
fn leave_a_state(fields: &mut Fields<'_>, one: (&'static str, f64), other: (&'static str, f64)) {
    // Decimal fractions that add up to 1 may come to a little more.
    if one.1 + other.1 <= 1.0 + 1e-9 {
        return;
    }
    let found = [one.0, other.0].into_iter().find_map(|key| fields.get(key).map(|entry| (key, &entry.node)));
    if let Some((key, node)) = found {
        let title = format!("`{}` and `{}` are more than 1 together", other.0, one.0);
        let expected = format!("probabilities of leaving a state by one of two ways; `{}` is {}", other.0, other.1);
        fields.reject(key, node, Problem::new(title, expected));
    }
}

/// The numbers of the packets that are lost, sorted.
fn packets(fields: &mut Fields<'_>) -> Option<Vec<u64>> {
    let expected = "an array of packet numbers from 1, such as [10, 11]";
    let Some(entry) = fields.get(("packets", "numbers of the packets that are lost, from 1")) else {
        fields.missing("packets", expected);
        return None;
    };
    let Some(items) = entry.node.array() else {
        fields.reject("packets", &entry.node, Problem::new("not an array", expected));
        return None;
    };
    let number = |item: &Node| {
        let read = crate::quantity::Kind::read(&Whole(1, u64::MAX), item);
        read.map_err(|problem| fields.reject("packets", item, problem)).ok()
    };
    let mut numbers: Vec<u64> = items.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}
