//! Windows 7.

use ackclock_cc::{CubicConfig, EcnFeedback, NewRenoConfig};
use ackclock_units::Span;

use super::Profile;
use crate::{Config, CwndValidation, DelayedAck, InitialWindow, MinRto, Prr, StateRules};

impl Profile {
    /// Windows 7 with the settings of the CAIA report: no add-on congestion provider, that is
    /// NewReno.
    pub fn windows_7() -> Profile {
        // RFCs 2582, 2883 and 3517 are among those that Microsoft lists for this stack (TechNet,
        // "Next Generation TCP/IP Protocols and Networking Components"); what it does not say is
        // as the RFCs recommend.
        let newreno = NewRenoConfig::default();
        Profile {
            name: "windows-7",
            endpoint: Config {
                // `netsh interface tcp show supplemental` (hotfix KB2472264): window 2, minimum RTO
                // 300, delayed ACK 200.
                initial_window: InitialWindow::Segments(2),
                min_rto: MinRto::OfTotal(Span::from_millis(300)),
                delayed_ack: DelayedAck { timeout: Span::from_millis(200), ..DelayedAck::default() },
                sack: true,
                dsack: true,            // RFC 2883
                timestamps: false,      // "RFC 1323 Timestamps : disabled"
                window_scaling: true,   // "Receive Window Auto-Tuning Level : normal"
                ecn: EcnFeedback::None, // "ECN Capability : disabled"
                // Level "normal" tunes the receive window up to 16 MiB, and the send backlog
                // follows the window.
                send_buffer: 16 << 20,
                receive_buffer: 16 << 20,
                max_rto: Span::from_secs(60),
                initial_rto: Span::from_secs(3), // TcpInitialRtt
                prr: Prr::Off,
                slow_start_after_idle: false, // CwndRestart is off by default where Windows first shows it (Server 2012)
                cwnd_validation: CwndValidation::Growth,
                time_wait: Span::from_secs(120), // TcpTimedWaitDelay
                max_retries: 5,                  // TcpMaxDataRetransmissions
                states: StateRules {
                    syn_retries: 2,    // TcpMaxConnectRetransmissions
                    synack_retries: 2, // TcpMaxConnectResponseRetransmissions
                    ..StateRules::default()
                },
                ..Config::default()
            },
            cc: "newreno",
            newreno,
            cubic: CubicConfig { reno: newreno, ..CubicConfig::default() },
            ..Profile::rfc()
        }
    }
}
