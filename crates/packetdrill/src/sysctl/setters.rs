//! Sysctls that are more than a number in one place.

use ackclock_tcp::{AccEcnOption, EcnFeedback, LossDetector};
use ackclock_units::Span;
use ackclock_units::parameter::Named as _;

use crate::fast_open::Keys;
use crate::host::Host;
use crate::settings::{self, Settings};

/// FreeBSD takes the options off a SYN after the third timeout (`tcp_timer_rexmt`).
pub(super) const DROP_OPTIONS_AFTER: u32 = 3;

/// The effect of a value, for the trace, if it had any; or the reason why it is not supported.
pub(super) type Applied = Result<Option<String>, String>;

/// A value for a sysctl of a host, whose settings in `chosen` stay.
pub(super) struct Request<'a> {
    pub(super) host: &'a mut Host,
    pub(super) chosen: &'a Settings,
    pub(super) value: &'a str,
}

impl Request<'_> {
    /// The value as a whole number, which may be written in hexadecimal.
    pub(super) fn integer(&self) -> Option<i64> {
        match self.value.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => self.value.parse().ok(),
        }
    }

    /// The value as a number of at least `least`.
    pub(super) fn number(&self, least: u64) -> Result<u64, String> {
        let number = self.integer().ok_or_else(|| format!("`{}` is no number", self.value))?;
        match u64::try_from(number) {
            Ok(number) if number >= least => Ok(number),
            _ => Err(format!("{number} is below {least}")),
        }
    }

    /// Sets a key of [`Settings`](crate::Settings), unless a person has chosen its value.
    pub(super) fn set_key(&mut self, key: &str, value: &str) -> Applied {
        if self.chosen.has(key) {
            return Ok(Some(format!("{key} stays as chosen")));
        }
        settings::apply(self.host, key, value).map_err(|error| error.to_string())?;
        Ok(Some(format!("{key}={value}")))
    }

    pub(super) fn set_switch(&mut self, key: &str, on: bool) -> Applied {
        self.set_key(key, if on { "on" } else { "off" })
    }

    /// Returns `true` if the host detects losses as Linux does.
    fn is_linux(&self) -> bool {
        use LossDetector::{FreeBsd9, Reno, Rfc6675, Tahoe};
        !matches!(self.host.config.loss_detector, Rfc6675 | FreeBsd9 | Tahoe(_) | Reno(_))
    }
}

pub(super) fn fast_open_key(request: &mut Request<'_>) -> Applied {
    let keys = Keys::from_sysctl(request.value);
    request.host.fast_open.keys =
        keys.ok_or_else(|| "one key or two are needed, each four words in hexadecimal".to_owned())?;
    Ok(Some("fastopen_key".to_owned()))
}

/// Sets the number of cookies that are kept, which no release can: 0 empties the cache.
pub(super) fn fast_open_cookies(request: &mut Request<'_>) -> Applied {
    if request.number(0)? == 0 {
        request.host.fast_open.cache.flush();
    }
    Ok(None)
}

/// 1 is both, 2 window scaling alone, 3 timestamps alone.
pub(super) fn rfc1323(request: &mut Request<'_>) -> Applied {
    let value = request.number(0)?;
    let scaling = request.set_switch("window_scaling", matches!(value, 1 | 2))?;
    let timestamps = request.set_switch("timestamps", matches!(value, 1 | 3))?;
    Ok(Some([scaling, timestamps].into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

pub(super) fn ecn(request: &mut Request<'_>) -> Applied {
    let mode = match request.number(0)? {
        0 => "off",
        1 => "on",
        2 => "passive",
        3 => "accecn",
        4 => "accecn-classic",
        5 => "accecn-passive",
        _ => return Err("a number from 0 to 5".to_owned()),
    };
    if request.is_linux() && mode.starts_with("accecn") && request.host.profile.endpoint.ecn != EcnFeedback::Accurate {
        return Err("0, 1 or 2 before Linux 7.0".to_owned());
    }
    request.set_key("ecn", mode)
}

pub(super) fn ecn_option(request: &mut Request<'_>) -> Applied {
    let option = usize::try_from(request.number(0)?).ok().and_then(|at| AccEcnOption::ALL.get(at));
    request.set_key("accecn_option", option.ok_or_else(|| "a number from 0 to 3".to_owned())?.name())
}

/// Since Linux 4.12 it is for tail loss probes alone. A host that has none stays without.
pub(super) fn early_retransmit(request: &mut Request<'_>) -> Applied {
    if !request.is_linux() {
        return Ok(None);
    }
    let on = request.number(0)? >= 3;
    request.set_switch("tlp", on)
}

pub(super) fn frto(request: &mut Request<'_>) -> Applied {
    if !request.is_linux() {
        return Ok(None);
    }
    let on = request.number(0)? != 0;
    request.set_switch("frto", on)
}

/// Sets the loss detector from bits: the first is TCP_RACK_LOSS_DETECTION; the other two change how
/// RACK does it.
pub(super) fn recovery(request: &mut Request<'_>) -> Applied {
    let value = request.number(0)?;
    if value > 1 {
        return Err("only 0 and 1 are here".to_owned());
    }
    if request.host.config.loss_detector != LossDetector::Rack {
        return Ok(None);
    }
    // Linux 6.17 dropped the detector that it fell back to.
    if value == 0 && request.host.profile.always_rack {
        return Ok(Some("tcp_recovery=0 turns nothing off since Linux 6.17".to_owned()));
    }
    request.set_switch("rack", value == 1)
}

pub(super) fn receive_memory(request: &mut Request<'_>) -> Applied {
    let [_, default, most] = three_sizes(request.value)?;
    request.host.set_receive_most(most);
    request.set_key("rcvbuf", &default.to_string())
}

pub(super) fn send_memory(request: &mut Request<'_>) -> Applied {
    let [_, default, _] = three_sizes(request.value)?;
    request.set_key("sndbuf", &default.to_string())
}

/// 0 turns delaying off; on, it keeps its time.
pub(super) fn delayed_ack(request: &mut Request<'_>) -> Applied {
    let on = request.number(0)? != 0;
    let value = if on { request.host.config.delayed_ack.timeout.to_string() } else { "off".to_owned() };
    request.set_key("delayed_ack", &value)
}

/// TIME-WAIT takes twice the lifetime of a segment.
pub(super) fn segment_lifetime(request: &mut Request<'_>) -> Applied {
    let millis = request.number(1)?.saturating_mul(2);
    request.set_key("time_wait", &format!("{millis}ms"))
}

/// No ACKs are put together if none may wait (`tcp_comp_sack_nr` = 0).
pub(super) fn compressed_acks(host: &mut Host, count: u64) {
    let rules = &mut host.config.transfer.sack_compression;
    match count {
        0 => *rules = None,
        _ => rules.get_or_insert_default().segments = count.min(255) as u32,
    }
}

pub(super) fn compression_delay(host: &mut Host, nanos: u64) {
    if let Some(rules) = &mut host.config.transfer.sack_compression {
        rules.delay = Span::from_nanos(nanos);
    }
}

pub(super) fn compression_slack(host: &mut Host, nanos: u64) {
    if let Some(rules) = &mut host.config.transfer.sack_compression {
        rules.slack = Span::from_nanos(nanos);
    }
}

/// 3 checks what TCP checks anyway.
pub(super) fn no_path_mtu_discovery(request: &mut Request<'_>) -> Applied {
    let on = matches!(request.number(0)?, 0 | 3);
    request.set_switch("pmtu_discovery", on)
}

/// The MTU that leaves room for a segment of so many bytes.
pub(super) fn least_segment(request: &mut Request<'_>) -> Applied {
    let mtu = request.number(0)?.saturating_add(40).max(68);
    request.set_key("min_pmtu", &mtu.to_string())
}

pub(super) fn purge_routes(request: &mut Request<'_>) -> Applied {
    request.host.route.purge();
    Ok(None)
}

/// Three numbers of bytes.
fn three_sizes(value: &str) -> Result<[u64; 3], String> {
    let numbers: Option<Vec<u64>> = value.split_whitespace().map(product).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| "three numbers are needed".to_owned())
}

/// A number, or the shell's `$((...))` with a product of some in it.
pub(super) fn product(word: &str) -> Option<u64> {
    let factors = word.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")).unwrap_or(word);
    factors.split('*').try_fold(1u64, |product, factor| product.checked_mul(factor.parse().ok()?))
}
