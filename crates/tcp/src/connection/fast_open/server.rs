//! A listening socket's processing of the option: cookies, and the limit of connections that are
//! open early.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ackclock_packet::{FastOpen, Segment};
use ackclock_units::{Span, Time};
use siphasher::sip::SipHasher24;

/// The cookie for a client: SipHash-2-4 under `key` of the addresses of its SYN, the client's
/// before the server's (Linux), or the client's alone (FreeBSD).
pub fn fast_open_cookie(key: &[u8; 16], addresses: &[u8]) -> FastOpen {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(addresses);
    FastOpen::new(&hasher.finish().to_le_bytes())
}

/// A listening socket that takes Fast Open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastOpenServer {
    /// The cookie that the client has to show, by the newest key, and one by an older key that will
    /// still do.
    pub cookies: [Option<FastOpen>; 2],
    /// Data is taken in from clients that show no cookie.
    pub cookie_less: bool,
    /// The SYN/ACK carries the newest cookie for a client that has shown it, as FreeBSD's does.
    pub always_tells: bool,
    /// Connections that may be open without their last ACK; with none it takes no Fast Open.
    pub limit: usize,
    /// Time for which a connection counts that was reset after it was accepted: a defence against
    /// spoofed SYNs. Linux: 60 s.
    pub penalty: Option<Span>,
}

/// The reaction to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedCookie {
    /// The SYN opens the connection; the SYN/ACK has this option.
    Early(Option<FastOpen>),
    /// An ordinary one; the SYN/ACK has this option.
    Ordinary(Option<FastOpen>),
}

impl FastOpenServer {
    /// Linux's with one key, for a driver that knows the cookie.
    pub fn with_cookie(cookie: FastOpen, limit: usize) -> FastOpenServer {
        FastOpenServer {
            cookies: [Some(cookie), None],
            cookie_less: false,
            always_tells: false,
            limit,
            penalty: Some(Span::from_secs(60)),
        }
    }

    /// `tcp_try_fastopen`; `syncache_add` and `tcp_fastopen_check_cookie`.
    pub(crate) fn judge(&self, now: Time, syn: &Segment, early: &EarlyConnections) -> JudgedCookie {
        // tcp_parse_fastopen_option: of an odd length it is not seen, of another wrong length it
        // shows no cookie.
        let option = syn.fast_open.filter(|option| option.is_request() || option.is_cookie());
        if syn.payload.len == 0 && option.is_none() || !early.has_room(now, self.limit) {
            return JudgedCookie::Ordinary(None);
        }
        if self.cookie_less {
            return JudgedCookie::Early(None);
        }
        let Some(shown) = option else { return JudgedCookie::Ordinary(None) };
        let newest = self.cookies[0].map(|cookie| cookie.in_form(shown.experimental));
        let matches = |cookie: Option<FastOpen>| cookie.is_some_and(|cookie| cookie.cookie() == shown.cookie());
        if shown.is_request() {
            JudgedCookie::Ordinary(newest)
        } else if matches(self.cookies[0]) {
            JudgedCookie::Early(newest.filter(|_| self.always_tells))
        } else if matches(self.cookies[1]) {
            // TCPFASTOPENPASSIVEALTKEY: it is given the newer one.
            JudgedCookie::Early(newest)
        } else {
            JudgedCookie::Ordinary(newest)
        }
    }
}

/// Children of a listening socket whose last ACK has not come (`fastopen_queue`), as the socket and
/// each of them share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyConnections(Arc<Mutex<EarlyCount>>);

/// The connections that count against the limit.
#[derive(Debug, Default)]
struct EarlyCount {
    pending: usize,
    /// When those that were reset stop counting.
    resets: VecDeque<Time>,
    penalty: Option<Span>,
}

impl EarlyConnections {
    /// Locks the count, which is whole even if another holder has panicked.
    fn lock(&self) -> MutexGuard<'_, EarlyCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listening socket has been set up so; `None`, it is closed.
    pub(crate) fn set_penalty(&self, penalty: Option<Span>) {
        self.lock().penalty = penalty;
    }

    /// A child is opened by its SYN.
    pub(crate) fn enter(&self) {
        self.lock().pending += 1;
    }

    /// Its last ACK has come, or never will.
    pub(crate) fn leave(&self) {
        self.lock().leave();
    }

    /// One that was accepted has been reset, and counts on for a while.
    pub(crate) fn punish(&self, now: Time) {
        let mut count = self.lock();
        if let Some(penalty) = count.penalty {
            count.pending += 1;
            count.resets.push_back(now + penalty);
        }
    }

    /// `tcp_fastopen_queue_check`: one place is freed if need be.
    fn has_room(&self, now: Time, limit: usize) -> bool {
        if limit == 0 {
            return false;
        }
        let mut count = self.lock();
        if count.pending >= limit {
            if count.resets.front().is_none_or(|&until| until > now) {
                return false;
            }
            count.resets.pop_front();
            count.leave();
        }
        true
    }
}

impl EarlyCount {
    fn leave(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_packet::Payload;

    #[test]
    fn the_cookies_of_linux() {
        // tools/testing/selftests/net/packetdrill of Linux: ksft_runner.sh has the addresses and
        // cookies, defaults.sh the key.
        let mut key = [0; 16];
        for (part, byte) in key.chunks_mut(4).zip([0xa1, 0xb2, 0xc3, 0xd4]) {
            part.fill(byte);
        }
        let addresses = [192, 0, 2, 1, 192, 168, 0, 1];
        assert_eq!(format!("{:?}", fast_open_cookie(&key, &addresses)), "FO 3021b9d889017eeb");
        assert_eq!(format!("{:?}", fast_open_cookie(&[0; 16], &addresses)), "FO b7c12350a90dc8f5");
    }

    fn syn(fast_open: Option<FastOpen>, len: u32) -> Segment {
        Segment { fast_open, payload: Payload { offset: 0, len }, ..Segment::default() }
    }

    #[test]
    fn a_syn_is_judged_by_its_cookie() {
        let (new, old, wrong) = (FastOpen::new(&[1; 8]), FastOpen::new(&[2; 8]), FastOpen::new(&[3; 8]));
        let server = FastOpenServer { cookies: [Some(new), Some(old)], ..FastOpenServer::with_cookie(new, 1) };
        let judge = |server: &FastOpenServer, option, len| {
            server.judge(Time::ZERO, &syn(option, len), &EarlyConnections::default())
        };
        for (option, len, expected) in [
            (None, 0, JudgedCookie::Ordinary(None)),
            // Data alone opens nothing.
            (None, 10, JudgedCookie::Ordinary(None)),
            (Some(FastOpen::REQUEST), 0, JudgedCookie::Ordinary(Some(new))),
            (Some(new), 10, JudgedCookie::Early(None)),
            // Without data it may be answered early.
            (Some(new), 0, JudgedCookie::Early(None)),
            (Some(old), 10, JudgedCookie::Early(Some(new))),
            (Some(wrong), 10, JudgedCookie::Ordinary(Some(new))),
            (Some(wrong.in_form(true)), 10, JudgedCookie::Ordinary(Some(new.in_form(true)))),
            (Some(FastOpen::new(&[1; 7])), 10, JudgedCookie::Ordinary(None)),
        ] {
            assert_eq!(judge(&server, option, len), expected, "{option:?} with {len} bytes");
        }
        let open = FastOpenServer { cookie_less: true, ..server.clone() };
        assert_eq!(judge(&open, None, 10), JudgedCookie::Early(None));
        assert_eq!(judge(&open, None, 0), JudgedCookie::Ordinary(None));
        let freebsd = FastOpenServer { always_tells: true, ..server.clone() };
        assert_eq!(judge(&freebsd, Some(new), 10), JudgedCookie::Early(Some(new)));
        assert_eq!(judge(&FastOpenServer { limit: 0, ..server }, Some(new), 10), JudgedCookie::Ordinary(None));
    }

    #[test]
    fn a_reset_child_counts_on_for_a_minute() {
        let cookie = FastOpen::new(&[1; 8]);
        let server = FastOpenServer::with_cookie(cookie, 1);
        let early = EarlyConnections::default();
        early.set_penalty(server.penalty);
        let at = Time::from_secs;
        let judge = |now, early: &EarlyConnections| server.judge(now, &syn(Some(cookie), 1), early);
        early.enter();
        assert_eq!(judge(at(0), &early), JudgedCookie::Ordinary(None));
        early.leave();
        early.punish(at(10));
        assert_eq!(judge(at(69), &early), JudgedCookie::Ordinary(None));
        assert_eq!(judge(at(70), &early), JudgedCookie::Early(None));
        // The place was freed.
        assert_eq!(judge(at(0), &early), JudgedCookie::Early(None));
    }
}
