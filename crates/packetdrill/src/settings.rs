//! What a script runs against and how strictly it is judged: the settings that a person, the
//! script's own lines and its sysctls may change, each under one name.

use ackclock_tcp::{
    AccEcnOption, AccEcnRule, AccEcnRules, AdaptiveRules, CONTROLLERS, EcnFeedback, InitialWindow, LossDetector,
    MinRto, MtuProbing, NcrVariant, Prr, RrRules, SackCompression,
};
use ackclock_units::{Size, Span, parse_size, parse_span};

use crate::host::{Host, controller};

/// A setting: its key, what it takes, and what it does with it.
struct Key {
    name: &'static str,
    takes: &'static str,
    apply: fn(&mut Host, &str) -> Result<(), String>,
}

/// Every key, in the order in which help lists them.
const KEYS: &[Key] = &[
    Key {
        name: "cc",
        takes: "reno, newreno, cubic, cdg, hd, chd, vegas, htcp, westwood, dctcp, prague or bbr",
        apply: set_cc,
    },
    Key { name: "sack", takes: "on or off", apply: |host, value| switch(value).map(|value| host.config.sack = value) },
    Key {
        name: "dsack",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.dsack = value),
    },
    Key {
        name: "timestamps",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.timestamps = value),
    },
    Key {
        name: "window_scaling",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.window_scaling = value),
    },
    Key {
        name: "ecn",
        takes: "on, off, passive (accept, but do not ask), dctcp (RFC 8257's feedback), accecn (RFC 9768), accecn-classic \
                (accept it, ask for RFC 3168's) or accecn-passive",
        apply: set_ecn,
    },
    Key {
        name: "accecn_option",
        takes: "off, minimum, full or persist (Linux's tcp_ecn_option 0 to 3)",
        apply: set_acc_ecn_option,
    },
    Key {
        name: "accecn_beacon",
        takes: "a number of options in a round trip",
        apply: |host, value| number(value, 0..=65_535).map(|value| acc_ecn(host).beacon = value as u32),
    },
    Key { name: "accecn_rules", takes: "rfc9768 or linux", apply: set_acc_ecn_rules },
    Key {
        name: "ecn_fallback",
        takes: "on or off",
        apply: |host, value| {
            switch(value).map(|value| host.config.states.ecn_syn_retries = if value { 0 } else { u32::MAX })
        },
    },
    Key { name: "min_rto", takes: "a time", apply: set_min_rto },
    Key {
        name: "max_rto",
        takes: "a time",
        apply: |host, value| positive_span(value).map(|value| host.config.max_rto = value),
    },
    Key {
        name: "initial_rto",
        takes: "a time",
        apply: |host, value| positive_span(value).map(|value| host.config.initial_rto = value),
    },
    Key {
        name: "rto_slop",
        takes: "a time",
        apply: |host, value| span(value).map(|value| host.config.rto_slop = value),
    },
    Key { name: "initial_window", takes: "a number of segments", apply: set_initial_window },
    Key { name: "iw", takes: "a number of segments", apply: set_initial_window },
    Key { name: "delayed_ack", takes: "a time, or off", apply: set_delayed_ack },
    Key { name: "quick_ack", takes: "a number of segments", apply: set_quick_ack },
    Key {
        name: "sack_compression",
        takes: "on or off",
        apply: |host, value| {
            switch(value).map(|value| host.config.transfer.sack_compression = value.then(SackCompression::default))
        },
    },
    Key {
        name: "mss",
        takes: "bytes",
        apply: |host, value| number(value, 1..=65_495).map(|value| host.mss = Some(value as u16)),
    },
    Key {
        name: "mtu",
        takes: "bytes",
        apply: |host, value| number(value, 68..=65_535).map(|value| host.mtu = value as u32),
    },
    Key { name: "ip_version", takes: "ipv4, ipv6 or ipv4-mapped-ipv6", apply: set_ip_version },
    Key {
        name: "rcvbuf",
        takes: "bytes",
        apply: |host, value| bytes(value).map(|value| host.set_receive_buffer(value)),
    },
    Key {
        name: "rcvbuf_max",
        takes: "bytes",
        apply: |host, value| bytes(value).map(|value| host.set_receive_most(value)),
    },
    Key { name: "sndbuf", takes: "bytes", apply: |host, value| bytes(value).map(|value| host.set_send_buffer(value)) },
    Key {
        name: "nagle",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.nagle = value),
    },
    Key { name: "prr", takes: "off, rate-halving, rfc6937, ssrb or rfc9937", apply: set_prr },
    Key {
        name: "limited_transmit",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.limited_transmit = value),
    },
    Key {
        name: "slow_start_after_idle",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.slow_start_after_idle = value),
    },
    Key {
        name: "time_wait",
        takes: "a time",
        apply: |host, value| span(value).map(|value| host.config.time_wait = value),
    },
    Key {
        name: "max_retries",
        takes: "a number",
        apply: |host, value| number(value, 0..=255).map(|value| host.config.max_retries = value as u32),
    },
    Key {
        name: "loss_detector",
        takes: "rfc6675, linux, ncr, ncr-aggressive, rr-tcp or rack",
        apply: set_loss_detector,
    },
    Key { name: "rack", takes: "on or off", apply: set_rack },
    Key { name: "tlp", takes: "on or off", apply: |host, value| switch(value).map(|value| host.config.tlp = value) },
    Key { name: "frto", takes: "on or off", apply: |host, value| switch(value).map(|value| host.config.frto = value) },
    Key { name: "undo", takes: "on or off", apply: |host, value| switch(value).map(|value| host.config.undo = value) },
    Key { name: "abe", takes: "on or off", apply: set_abe },
    Key {
        name: "halve_flight",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.profile.newreno.halve_flight = value),
    },
    Key {
        name: "timer_tick",
        takes: "a time, 0 for exact timers",
        apply: |host, value| span(value).map(|value| host.config.transfer.timer_tick = value),
    },
    Key { name: "mtu_probing", takes: "off, black-hole or always", apply: set_mtu_probing },
    Key {
        name: "base_mss",
        takes: "bytes",
        apply: |host, value| number(value, 48..=65_495).map(|value| host.config.path.base_segment = value as u32),
    },
    Key {
        name: "min_pmtu",
        takes: "bytes",
        apply: |host, value| number(value, 68..=65_535).map(|value| host.config.path.least_mtu = value as u32),
    },
    Key {
        name: "mtu_expires",
        takes: "a time",
        apply: |host, value| positive_span(value).map(|value| host.config.path.timeout = Some(value)),
    },
    Key {
        name: "pmtu_discovery",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.path.discovery = value),
    },
    Key {
        name: "advertise_pmtu",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.path.advertise = value),
    },
    Key {
        name: "icmp_may_rst",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.path.may_reset = value),
    },
    Key { name: "tolerance", takes: "a time", apply: |host, value| span(value).map(|value| host.tolerance = value) },
    Key { name: "tolerance_percent", takes: "a percentage", apply: set_tolerance_percent },
    Key {
        name: "ignore_psh",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.ignore_psh = value),
    },
    Key {
        name: "strict_segments",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.strict_segments = value),
    },
    Key {
        name: "check_end",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.check_end = value),
    },
    Key { name: "ts_tick", takes: "a time, 0 for no check", apply: set_ts_tick },
    Key {
        name: "ts_ecr_scaled",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.ts_ecr_scaled = value),
    },
];

/// A key or value that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no such key.
    #[error("no setting is called `{key}`; there are: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// All that there are.
        known: String,
    },
    /// The value is not one of the key's.
    #[error("`{key}` takes {takes}: {reason}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// There is no such profile.
    #[error("no profile is called `{name}`; there are: {known}")]
    UnknownProfile {
        /// The name.
        name: String,
        /// All that there are.
        known: String,
    },
}

/// What a person chose. It wins over what a script says of the same key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    profile: Option<String>,
    chosen: Vec<(&'static str, String)>,
}

impl Settings {
    /// No choice: the profile `linux-6.1`, unless a script names another.
    pub fn new() -> Settings {
        Settings::default()
    }

    /// Chooses the host by the name of its profile.
    ///
    /// # Errors
    /// There is no such profile.
    pub fn set_profile(&mut self, name: &str) -> Result<(), SettingError> {
        Host::of_profile(name)?;
        self.profile = Some(name.to_owned());
        Ok(())
    }

    /// Sets `key` to `value`; `profile` is a key too.
    ///
    /// # Errors
    /// There is no such key, or the value is none of its.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        if key == "profile" {
            return self.set_profile(value);
        }
        let known = find(key)?;
        apply(&mut Host::default(), key, value)?;
        self.chosen.retain(|(name, _)| *name != known.name);
        self.chosen.push((known.name, value.to_owned()));
        Ok(())
    }

    /// Every key with what it takes.
    pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
        std::iter::once(("profile", "the name of a profile")).chain(KEYS.iter().map(|key| (key.name, key.takes)))
    }

    pub(crate) fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        let alias = if key == "initial_window" { "iw" } else { key };
        self.chosen.iter().any(|(name, _)| *name == key || *name == alias)
    }

    /// Applies every choice to `host`.
    pub(crate) fn apply_to(&self, host: &mut Host) {
        for (key, value) in &self.chosen {
            // It was applied once already, when it was set.
            let _ = apply(host, key, value);
        }
    }
}

fn find(key: &str) -> Result<&'static Key, SettingError> {
    KEYS.iter().find(|known| known.name == key).ok_or_else(|| SettingError::UnknownKey {
        key: key.to_owned(),
        known: Settings::keys().map(|(name, _)| name).collect::<Vec<_>>().join(", "),
    })
}

/// Sets one key of a host.
pub(crate) fn apply(host: &mut Host, key: &str, value: &str) -> Result<(), SettingError> {
    let key = find(key)?;
    (key.apply)(host, value.trim()).map_err(|reason| SettingError::BadValue { key: key.name, takes: key.takes, reason })
}

pub(crate) fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        _ => Err(format!("`{value}` is neither on nor off")),
    }
}

fn number(value: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let number: u64 = value.parse().map_err(|_| format!("`{value}` is no whole number"))?;
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not within {} to {}", range.start(), range.end()))
    }
}

/// A time with its unit, or bare 0.
fn span(value: &str) -> Result<Span, String> {
    if value == "0" {
        return Ok(Span::ZERO);
    }
    parse_span(value).map_err(|error| error.to_string())
}

fn positive_span(value: &str) -> Result<Span, String> {
    span(value).and_then(|span| if span == Span::ZERO { Err("it must be above 0".to_owned()) } else { Ok(span) })
}

/// Bytes with or without a unit, at most 2 GiB as a socket buffer is.
fn bytes(value: &str) -> Result<u64, String> {
    let bytes = match value.parse() {
        Ok(bytes) => bytes,
        Err(_) => match parse_size(value).map_err(|error| error.to_string())? {
            Size::Bytes(bytes) => bytes,
            Size::Packets(_) => return Err("packets are no unit of it".to_owned()),
        },
    };
    if (1..=1 << 31).contains(&bytes) { Ok(bytes) } else { Err(format!("{bytes} is not within 1 to 2^31")) }
}

fn set_cc(host: &mut Host, value: &str) -> Result<(), String> {
    host.cc = controller(value).ok_or_else(|| {
        let known: Vec<&str> = CONTROLLERS.iter().map(|known| known.name).collect();
        format!("`{value}` is none of them: reno, {}", known.join(", "))
    })?;
    Ok(())
}

fn set_ecn(host: &mut Host, value: &str) -> Result<(), String> {
    use EcnFeedback::{Accurate, Classic, Dctcp, None};
    (host.config.ecn, host.config.transfer.accept_ecn) = match value {
        "passive" => (None, Classic),
        "dctcp" => (Dctcp, Dctcp),
        "accecn" => (Accurate, Accurate),
        "accecn-classic" => (Classic, Accurate),
        "accecn-passive" => (None, Accurate),
        _ if switch(value)? => (Classic, Classic),
        _ => (None, None),
    };
    Ok(())
}

fn acc_ecn(host: &mut Host) -> &mut AccEcnRules {
    &mut host.config.transfer.acc_ecn
}

fn set_acc_ecn_option(host: &mut Host, value: &str) -> Result<(), String> {
    acc_ecn(host).option = AccEcnOption::by_name(value).ok_or_else(|| format!("`{value}` is none of them"))?;
    Ok(())
}

fn set_acc_ecn_rules(host: &mut Host, value: &str) -> Result<(), String> {
    acc_ecn(host).rule = match value {
        "rfc9768" => AccEcnRule::Rfc9768,
        "linux" => AccEcnRule::Linux,
        _ => return Err(format!("`{value}` is none of them")),
    };
    Ok(())
}

fn set_min_rto(host: &mut Host, value: &str) -> Result<(), String> {
    let least = span(value)?;
    host.config.min_rto = match host.config.min_rto {
        MinRto::OfTotal(_) => MinRto::OfTotal(least),
        MinRto::OfVariance(_) => MinRto::OfVariance(least),
    };
    Ok(())
}

/// `linux` is what kernels from 4.4 to 6.16 do with `tcp_recovery=0`.
fn set_loss_detector(host: &mut Host, value: &str) -> Result<(), String> {
    let rules = AdaptiveRules { fack: false, early_retransmit: false, ..AdaptiveRules::default() };
    host.config.loss_detector = match (value, host.config.loss_detector) {
        ("rfc6675", _) => LossDetector::Rfc6675,
        ("linux", LossDetector::Linux(rules)) => LossDetector::Linux(rules),
        ("linux", _) => LossDetector::Linux(rules),
        ("ncr", _) => LossDetector::Ncr(NcrVariant::Careful),
        ("ncr-aggressive", _) => LossDetector::Ncr(NcrVariant::Aggressive),
        ("rr-tcp", _) => LossDetector::RrTcp(RrRules::default()),
        ("rack", _) => LossDetector::Rack,
        _ => return Err(format!("`{value}` is none of them")),
    };
    Ok(())
}

/// `off` is what kernels from 4.4 to 6.16 do with `tcp_recovery=0`; a host without RACK stays as it
/// is.
fn set_rack(host: &mut Host, value: &str) -> Result<(), String> {
    match (switch(value)?, host.config.loss_detector) {
        (true, _) => host.config.loss_detector = LossDetector::Rack,
        (false, LossDetector::Rack) => set_loss_detector(host, "linux")?,
        (false, _) => {}
    }
    Ok(())
}

fn set_mtu_probing(host: &mut Host, value: &str) -> Result<(), String> {
    host.config.path.probing = match value {
        "off" | "0" => MtuProbing::Off,
        "black-hole" | "1" => MtuProbing::BlackHole,
        "always" | "2" => MtuProbing::Always,
        _ => return Err(format!("`{value}` is none of them")),
    };
    Ok(())
}

/// The factors of RFC 8511 section 3.1.
fn set_abe(host: &mut Host, value: &str) -> Result<(), String> {
    let on = switch(value)?;
    host.profile.newreno.beta_ecn = on.then_some(0.8);
    host.profile.cubic.reno.beta_ecn = on.then_some(0.85);
    Ok(())
}

fn set_prr(host: &mut Host, value: &str) -> Result<(), String> {
    host.config.prr = match value {
        "off" => Prr::Off,
        "rate-halving" => Prr::RateHalving,
        "rfc6937" => Prr::Rfc6937,
        "ssrb" => Prr::Ssrb,
        "rfc9937" => Prr::Rfc9937,
        _ => return Err(format!("`{value}` is none of them")),
    };
    Ok(())
}

fn set_initial_window(host: &mut Host, value: &str) -> Result<(), String> {
    host.config.initial_window = InitialWindow::Segments(number(value, 1..=65_535)? as u32);
    Ok(())
}

fn set_delayed_ack(host: &mut Host, value: &str) -> Result<(), String> {
    if value == "off" {
        host.config.delayed_ack.segments = 1;
        return Ok(());
    }
    host.config.delayed_ack.segments = 2;
    host.config.delayed_ack.timeout = positive_span(value)?;
    Ok(())
}

fn set_quick_ack(host: &mut Host, value: &str) -> Result<(), String> {
    host.config.delayed_ack.quick = number(value, 0..=65_535)? as u32;
    Ok(())
}

fn set_ip_version(host: &mut Host, value: &str) -> Result<(), String> {
    host.ipv6 = match value {
        "ipv4" | "ipv4-mapped-ipv6" => false,
        "ipv6" => true,
        _ => return Err(format!("`{value}` is none of them")),
    };
    Ok(())
}

fn set_tolerance_percent(host: &mut Host, value: &str) -> Result<(), String> {
    let percent: f64 = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(format!("{value} is not within 0 to 100"));
    }
    host.tolerance_ppm = (percent * 1e4).round() as u64;
    Ok(())
}

fn set_ts_tick(host: &mut Host, value: &str) -> Result<(), String> {
    host.ts_tick = span(value)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_tcp::CONTROLLERS;

    #[test]
    fn every_key_is_there_once() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
        }
    }

    #[test]
    fn the_key_for_congestion_control_names_every_controller() {
        let takes = Settings::keys().find(|(key, _)| *key == "cc").expect("there is one").1;
        let named: Vec<&str> = takes.split([',', ' ']).filter(|word| !word.is_empty() && *word != "or").collect();
        let known: Vec<&str> = ["reno"].into_iter().chain(CONTROLLERS.iter().map(|known| known.name)).collect();
        assert_eq!(named, known);
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_known_ones() {
        let error = Settings::new().set("congestion", "reno").unwrap_err().to_string();
        assert!(error.contains("`congestion`") && error.contains("cc, sack, dsack"), "{error}");
    }

    #[test]
    fn a_bad_value_names_what_the_key_takes() {
        for (key, value) in [
            ("cc", "yeah"),
            ("sack", "maybe"),
            ("min_rto", "200"),
            ("initial_rto", "0"),
            ("mss", "0"),
            ("mtu", "67"),
            ("rack", "maybe"),
            ("loss_detector", "cubic"),
            ("rcvbuf", "1000000000000"),
            ("tolerance_percent", "NaN"),
            ("profile", "plan9"),
        ] {
            assert!(Settings::new().set(key, value).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn the_last_choice_of_a_key_counts() {
        let mut settings = Settings::new();
        settings.set("cc", "cubic").unwrap();
        settings.set("cc", "reno").unwrap();
        settings.set("rack", "off").unwrap();
        let mut host = Host::default();
        settings.apply_to(&mut host);
        assert_eq!(host.cc.name, "newreno");
    }
}
