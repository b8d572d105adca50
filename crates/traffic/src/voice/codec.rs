//! Codecs.

use ackclock_units::Span;

/// A codec, with what the E-model knows of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// Name in scenarios and results.
    pub name: &'static str,
    /// A datagram holds whole frames of this length.
    pub frame: Span,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// The encoder's look-ahead beyond a frame.
    pub look_ahead: Span,
    /// Equipment impairment factor, Ie.
    pub ie: f64,
    /// Packet-loss robustness factor, Bpl.
    pub bpl: f64,
}

/// The codecs by name.
///
/// Of G.711, G.729, G.723.1 and GSM EFR the factors are those of G.113 appendix I (G.711 with the
/// loss concealment of its appendix I, and without; G.729 and G.723.1 with annex A and silence
/// suppression, which here does not suppress anything: without it G.729A has an Ie of 10). They are
/// fits: at 1 % loss the tables of 2001 have 25 for G.711 without concealment and 16 for GSM EFR,
/// the model 17.9 and 13.2; frames are those of RFC 3551
/// section 4.5. Of Opus see the departures of [the module](super); its rates are constant, its
/// look-ahead is 6.5 ms of the 26.5 ms that RFC 6716 section 2 has for frames of 20 ms.
pub const CODECS: &[Codec] = &[
    codec("g711", 1_000, 8, 0, 0.0, 25.1),
    codec("g711-no-plc", 1_000, 8, 0, 0.0, 4.3),
    codec("g729a", 10_000, 10, 5_000, 11.0, 19.0),
    codec("g723.1", 30_000, 24, 7_500, 15.0, 16.1),
    codec("gsm-efr", 20_000, 31, 0, 5.0, 10.0),
    // 55 - 4.6 ln(12000) and so on.
    codec("opus-12", 20_000, 30, 6_500, 11.8, 10.0),
    codec("opus-16", 20_000, 40, 6_500, 10.5, 10.0),
    codec("opus-24", 20_000, 60, 6_500, 8.6, 10.0),
    codec("opus-32", 20_000, 80, 6_500, 7.3, 10.0),
    codec("opus-64", 20_000, 160, 6_500, 4.1, 10.0),
];

const fn codec(name: &'static str, frame: u64, frame_bytes: u32, look_ahead: u64, ie: f64, bpl: f64) -> Codec {
    Codec { name, frame: Span::from_micros(frame), frame_bytes, look_ahead: Span::from_micros(look_ahead), ie, bpl }
}

impl Codec {
    /// The codec of this name.
    pub fn by_name(name: &str) -> Option<&'static Codec> {
        CODECS.iter().find(|codec| codec.name == name)
    }

    /// The bytes of so much voice; `None` if it is not a whole number of frames, at least one.
    pub fn bytes(&self, voice: Span) -> Option<u32> {
        let (voice, frame) = (voice.as_nanos(), self.frame.as_nanos());
        let whole = voice > 0 && voice.is_multiple_of(frame);
        u32::try_from(voice / frame).ok().filter(|_| whole)?.checked_mul(self.frame_bytes)
    }
}
