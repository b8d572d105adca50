//! The key `hystart`: how slow start ends, for any congestion control whose slow start is a choice.

use ackclock_cc::{HystartConfig, HystartPlusPlusConfig, HystartRules, SlowStartRules};
use ackclock_sim::spec::CcSpec;
use ackclock_tcp::profile::Profile;

use crate::document::Value;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::parameters;
use crate::quantity::{Kind, OneOf, Problem};
use crate::report::Diagnostic;

/// The names of the rules; the last two are the same.
const RULES: OneOf =
    OneOf { what: "set of HyStart rules", names: &["linux-2.6.32", "linux-3.9", "linux-6.1", "rfc9406", "hystart++"] };

/// Reads the key `hystart`: `false`, `true` (as the host has it), whose rules, or a table of
/// parameters. Without it slow start is as the congestion control has it.
pub(crate) fn read(fields: &mut Fields<'_>, cc: &mut CcSpec, profile: &Profile) {
    let name = cc.name();
    let Some(slow_start) = cc.slow_start_mut() else {
        let rules = wanted(fields, SlowStartRules::Standard, profile);
        if rules != SlowStartRules::Standard
            && let Some(entry) = fields.get("hystart")
        {
            let title = format!("{}: `{name}` has a slow start of its own", fields.shown());
            let label = "has no meaning for it";
            fields.push(Diagnostic::new(title, &entry.key_place, label).help(Some("leave `hystart` out".to_owned())));
        }
        return;
    };
    *slow_start = wanted(fields, *slow_start, profile);
}

/// An end with a congestion control of its own, but of the same kind as the other end's, starts
/// slowly like that.
pub(crate) fn inherit(mut from: CcSpec, cc: &mut CcSpec) {
    if from.name() == cc.name()
        && let (Some(from), Some(slow_start)) = (from.slow_start_mut(), cc.slow_start_mut())
    {
        *slow_start = *from;
    }
}

fn wanted(fields: &mut Fields<'_>, default: SlowStartRules, profile: &Profile) -> SlowStartRules {
    fields.declare(("hystart", "end slow start by the delay (HyStart, HyStart++)"), || {
        Domain::Either(vec![Domain::Flag, RULES.domain(), Domain::Table])
    });
    let on = profile.hystart();
    let Some(node) = fields.get("hystart").map(|entry| &entry.node) else {
        if default == SlowStartRules::Standard {
            fields.fill("hystart", false);
        } else {
            table(&mut fields.section("hystart", ""), default);
        }
        return default;
    };
    match &node.value {
        Value::Boolean(false) => SlowStartRules::Standard,
        Value::Boolean(true) => on,
        Value::Table(_) => {
            let mut section = fields.section("hystart", "");
            let rules = table(&mut section, on);
            section.finish();
            rules
        }
        Value::String(_) => match RULES.read(node) {
            Ok(name) => by_name(name, on),
            Err(problem) => {
                fields.reject("hystart", node, problem);
                default
            }
        },
        _ => {
            let expected = "`true`, `false`, the name of rules or a table of parameters";
            fields.reject("hystart", node, Problem::new("not the right type", expected));
            default
        }
    }
}

fn table(fields: &mut Fields<'_>, default: SlowStartRules) -> SlowStartRules {
    let name = fields.or("rules", name_of(default), RULES);
    let mut rules = by_name(name, default);
    match &mut rules {
        SlowStartRules::Standard => {}
        SlowStartRules::Hystart(config) => parameters::read(fields, name, config),
        SlowStartRules::HystartPlusPlus(config) => parameters::read(fields, name, config),
    }
    rules
}

fn name_of(rules: SlowStartRules) -> &'static str {
    match rules {
        SlowStartRules::Hystart(HystartConfig { rules: HystartRules::Linux26, .. }) => "linux-2.6.32",
        SlowStartRules::Hystart(HystartConfig { rules: HystartRules::Linux39, .. }) => "linux-3.9",
        SlowStartRules::Standard | SlowStartRules::Hystart(_) => "linux-6.1",
        SlowStartRules::HystartPlusPlus(_) => "rfc9406",
    }
}

/// The rules called `name`, with the parameters of `default` where these are rules of the same
/// family.
fn by_name(name: &str, default: SlowStartRules) -> SlowStartRules {
    let linux = |rules| {
        let parameters = match default {
            SlowStartRules::Hystart(config) => config,
            _ => HystartConfig::default(),
        };
        SlowStartRules::Hystart(HystartConfig { rules, ..parameters })
    };
    match (name, default) {
        ("linux-2.6.32", _) => linux(HystartRules::Linux26),
        ("linux-3.9", _) => linux(HystartRules::Linux39),
        ("linux-6.1", _) => linux(HystartRules::Linux61),
        (_, SlowStartRules::HystartPlusPlus(_)) => default,
        _ => SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default()),
    }
}
