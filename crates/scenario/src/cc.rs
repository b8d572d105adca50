//! Congestion control: the table of names, and each algorithm's parameters over those of the host's
//! profile.

use ackclock_cc::{
    BbrConfig, CdgConfig, ChdConfig, CubicConfig, CubicRules, DctcpConfig, DctcpRules, EcnFeedback, HdConfig,
    HtcpConfig, LinuxCdgConfig, NewRenoConfig, PragueConfig, VegasConfig, WestwoodConfig,
};
use ackclock_sim::spec::{CcSpec, Parameter};
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{CONTROLLERS, Controller};
use ackclock_units::Span;

use crate::fields::Fields;
use crate::keys::Domain;
use crate::link::is_name;
use crate::quantity::{Flag, Number, OneOf, OrOff, PowerOfTwo, Time, Whole};

/// Whether a controller from outside can be called so.
pub(crate) fn is_free(name: &str) -> bool {
    is_name(name) && Controller::by_name(name).is_none()
}

/// Every controller, also those from outside.
fn names(fields: &Fields<'_>) -> Vec<&'static str> {
    CONTROLLERS.iter().map(|known| known.name).chain(fields.controllers().iter().map(|own| own.name)).collect()
}

/// Says what the key `cc` may hold where it need not be read.
pub(crate) fn declare(fields: &Fields<'_>) {
    fields.declare("cc", || Domain::Kind(names(fields)));
}

/// Reads the key `cc`; what it does not say is as in `profile`.
pub(crate) fn read(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    let own = fields.controllers();
    let names = names(fields);
    let kinds = OneOf { what: "congestion control", names: &names };
    fields.choose("cc", profile.cc, &kinds, |kind, fields| match kind {
        "newreno" => {
            let mut config = profile.newreno;
            newreno(fields, &mut config);
            CcSpec::NewReno(config)
        }
        "cubic" => CcSpec::Cubic(cubic(fields, profile.cubic)),
        "cdg" => cdg(fields, profile),
        "hd" => CcSpec::Hd(hd(fields, profile.newreno)),
        "chd" => CcSpec::Chd(chd(fields, profile.newreno)),
        "vegas" => CcSpec::Vegas(vegas(fields, profile.newreno)),
        "htcp" => CcSpec::Htcp(htcp(fields, profile.newreno)),
        "westwood" => CcSpec::Westwood(westwood(fields, profile.newreno)),
        "dctcp" => CcSpec::Dctcp(dctcp(fields, profile)),
        "prague" => CcSpec::Prague(prague(fields)),
        "bbr" => CcSpec::Bbr(bbr(fields, BbrConfig::default())),
        name => {
            let own = own.iter().find(|own| own.name == name);
            let own = own.unwrap_or_else(|| unreachable!("`{name}` is in the table of names"));
            let value = |of: &Parameter| fields.or(of.name, of.default, Number(of.min, of.max));
            CcSpec::Own(own, own.parameters.iter().map(value).collect())
        }
    })
}

fn newreno(fields: &mut Fields<'_>, config: &mut NewRenoConfig) {
    config.abc = fields.or("abc", config.abc, Flag);
    config.abc_l_var = count(fields, "abc_l_var", config.abc_l_var, Whole(0, 1000));
    config.limit_burst = fields.or("limit_burst", config.limit_burst, Flag);
    config.past_ssthresh = fields.or("past_ssthresh", config.past_ssthresh, Flag);
    config.halve_flight = fields.or("halve_flight", config.halve_flight, Flag);
    config.timeout_flight = fields.or("timeout_flight", config.timeout_flight, Flag);
    config.remember_idle = fields.or("remember_idle", config.remember_idle, Flag);
    config.beta_ecn = fields.or("beta_ecn", config.beta_ecn, OrOff(Number(0.1, 0.99)));
}

const CUBIC_RULES: [(&str, CubicRules); 3] =
    [("rfc9438", CubicRules::Rfc9438), ("linux-3.9", CubicRules::Linux39), ("linux-6.1", CubicRules::Linux61)];
const CUBIC_RULES_NAMES: OneOf = OneOf { what: "set of rules", names: &["rfc9438", "linux-3.9", "linux-6.1"] };

fn cubic(fields: &mut Fields<'_>, mut config: CubicConfig) -> CubicConfig {
    // Beyond these there is no growth or no decrease left, and the arithmetic of the curve
    // overflows.
    config.beta = fields.or("beta", config.beta, Number(0.1, 0.99));
    config.c = fields.or("c", config.c, Number(0.001, 1000.0));
    config.fast_convergence = fields.or("fast_convergence", config.fast_convergence, Flag);
    config.reno_friendly = fields.or("reno_friendly", config.reno_friendly, Flag);
    config.rules = by_name(&CUBIC_RULES, fields.or("rules", name_of(&CUBIC_RULES, config.rules), CUBIC_RULES_NAMES));
    newreno(fields, &mut config.reno);
    config
}

const DCTCP_RULES: [(&str, DctcpRules); 3] =
    [("rfc8257", DctcpRules::Rfc8257), ("freebsd", DctcpRules::FreeBsd), ("linux", DctcpRules::Linux)];
const DCTCP_RULES_NAMES: OneOf = OneOf { what: "set of rules", names: &["rfc8257", "freebsd", "linux"] };

fn dctcp(fields: &mut Fields<'_>, profile: &Profile) -> DctcpConfig {
    let mut config = profile.dctcp();
    config.shift_g = count(fields, "shift_g", config.shift_g, Whole(0, 10));
    config.alpha_on_init = count(fields, "alpha_on_init", config.alpha_on_init, Whole(0, 1024));
    config.slowstart = fields.or("slowstart", config.slowstart, Flag);
    let rules = name_of(&DCTCP_RULES, config.rules);
    config.rules = by_name(&DCTCP_RULES, fields.or("rules", rules, DCTCP_RULES_NAMES));
    newreno(fields, &mut config.reno);
    config
}

fn bbr(fields: &mut Fields<'_>, mut config: BbrConfig) -> BbrConfig {
    // A gain of 1 and less never fills the pipe, 0 sends nothing; the rest keeps shares between 0
    // and 1.
    config.startup_pacing_gain = fields.or("startup_pacing_gain", config.startup_pacing_gain, Number(1.01, 100.0));
    config.drain_pacing_gain = fields.or("drain_pacing_gain", config.drain_pacing_gain, Number(0.01, 1.0));
    config.probe_down_pacing_gain =
        fields.or("probe_down_pacing_gain", config.probe_down_pacing_gain, Number(0.01, 1.0));
    config.probe_up_pacing_gain = fields.or("probe_up_pacing_gain", config.probe_up_pacing_gain, Number(1.0, 100.0));
    config.default_cwnd_gain = fields.or("default_cwnd_gain", config.default_cwnd_gain, Number(0.1, 100.0));
    config.probe_up_cwnd_gain = fields.or("probe_up_cwnd_gain", config.probe_up_cwnd_gain, Number(0.1, 100.0));
    config.probe_rtt_cwnd_gain = fields.or("probe_rtt_cwnd_gain", config.probe_rtt_cwnd_gain, Number(0.0, 100.0));
    config.pacing_margin_percent = fields.or("pacing_margin_percent", config.pacing_margin_percent, Number(0.0, 99.0));
    config.loss_thresh = fields.or("loss_thresh", config.loss_thresh, Number(0.0, 0.99));
    config.beta = fields.or("beta", config.beta, Number(0.0, 1.0));
    config.headroom = fields.or("headroom", config.headroom, Number(0.0, 1.0));
    config.min_pipe_cwnd = count(fields, "min_pipe_cwnd", config.min_pipe_cwnd, Whole(2, 1 << 20));
    let ranges = config.startup_full_loss_cnt;
    config.startup_full_loss_cnt = count(fields, "startup_full_loss_cnt", ranges, Whole(1, 1 << 20));
    let rounds = config.extra_acked_filter_len;
    config.extra_acked_filter_len = count(fields, "extra_acked_filter_len", rounds, Whole(1, 1 << 20));
    config.min_rtt_filter_len = fields.or("min_rtt_filter_len", config.min_rtt_filter_len, Time::Any);
    config.probe_rtt_interval = fields.or("probe_rtt_interval", config.probe_rtt_interval, Time::Any);
    config.probe_rtt_duration = fields.or("probe_rtt_duration", config.probe_rtt_duration, Time::Any);
    let rounds = config.bw_probe_max_rounds;
    config.bw_probe_max_rounds = count(fields, "bw_probe_max_rounds", rounds, Whole(1, 1 << 20));
    config.bw_probe_base = fields.or("bw_probe_base", config.bw_probe_base, Time::Any);
    config.bw_probe_rand = fields.or("bw_probe_rand", config.bw_probe_rand, Time::Any);
    config
}

fn prague(fields: &mut Fields<'_>) -> PragueConfig {
    let config = PragueConfig::default();
    PragueConfig {
        rtt_target: fields.or("rtt_target", config.rtt_target, Time::Positive),
        rtt_transition: count(fields, "rtt_transition", config.rtt_transition, Whole(0, 1 << 20)),
        alpha_on_init: fields.or("alpha_on_init", config.alpha_on_init, Flag),
    }
}

/// The feedback of ECN that the controller under the key `cc` takes, if it takes one in particular.
pub(crate) fn feedback(fields: &mut Fields<'_>) -> Option<EcnFeedback> {
    let node = &fields.get("cc")?.node;
    let kind = node.table().map_or(node.str(), |table| table.get("kind")?.node.str());
    Controller::by_name(kind?)?.feedback
}

const CDG_VARIANTS: OneOf = OneOf { what: "variant", names: &["freebsd", "linux"] };

fn cdg(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    let own = if profile.is_linux() { "linux" } else { "freebsd" };
    match fields.or("variant", own, CDG_VARIANTS) {
        "linux" => CcSpec::LinuxCdg(linux_cdg(fields, profile.newreno)),
        _ => CcSpec::Cdg(freebsd_cdg(fields, profile.freebsd_cdg())),
    }
}

/// As the handlers of the sysctls bound them, where they do.
fn freebsd_cdg(fields: &mut Fields<'_>, mut config: CdgConfig) -> CdgConfig {
    config.alpha_inc = count(fields, "alpha_inc", config.alpha_inc, Whole(0, 1_000_000));
    config.beta_delay = count(fields, "beta_delay", config.beta_delay, Whole(1, 100));
    config.beta_loss = count(fields, "beta_loss", config.beta_loss, Whole(1, 100));
    config.exp_backoff_scale = count(fields, "exp_backoff_scale", config.exp_backoff_scale, Whole(1, 1_000_000));
    config.smoothing_factor = count(fields, "smoothing_factor", config.smoothing_factor, Whole(0, 1000));
    let (consecutive, held) = (config.loss_compete_consec_cong, config.loss_compete_hold_backoff);
    config.loss_compete_consec_cong = count(fields, "loss_compete_consec_cong", consecutive, Whole(0, 1_000_000));
    config.loss_compete_hold_backoff = count(fields, "loss_compete_hold_backoff", held, Whole(0, 1_000_000));
    config.rtt_unit = rtt_unit(fields, config.rtt_unit);
    config.timeout_flight = fields.or("timeout_flight", config.timeout_flight, Flag);
    config.remember_idle = fields.or("remember_idle", config.remember_idle, Flag);
    config
}

fn count(fields: &mut Fields<'_>, key: &'static str, default: u32, range: Whole) -> u32 {
    fields.or(key, default.into(), range) as u32
}

/// The tick of algorithms that count in ticks.
fn rtt_unit(fields: &mut Fields<'_>, default: Span) -> Span {
    fields.or("rtt_unit", default, Time::Positive)
}

/// The kernel keeps the threshold at or above the delay without back-offs, and CHD's above it.
fn hd(fields: &mut Fields<'_>, reno: NewRenoConfig) -> HdConfig {
    let mut config = HdConfig { reno, ..HdConfig::default() };
    config.queue_threshold = count(fields, "queue_threshold", config.queue_threshold, Whole(1, 1_000_000));
    let most = config.queue_threshold;
    config.queue_min = count(fields, "queue_min", config.queue_min.min(most), Whole(0, most.into()));
    config.pmax = count(fields, "pmax", config.pmax, Whole(1, 100));
    config.rtt_unit = rtt_unit(fields, config.rtt_unit);
    newreno(fields, &mut config.reno);
    config
}

fn chd(fields: &mut Fields<'_>, reno: NewRenoConfig) -> ChdConfig {
    let mut config = ChdConfig { reno, ..ChdConfig::default() };
    config.queue_threshold = count(fields, "queue_threshold", config.queue_threshold, Whole(1, 1_000_000));
    let most = config.queue_threshold - 1;
    config.queue_min = count(fields, "queue_min", config.queue_min.min(most), Whole(0, most.into()));
    config.pmax = count(fields, "pmax", config.pmax, Whole(1, 100));
    config.loss_fair = fields.or("loss_fair", config.loss_fair, Flag);
    config.use_max = fields.or("use_max", config.use_max, Flag);
    config.rtt_unit = rtt_unit(fields, config.rtt_unit);
    newreno(fields, &mut config.reno);
    config
}

fn vegas(fields: &mut Fields<'_>, reno: NewRenoConfig) -> VegasConfig {
    let mut config = VegasConfig { reno, ..VegasConfig::default() };
    config.beta = count(fields, "beta", config.beta, Whole(1, 1_000_000));
    config.alpha = count(fields, "alpha", config.alpha.min(config.beta), Whole(1, config.beta.into()));
    config.rtt_unit = rtt_unit(fields, config.rtt_unit);
    newreno(fields, &mut config.reno);
    config
}

fn linux_cdg(fields: &mut Fields<'_>, reno: NewRenoConfig) -> LinuxCdgConfig {
    let mut config = LinuxCdgConfig { reno, ..LinuxCdgConfig::default() };
    config.window = fields.or("window", config.window.into(), PowerOfTwo(256)) as u32;
    config.backoff_beta = count(fields, "backoff_beta", config.backoff_beta, Whole(0, 1024));
    config.backoff_factor = count(fields, "backoff_factor", config.backoff_factor, Whole(0, 1_000_000));
    config.hystart_detect = count(fields, "hystart_detect", config.hystart_detect, Whole(0, 3));
    config.use_ineff = count(fields, "use_ineff", config.use_ineff, Whole(0, 1_000_000));
    config.use_shadow = fields.or("use_shadow", config.use_shadow, Flag);
    config.use_tolerance = fields.or("use_tolerance", config.use_tolerance, Flag);
    newreno(fields, &mut config.reno);
    config
}

fn htcp(fields: &mut Fields<'_>, reno: NewRenoConfig) -> HtcpConfig {
    let mut config = HtcpConfig { reno, ..HtcpConfig::default() };
    config.adaptive_backoff = fields.or("adaptive_backoff", config.adaptive_backoff, Flag);
    config.rtt_scaling = fields.or("rtt_scaling", config.rtt_scaling, Flag);
    newreno(fields, &mut config.reno);
    config
}

fn westwood(fields: &mut Fields<'_>, reno: NewRenoConfig) -> WestwoodConfig {
    let mut config = WestwoodConfig { reno, ..WestwoodConfig::default() };
    config.rtt_min = fields.or("rtt_min", config.rtt_min, Time::Any);
    newreno(fields, &mut config.reno);
    config
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

fn by_name<T: Copy>(names: &[(&str, T)], name: &str) -> T {
    names.iter().find(|(known, _)| *known == name).unwrap_or(&names[0]).1
}
