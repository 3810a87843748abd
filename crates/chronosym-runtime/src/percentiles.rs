//! Percentiles of durations.

/// Percentiles by the nearest-rank method: the p-th percentile of n values is the one at rank
/// ⌈p/100 × n⌉ in ascending order, so each is a value that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Sum of the values, ns.
    pub total_ns: u64,
    /// The median, ns.
    pub p50_ns: u64,
    /// The 95th percentile, ns.
    pub p95_ns: u64,
    /// The 99th percentile, ns.
    pub p99_ns: u64,
    /// The largest value, ns.
    pub max_ns: u64,
}

impl Percentiles {
    /// Returns the percentiles of durations in ns; `None` if there are none.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_runtime::Percentiles;
    ///
    /// let pauses = Percentiles::new([5, 1, 3]).unwrap();
    /// assert_eq!((pauses.max_ns, pauses.total_ns), (5, 9));
    /// assert!(Percentiles::new([]).is_none());
    /// ```
    pub fn new(values: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        let max_ns = *values.last()?;
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100);
            values[rank.max(1) - 1]
        };
        Some(Percentiles {
            count: values.len() as u64,
            total_ns: values.iter().fold(0, |sum, &ns| sum.saturating_add(ns)),
            p50_ns: at(50),
            p95_ns: at(95),
            p99_ns: at(99),
            max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest_from_above() {
        let of = |n: u64| {
            let p = Percentiles::new((1..=n).rev()).unwrap();
            (p.p50_ns, p.p95_ns, p.p99_ns, p.max_ns, p.total_ns)
        };
        assert_eq!(of(1), (1, 1, 1, 1, 1));
        assert_eq!(of(2), (1, 2, 2, 2, 3));
        assert_eq!(of(100), (50, 95, 99, 100, 5050));
        assert_eq!(of(101), (51, 96, 100, 101, 5151));
        assert_eq!(Percentiles::new([]), None);
    }
}
