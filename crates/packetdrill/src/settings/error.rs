//! What is wrong with a setting.

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
    /// The key belongs to another kind than the one selected, as `loss_detector.fack` to `linux`.
    #[error("`{key}` goes with another kind than the one selected")]
    OtherKind {
        /// The key.
        key: String,
    },
    /// The value is not one of the key's.
    #[error("`{key}` takes {takes}: {reason}")]
    BadValue {
        /// The key.
        key: String,
        /// The possible values.
        takes: String,
        /// The error.
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
