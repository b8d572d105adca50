//! Values of settings as they are written, and settings that are more than a value in one place.

use ackclock_tcp::profile::Profile;
use ackclock_tcp::{AccEcnRules, CONTROLLERS, DetectorKind, EcnFeedback, LossDetector, MtuProbing, OffloadRule, Ticks};
use ackclock_units::parameter::Choice as _;
use ackclock_units::{Size, Span, parse_size, parse_span};

use crate::host::{Host, controller};

pub(super) fn switch(value: &str) -> Result<bool, String> {
    match value {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        _ => Err(format!("`{value}` is neither on nor off")),
    }
}

pub(super) fn number(value: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let number: u64 = value.parse().map_err(|_| format!("`{value}` is no whole number"))?;
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not within {} to {}", range.start(), range.end()))
    }
}

/// A time with its unit, or bare 0.
pub(super) fn span(value: &str) -> Result<Span, String> {
    if value == "0" {
        return Ok(Span::ZERO);
    }
    parse_span(value).map_err(|error| error.to_string())
}

pub(super) fn positive_span(value: &str) -> Result<Span, String> {
    span(value).and_then(|span| if span == Span::ZERO { Err("it must be above 0".to_owned()) } else { Ok(span) })
}

/// Bytes, at most 2 GiB as a socket buffer is.
pub(super) fn bytes(value: &str) -> Result<u64, String> {
    bytes_within(value, 1..=1 << 31)
}

/// Bytes with or without a unit.
pub(super) fn bytes_within(value: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let bytes = match value.parse() {
        Ok(bytes) => bytes,
        Err(_) => match parse_size(value).map_err(|error| error.to_string())? {
            Size::Bytes(bytes) => bytes,
            Size::Packets(_) => return Err("packets are no unit of it".to_owned()),
        },
    };
    let fits = range.contains(&bytes);
    fits.then_some(bytes).ok_or_else(|| format!("{bytes} is not within {} to {}", range.start(), range.end()))
}

pub(super) fn set_cc(host: &mut Host, value: &str) -> Result<(), String> {
    host.cc = controller(value).ok_or_else(|| {
        let known: Vec<&str> = CONTROLLERS.iter().map(|known| known.name).collect();
        format!("`{value}` is not one of them: reno, {}", known.join(", "))
    })?;
    Ok(())
}

pub(super) fn set_ecn(host: &mut Host, value: &str) -> Result<(), String> {
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

pub(super) fn acc_ecn(host: &mut Host) -> &mut AccEcnRules {
    &mut host.config.transfer.acc_ecn
}

pub(super) fn set_timer_tick(host: &mut Host, value: &str) -> Result<(), String> {
    let ticks = &mut host.config.transfer.ticks;
    *ticks = ticks.of_length(span(value)?).ok_or_else(|| format!("a tick is {} at most", Ticks::LONGEST))?;
    Ok(())
}

/// `off` is what kernels from 4.4 to 6.16 do with `tcp_recovery=0`; a host without RACK stays as it
/// is.
pub(super) fn set_rack(host: &mut Host, value: &str) -> Result<(), String> {
    let detector = &mut host.config.loss_detector;
    match (switch(value)?, *detector) {
        (true, _) => *detector = LossDetector::Rack,
        (false, LossDetector::Rack) => *detector = detector.of_kind(DetectorKind::Linux),
        (false, _) => {}
    }
    Ok(())
}

pub(super) fn set_mtu_probing(host: &mut Host, value: &str) -> Result<(), String> {
    host.config.path.probing = match value {
        "off" | "0" => MtuProbing::Off,
        "black-hole" | "1" => MtuProbing::BlackHole,
        "always" | "2" => MtuProbing::Always,
        _ => return Err(format!("`{value}` is not one of them")),
    };
    Ok(())
}

/// The factors of RFC 8511 section 3.1.
pub(super) fn set_abe(host: &mut Host, value: &str) -> Result<(), String> {
    let on = switch(value)?;
    host.profile.newreno.beta_ecn = on.then_some(0.8);
    host.profile.cubic.reno.beta_ecn = on.then_some(0.85);
    Ok(())
}

pub(super) fn set_offload(host: &mut Host, value: &str) -> Result<(), String> {
    let rule = match value {
        "off" => Some(OffloadRule::default()),
        host => Profile::by_name(host).and_then(|profile| profile.offload),
    };
    let rule = rule.ok_or_else(|| format!("`{value}` is not one of them"))?;
    host.config.transfer.single_segments = !rule.is_on();
    host.config.hand_down_units(rule);
    Ok(())
}

pub(super) fn set_delayed_ack(host: &mut Host, value: &str) -> Result<(), String> {
    if value == "off" {
        host.config.delayed_ack.segments = 1;
        return Ok(());
    }
    host.config.delayed_ack.segments = 2;
    host.config.delayed_ack.timeout = positive_span(value)?;
    Ok(())
}

pub(super) fn set_ip_version(host: &mut Host, value: &str) -> Result<(), String> {
    host.ipv6 = match value {
        "ipv4" | "ipv4-mapped-ipv6" => false,
        "ipv6" => true,
        _ => return Err(format!("`{value}` is not one of them")),
    };
    Ok(())
}

pub(super) fn set_tolerance_percent(host: &mut Host, value: &str) -> Result<(), String> {
    let percent: f64 = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(format!("{value} is not within 0 to 100"));
    }
    host.tolerance_ppm = (percent * 1e4).round() as u64;
    Ok(())
}

pub(super) fn set_ts_tick(host: &mut Host, value: &str) -> Result<(), String> {
    host.ts_tick = span(value)?;
    Ok(())
}
