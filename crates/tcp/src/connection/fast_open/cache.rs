//! A client's memory of a server: its cookie, its segment size, and the fate of data with a SYN.

use ackclock_packet::FastOpen;
use ackclock_units::{Span, Time};

/// The option and data of a first SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpenAttempt {
    /// A request for a cookie, or the cookie.
    pub option: Option<FastOpen>,
    /// Data may go along.
    pub with_data: bool,
    /// The segment size that the server announced the last time.
    pub mss: Option<u16>,
    /// Fast Open had been given up on this path and is tried again.
    pub(super) probes: bool,
}

impl FastOpenAttempt {
    /// An attempt with a cookie cached from an earlier connection.
    pub fn with_cookie(cookie: FastOpen) -> FastOpenAttempt {
        FastOpenAttempt { option: Some(cookie), with_data: true, ..FastOpenAttempt::default() }
    }

    /// This attempt without data, since none could be copied: a cookie is requested instead of
    /// shown.
    pub fn asking_again(self) -> FastOpenAttempt {
        FastOpenAttempt { option: self.option.map(|_| FastOpen::REQUEST), with_data: false, ..self }
    }
}

/// A connection's findings about Fast Open on its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpenNews {
    pub(super) answer: Option<Answer>,
    pub(super) blackhole: bool,
    pub(super) works: bool,
}

/// The answer to a SYN with the option, or with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) mss: Option<u16>,
    pub(super) option: Option<FastOpen>,
    /// Our SYN had the option, this one in the form of the experiment.
    pub(super) asked: bool,
    pub(super) experimental: bool,
    pub(super) sent_data: bool,
    /// Some of the data was not acknowledged.
    pub(super) unacknowledged: bool,
    /// The SYN had to be sent again.
    pub(super) resent: bool,
}

/// The stack whose rules a cache follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenStack {
    /// Linux: a server that does not answer a request is asked in the form of the experiment next,
    /// and then again in the ordinary one.
    Linux,
    /// FreeBSD: a server whose answer has no option, or no valid cookie, is left alone for a while.
    FreeBsd,
}

/// A client's memory of one server (`tcp_fastopen_metrics`, `tcp_fastopen_ccache_entry`), and of
/// firewalls on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastOpenCache {
    stack: FastOpenStack,
    mss: Option<u16>,
    cookie: Option<FastOpen>,
    /// Linux: 1 when the experimental form is tried next, 2 when it was.
    try_experiment: u8,
    /// Linux: how long no data goes with a SYN once a firewall was seen to swallow it, at first
    /// (`tcp_fastopen_blackhole_timeout`). Zero, its default since 5.14: it is tried whatever
    /// happened.
    pub blackhole_timeout: Span,
    /// The number of times in a row that a blackhole was seen, and the time of the last.
    blackholes: u32,
    blackhole_at: Time,
    /// FreeBSD: when the path was disabled.
    disabled_at: Option<Time>,
    /// FreeBSD: for how long it is (`net.inet.tcp.fastopen.path_disable_time`). Default 900 s.
    pub path_disable_time: Span,
}

/// Doublings of the time for which Fast Open is given up.
const MOST_DOUBLINGS: u32 = 6;

impl FastOpenCache {
    /// Nothing is known.
    pub fn new(stack: FastOpenStack) -> FastOpenCache {
        FastOpenCache {
            stack,
            mss: None,
            cookie: None,
            try_experiment: 0,
            blackhole_timeout: Span::ZERO,
            blackholes: 0,
            blackhole_at: Time::ZERO,
            disabled_at: None,
            path_disable_time: Span::from_secs(900),
        }
    }

    /// Forgets what it knows of the server.
    pub fn flush(&mut self) {
        (self.mss, self.cookie, self.try_experiment, self.disabled_at) = (None, None, 0, None);
    }

    /// The Fast Open part of the SYN of a connection that wants it. `cookie_less`: the client sends
    /// data without any cookie (Linux `TFO_CLIENT_NO_COOKIE`, `TCP_FASTOPEN_NO_COOKIE`). `None`: an
    /// ordinary SYN.
    pub fn attempt(&mut self, now: Time, cookie_less: bool) -> Option<FastOpenAttempt> {
        match self.stack {
            FastOpenStack::Linux => self.attempt_linux(now, cookie_less),
            FastOpenStack::FreeBsd => self.attempt_freebsd(now),
        }
    }

    /// `tcp_fastopen_cookie_check`.
    fn attempt_linux(&self, now: Time, cookie_less: bool) -> Option<FastOpenAttempt> {
        let probes = self.blackhole_timeout > Span::ZERO && self.blackholes > 0;
        if probes {
            let doublings = (self.blackholes - 1).min(MOST_DOUBLINGS);
            if now < self.blackhole_at + self.blackhole_timeout * (1 << doublings) {
                return None;
            }
        }
        let request = || FastOpen::REQUEST.in_form(self.try_experiment == 1);
        let option = if cookie_less { None } else { Some(self.cookie.unwrap_or_else(request)) };
        let with_data = cookie_less || self.cookie.is_some();
        Some(FastOpenAttempt { option, with_data, mss: self.mss, probes })
    }

    /// `tcp_fastopen_connect`.
    fn attempt_freebsd(&mut self, now: Time) -> Option<FastOpenAttempt> {
        if let Some(at) = self.disabled_at {
            if now.since(at) <= self.path_disable_time {
                return None;
            }
            self.flush();
        }
        let option = Some(self.cookie.unwrap_or(FastOpen::REQUEST));
        Some(FastOpenAttempt { option, with_data: self.cookie.is_some(), mss: self.mss, probes: false })
    }

    /// Takes over what a connection has found out.
    pub fn learn(&mut self, now: Time, news: FastOpenNews) {
        if let Some(answer) = news.answer {
            match self.stack {
                FastOpenStack::Linux => self.learn_linux(answer),
                FastOpenStack::FreeBsd => self.learn_freebsd(now, answer),
            }
        }
        // tcp_fastopen_active_disable.
        if news.blackhole && self.blackhole_timeout > Span::ZERO {
            (self.blackholes, self.blackhole_at) = (self.blackholes.saturating_add(1), now);
        } else if news.works {
            self.blackholes = 0;
        }
    }

    /// `tcp_rcv_fastopen_synack` and `tcp_fastopen_cache_set`.
    fn learn_linux(&mut self, answer: Answer) {
        // tcp_parse_fastopen_option: a cookie of a wrong length is none, one of an odd length not
        // even seen.
        let cookie = answer.option.filter(|option| answer.asked && option.is_cookie());
        let answered = answer.option.is_some_and(|option| option.is_cookie() || option.is_request());
        let unanswered = answer.asked && !answered && !answer.resent && !answer.sent_data;
        let experiment = match answer.experimental {
            _ if !unanswered => 0,
            true => 2,
            false => 1,
        };
        self.mss = answer.mss.filter(|&mss| mss > 0).or(self.mss);
        if cookie.is_some() {
            self.cookie = cookie;
        } else if self.cookie.is_none() && experiment > self.try_experiment {
            self.try_experiment = experiment;
        }
    }

    /// `tcp_fastopen_update_cache` and `tcp_fastopen_disable_path`: an answer without an option, or
    /// with a cookie of a wrong length, disables the path.
    fn learn_freebsd(&mut self, now: Time, answer: Answer) {
        match answer.option.filter(FastOpen::is_cookie) {
            // The form of the experiment is not known there.
            Some(cookie) if !cookie.experimental => {
                self.cookie = Some(cookie);
                self.mss = Some(answer.mss.unwrap_or(DEFAULT_MSS));
                self.disabled_at = None;
            }
            _ => {
                (self.cookie, self.mss) = (None, None);
                self.disabled_at.get_or_insert(now);
            }
        }
    }
}

/// The segment size of a server that announces none (`TCP_MSS`).
const DEFAULT_MSS: u16 = 536;

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    fn answer(option: Option<FastOpen>) -> Answer {
        Answer {
            mss: Some(1000),
            option,
            asked: true,
            experimental: false,
            sent_data: false,
            unacknowledged: false,
            resent: false,
        }
    }

    fn news(answer: Answer) -> FastOpenNews {
        FastOpenNews { answer: Some(answer), ..FastOpenNews::default() }
    }

    fn at(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    fn option_of(cache: &mut FastOpenCache, now: Time) -> Option<FastOpen> {
        cache.attempt(now, false).and_then(|attempt| attempt.option)
    }

    #[test]
    fn linux_tries_the_experiment_once_when_its_request_is_not_answered() {
        let mut cache = FastOpenCache::new(FastOpenStack::Linux);
        assert_eq!(option_of(&mut cache, at(0)), Some(FastOpen::REQUEST));
        cache.learn(at(0), news(answer(None)));
        assert_eq!(option_of(&mut cache, at(0)), Some(FastOpen::REQUEST.in_form(true)));
        cache.learn(at(0), news(Answer { experimental: true, ..answer(None) }));
        assert_eq!(option_of(&mut cache, at(0)), Some(FastOpen::REQUEST));
        // try_exp never goes back: the experiment is not tried a second time.
        cache.learn(at(0), news(answer(None)));
        assert_eq!(option_of(&mut cache, at(0)), Some(FastOpen::REQUEST));
    }

    #[test]
    fn linux_does_not_blame_the_option_if_the_syn_was_lost() {
        let mut cache = FastOpenCache::new(FastOpenStack::Linux);
        cache.learn(at(0), news(Answer { resent: true, ..answer(None) }));
        assert_eq!(option_of(&mut cache, at(0)), Some(FastOpen::REQUEST));
    }

    #[test]
    fn linux_keeps_its_cookie_until_there_is_a_valid_one() {
        let cookie = FastOpen::new(&COOKIE);
        let mut cache = FastOpenCache::new(FastOpenStack::Linux);
        cache.learn(at(0), news(answer(Some(cookie))));
        for invalid in [None, Some(FastOpen::new(&COOKIE[..2])), Some(FastOpen::new(&[9; 18]))] {
            cache.learn(at(1), news(Answer { mss: Some(900), ..answer(invalid) }));
            let attempt = cache.attempt(at(1), false).unwrap();
            assert_eq!((attempt.option, attempt.with_data, attempt.mss), (Some(cookie), true, Some(900)));
        }
        // One that was not asked for is not taken.
        cache.learn(at(1), news(Answer { asked: false, ..answer(Some(FastOpen::new(&COOKIE[..4]))) }));
        assert_eq!(option_of(&mut cache, at(1)), Some(cookie));
    }

    #[test]
    fn linux_gives_up_for_twice_as_long_each_time() {
        let mut cache = FastOpenCache::new(FastOpenStack::Linux);
        let blackhole = FastOpenNews { blackhole: true, ..FastOpenNews::default() };
        // Off by default.
        cache.learn(at(0), blackhole);
        assert!(cache.attempt(at(0), false).is_some());
        cache.blackhole_timeout = Span::from_secs(10);
        cache.learn(at(100), blackhole);
        assert_eq!((cache.attempt(at(109), false), cache.attempt(at(110), false).is_some()), (None, true));
        cache.learn(at(110), blackhole);
        assert_eq!((cache.attempt(at(129), false), cache.attempt(at(130), false).is_some()), (None, true));
        // 2^6 times at most.
        for _ in 0..20 {
            cache.learn(at(200), blackhole);
        }
        assert_eq!((cache.attempt(at(839), false), cache.attempt(at(840), false).is_some()), (None, true));
        cache.learn(at(840), FastOpenNews { works: true, ..FastOpenNews::default() });
        assert!(cache.attempt(at(840), false).is_some_and(|attempt| !attempt.probes));
    }

    #[test]
    fn freebsd_leaves_a_server_alone_that_gives_no_valid_cookie() {
        let cookie = FastOpen::new(&COOKIE);
        for bad in [None, Some(FastOpen::REQUEST), Some(FastOpen::new(&COOKIE[..7])), Some(cookie.in_form(true))] {
            let mut cache = FastOpenCache::new(FastOpenStack::FreeBsd);
            cache.learn(at(0), news(answer(Some(cookie))));
            assert_eq!(option_of(&mut cache, at(1)), Some(cookie));
            cache.learn(at(1), news(answer(bad)));
            // Still disabled when exactly path_disable_time has passed.
            assert_eq!(option_of(&mut cache, at(901)), None);
            assert_eq!(option_of(&mut cache, at(902)), Some(FastOpen::REQUEST));
        }
    }
}
