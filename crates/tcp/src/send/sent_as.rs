//! Why a data segment was sent, for a driver that compares the endpoint with the truth.

/// Why a data segment was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentAs {
    /// New data.
    #[default]
    New,
    /// New data on a duplicate ACK (RFC 3042).
    LimitedTransmit,
    /// A retransmission of what the loss detector declared lost.
    FastRetransmit,
    /// A retransmission of what is not known lost, because there is room (RFC 6675 `NextSeg` rules
    /// 3 and 4).
    Speculative,
    /// A retransmission of what the retransmission timer declared lost.
    Timeout,
    /// A tail loss probe (RFC 8985 section 7).
    TailLossProbe,
    /// A probe of a closed window.
    WindowProbe,
    /// An ACK that bears the FIN once more: no transmission of its own.
    Ack,
}

impl SentAs {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            SentAs::New => "new",
            SentAs::LimitedTransmit => "limited_transmit",
            SentAs::FastRetransmit => "fast_retransmit",
            SentAs::Speculative => "speculative",
            SentAs::Timeout => "timeout",
            SentAs::TailLossProbe => "tail_loss_probe",
            SentAs::WindowProbe => "window_probe",
            SentAs::Ack => "ack",
        }
    }
}
