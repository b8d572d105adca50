//! The knobs of the path: what ICMP errors do to a connection, and how large its packets are.

use ackclock_units::Span;

defaults! {
/// A host's reaction to ICMP errors, and its search for the largest packet that a path takes. The
/// default is what the RFCs say; [`crate::profile`] has the settings of real stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRules {
    /// The effect of an ICMP error. Default: RFC 1122 and RFC 5927.
    pub icmp: IcmpRule = IcmpRule::Rfc;
    /// Errors that prove a connection impossible end it in SYN-SENT (FreeBSD
    /// `net.inet.tcp.icmp_may_rst`); by [`IcmpRule::FreeBsd`] alone. Default true.
    pub may_reset: bool = true;
    /// An ICMP error that says that there is no route takes back a doubling of the timeout (RFC
    /// 6069). Default false.
    pub revert_backoff: bool = false;
    /// Bytes of the IP header: 20, or 40 for IPv6. Default 20.
    pub ip_header: u16 = 20;
    /// The MTU of the route to the peer, bytes. Default none: that of [`crate::Config::mss`], which
    /// then bounds what is sent as well as what is asked for.
    pub mtu: Option<u32> = None;
    /// The MTU is fixed, and no message changes it (`mtu lock` of Linux's routes). Default false.
    pub locked: bool = false;
    /// The MSS that a SYN announces shrinks with the estimate, as in FreeBSD and in Linux before
    /// 7.1, although it is about what may be received (RFC 6691). Default false.
    pub advertise: bool = false;
    /// Path MTU discovery (RFC 1191, RFC 8201): messages that a packet was too big are believed.
    /// Default true.
    pub discovery: bool = true;
    /// No message makes the estimate smaller than this, bytes; over IPv6 1280 if that is more.
    /// Default 68 (RFC 1191 section 3).
    pub least_mtu: u32 = 68;
    /// Segments are no smaller than this for the path's sake, options included, bytes (Linux
    /// `tcp_min_snd_mss`). Default 48.
    pub least_segment: u32 = 48;
    /// After this time an estimate is forgotten, and the MTU of the route tried again. Default 10
    /// minutes (RFC 1191 section 6.3).
    pub timeout: Option<Span> = Some(Span::from_secs(600));
    /// Path MTU discovery without messages (RFC 4821), as Linux has it. Default off.
    pub probing: MtuProbing = MtuProbing::Off;
    /// First size of the search, bytes of payload and options (Linux `tcp_base_mss`). Default 1024.
    pub base_segment: u32 = 1024;
    /// Lower bound of the search, in the same bytes (Linux `tcp_mtu_probe_floor`). Default 48.
    pub probe_floor: u32 = 48;
    /// The search ends when the size is known to this many bytes (Linux `tcp_probe_threshold`).
    /// Default 8.
    pub probe_threshold: u32 = 8;
    /// Time after which the search begins anew (Linux `tcp_probe_interval`). Default 10 minutes.
    pub probe_interval: Span = Span::from_secs(600);
    /// Retransmissions by timeout after which a black hole is suspected (Linux `tcp_retries1`).
    /// Default 3.
    pub black_hole_retries: u32 = 3;
}
}

impl PathRules {
    /// Linux 6.1 with its sysctls' defaults.
    pub fn linux() -> PathRules {
        PathRules {
            icmp: IcmpRule::Linux,
            advertise: true,                     // ipv4_default_advmss
            revert_backoff: true,                // tcp_ld_RTO_revert
            least_mtu: 552,                      // net.ipv4.route.min_pmtu
            timeout: Some(Span::from_secs(600)), // net.ipv4.route.mtu_expires
            ..PathRules::default()
        }
    }

    /// FreeBSD 14 with its sysctls' defaults.
    pub fn freebsd() -> PathRules {
        PathRules {
            icmp: IcmpRule::FreeBsd,
            advertise: true, // tcp_mssopt
            least_mtu: 256,  // net.inet.tcp.minmss = 216
            timeout: None,   // the host cache forgets, a connection does not ask it again
            ..PathRules::default()
        }
    }

    /// Bytes of the headers of a segment without options.
    pub(crate) fn headers(&self) -> u32 {
        u32::from(self.ip_header) + 20
    }
}

/// The effect of an ICMP error on the connection that it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IcmpRule {
    /// RFC 1122 section 4.2.3.9 while the connection is being opened: protocol and port unreachable
    /// end it, all else is remembered. Once it is open nothing ends it (RFC 5927 section 5.2).
    #[default]
    Rfc,
    /// Linux's `tcp_v4_err` and `tcp_v6_err`: any error ends a connection that is being opened,
    /// none an open one.
    Linux,
    /// FreeBSD's `tcp_ctlinput`: with [`PathRules::may_reset`] four of them end one in SYN-SENT;
    /// else it takes a second error after four retransmissions.
    FreeBsd,
}

/// Path MTU discovery by probes (Linux `net.ipv4.tcp_mtu_probing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuProbing {
    /// 0: none.
    #[default]
    Off,
    /// 1: once timeouts suggest that large packets vanish without a message.
    BlackHole,
    /// 2: from the beginning.
    Always,
}
