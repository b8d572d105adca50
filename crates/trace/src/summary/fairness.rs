//! The fairness of a division.

/// Jain's fairness index of some rates; `None` when all are 0.
pub fn jain(rates: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for rate in rates {
        (count, sum, squares) = (count + 1, sum + rate, squares + rate * rate);
    }
    (squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

/// Jain's index of goodputs, each with whether it is that of a connection: of the connections,
/// which compete with each other, or if there is none of the datagrams.
pub fn fairness(flows: impl Iterator<Item = (f64, bool)>) -> Option<f64> {
    let flows: Vec<(f64, bool)> = flows.collect();
    let any = flows.iter().any(|(_, is_connection)| *is_connection);
    jain(flows.into_iter().filter(|(_, is_connection)| *is_connection == any).map(|(goodput, _)| goodput))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_s_index_is_of_what_there_is() {
        // (1 + 3)^2 / (2 (1 + 9)).
        assert_eq!(jain([1.0, 3.0].into_iter()), Some(0.8));
        assert_eq!(jain([5.0, 0.0].into_iter()), Some(0.5));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
        assert_eq!(jain(std::iter::empty()), None);
    }
}
