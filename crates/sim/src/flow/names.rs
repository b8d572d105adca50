//! Names of a group's senders in results.

use std::sync::Arc;

use crate::spec::{FlowGroup, FlowSpec, HostSpec, RunSpec};

/// The name of congestion control, host and loss detector of a sender outside.
pub(super) const KERNEL: &str = "kernel";
/// The name of all three without a connection.
const NONE: &str = "none";

/// The names of a group's senders in the summary.
#[derive(Clone, Debug)]
pub(crate) struct SenderNames {
    pub(super) cc: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) loss_detector: &'static str,
}

impl SenderNames {
    pub(crate) fn new(group: &FlowGroup) -> SenderNames {
        let (cc, host, loss_detector) = match &group.sender {
            HostSpec::Endpoint(endpoint) => {
                (endpoint.cc.name(), endpoint.profile.as_str(), endpoint.config.loss_detector.name())
            }
            HostSpec::Smoltcp(smoltcp) => (smoltcp.cc.name(), "smoltcp", "smoltcp"),
            // Its stack has not told.
            HostSpec::Outside => (KERNEL, KERNEL, KERNEL),
            HostSpec::Datagrams(_) => (NONE, NONE, NONE),
        };
        // All of them, in their order.
        let later = group.schedule.iter().map(|change| change.cc.name());
        let cc = [cc].into_iter().chain(later).collect::<Vec<_>>().join(",");
        SenderNames { cc: cc.into(), host: host.into(), loss_detector }
    }

    /// The names of a flow that a stack sends; `None` if none does.
    pub(crate) fn carried(&self, run: &RunSpec, flow: &FlowSpec) -> Option<SenderNames> {
        let sender = flow.ends.filter(|_| matches!(flow.sender, HostSpec::Outside))?.nodes[0];
        let stack = run.live.as_ref()?.nodes.get(sender)?.stack.as_ref()?;
        let (host, cc) = (stack.name().into(), stack.cc_of_flow()?.into());
        Some(SenderNames { cc, host, loss_detector: self.loss_detector })
    }
}
