//! What travels: a 24-byte [`Packet`] handle moved by value, a [`Pool`] whose slots hold the
//! contents, the TCP [`Segment`], and the [`codec`] between segments and bytes; the [`FlowKey`] of
//! packets that are bytes.

mod acc_ecn;
pub mod codec;
mod cookie;
mod flow;
mod handle;
mod layout;
mod mptcp;
pub mod pattern;
mod pool;
mod segment;

pub use acc_ecn::{AccEcn, AccEcnOrder};
pub use cookie::FastOpen;
pub use flow::FlowKey;
pub use handle::{Class, Packet, flow_hash};
pub use layout::{OptionLayout, Options, TcpOption, fit_acc_ecn, options};
pub use mptcp::{AddAddress, AddressIds, Capable, DataNumber, Dss, Mapping, MptcpOption, MptcpOptions};
pub use pool::Pool;
pub use segment::{Flags, Payload, SackBlocks, Segment, Timestamps, options_len};
