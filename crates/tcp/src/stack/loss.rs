//! Named behaviours about losses in which systems differ: the rows of systems are in
//! [`crate::profile`], and the code asks for the behaviour, never for the system.

use ackclock_units::named;

/// The behaviours of Linux's episodes (`tcp_fastretrans_alert` and what it calls) that changed
/// between releases. The default is how they run since 4.0; each field says what differs with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossRules {
    /// The bound that an ACK which is not ordinary progress sets to the window, unless it comes
    /// down (`tcp_moderate_cwnd`).
    pub max_burst: MaxBurst,
    /// The window grows while all of it but [`LossRules::max_burst`] segments is in flight
    /// (`tcp_is_cwnd_limited`, `tcp_max_burst`).
    pub grows_within_burst: bool,
    /// Segments that were sent since an episode began are not declared lost before the next one
    /// (`tcp_mark_head_lost`, up to `high_seq`).
    pub losses_up_to_point: bool,
    /// Recovery lasts until everything sent before it is acknowledged, even where it begins while
    /// the window comes down for a mark (`high_seq` in `tcp_fastretrans_alert`; set by
    /// `tcp_init_cwnd_reduction` since).
    pub recovery_moves_point: bool,
    /// Without FACK any sign of a loss marks the first hole, however few segments are SACKed above
    /// it (`tcp_update_scoreboard`, `tcp_mark_head_lost`).
    pub first_hole_at_any_sign: bool,
    /// An ACK that reports a duplicate counts as a duplicate ACK itself (`is_dupack` of `tcp_ack`,
    /// until 4.x without `FLAG_DSACKING_ACK`).
    pub dsack_is_duplicate: bool,
    /// A timeout while another one is being repaired leaves the threshold as it is
    /// (`tcp_enter_loss`: `retransmits` counts on until then).
    pub keeps_threshold_in_loss: bool,
    /// A timeout is tested before anything is declared lost (`tcp_use_frto`, `tcp_enter_frto`, RFC
    /// 4138): see `loss/linux.rs`.
    pub tests_before_losing: bool,
    /// Any ACK that shows a timeout to be needless takes it back, not only one that advances
    /// (`tcp_try_undo_loss`).
    pub any_ack_undoes_timeout: bool,
    /// Recovery goes on after a partial ACK that shows a late original: the window is put back, the
    /// threshold stays, and DSACKs are not asked before the end (`tcp_try_undo_partial`).
    pub recovery_outlasts_undo: bool,
    /// After an episode the sender is in Disorder until its retransmissions have all been reported
    /// as duplicates, or something beyond is acknowledged (`tcp_try_keep_open`, `undo_marker`).
    pub disorder_until_dsacked: bool,
    /// DSACKs undo an episode in Disorder, but not in Open (`tcp_try_undo_dsack`).
    pub no_dsack_undo_in_open: bool,
    /// Segments that were resent are looked for in flight alone (`retrans_out`; since
    /// `tcp_any_retrans_done` the first segment counts as well).
    pub resent_in_flight_only: bool,
    /// Undoing raises the threshold to that of before, three quarters of the window at least, or
    /// without a window to restore opens it to the threshold (`tcp_undo_cwr`,
    /// `tcp_current_ssthresh`).
    pub undo_by_threshold: bool,
    /// The count of retransmissions that may still be needed begins at those in flight, none
    /// included, and goes below zero (`undo_retrans` in `tcp_check_dsack`).
    pub signed_undo_count: bool,
    /// The tick of the timestamps by which a late original is told from a retransmission
    /// (`tcp_packet_delayed`) is a jiffy of 4 ms (`HZ` = 250), not 1 ms.
    pub jiffies_in_echo: bool,
    /// An ACK that says nothing new does not halve the rate (`tcp_cwnd_down`).
    pub halves_on_news_only: bool,
    /// The controller says how far the window comes down by rate halving, instead of to half of the
    /// threshold (`tcp_cwnd_min`, from 2.6 on).
    pub controller_bounds_halving: bool,
    /// The ACK between two steps of rate halving counts for the growth that follows
    /// (`snd_cwnd_cnt`, which `tcp_cwnd_down` shares with `tcp_cong_avoid`).
    pub half_steps_carry_over: bool,
    /// A reduction ends with a window no larger than the threshold, taken back or not
    /// (`tcp_complete_cwr`).
    pub ends_at_threshold: bool,
}

/// The bound of a window, in segments more than are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxBurst {
    /// The window is not bounded.
    #[default]
    Any,
    /// A number of segments.
    Segments(u8),
    /// The threshold of duplicates (`tcp_max_burst`).
    Threshold,
}

/// The order in which a detector has an ACK dealt with: what RACK's arrival changed in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectorRules {
    /// The window grows before losses are looked for (`tcp_cong_avoid` in `tcp_ack`, until 4.0).
    pub grows_first: bool,
    /// The window grows after all else that an ACK does, if it has not grown first
    /// (`tcp_cong_control`).
    pub grows_last: bool,
    /// Other signs than marks prove a loss, and what is lost is marked when recovery has begun
    /// (`tcp_time_to_recover`, then `tcp_update_scoreboard`); else marks are the proof
    /// (`tcp_rack_identify_loss`).
    pub marks_on_entry: bool,
    /// Marks are made last of all that an ACK does (`tcp_fastretrans_alert` of 6.1 with
    /// `tcp_recovery=0`).
    pub marks_last: bool,
    /// An ACK that has undone a reduction proves nothing lost (`tcp_try_undo_partial` and
    /// `tcp_try_undo_dsack`, which returned at once).
    pub undo_ends_ack: bool,
    /// The retransmission timer is set first, and a tail loss probe takes its place afterwards, in
    /// the state Open alone and where no more will be sent (`tcp_schedule_loss_probe` of 4.0).
    pub probe_after_timeout: bool,
    /// TCP_INFO has the distance to the highest SACKed segment (`tcpi_fackets`).
    pub shows_reach: bool,
}

/// The releases whose [`TimerRules`] have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerRelease {
    Rfc6298,
    Linux24,
}

named! { TimerRelease: Rfc6298 = "rfc6298", Linux24 = "linux-2.4" }

impl TimerRelease {
    pub(crate) fn rules(self) -> TimerRules {
        match self {
            TimerRelease::Rfc6298 => TimerRules::default(),
            TimerRelease::Linux24 => TimerRules::linux_2_4(),
        }
    }
}

impl TimerRules {
    /// The release that has these rules; RFC 6298 for rules that none has.
    pub(crate) fn release(self) -> TimerRelease {
        if self == TimerRules::linux_2_4() { TimerRelease::Linux24 } else { TimerRelease::Rfc6298 }
    }
}

/// The effects of ACKs on the retransmission timer. The default is RFC 6298's: it starts anew from
/// now (rule 5.3), and each sample ends the back-off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerRules {
    /// The timer starts from the time at which the first segment in flight was sent, with the
    /// variance added once more, and from now with the variance at least; from now after a timeout
    /// (`tcp_ack_packets_out`).
    pub from_first_segment: bool,
    /// An ACK that acknowledges nothing leaves it alone, whatever it reports
    /// (without `FLAG_SET_XMIT_TIMER`).
    pub reports_leave_it: bool,
    /// ACKs of what was sent again do not end the back-off (`tcp_ack_saw_tstamp`; changed in
    /// February 2001).
    pub repeats_keep_backoff: bool,
}
