//! The host that a script runs against and the strictness of its judgment: the settings that the
//! command line, the script's own lines and its sysctls may change, each under one name.

mod described;
mod error;
mod keys;
mod setters;

pub use self::error::SettingError;
use self::keys::{KEYS, Key};
use crate::host::Host;

/// Keys set on the command line. They override what a script sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    profile: Option<String>,
    chosen: Vec<(String, String)>,
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
        let key = canonical(key);
        let mut host = self.profile().map_or_else(|| Ok(Host::default()), Host::of_profile)?;
        self.apply_to(&mut host);
        apply(&mut host, key, value)?;
        self.chosen.retain(|(name, _)| name != key);
        self.chosen.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Every key with what it takes.
    pub fn keys() -> impl Iterator<Item = (String, String)> {
        let own = KEYS.iter().map(|key| (key.name, key.takes));
        let own = std::iter::once(("profile", "the name of a profile")).chain(own);
        let short = SHORT.iter().map(|(short, key)| ((*short).to_owned(), format!("the same as `{key}`")));
        let described = described::keys().into_iter().filter(|(key, _)| find(key).is_none());
        own.map(|(key, takes)| (key.to_owned(), takes.to_owned())).chain(short).chain(described)
    }

    pub(crate) fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.chosen.iter().any(|(name, _)| name == canonical(key))
    }

    /// Applies every choice to `host`.
    pub(crate) fn apply_to(&self, host: &mut Host) {
        for (key, value) in &self.chosen {
            // The choice was applied once already, when it was set.
            let _ = apply(host, key, value);
        }
    }
}

/// Short names of keys of a scenario.
const SHORT: [(&str, &str); 2] = [("iw", "initial_window"), ("quick_ack", "delayed_ack.quick")];

fn canonical(key: &str) -> &str {
    SHORT.iter().find(|(short, _)| *short == key).map_or(key, |(_, key)| key)
}

fn find(key: &str) -> Option<&'static Key> {
    KEYS.iter().find(|known| known.name == key)
}

/// Sets one key of a host.
pub(crate) fn apply(host: &mut Host, key: &str, value: &str) -> Result<(), SettingError> {
    let (key, value) = (canonical(key), value.trim());
    let set = match find(key) {
        Some(key) => Some(key.apply(host, value)),
        None => described::set(&mut host.config, key, value),
    };
    let named = |name: &str| Settings::keys().find(|(key, _)| key == name);
    match set {
        Some(Ok(())) => Ok(()),
        Some(Err(reason)) => {
            let takes = named(key).map(|(_, takes)| takes).unwrap_or_default();
            Err(SettingError::BadValue { key: key.to_owned(), takes, reason })
        }
        None if named(key).is_some() => Err(SettingError::OtherKind { key: key.to_owned() }),
        None => Err(SettingError::UnknownKey {
            key: key.to_owned(),
            known: Settings::keys().map(|(name, _)| name).collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_tcp::{InitialWindow, LossDetector, MinRto, Prr};
    use ackclock_units::Span;

    #[test]
    fn every_key_is_there_once() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
        }
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_known_ones() {
        let error = Settings::new().set("congestion", "reno").unwrap_err().to_string();
        assert!(error.contains("`congestion`") && error.contains("cc, ecn, ") && error.contains("sack, "), "{error}");
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

    #[test]
    fn keys_of_a_scenario_are_keys_of_a_script() {
        let mut settings = Settings::new();
        let other = settings.set("loss_detector.history", "5").unwrap_err();
        assert!(matches!(other, SettingError::OtherKind { .. }), "{other}");
        for (key, value) in [
            ("loss_detector", "rr-tcp"),
            ("loss_detector.history", "5"),
            ("quick_ack", "3"),
            ("delayed_ack.quick_gap", "2"),
            ("min_rto", "1s"),
            ("pacing", "on"),
            ("pacing.ca_ratio", "150"),
            ("prr", "off"),
            ("iw", "rfc3390"),
            ("delayed_ack.growth_from", "4096"),
        ] {
            settings.set(key, value).unwrap_or_else(|error| panic!("{error}"));
        }
        let mut host = Host::default();
        settings.apply_to(&mut host);
        let config = &host.config;
        assert!(matches!(config.loss_detector, LossDetector::RrTcp(rules) if rules.history == 5));
        assert_eq!((config.delayed_ack.quick, config.delayed_ack.hurry.gap), (3, 2));
        assert_eq!(config.min_rto, MinRto::OfVariance(Span::from_secs(1)));
        assert_eq!((config.pacing.ca_ratio, config.prr), (150, Prr::Off));
        assert_eq!((config.initial_window, config.delayed_ack.growth_from), (InitialWindow::Rfc3390, 4096));
    }
}
