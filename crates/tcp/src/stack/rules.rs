//! The knobs of the state machine: how patient each timer is, and what a stack does with segments
//! that do not belong.

use ackclock_units::Span;

defaults! {
/// A host's rules to open, keep and end connections. The default is what the RFCs say;
/// [`crate::profile`] has the settings of real stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRules {
    /// Retransmissions of a SYN before the connection is given up. Default 7: at an initial timeout
    /// of one second the last wait ends after 183 s, the first number with at least 3 minutes (RFC
    /// 1122 section 4.2.3.5).
    pub syn_retries: u32 = 7;
    /// Number of first timeouts of a SYN that do not double the timeout, and come on top of
    /// [`StateRules::syn_retries`] (Linux `tcp_syn_linear_timeouts`). Default 0 (RFC 6298 rule
    /// 5.5).
    pub linear_syn_timeouts: u32 = 0;
    /// Retransmissions of an answer to a SYN before the half-open connection is forgotten. Default
    /// 7, as above.
    pub synack_retries: u32 = 7;
    /// Retransmissions of a SYN that asks for ECN before one is sent that does not. Default 0 (RFC
    /// 3168 section 6.1.1.1). `u32::MAX` is never (Linux `tcp_ecn_fallback` 0), and then what a
    /// handshake of Accurate ECN tells of the codepoints of its own packets is not looked at
    /// either.
    pub ecn_syn_retries: u32 = 0;
    /// A SYN that was sent this often without an answer is sent without options, for middleboxes
    /// that drop them. Default none.
    pub drop_options_after: Option<u32> = None;
    /// A handshake that takes longer than this from the first SYN on is given up. Default none.
    pub handshake_timeout: Option<Span> = None;
    /// When a connection is given up whose data is not acknowledged. Default: by the number of
    /// retransmissions.
    pub give_up: GiveUp = GiveUp::Retries;
    /// The number that counts in place of [`crate::Config::max_retries`] once the application has
    /// closed. Default none.
    pub orphan_retries: Option<u32> = None;
    /// Time between probes of a closed window. Default: as long as for an ACK, doubled each time.
    pub persist: Option<PersistRules> = None;
    /// The contents of a probe of a closed window. Default one byte of data (RFC 9293 section
    /// 3.8.6.1).
    pub window_probe: WindowProbe = WindowProbe::Data;
    /// Keep-alive probes. Default none (RFC 9293 section 3.8.4: off unless asked for).
    pub keepalive: Option<KeepAlive> = None;
    /// Sent data or probes that stay unanswered this long end the connection (RFC 9293 section
    /// 3.9.1 `open`, RFC 5482). Default none: the retransmission limit alone.
    pub user_timeout: Option<Span> = None;
    /// Duration of FIN-WAIT-2 after the application has closed the connection. Default none: for
    /// ever.
    pub fin_wait_2_timeout: Option<Span> = None;
    /// A connection that is closed with data unread is reset (RFC 9293 section 3.6.1, RFC 2525
    /// section 2.17). Default true.
    pub reset_unread: bool = true;
    /// Any reset within the window closes, instead of the exact next number alone (before RFC 5961
    /// section 3). Default false.
    pub insecure_rst: bool = false;
    /// A SYN within the window of an open connection resets it, instead of being challenged (before
    /// RFC 5961 section 4). Default false.
    pub insecure_syn: bool = false;
    /// Segments with both SYN and FIN. Default: the FIN of a SYN that opens is ignored.
    pub syn_fin: SynFin = SynFin::Accept;
    /// A listening socket drops a SYN with ACK, as FreeBSD's, instead of answering it with a reset
    /// (RFC 9293 section 3.10.7.2, second check). Default false.
    pub listen_drops_syn_ack: bool = false;
    /// Data with a SYN that answers or crosses ours is kept (RFC 9293 section 3.10.7.3). Default
    /// true.
    pub syn_data: bool = true;
    /// TCP Fast Open (RFC 7413) as with a cookie that was got before: the first data goes with the
    /// SYN, and a passive end takes it in.
    /// [`Endpoint::connect_fast_open`](crate::Endpoint::connect_fast_open) and
    /// [`crate::FastOpenServer`] have all of it. Default false.
    pub fast_open: bool = false;
    /// Segments without timestamps are taken in on a connection that agreed on them, as in Linux,
    /// instead of dropped (RFC 7323 section 3.2). Default false.
    pub accept_unstamped: bool = false;
    /// A TSval may be so many ticks older than TS.Recent and still be taken in on an open
    /// connection (Linux `TCP_PAWS_WINDOW`). Default 0 (RFC 7323 section 5.3).
    pub paws_slack: u32 = 0;
    /// After an acknowledgment in SYN-SENT that is not of our SYN, the SYN is sent again this soon
    /// if it was sent once (after two ticks if [`crate::TransferRules::ticks`] says how long
    /// they are), so that a peer who was still in an old connection and is reset now gets it (Linux
    /// `tcp_rcv_synsent_state_process`). Default none: when its timeout is over.
    pub syn_after_bad_ack: Option<Span> = None;
    /// A SYN that is sent again is one of the retransmissions that are counted (Linux
    /// `tcpi_total_retrans`). Default false.
    pub counts_syns: bool = false;
    /// A SYN/ACK that echoes a timestamp which was not sent since the first SYN is answered with a
    /// reset, as in Linux. Default false.
    pub check_syn_echo: bool = false;
    /// A reset in SYN-RECEIVED of a connection that we opened is a reset to the application, as in
    /// Linux. Default false: the connection was refused (RFC 9293 section 3.10.7.4, second check).
    pub reset_in_syn_received: bool = false;
    /// An ACK for what was never sent is answered on an open connection (RFC 9293 section 3.10.7.4,
    /// fifth check). Default true.
    pub answer_unsent_ack: bool = true;
    /// A FIN without data is taken in although the window is closed, as in later releases of Linux
    /// (`tcp_data_queue`): some stacks send it over and over. Default false.
    pub zero_window_fin: bool = false;
    /// A segment that begins within the window and ends beyond it is taken in only if the
    /// application has read all, as in Linux from 6.17 on (`tcp_sequence`). Default false; it
    /// concerns [`crate::WindowRule::Linux`] alone.
    pub refuses_overlong: bool = false;
    /// ACKs carry our FIN again as long as it is not acknowledged, challenges excepted, as BSD's.
    /// Default false.
    pub fin_on_acks: bool = false;
    /// The segments that TIME-WAIT answers. Default: all that are not in their place.
    pub time_wait_answers: TimeWaitAnswers = TimeWaitAnswers::Rfc5961;
    /// Resets are ignored in TIME-WAIT (RFC 1337 section 4, fix F1). Default false.
    pub protect_time_wait: bool = false;
    /// A new SYN may take the place of a connection in TIME-WAIT (RFC 9293 section 3.6.1, RFC
    /// 6191). Default true.
    pub reopen_time_wait: bool = true;
    /// A reset in CLOSE-WAIT is a broken pipe to the application, as in Linux. Default false: a
    /// reset.
    pub broken_pipe_in_close_wait: bool = false;
    /// A reset in CLOSING or LAST-ACK is an error to the application even if all its data was
    /// acknowledged, as in Linux and FreeBSD. Default false (RFC 9293 section 3.10.7.4, second
    /// check).
    pub report_late_reset: bool = false;
    /// A reset with the number of the FIN that it follows closes as well, as in Linux
    /// (`tcp_reset_check`). Default false.
    pub reset_before_fin: bool = false;
    /// Data that arrives after shutdown(2) of both directions resets the connection, as in Linux,
    /// and not only after close(2) (RFC 9293 section 3.6.1). Default false.
    pub reset_after_shutdown: bool = false;
    /// Unread data is discarded when the reading side is shut, as is later data, as in FreeBSD,
    /// instead of kept. Default false.
    pub discard_unread: bool = false;
    /// A connection that is given up sends a reset, as BSD's `tcp_drop`. Default false (RFC 9293
    /// section 3.10.8).
    pub reset_on_timeout: bool = false;
    /// Least time between two answers to out-of-window segments (Linux `tcp_invalid_ratelimit`).
    /// Default none: RFC 9293 answers each of them.
    pub invalid_interval: Span = Span::ZERO;
    /// Challenge ACKs (RFC 5961 section 7): at most this many in each interval. Default none: no
    /// limit.
    pub challenge_limit: Option<ChallengeLimit> = None;
    /// The treatment of a connection that is complete when the accept queue is full. Default: its
    /// last ACK is dropped.
    pub accept_overflow: AcceptOverflow = AcceptOverflow::Drop;
    /// Half-open connections that a listening socket keeps at most. Default 256.
    pub syn_queue: usize = 256;
    /// TCP_DEFER_ACCEPT of Linux: a listening socket waits for data, for so many expiries of the
    /// timer of its SYN/ACK ([`crate::retries_within`]). Default 0: a connection is complete with
    /// the handshake.
    pub defer_accept: u32 = 0;
}
}

/// When unacknowledged data ends a connection (R2 of RFC 9293 section 3.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// After [`crate::Config::max_retries`] retransmissions.
    Retries,
    /// After the time that so many retransmissions would take if the timeout began at this one and
    /// doubled up to [`crate::Config::max_rto`], counted from the first retransmission (Linux
    /// `retransmits_timed_out`).
    ModelTime(Span),
}

/// The waits of FreeBSD between probes of a closed window (`tcp_setpersist`): half of the timeout
/// without its slop and its least, times 2, 4, and so on, within bounds. The connection is given up
/// at a probe when [`crate::Config::max_retries`] were not answered, and nothing was heard for the
/// shorter of [`PersistRules::silence`] and so many timeouts as the back-off of data adds up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersistRules {
    /// The shortest wait (`tcp_persmin`).
    pub least: Span,
    /// The longest (`tcp_persmax`).
    pub most: Span,
    /// The largest factor of `tcp_backoff`.
    pub factor: u32,
    /// `tcp_totbackoff`, the sum of all factors.
    pub total: u32,
    /// `tcp_maxpersistidle`
    pub silence: Span,
}

/// The contents of a probe of a closed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowProbe {
    /// The data that the window allows, one byte at least (RFC 9293 section 3.8.6.1).
    Data,
    /// Nothing: an ACK with the number before the first unacknowledged one, which the peer has to
    /// answer (Linux `tcp_xmit_probe_skb`).
    Empty,
}

/// Keep-alive (RFC 9293 section 3.8.4), by the names of the socket options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// TCP_KEEPIDLE: silence before the first probe.
    pub idle: Span,
    /// TCP_KEEPINTVL: time between probes.
    pub interval: Span,
    /// TCP_KEEPCNT: probes without an answer that end the connection.
    pub count: u32,
}

impl Default for KeepAlive {
    /// 2 hours (RFC 9293 section 3.8.4), 75 s, 9 probes: those of Linux.
    fn default() -> KeepAlive {
        KeepAlive { idle: Span::from_secs(7200), interval: Span::from_secs(75), count: 9 }
    }
}

/// The segments that TIME-WAIT answers, besides those with ACK that are not in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWaitAnswers {
    /// SYNs and resets within the window are challenged (RFC 5961 sections 3 and 4).
    Rfc5961,
    /// SYNs are; other resets than the exact one are dropped.
    Linux,
    /// Neither are.
    FreeBsd,
}

/// The treatment of a segment with both SYN and FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynFin {
    /// The segment counts as a SYN.
    Accept,
    /// A listening socket drops it, as Linux's.
    DropInListen,
    /// Dropped in every state (FreeBSD `drop_synfin`).
    Drop,
}

/// A limit to challenge ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChallengeLimit {
    /// Challenge ACKs per interval at most.
    pub count: u32,
    /// Length of an interval.
    pub interval: Span,
}

/// The treatment of the ACK that completes a handshake when the accept queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptOverflow {
    /// Dropped: the SYN/ACK is sent again and its answer may find room (Linux).
    Drop,
    /// Answered with a reset (FreeBSD `syncache.rst_on_sock_fail`, Linux `tcp_abort_on_overflow`).
    Reset,
}

impl StateRules {
    /// Linux 6.1 with its sysctls' defaults.
    pub fn linux() -> StateRules {
        StateRules {
            syn_retries: 6,                                     // tcp_syn_retries
            synack_retries: 5,                                  // tcp_synack_retries
            give_up: GiveUp::ModelTime(Span::from_millis(200)), // TCP_RTO_MIN
            orphan_retries: Some(8),                            // tcp_orphan_retries = 0 means 8
            window_probe: WindowProbe::Empty,                   // tcp_write_wakeup
            fin_wait_2_timeout: Some(Span::from_secs(60)),      // tcp_fin_timeout
            syn_fin: SynFin::DropInListen,                      // tcp_rcv_state_process
            syn_data: false,                                    // tcp_rcv_synsent_state_process
            time_wait_answers: TimeWaitAnswers::Linux,          // tcp_timewait_state_process
            accept_unstamped: true,                             // tcp_fast_parse_options
            paws_slack: 1,                                      // TCP_PAWS_WINDOW
            // TCP_TIMEOUT_MIN, two ticks of HZ = 250.
            syn_after_bad_ack: Some(Span::from_millis(8)),
            counts_syns: true,               // __tcp_retransmit_skb
            check_syn_echo: true,            // tcp_rcv_synsent_state_process
            answer_unsent_ack: false,        // tcp_ack, from tcp_rcv_established
            broken_pipe_in_close_wait: true, // tcp_reset, all four
            report_late_reset: true,
            reset_in_syn_received: true,
            reset_before_fin: true,
            reset_after_shutdown: true,               // tcp_rcv_state_process
            invalid_interval: Span::from_millis(500), // tcp_invalid_ratelimit
            ..StateRules::default()
        }
    }

    /// Linux 6.18 with its sysctls' defaults, and with a later fix: it challenges the ACK of what
    /// was never sent (the release itself drops it, as 6.1 does).
    pub fn linux_6_18() -> StateRules {
        StateRules {
            linear_syn_timeouts: 4,  // tcp_syn_linear_timeouts
            answer_unsent_ack: true, // tcp_ack, the later fix
            zero_window_fin: true,   // tcp_data_queue
            refuses_overlong: true,  // tcp_sequence
            ..StateRules::linux()
        }
    }

    /// FreeBSD 9 with its sysctls' defaults: as 14, but for its tables of back-off.
    pub fn freebsd_9() -> StateRules {
        let persist = |rules: PersistRules| PersistRules { factor: 64, total: 511, ..rules };
        let later = StateRules::freebsd();
        // The first four timeouts of a SYN have the factor 1 (tcp_syn_backoff).
        StateRules { linear_syn_timeouts: 4, persist: later.persist.map(persist), ..later }
    }

    /// FreeBSD 14 with its sysctls' defaults.
    pub fn freebsd() -> StateRules {
        StateRules {
            syn_retries: 12,                              // TCP_MAXRXTSHIFT
            synack_retries: 3,                            // syncache.rexmtlimit
            ecn_syn_retries: 1,                           // ecn.maxretries
            handshake_timeout: Some(Span::from_secs(75)), // keepinit
            persist: Some(PersistRules {
                least: Span::from_secs(5), // TCPTV_PERSMIN
                most: Span::from_secs(60), // TCPTV_PERSMAX
                factor: 512,               // tcp_backoff
                total: 2559,
                silence: Span::from_secs(7200), // TCPTV_KEEP_IDLE
            }),
            // always_keepalive = 1, keepidle, keepintvl, keepcnt
            keepalive: Some(KeepAlive { idle: Span::from_secs(7200), interval: Span::from_secs(75), count: 8 }),
            fin_wait_2_timeout: Some(Span::from_secs(60)), // finwait2_timeout
            reset_unread: false,                           // tcp_disconnect flushes
            listen_drops_syn_ack: true,                    // tcp_input
            fin_on_acks: true,                             // tcp_outflags of FIN-WAIT-1, CLOSING and LAST-ACK
            time_wait_answers: TimeWaitAnswers::FreeBsd,   // tcp_twcheck, both of these
            protect_time_wait: true,
            report_late_reset: true, // tcp_do_segment
            discard_unread: true,    // socantrcvmore and sbflush
            reset_on_timeout: true,  // tcp_drop
            challenge_limit: Some(ChallengeLimit { count: 5, interval: Span::from_secs(1) }), // ack_war_cnt, ack_war_timewindow
            accept_overflow: AcceptOverflow::Reset, // syncache.rst_on_sock_fail
            ..StateRules::default()
        }
    }
}
