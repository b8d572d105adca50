//! The host that a script runs against, with everything settled: its knobs, its congestion control,
//! how it is judged.

use std::net::IpAddr;

use ackclock_cc::{CongestionControl, EcnFeedback};
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{AcceptOverflow, CONTROLLERS, Config, Controller, KeepAlive, SynFin, WindowRule};
use ackclock_units::{Random, Span};

use crate::SettingError;
use crate::fast_open::HostFastOpen;
use crate::mptcp::MptcpHost;
use crate::route::Route;
use crate::system::System;

/// The host unless somebody says otherwise.
const DEFAULT_PROFILE: &str = "linux-6.1";

/// The congestion controller that a script calls so: Linux says `reno` for what FreeBSD calls
/// `newreno`.
pub(crate) fn controller(name: &str) -> Option<&'static Controller> {
    Controller::by_name(if name == "reno" { "newreno" } else { name })
}

#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) profile: Profile,
    pub(crate) system: System,
    pub(crate) config: Config,
    pub(crate) cc: &'static Controller,
    pub(crate) ipv6: bool,
    pub(crate) mtu: u32,
    /// The route to the remote host.
    pub(crate) route: Route,
    /// The MSS, where it does not follow from the MTU.
    pub(crate) mss: Option<u16>,
    /// The times of keep-alive that sockets do not set.
    pub(crate) keepalive: KeepAlive,
    /// `TCP_NOTSENT_LOWAT` that sockets do not set.
    pub(crate) notsent_lowat: Option<u32>,
    pub(crate) fast_open: HostFastOpen,
    pub(crate) mptcp: MptcpHost,
    /// The size that `getsockopt` reports of the receive buffer, if it was set by hand.
    pub(crate) receive_buffer_shown: Option<u64>,

    /// Tolerance of the time of events.
    pub(crate) tolerance: Span,
    /// Tolerance in parts per million of the time since the event before; the larger of both
    /// counts.
    pub(crate) tolerance_ppm: u64,
    pub(crate) ignore_psh: bool,
    /// No expectation stands for several segments.
    pub(crate) strict_segments: bool,
    /// A packet sent up to the time of the last event that nobody expected is an error.
    pub(crate) check_end: bool,
    /// The unit of TSval in scripts; zero if TSval is not compared.
    pub(crate) ts_tick: Span,
    /// An echoed timestamp that was never sent is interpolated.
    pub(crate) ts_ecr_scaled: bool,
    /// TSecr of what is sent is compared.
    pub(crate) check_ts_ecr: bool,
    pub(crate) non_fatal_packet: bool,
    pub(crate) non_fatal_call: bool,
}

impl Default for Host {
    fn default() -> Host {
        Host::from_profile(Profile::by_name(DEFAULT_PROFILE).unwrap_or_else(Profile::rfc))
    }
}

impl Host {
    pub(crate) fn of_profile(name: &str) -> Result<Host, SettingError> {
        Profile::by_name(name).map(Host::from_profile).ok_or_else(|| SettingError::UnknownProfile {
            name: name.to_owned(),
            known: Profile::all().map(|profile| profile.name).join(", "),
        })
    }

    fn from_profile(profile: Profile) -> Host {
        let system = if profile.name.starts_with("freebsd") { System::FreeBsd } else { System::Linux };
        let config = profile.socket();
        Host {
            system,
            cc: controller(profile.cc).unwrap_or(&CONTROLLERS[0]),
            ipv6: false,
            mtu: 1500,
            route: Route::default(),
            mss: None,
            keepalive: config.states.keepalive.unwrap_or_default(),
            notsent_lowat: None,
            fast_open: HostFastOpen::new(system),
            mptcp: MptcpHost::default(),
            receive_buffer_shown: None,
            // packetdrill's own defaults, except for the percentage (12.5 there, of the time since
            // the previous event), which compensates for the timers of real machines and would hide
            // wrong ones.
            tolerance: Span::from_micros(4_000),
            tolerance_ppm: 0,
            ignore_psh: false,
            strict_segments: false,
            check_end: true,
            ts_tick: Span::ZERO,
            ts_ecr_scaled: false,
            check_ts_ecr: true,
            non_fatal_packet: false,
            non_fatal_call: false,
            profile,
            config,
        }
    }

    /// The host's address, and the script's.
    pub(crate) fn ends(&self) -> [IpAddr; 2] {
        self.fast_open.ends(self.ipv6)
    }

    /// The knobs of an endpoint.
    pub(crate) fn endpoint_config(&self) -> Config {
        let headers = if self.ipv6 { 60 } else { 40 };
        let mut config = self.config.clone();
        config.mss = match self.mss {
            Some(mss) => mss,
            // The profile's MSS is that of an MTU of 1500 over IPv4.
            None => (u32::from(config.mss) + self.mtu).saturating_sub(1500 + headers - 40).clamp(1, 65_535) as u16,
        };
        config.default_peer_mss = if self.ipv6 { 1220 } else { 536 };
        config.path.ip_header = if self.ipv6 { 40 } else { 20 };
        self.route.set_up(&mut config, self.mtu);
        // TCP_CONG_NEEDS_ECN, TCP_CONG_NEEDS_ACCECN.
        match self.cc.feedback {
            Some(EcnFeedback::Accurate) => config.ecn = EcnFeedback::Accurate,
            Some(feedback) => config.ecn = config.ecn.max(feedback),
            None => {}
        }
        config
    }

    pub(crate) fn congestion_control(&self, controller: &Controller) -> Box<dyn CongestionControl> {
        // A script has one course of events.
        controller.build(&self.profile, Random::for_component(0, 0, "packetdrill.cc"))
    }

    /// Its name as `TCP_CONGESTION` gives it.
    pub(crate) fn name_of(&self, controller: &Controller) -> &'static str {
        match (controller.name, self.system) {
            ("newreno", System::Linux) => "reno",
            (name, _) => name,
        }
    }

    /// The receive buffer as a default of the host, in the system's own bytes.
    pub(crate) fn set_receive_buffer(&mut self, bytes: u64) {
        self.receive_buffer_shown = Some(bytes);
        self.config.receive_buffer = self.receive_config(bytes);
    }

    /// The send buffer as a default of the host, in the system's own bytes.
    pub(crate) fn set_send_buffer(&mut self, bytes: u64) {
        self.config.send_buffer = bytes;
    }

    /// The knob for a receive buffer that `getsockopt` shows as `bytes`. Where the endpoint does
    /// not count its overhead as Linux does, half of it is taken for that (`tcp_adv_win_scale` 1).
    pub(crate) fn receive_config(&self, bytes: u64) -> u64 {
        match (self.config.transfer.window, self.system) {
            (WindowRule::Rfc, System::Linux) => (bytes / 2).max(1),
            _ => bytes.max(1),
        }
    }

    /// The size that `getsockopt` reports of a receive buffer that nobody has set.
    pub(crate) fn receive_buffer(&self) -> u64 {
        let bytes = self.config.receive_buffer;
        self.receive_buffer_shown.unwrap_or(match (self.config.transfer.window, self.system) {
            (WindowRule::Rfc, System::Linux) => 2 * bytes,
            _ => bytes,
        })
    }

    /// The largest receive buffer, which sets the window scale.
    pub(crate) fn set_receive_most(&mut self, bytes: u64) {
        match &mut self.config.transfer.window {
            WindowRule::Rfc => {}
            WindowRule::Linux { most } | WindowRule::FreeBsd { most } => *most = bytes,
        }
    }

    pub(crate) fn set_drop_syn_fin(&mut self, on: bool) {
        self.config.states.syn_fin = if on { SynFin::Drop } else { self.profile.endpoint.states.syn_fin };
    }

    pub(crate) fn set_abort_on_overflow(&mut self, on: bool) {
        self.config.states.accept_overflow = if on { AcceptOverflow::Reset } else { AcceptOverflow::Drop };
    }
}
