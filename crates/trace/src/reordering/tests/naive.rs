//! The definitions without any regard to time and memory.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// RFC 5236 section 7.1, word for word, numbers from 1.
fn displacements(threshold: usize, arrivals: &[u64]) -> BTreeMap<i64, u64> {
    let mut frequency = BTreeMap::new();
    let (mut window, mut buffer, mut index): (Vec<u64>, Vec<u64>, u64) = (Vec::new(), Vec::new(), 1);
    let mut stream = arrivals.iter().copied();
    while window.len() < threshold + 1 {
        match stream.next() {
            None => break,
            Some(new) if window.contains(&new) => {}
            Some(new) => window.push(new),
        }
    }
    while !window.is_empty() {
        if !window.contains(&index) && !buffer.contains(&index) {
            let least = window.iter().chain(&buffer).copied().min().unwrap();
            index = if index < least { least } else { index + 1 };
            continue;
        }
        let number = window.remove(0);
        let by = index as i64 - number as i64;
        if by.unsigned_abs() as usize <= threshold {
            *frequency.entry(by).or_default() += 1;
            buffer.retain(|&held| held != index);
            if by < 0 {
                buffer.push(number);
            }
            index += 1;
        }
        window.extend(stream.find(|new| *new >= index && !buffer.contains(new) && !window.contains(new)));
    }
    frequency
}

/// Section 7.2, word for word, but that a packet that finds the buffer full takes the room.
fn occupancies(threshold: usize, arrivals: &[u64]) -> Vec<u64> {
    let mut frequency = vec![0; threshold + 1];
    let (mut held, mut expected): (BTreeSet<u64>, u64) = (BTreeSet::new(), 1);
    for &number in arrivals {
        if held.contains(&number) || number < expected {
            continue;
        }
        if number == expected {
            expected += 1;
            while held.remove(&expected) {
                expected += 1;
            }
        } else if held.len() < threshold {
            held.insert(number);
        } else {
            loop {
                expected += 1;
                if held.contains(&expected) || expected == number {
                    break;
                }
            }
            let mut passed = false;
            while held.contains(&expected) || expected == number {
                passed |= expected == number;
                held.remove(&expected);
                expected += 1;
            }
            if !passed {
                held.insert(number);
            }
        }
        frequency[held.len()] += 1;
    }
    while frequency.last() == Some(&0) {
        frequency.pop();
    }
    frequency
}

/// A reordered packet: extent, ms, bytes.
type Offsets = (u64, u64, u64);

/// RFC 4737 by its definitions: what is reordered with its offsets, the n of each packet, and the
/// runs. The i-th arrival is at i ms and has `i % 5 + 1` bytes.
fn ordered(arrivals: &[(u64, usize)]) -> (Vec<Offsets>, Vec<u64>, Vec<u64>) {
    let (mut offsets, mut ns, mut runs, mut run) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (i, &(number, at)) in arrivals.iter().enumerate() {
        let before = &arrivals[..i];
        match before.iter().position(|earlier| earlier.0 > number) {
            Some(first) => {
                let qualified = before.iter().filter(|earlier| earlier.0 > number);
                let bytes = qualified.map(|&(_, at)| at as u64 % 5 + 1).sum();
                offsets.push(((i - first) as u64, (at - arrivals[first].1) as u64, bytes));
                runs.push(run);
                run = 0;
            }
            None => run += 1,
        }
        let n = (1..=i).take_while(|&n| before[i - n..].iter().all(|earlier| earlier.0 > number)).last();
        ns.push(n.unwrap_or(0) as u64);
    }
    (offsets, ns, runs)
}

/// A stream of 1 to 120 with losses, copies, and packets displaced by `spread` at most.
fn stream() -> impl Strategy<Value = Vec<u64>> {
    let packet = (0..20u64, 0..40u64, 0..10u8);
    (prop::collection::vec(packet, 1..120), 0..40u64).prop_map(|(packets, spread)| {
        let mut arrivals = Vec::new();
        for ((ahead, copy, kind), number) in packets.into_iter().zip(1u64..) {
            let place = number + if spread > 0 { ahead * 2 % spread } else { 0 };
            match kind {
                0 => {}
                1 => arrivals.extend([(place, number), (number + copy, number)]),
                _ => arrivals.push((place, number)),
            }
        }
        arrivals.sort_by_key(|&(place, _)| place);
        arrivals.into_iter().map(|(_, number)| number).collect()
    })
}

/// Without further copies.
fn firsts(numbers: &[u64]) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    numbers.iter().copied().filter(|&number| seen.insert(number)).collect()
}

proptest! {
    #[test]
    fn displacements_are_those_of_the_algorithm(numbers in stream(), threshold in 1..50u32) {
        // The algorithm may take a copy of what it discarded for a new packet; none gets here.
        let numbers = firsts(&numbers);
        let mut places = DisplacementWindow::new(threshold);
        let mut found: BTreeMap<i64, u64> = BTreeMap::new();
        let mut placed = |_: u64, by: i64| *found.entry(by).or_default() += 1;
        numbers.iter().for_each(|&number| places.arrive(number - 1, 0, &mut placed));
        places.finish(&mut placed);
        prop_assert_eq!(found, displacements(threshold as usize, &numbers));
    }

    #[test]
    fn a_loss_that_is_known_changes_no_displacement(numbers in stream(), known in any::<u128>()) {
        // The threshold is above whatever is displaced.
        let of = |known: u128| {
            let mut meter = ReorderMeter::new(1000, None);
            let lost = (0..120).filter(|number| known >> number & 1 == 1 && !numbers.contains(&(number + 1)));
            lost.for_each(|number| meter.lost(number));
            numbers.iter().for_each(|&number| meter.arrive(number - 1, Time::ZERO, 100));
            meter.finish();
            meter.summary()
        };
        let (all, none) = (of(known), of(0));
        prop_assert_eq!(&all.density, &none.density);
        prop_assert_eq!(all.beyond, none.beyond);
        prop_assert!(all.rbd.mean <= none.rbd.mean);
    }

    #[test]
    fn occupancies_are_those_of_the_algorithm(numbers in stream(), threshold in 1..50u32) {
        let mut buffer = ReorderBuffer::new(threshold);
        numbers.iter().for_each(|&number| buffer.arrive(number - 1));
        prop_assert_eq!(buffer.counts, occupancies(threshold as usize, &numbers));
    }

    #[test]
    fn reordered_packets_are_those_of_the_definitions(numbers in stream(), most in 1..50u32) {
        let mut meter = ReorderMeter::new(most, None);
        for (at, &number) in numbers.iter().enumerate() {
            meter.arrive(number - 1, Time::from_millis(at as u64), at as u32 % 5 + 1);
        }
        meter.finish();
        let mut seen = BTreeSet::new();
        let first: Vec<(u64, usize)> =
            numbers.iter().enumerate().filter(|arrival| seen.insert(arrival.1)).map(|(at, &number)| (number, at)).collect();
        let (offsets, ns, runs) = ordered(&first);
        let histogram = |values: &mut dyn Iterator<Item = u64>| {
            let mut histogram = Histogram::new();
            values.for_each(|value| histogram.add(value));
            counts(&histogram)
        };
        prop_assert_eq!(counts(&meter.extent), histogram(&mut offsets.iter().map(|offset| offset.0)));
        prop_assert_eq!(counts(&meter.byte_offset), histogram(&mut offsets.iter().map(|offset| offset.2)));
        let late: u128 = offsets.iter().map(|offset| u128::from(offset.1) * 1_000_000).sum();
        prop_assert_eq!(meter.late.sum(), late);
        prop_assert_eq!(counts(&meter.runs), histogram(&mut runs.iter().copied()));
        let found: Vec<u64> = [0].into_iter().chain(meter.n_reordered.iter().copied()).collect();
        let mut expected = vec![0; found.len()];
        for n in ns.into_iter().map(|n| n.min(most.into())).filter(|&n| n > 0) {
            expected.resize(expected.len().max(n as usize + 1), 0);
            expected[n as usize] += 1;
        }
        prop_assert_eq!(found, expected);
        let summary = meter.summary();
        prop_assert_eq!(summary.packets + summary.duplicates, numbers.len() as u64);
        prop_assert_eq!(summary.displacement.samples + summary.beyond, summary.packets);
        let total: f64 = summary.density.shares.iter().sum::<f64>() + summary.density.below + summary.density.above;
        prop_assert!(summary.displacement.samples == 0 || (total - 1.0).abs() < 1e-9);
    }
}
