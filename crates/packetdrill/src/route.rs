//! The route to the remote host: what `ip route change` sets of it, and the MTU of the path as
//! messages have told it.
//!
//! # Source
//! Linux `net/ipv4/route.c` (`ipv4_mtu`, `ipv4_default_advmss`, `__ip_rt_update_pmtu`),
//! ip-route(8); FreeBSD's host cache (`sys/netinet/tcp_hostcache.c`).

use ackclock_tcp::{Config, InitialWindow};
use ackclock_units::Time;

/// The properties of the route beyond the MTU of the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    mtu: Option<u32>,
    locked: bool,
    advmss: Option<u16>,
    initial_window: Option<u32>,
    /// The MTU that a message told, and how long that holds.
    learned: Option<(u32, Time)>,
    /// Times that it has changed.
    pub(crate) version: u64,
}

impl Route {
    /// The MTU that counts, on a device of `device` bytes.
    pub(crate) fn mtu(&self, device: u32) -> u32 {
        let mtu = self.mtu.unwrap_or(device);
        self.learned.map_or(mtu, |(learned, _)| learned.min(mtu))
    }

    /// A message has told a smaller MTU.
    pub(crate) fn learn(&mut self, mtu: u32, until: Time) {
        self.learned = Some((mtu, until));
        self.version += 1;
    }

    /// When what was learnt is forgotten.
    pub(crate) fn deadline(&self) -> Time {
        self.learned.map_or(Time::NEVER, |(_, until)| until)
    }

    /// Forgets what has held for long enough; whether there was something.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let expires = self.deadline() <= now;
        if expires {
            self.learned = None;
            self.version += 1;
        }
        expires
    }

    /// The host cache is emptied (`net.inet.tcp.hostcache.purgenow`).
    pub(crate) fn purge(&mut self) {
        self.version += u64::from(self.learned.take().is_some());
    }

    /// Gives a connection the properties of the route. `config` has the MSS of the device.
    pub(crate) fn set_up(&self, config: &mut Config, device: u32) {
        let headers = u32::from(config.path.ip_header) + 20;
        let segment = |mtu: u32| mtu.saturating_sub(headers).clamp(1, u32::from(u16::MAX)) as u16;
        if let Some(segments) = self.initial_window {
            config.initial_window = InitialWindow::Segments(segments);
        }
        if let Some(mtu) = self.mtu {
            config.mss = segment(mtu);
        }
        if let Some((mtu, _)) = self.learned.filter(|_| config.path.advertise) {
            config.mss = config.mss.min(segment(mtu));
        }
        config.mss = self.advmss.unwrap_or(config.mss);
        if self.mtu.is_some() || self.learned.is_some() || self.advmss.is_some() {
            config.path.mtu = Some(self.mtu(device));
        }
        config.path.locked = self.locked;
    }

    /// `ip [-6] route change DESTINATION [via ADDRESS] [dev NAME] [mtu [lock] N] [advmss N]
    /// [initcwnd N]`; `None` if there is something else in it.
    pub(crate) fn change(&mut self, words: &[String]) -> Option<String> {
        let mut words = words.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        if words.next()? != "route" || !matches!(words.next()?, "change" | "replace") {
            return None;
        }
        let mut route = Route { learned: self.learned, version: self.version + 1, ..Route::default() };
        words.next()?;
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word {
                "via" | "dev" | "proto" | "src" => {}
                "mtu" => {
                    route.locked = value == "lock";
                    let value = if route.locked { words.next()? } else { value };
                    route.mtu = Some(value.parse().ok().filter(|mtu| (68..=65_535).contains(mtu))?);
                }
                "advmss" => route.advmss = Some(value.parse().ok().filter(|&mss| mss > 0)?),
                "initcwnd" => {
                    route.initial_window = Some(value.parse().ok().filter(|segments| (1..=65_535).contains(segments))?);
                }
                _ => return None,
            }
        }
        if route.locked {
            route.learned = None;
        }
        *self = route;
        Some("route".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_units::Span;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_a_route_sets() {
        let mut route = Route::default();
        let line = "-6 route change 2001:DB8::1 via fd00::0 dev tun0 advmss 600 mtu lock 660 initcwnd 11";
        assert_eq!(route.change(&words(line)), Some("route".to_owned()));
        let mut config = Config::default();
        config.path.ip_header = 40;
        route.set_up(&mut config, 1500);
        assert_eq!((config.mss, config.path.mtu, config.path.locked), (600, Some(660), true));
        assert_eq!(config.initial_window, InitialWindow::Segments(11));
    }

    #[test]
    fn other_commands_are_not_taken() {
        for line in
            ["route add 10.0.0.0/8 dev tun0", "route change 10.0.0.1 metric 5", "link set tun0 mtu 1400", "route"]
        {
            assert_eq!(Route::default().change(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn what_was_learnt_holds_for_a_time() {
        let mut route = Route::default();
        let until = Time::ZERO + Span::from_secs(600);
        route.learn(1200, until);
        let mut config = Config::default();
        config.path.advertise = true;
        route.set_up(&mut config, 1500);
        assert_eq!((config.mss, config.path.mtu, route.mtu(1500)), (1160, Some(1200), 1200));
        assert!(!route.expire(Time::ZERO) && route.expire(until));
        assert_eq!(route.mtu(1500), 1500);
    }
}
