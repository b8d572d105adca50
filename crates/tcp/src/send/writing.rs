//! The application's instructions about written data.

/// Options that hold small segments back or let them go, and bound segments and what waits.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    /// TCP_CORK.
    cork: bool,
    /// MSG_MORE of the last write, until a segment or an ACK has come.
    more: bool,
    /// A partial segment that waits goes out whatever the other rules (Linux `TCP_NAGLE_PUSH`).
    push: bool,
    /// TCP_MAXSEG.
    max_segment: Option<u16>,
    /// TCP_NOTSENT_LOWAT.
    notsent_lowat: Option<u32>,
}

impl Writing {
    /// A partial segment that waits goes out.
    pub(crate) fn push(&mut self) {
        self.push = true;
    }

    /// Notes that the pushed data was sent.
    pub(crate) fn pushed(&mut self) {
        self.push = false;
    }

    /// Returns `true` if a partial segment leaves whatever the other rules.
    #[inline]
    pub(crate) fn pushes(&self) -> bool {
        self.push
    }

    /// TCP_CORK. Taking it off sends what Nagle's rule, if there is one, lets through
    /// (`tcp_sock_set_cork`).
    pub(crate) fn set_cork(&mut self, on: bool, nagle: bool) {
        self.cork = on;
        self.push |= !on && !nagle;
    }

    /// MSG_MORE, or what ends it.
    #[inline]
    pub(crate) fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    /// Returns `true` if the application has said that more follows.
    #[inline]
    pub(crate) fn expects_more(&self) -> bool {
        self.cork || self.more
    }

    pub(crate) fn set_max_segment(&mut self, bytes: u16) {
        self.max_segment = Some(bytes);
    }

    pub(crate) fn max_segment(&self) -> Option<u16> {
        self.max_segment
    }

    pub(crate) fn set_notsent_lowat(&mut self, bytes: Option<u32>) {
        self.notsent_lowat = bytes;
    }

    pub(crate) fn notsent_lowat(&self) -> Option<u32> {
        self.notsent_lowat
    }

    /// Returns `true` if `unsent` bytes are fewer than TCP_NOTSENT_LOWAT asks to wait for.
    #[inline]
    pub(crate) fn is_below_lowat(&self, unsent: u64) -> bool {
        self.notsent_lowat.is_none_or(|most| unsent < u64::from(most))
    }
}
