//! What a script runs against and how strictly it is judged: the settings that the command line,
//! the script's own lines and its sysctls may change, each under one name.

mod keys;
mod setters;

use self::keys::{KEYS, Key};
use crate::host::Host;

/// A key or value that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no such key.
    #[error("unknown setting `{key}`; the settings are: {known}")]
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
    #[error("unknown profile `{name}`; the profiles are: {known}")]
    UnknownProfile {
        /// The name.
        name: String,
        /// All that there are.
        known: String,
    },
}

/// Keys set on the command line. They override what a script sets.
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
