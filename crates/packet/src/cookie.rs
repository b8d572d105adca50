//! The option of TCP Fast Open.

use std::fmt;

/// The TCP Fast Open option (RFC 7413 section 4.1.1): a request for a cookie, or a cookie.
///
/// A cookie of a length that the RFC forbids is kept by its length alone: stacks differ in what
/// they make of one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct FastOpen {
    /// The option of the experiment (RFC 6994, kind 254 with the identifier 0xF989) instead of
    /// kind 34.
    pub experimental: bool,
    len: u8,
    bytes: [u8; FastOpen::MAX_LEN],
}

impl FastOpen {
    /// The shortest cookie.
    pub const MIN_LEN: usize = 4;
    /// The longest cookie.
    pub const MAX_LEN: usize = 16;
    /// Experiment identifier (IANA registry "TCP Experimental Option Experiment Identifiers").
    pub const EXPERIMENT: [u8; 2] = [0xf9, 0x89];

    /// A request for a cookie, of kind 34.
    pub const REQUEST: FastOpen = FastOpen { experimental: false, len: 0, bytes: [0; FastOpen::MAX_LEN] };

    /// The option with `cookie`, of kind 34; without any bytes it is a request. No option has more
    /// than 255.
    pub fn new(cookie: &[u8]) -> FastOpen {
        let mut option = FastOpen { len: u8::try_from(cookie.len()).unwrap_or(u8::MAX), ..FastOpen::REQUEST };
        if let Some(bytes) = option.bytes.get_mut(..cookie.len()) {
            bytes.copy_from_slice(cookie);
        }
        option
    }

    /// The same in the form of the experiment, or not.
    pub fn in_form(self, experimental: bool) -> FastOpen {
        FastOpen { experimental, ..self }
    }

    /// The bytes of the cookie; none of a request, or of a cookie that is too long to be one.
    pub fn cookie(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Bytes of the cookie on the wire, valid or not.
    pub fn cookie_len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns true if the option is a cookie request.
    pub fn is_request(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the cookie has a valid length: 4 to 16 bytes, and even.
    pub fn is_cookie(&self) -> bool {
        (FastOpen::MIN_LEN..=FastOpen::MAX_LEN).contains(&self.cookie_len()) && self.len.is_multiple_of(2)
    }

    /// Bytes of the option without padding.
    pub fn option_len(&self) -> usize {
        let header = if self.experimental { 4 } else { 2 };
        header + self.cookie().len()
    }
}

impl fmt::Debug for FastOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.experimental { "FOEXP" } else { "FO" })?;
        if self.cookie_len() > FastOpen::MAX_LEN {
            return write!(f, "({} bytes)", self.len);
        }
        self.cookie().iter().enumerate().try_for_each(|(i, byte)| {
            let space = if i == 0 { " " } else { "" };
            write!(f, "{space}{byte:02x}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_have_four_to_sixteen_bytes_and_an_even_number() {
        let valid: Vec<usize> = (0..=38).filter(|&len| FastOpen::new(&vec![7; len]).is_cookie()).collect();
        assert_eq!(valid, [4, 6, 8, 10, 12, 14, 16]);
        assert!(FastOpen::REQUEST.is_request() && FastOpen::new(&[]).is_request());
        // Too long to be kept, but known to have been there.
        let long = FastOpen::new(&[7; 18]);
        assert_eq!((long.cookie_len(), long.cookie(), long.is_request()), (18, &[][..], false));
    }

    #[test]
    fn it_is_shown_as_scripts_write_it() {
        let cookie = FastOpen::new(&[0xab, 0xcd, 0x12, 0x34]);
        assert_eq!(format!("{cookie:?}"), "FO abcd1234");
        assert_eq!(format!("{:?}", FastOpen::REQUEST.in_form(true)), "FOEXP");
    }
}
