//! The examples that the RFCs work out.

use super::*;

/// The displacements of packets in order of arrival; `None` where there is none.
fn displacements(threshold: u32, numbers: &[u64]) -> Vec<Option<i64>> {
    let mut places = DisplacementWindow::new(threshold);
    let mut found = vec![None; numbers.len()];
    let mut placed = |tag: u64, by: i64| found[tag as usize] = Some(by);
    for (&number, tag) in numbers.iter().zip(0..) {
        places.arrive(number - 1, tag, &mut placed);
    }
    places.finish(&mut placed);
    found
}

/// The number of times each occupancy was reached, from 0.
fn occupancies(threshold: u32, numbers: &[u64]) -> Vec<u64> {
    let density = {
        let mut buffer = ReorderBuffer::new(threshold);
        numbers.iter().for_each(|&number| buffer.arrive(number - 1));
        buffer.density(MAX_BINS)
    };
    let distinct: std::collections::BTreeSet<&u64> = numbers.iter().collect();
    density.shares.iter().map(|share| (share * distinct.len() as f64).round() as u64).collect()
}

#[test]
fn receive_indices_are_those_of_section_3_1_and_3_3() {
    // 2 1 4 5 3 have the indices 1 to 5.
    assert_eq!(displacements(4, &[2, 1, 4, 5, 3]), [-1, 1, -1, -1, 2].map(Some));
    // 2 is lost, and 3 comes twice: the indices are 1 3 4 5.
    assert_eq!(displacements(4, &[1, 4, 3, 5, 3]), [Some(0), Some(-1), Some(1), Some(0), None]);
    let third = [Some(0), Some(-1), Some(1), Some(0), None, Some(-2), Some(0), Some(2)];
    assert_eq!(displacements(4, &[1, 4, 3, 5, 3, 8, 7, 6]), third);
}

#[test]
fn reorder_sets_are_those_of_section_4() {
    assert_eq!(displacements(4, &[1, 2, 3, 5, 4, 6]), [0, 0, 0, -1, 1, 0].map(Some));
    // 4 is lost, and 2 comes twice.
    let fifth = [Some(0), Some(0), Some(-2), Some(2), Some(0), None];
    assert_eq!(displacements(4, &[1, 2, 5, 3, 6, 2]), fifth);
}

#[test]
fn section_8_a_has_no_loss() {
    let numbers = [1, 4, 2, 5, 3, 6, 7, 8];
    // Tables 1 and 2.
    assert_eq!(displacements(4, &numbers), [0, -2, 1, -1, 2, 0, 0, 0].map(Some));
    let summary = arrivals(4, &numbers).summary();
    assert_eq!((summary.density.from, summary.density.shares), (-2, vec![0.125, 0.125, 0.5, 0.125, 0.125]));
    assert_eq!((summary.early, summary.on_time, summary.late), (0.25, 0.5, 0.25));
    // Tables 3 and 4.
    assert_eq!(summary.rbd.shares, [0.625, 0.25, 0.125]);
    // Section 9: 0 * 5/8 + 1 * 2/8 + 2 * 1/8.
    assert_eq!((summary.rbd.mean, summary.rbd.max), (Some(0.5), 2));
}

#[test]
fn section_8_b_has_a_loss() {
    let numbers = [1, 2, 4, 5, 6, 7];
    // Table 5.
    assert_eq!(displacements(3, &numbers), [Some(0); 6]);
    // Table 6: 0 three times, 1, 2 and 3 once.
    assert_eq!(occupancies(3, &numbers), [3, 1, 1, 1]);
    let summary = arrivals(3, &numbers).summary();
    assert_eq!((summary.density.from, summary.density.shares), (0, vec![1.0]));
    assert_eq!(summary.rbd.shares, [0.5, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0]);
}

#[test]
fn section_8_c_has_a_copy() {
    let numbers = [1, 3, 2, 3, 4, 5];
    // Tables 7 and 8.
    assert_eq!(displacements(2, &numbers), [Some(0), Some(-1), Some(1), None, Some(0), Some(0)]);
    assert_eq!(occupancies(2, &numbers), [4, 1]);
    let summary = arrivals(2, &numbers).summary();
    assert_eq!((summary.packets, summary.duplicates, summary.beyond), (5, 1, 0));
    assert_eq!((summary.density.from, summary.density.shares), (-1, vec![0.2, 0.6, 0.2]));
    assert_eq!(summary.rbd.shares, [0.8, 0.2]);
}

#[test]
fn a_buffer_frees_what_a_late_packet_completes() {
    // Section 3.8: 1 2 4 5 3.
    assert_eq!(occupancies(4, &[1, 2, 4, 5, 3]), [3, 1, 1]);
}

#[test]
fn rfc_4737_section_7_1_has_one_packet_late() {
    // Table 1, with its times: packet 4 arrives at 210, packet 5 at 148 ms.
    let times = [68, 88, 108, 148, 168, 188, 208, 210, 228, 248];
    let mut meter = ReorderMeter::new(100, None);
    for (number, ms) in [1, 2, 3, 5, 6, 7, 8, 4, 9, 10].into_iter().zip(times) {
        meter.arrive(number - 1, Time::from_millis(ms), 100);
    }
    meter.finish();
    let summary = meter.summary();
    assert_eq!((summary.reordered, summary.ratio), (1, Some(0.1)));
    assert_eq!(
        (summary.extent.max, summary.late_ms.max, summary.byte_offset.max),
        (Some(4.0), Some(62.0), Some(400.0))
    );
    assert_eq!(summary.n_reordering.counts, [0, 0, 0, 1]);
    assert_eq!(summary.n_reordering.at_least_3, 0.1);
}

#[test]
fn section_7_2_has_two() {
    let mut meter = ReorderMeter::new(100, None);
    let times = [68, 88, 108, 128, 188, 189, 190, 208, 228, 248];
    for (number, ms) in [1, 2, 3, 4, 7, 5, 6, 8, 9, 10].into_iter().zip(times) {
        meter.arrive(number - 1, Time::from_millis(ms), 100);
    }
    let summary = meter.summary();
    assert_eq!(summary.reordered, 2);
    assert_eq!(counts(&meter.extent), [0, 1, 1]);
    assert_eq!((summary.late_ms.min, summary.late_ms.max), (Some(1.0), Some(2.0)));
    assert_eq!((summary.byte_offset.min, summary.byte_offset.max), (Some(100.0), Some(100.0)));
    // Packet 6 is not n-reordered for any n.
    assert_eq!(summary.n_reordering.counts, [1]);
}

#[test]
fn section_7_3_has_three() {
    let mut meter = ReorderMeter::new(100, None);
    let times = [68, 88, 108, 188, 208, 228, 248, 250, 252, 256, 268];
    for (number, ms) in [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11].into_iter().zip(times) {
        meter.arrive(number - 1, Time::from_millis(ms), 100);
    }
    let summary = meter.summary();
    assert_eq!(counts(&meter.extent), [0, 0, 0, 0, 1, 1, 1]);
    assert_eq!((summary.late_ms.min, summary.late_ms.quantiles.p50, summary.late_ms.max), {
        let middle = meter.late.distribution(1e-6).quantiles.p50;
        assert!(middle.is_some_and(|middle| (middle - 64.0).abs() < 0.064));
        (Some(62.0), middle, Some(68.0))
    });
    assert_eq!((summary.byte_offset.min, summary.byte_offset.max), (Some(400.0), Some(400.0)));
    assert_eq!(summary.n_reordering.counts, [0, 0, 0, 1]);
}

#[test]
fn section_7_4_has_runs() {
    let numbers = [1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11, 14, 15, 16];
    let meter = arrivals(100, &numbers);
    // Runs of 5, 0 and 5; extents of 2, 3 and 2.
    assert_eq!(counts(&meter.runs), [1, 0, 0, 0, 0, 2]);
    assert_eq!(counts(&meter.extent), [0, 0, 2, 1]);
    assert_eq!(meter.summary().free_runs.count, 3);
}

#[test]
fn section_5_3_has_blocks() {
    // Packets 4, 5 and 6 are reordered, and only 4 is n-reordered, with n = 3.
    let summary = arrivals(100, &[1, 2, 3, 7, 8, 9, 4, 5, 6]).summary();
    assert_eq!((summary.reordered, summary.n_reordering.counts), (3, vec![0, 0, 1]));
    assert_eq!(summary.n_reordering.at_least_3, 1.0 / 9.0);
}

/// Runs of these lengths, each ended by a reordered packet: the one that the first of a run leaves
/// out.
fn runs(lengths: &[u64]) -> ReorderFreeRuns {
    let (mut numbers, mut next) = (Vec::new(), 1);
    for length in lengths {
        numbers.extend(next + 1..=next + length);
        numbers.push(next);
        next += length + 1;
    }
    arrivals(100, &numbers).summary().free_runs
}

#[test]
fn section_4_6_4_has_the_sums_of_runs() {
    // p = 36, x = 3, a = 33, q = 363: mean 11, q/a = 11.
    let alike = runs(&[11, 11, 11]);
    assert_eq!((alike.count, alike.mean, alike.variation), (3, Some(11.0), Some(1.0)));
    // q = 963: q/a = 29.18, and 2.65 times the mean.
    let unlike = runs(&[1, 1, 31]);
    assert_eq!((unlike.count, unlike.mean), (3, Some(11.0)));
    assert!(unlike.variation.is_some_and(|variation| (variation - 963.0 / 33.0 / 11.0).abs() < 1e-12));
}
