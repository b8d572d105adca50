//! What the configuration of an algorithm tells beside its parameters, and the defaults of a host
//! on which it depends.

use ackclock_units::parameter::Configurable;

use crate::{
    CdgConfig, ChdConfig, CubicConfig, DctcpConfig, EcnFeedback, HdConfig, HtcpConfig, NewRenoConfig, SlowStartRules,
    VegasConfig, WvegasConfig,
};

/// The defaults of a host that concern controllers. Its own default has the algorithms'.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stack {
    /// The host is a Linux.
    pub linux: bool,
    /// Controllers hear of an ACK when its RTT is measured, and by its header alone whether it was
    /// predicted (`tcp_in_ack_event` behind `tcp_clean_rtx_queue`): Linux from 6.16 on, and 6.1 in its
    /// later stable releases.
    pub late_ack_events: bool,
    /// Its NewReno, from which other algorithms take what they have in common with it.
    pub newreno: NewRenoConfig,
    /// Its CUBIC.
    pub cubic: CubicConfig,
    /// Its DCTCP.
    pub dctcp: DctcpConfig,
    /// Its CDG, if it has FreeBSD's.
    pub freebsd_cdg: CdgConfig,
}

/// The parts of an algorithm's configuration beside its parameters.
pub trait Algorithm: Configurable {
    /// The feedback of ECN that it cannot do without (`TCP_CONG_NEEDS_ECN`,
    /// `TCP_CONG_NEEDS_ACCECN`).
    const FEEDBACK: Option<EcnFeedback> = None;

    /// The configuration on this host.
    fn on(host: &Stack) -> Self;

    /// Returns `true` if the host has this variant, where there are several.
    fn is_of(_host: &Stack) -> bool {
        true
    }

    /// Slow start, where it is a choice; `None` if the algorithm has one of its own.
    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        None
    }
}

impl Algorithm for NewRenoConfig {
    fn on(host: &Stack) -> NewRenoConfig {
        host.newreno
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.slow_start)
    }
}

impl Algorithm for CubicConfig {
    fn on(host: &Stack) -> CubicConfig {
        host.cubic
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

impl Algorithm for DctcpConfig {
    const FEEDBACK: Option<EcnFeedback> = Some(EcnFeedback::Dctcp);

    fn on(host: &Stack) -> DctcpConfig {
        host.dctcp
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

impl Algorithm for CdgConfig {
    fn on(host: &Stack) -> CdgConfig {
        host.freebsd_cdg
    }

    fn is_of(host: &Stack) -> bool {
        !host.linux
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.slow_start)
    }
}

impl Algorithm for VegasConfig {
    fn on(host: &Stack) -> VegasConfig {
        VegasConfig { reno: host.newreno, ..VegasConfig::default() }
    }

    fn is_of(host: &Stack) -> bool {
        !host.linux
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

/// Algorithms that take the NewReno of the host, and nothing else of it.
macro_rules! on_newreno {
    ($($config:ident)*) => {$(
        impl Algorithm for $config {
            fn on(host: &Stack) -> $config {
                $config { reno: host.newreno, ..$config::default() }
            }

            fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
                Some(&mut self.reno.slow_start)
            }
        }
    )*};
}

on_newreno! { ChdConfig HdConfig HtcpConfig WvegasConfig }
