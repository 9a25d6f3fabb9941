//! MLPerf's early stopping: whether independent requests show, with 99 % confidence, that a
//! percentile meets its limit, and the bound on the percentile that they show.
//!
//! `loadgen/early_stopping.cc` and `PerformanceSummary::EarlyStopping` of mlcommons/inference at
//! `b66003e`. LoadGen searches the fewest requests in time beside a number of late ones. Both of
//! its questions are one condition: at most `late` of the requests are late with a probability
//! below 1 %, if the percentile were exactly at its limit.

use crate::beta::binomial;

pub const CONFIDENCE: f64 = 0.99;

/// True if `late` late requests among `requests` show that at most this share is late.
pub fn shows(allowed: f64, requests: u64, late: u64) -> bool {
    binomial(requests as f64, allowed, late as f64) < 1.0 - CONFIDENCE
}

/// The fewest requests that show that at most this share is late, if `late` of them are.
pub fn least_requests(allowed: f64, late: u64) -> u64 {
    let mut enough = late + 1;
    while !shows(allowed, enough, late) {
        enough *= 2;
    }
    first(enough / 2, enough, |requests| shows(allowed, requests, late))
}

/// The place, from the largest, of the sample that bounds the percentile with this share beyond it:
/// 1 for the largest; `None` if the samples are too few.
pub fn rank(allowed: f64, samples: u64) -> Option<u64> {
    let beyond = first(1, samples.max(1), |late| !shows(allowed, samples, late));
    beyond.checked_sub(1).filter(|rank| *rank > 0)
}

/// The first number above `low` and up to `high` that holds; all numbers behind it hold too.
fn first(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by LoadGen's own `MinPassingQueriesFinder`, and by the loop around it.
    #[test]
    fn bounds_are_those_of_loadgen() {
        let cases = include_str!("early_stopping/loadgen.csv").lines();
        assert_eq!(cases.clone().count(), 204);
        for case in cases {
            let mut cells = case.split(',');
            let mut cell = || cells.next().unwrap();
            let (kind, percent): (_, f64) = (cell(), cell().parse().unwrap());
            let allowed = ((100.0 - percent) * 1e7).round() / 1e9;
            let (given, wanted): (u64, Option<u64>) =
                (cell().parse().unwrap(), cell().parse().ok());
            let found = match kind {
                "passing" => Some(least_requests(allowed, given) - given),
                _ => rank(allowed, given),
            };
            assert_eq!(found, wanted, "{case}");
        }
    }
}
