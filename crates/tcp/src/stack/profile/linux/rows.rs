//! Linux's behaviours, release by release: the rows of the rules that changed.

use crate::{AdaptiveRules, BufferGrowth, DetectorRules, LossRules, MaxBurst, OffloadRule, TimerRules, TuningRules};

impl LossRules {
    /// The episodes of Linux 2.4.
    pub fn linux_2_4() -> LossRules {
        LossRules {
            max_burst: MaxBurst::Segments(3),
            losses_up_to_point: true,
            recovery_moves_point: true,
            keeps_threshold_in_loss: true,
            half_steps_carry_over: true,
            ..LossRules::default()
        }
    }

    /// The episodes of Linux 2.6.32.
    pub fn linux_2_6_32() -> LossRules {
        LossRules {
            max_burst: MaxBurst::Threshold,
            grows_within_burst: true,
            losses_up_to_point: true,
            recovery_moves_point: true,
            first_hole_at_any_sign: true,
            dsack_is_duplicate: true,
            keeps_threshold_in_loss: false,
            tests_before_losing: true,
            any_ack_undoes_timeout: true,
            recovery_outlasts_undo: true,
            disorder_until_dsacked: true,
            no_dsack_undo_in_open: true,
            resent_in_flight_only: true,
            undo_by_threshold: true,
            signed_undo_count: true,
            jiffies_in_echo: true,
            halves_on_news_only: true,
            controller_bounds_halving: true,
            half_steps_carry_over: true,
            ends_at_threshold: true,
        }
    }
}

impl DetectorRules {
    /// Linux before RACK.
    pub const LINUX_4_0: DetectorRules = DetectorRules {
        grows_first: true,
        grows_last: false,
        marks_on_entry: true,
        marks_last: false,
        undo_ends_ack: true,
        probe_after_timeout: true,
        shows_reach: true,
    };

    /// TCP-NCR and RR-TCP, put into Linux 4.0: the ACK that ends a reduction lets the window grow.
    pub const ADDED_TO_4_0: DetectorRules = DetectorRules { grows_last: true, ..DetectorRules::LINUX_4_0 };

    /// RACK, since 4.4 (as in 6.1), and the plain detector of RFC 6675 with Linux's episodes.
    pub const LINUX_4_4: DetectorRules = DetectorRules {
        grows_first: false,
        grows_last: true,
        marks_on_entry: false,
        marks_last: false,
        undo_ends_ack: false,
        probe_after_timeout: false,
        shows_reach: false,
    };
}

impl AdaptiveRules {
    /// `tcp_recovery=0` of kernels that know RACK.
    pub fn rack_off() -> AdaptiveRules {
        let order = DetectorRules { marks_last: true, ..DetectorRules::LINUX_4_4 };
        AdaptiveRules { fack: false, early_retransmit: false, order, ..AdaptiveRules::default() }
    }
}

impl TimerRules {
    /// The timer of Linux 2.4.0.
    pub fn linux_2_4() -> TimerRules {
        TimerRules { from_first_segment: true, reports_leave_it: true, repeats_keep_backoff: true }
    }
}

impl OffloadRule {
    /// Linux 4.0: a millisecond's worth at twice the window's rate.
    pub const LINUX_4_0: OffloadRule = OffloadRule {
        on: true,
        twice_the_window: true,
        larger_on_short_paths: false,
        waits_by_clock: true,
        over_buffers: false,
        free_fin: true,
        resends: false,
        ends_without_push: true,
        restarts_late: true,
        fills_by_unacknowledged: true,
    };

    /// Linux 6.1.
    pub const LINUX_6_1: OffloadRule = OffloadRule {
        on: true,
        twice_the_window: false,
        larger_on_short_paths: true,
        waits_by_clock: false,
        over_buffers: false,
        free_fin: true,
        resends: true,
        ends_without_push: false,
        restarts_late: false,
        fills_by_unacknowledged: false,
    };

    /// Linux 6.18.
    pub const LINUX_6_18: OffloadRule = OffloadRule { over_buffers: true, free_fin: false, ..OffloadRule::LINUX_6_1 };
}

impl TuningRules {
    /// Linux 2.6.32.
    pub const LINUX_2_6_32: TuningRules = TuningRules {
        three_quarters: true,
        counts_shared_info: false,
        counts_unacknowledged: true,
        first_segments: 4, // RFC 2414, for an MSS of an Ethernet
        ..TuningRules::LINUX_3_9
    };

    /// Linux 3.9.
    pub const LINUX_3_9: TuningRules = TuningRules {
        growth: BufferGrowth::Twice,
        three_quarters: false,
        measures_ratio: false,
        counts_shared_info: true,
        counts_send_allocations: false,
        counts_unacknowledged: false,
        first_segments: 10,
        eightfold_first_buffer: false,
        ten_segments_at_first: false,
        jiffies: true,
        shorter_at_once: false,
        longer_if_drained: false,
        unread_apart: false,
        remembers_twice: true,
        in_order_alone: true,
        grows_beyond_gaps: false,
        bound_by_free: false,
    };

    /// Linux 3.13 to 4.18, as 4.0.
    pub const LINUX_4_0: TuningRules = TuningRules {
        growth: BufferGrowth::Steps,
        counts_send_allocations: true,
        first_segments: 20,
        eightfold_first_buffer: true,
        remembers_twice: false,
        in_order_alone: false,
        ..TuningRules::LINUX_3_9
    };

    /// Linux 4.20 to 6.5, as 6.1 in later stable releases, such as 6.1.192.
    pub const LINUX_6_1: TuningRules = TuningRules {
        growth: BufferGrowth::Proportion,
        first_segments: 0,
        eightfold_first_buffer: false,
        ten_segments_at_first: true,
        jiffies: false,
        shorter_at_once: true,
        bound_by_free: true,
        ..TuningRules::LINUX_4_0
    };

    /// Linux 6.18.
    pub const LINUX_6_18: TuningRules = TuningRules {
        growth: BufferGrowth::ProportionAndGaps,
        measures_ratio: true,
        longer_if_drained: true,
        unread_apart: true,
        grows_beyond_gaps: true,
        ..TuningRules::LINUX_6_1
    };
}
