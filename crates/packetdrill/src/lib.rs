//! packetdrill scripts against ackclock's endpoint, on a virtual clock.
//!
//! A script is calls of an application, packets that arrive and packets that are expected to leave,
//! each with its time. [`run`] executes the calls and the arrivals against the sockets of a host,
//! compares what is sent, and returns the result as an [`Outcome`]. The clock goes from event to
//! event and from timer to timer, so that a script takes as long as it takes to compute, and its
//! outcome is always the same.

mod args;
pub mod ast;
mod calls;
mod code;
mod compare;
mod epoll;
mod errno;
mod error;
pub mod expr;
mod fast_open;
mod format;
mod host;
mod icmp;
mod lexer;
mod mptcp;
mod numbers;
mod option_line;
mod options;
mod parser;
mod report;
mod route;
mod run;
mod settings;
mod shapes;
mod socket;
mod sockets;
mod sysctl;
mod system;

pub use error::ParseError;
pub use parser::{Defines, parse, parse_for, parse_with};
pub use report::{Failure, Outcome, ScriptResult, ShellLine, TraceKind, TraceLine};
pub use run::{run, run_text};
pub use settings::{SettingError, Settings};
