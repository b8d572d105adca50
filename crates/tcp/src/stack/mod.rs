//! The differences between stacks: the settings, and those of real stacks.

/// Declares settings, each with its default.
macro_rules! defaults {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $shown:vis $field:ident: $type:ty = $default:expr;)*
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* $shown $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }
    };
}

pub(crate) mod config;
pub(crate) mod controllers;
pub(crate) mod ecn;
pub(crate) mod loss;
pub(crate) mod offload;
pub(crate) mod path;
pub mod profile;
pub(crate) mod rules;
pub(crate) mod ticks;
pub(crate) mod transfer;
pub(crate) mod tuning;
pub(crate) mod window;
