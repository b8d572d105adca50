//! Congestion control: the table of names, and each algorithm's parameters over those of the host's profile.

use ackclock_cc::{CubicConfig, CubicRules, HystartConfig, HystartRules, NewRenoConfig};
use ackclock_sim::spec::CcSpec;
use ackclock_tcp::profile::Profile;

use crate::fields::Fields;
use crate::quantity::{Flag, Number, OneOf, OrOff, Time, Whole};

const KINDS: OneOf = OneOf { what: "congestion control", names: &["newreno", "cubic"] };

/// Reads the key `cc`; what it does not say is as in `profile`.
pub(crate) fn read(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    fields.choose("cc", profile.cc, &KINDS, |kind, fields| match kind {
        "cubic" => CcSpec::Cubic(cubic(fields, profile.cubic)),
        _ => {
            let mut config = profile.newreno;
            newreno(fields, &mut config);
            CcSpec::NewReno(config)
        }
    })
}

fn newreno(fields: &mut Fields<'_>, config: &mut NewRenoConfig) {
    config.abc = fields.or("abc", config.abc, Flag);
    config.abc_l_var = fields.or("abc_l_var", config.abc_l_var.into(), Whole(0, 1000)) as u32;
    config.limit_burst = fields.or("limit_burst", config.limit_burst, Flag);
    config.past_ssthresh = fields.or("past_ssthresh", config.past_ssthresh, Flag);
    config.halve_flight = fields.or("halve_flight", config.halve_flight, Flag);
    config.remember_idle = fields.or("remember_idle", config.remember_idle, Flag);
    config.beta_ecn = fields.or("beta_ecn", config.beta_ecn, OrOff(Number(0.1, 0.99)));
}

const CUBIC_RULES: [(&str, CubicRules); 3] =
    [("rfc9438", CubicRules::Rfc9438), ("linux-3.9", CubicRules::Linux39), ("linux-6.1", CubicRules::Linux61)];
const CUBIC_RULES_NAMES: OneOf = OneOf { what: "set of rules", names: &["rfc9438", "linux-3.9", "linux-6.1"] };

fn cubic(fields: &mut Fields<'_>, mut config: CubicConfig) -> CubicConfig {
    // Beyond these there is no growth or no decrease left, and the arithmetic of the curve overflows.
    config.beta = fields.or("beta", config.beta, Number(0.1, 0.99));
    config.c = fields.or("c", config.c, Number(0.001, 1000.0));
    config.fast_convergence = fields.or("fast_convergence", config.fast_convergence, Flag);
    config.reno_friendly = fields.or("reno_friendly", config.reno_friendly, Flag);
    config.rules = by_name(&CUBIC_RULES, fields.or("rules", name_of(&CUBIC_RULES, config.rules), CUBIC_RULES_NAMES));
    newreno(fields, &mut config.reno);
    config
}

const HYSTART_RULES: [(&str, HystartRules); 2] =
    [("linux-3.9", HystartRules::Linux39), ("linux-6.1", HystartRules::Linux61)];
const HYSTART_RULES_NAMES: OneOf = OneOf { what: "set of rules", names: &["linux-3.9", "linux-6.1"] };

/// Reads the key `hystart`: `false`, `true` (as in the profile, or Linux's), or a table of parameters.
pub(crate) fn hystart(fields: &mut Fields<'_>, profile: Option<HystartConfig>) -> Option<HystartConfig> {
    fields.switch("hystart", profile, profile.unwrap_or_default(), parameters)
}

fn parameters(fields: &mut Fields<'_>, mut config: HystartConfig) -> HystartConfig {
    config.ack_train = fields.or("ack_train", config.ack_train, Flag);
    config.delay = fields.or("delay", config.delay, Flag);
    config.low_window = fields.or("low_window", config.low_window.into(), Whole(0, 1 << 20)) as u32;
    config.ack_delta = fields.or("ack_delta", config.ack_delta, Time::Any);
    config.rules =
        by_name(&HYSTART_RULES, fields.or("rules", name_of(&HYSTART_RULES, config.rules), HYSTART_RULES_NAMES));
    config
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

fn by_name<T: Copy>(names: &[(&str, T)], name: &str) -> T {
    names.iter().find(|(known, _)| *known == name).unwrap_or(&names[0]).1
}
