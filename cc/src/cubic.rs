//! x

/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// Multiplicative decrease factor. Default 0.7 (RFC 9438 section 4.6).
    pub beta: f64,
    /// C, in segments per second cubed. Default 0.4 (RFC 9438 section 5).
    pub c: f64,
    /// Fast convergence (RFC 9438 section 4.7). Default true.
    pub fast_convergence: bool,
    /// The Reno-friendly region (RFC 9438 section 4.3). Default true.
    pub reno_friendly: bool,
    /// HyStart as in Linux; `None` is standard slow start.
    pub hystart: Option<HystartConfig>,
}

/// Parameters of HyStart (Ha, Rhee 2008), named and with defaults as in Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HystartConfig {
    /// Watch the length of ACK trains. Default true.
    pub ack_train: bool,
    /// Watch the increase of delay. Default true.
    pub delay: bool,
    /// Below this window, in segments, HyStart does not act. Default 16.
    pub low_window: u32,
    /// The most between two ACKs of one train. Default 2 ms.
    pub ack_delta: ackclock_units::Span,
}
