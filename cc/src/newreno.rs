//! x

/// Parameters of NewReno.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewRenoConfig {
    /// Appropriate byte counting (RFC 3465): the window grows by bytes acknowledged. Without it, by ACKs (RFC 5681
    /// equations 2 and 3 counted per ACK). Default true.
    pub abc: bool,
    /// L of RFC 3465: in slow start an ACK adds at most this many segments; 0 is no limit. Default 2.
    pub abc_l_var: u32,
    /// After recovery, the window is at most what is in flight plus one segment (RFC 6582 section 3.2 step 3, first
    /// option), instead of the slow start threshold. Default true.
    pub limit_burst: bool,
}
