//! Limits on the difference of two sides, such as `difference.ttft.p50 <= 2ms`.
//!
//! A limit fails if the difference is beyond it, and so is the whole interval: chance alone fails
//! nothing. Without an interval the difference alone decides.

use result::limit::{Difference, Relation};
use result::threshold::Threshold;

use crate::{Compared, Outcome, Row};

/// Checks the limits against each further side; thresholds of another kind have no outcome.
pub fn outcomes(compared: &Compared, limits: &[Threshold]) -> Vec<Outcome> {
    let pairs = compared.pairs.iter();
    pairs
        .flat_map(|pair| {
            limits.iter().filter_map(|limit| {
                let Threshold::Difference(figure, relation, amount) = limit else { return None };
                let row = compared.row(&pair.side, &figure.to_string());
                Some(outcome(limit.to_string(), &pair.side, row, (*relation, *amount)))
            })
        })
        .collect()
}

fn outcome(
    condition: String,
    side: &str,
    row: Option<&Row>,
    (relation, amount): (Relation, Difference),
) -> Outcome {
    let measured = row.and_then(|row| Some((row, row.difference?, row.baseline?)));
    let Some((row, difference, baseline)) = measured else {
        let seen = "a side does not have this figure".to_owned();
        return Outcome { condition, side: side.to_owned(), fails: false, is_absent: true, seen };
    };
    let limit = match amount {
        Difference::Absolute(limit) => limit,
        Difference::Percent(percent) => percent / 100.0 * baseline.abs(),
    };
    let holds = |value: f64| relation.holds(value, limit);
    let ends = row.interval.map(|ends| (ends.low, ends.high));
    let may_hold = ends.is_some_and(|(low, high)| holds(low) || holds(high));
    let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
    let interval = ends.map_or_else(
        || "without an interval".to_owned(),
        |(low, high)| format!("95 %: {low:+.3} to {high:+.3}"),
    );
    let doubt =
        if !holds(difference) && may_hold { "; beyond the limit by chance, perhaps" } else { "" };
    Outcome {
        condition,
        side: side.to_owned(),
        fails: !holds(difference) && !may_hold,
        is_absent: false,
        seen: format!("{difference:+.3}{unit} ({interval}){doubt}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ends;

    fn row(interval: Option<Ends>) -> Row {
        let fields = serde_json::json!({
            "figure": "ttft.median", "unit": "ms", "baseline": 100.0, "value": 103.0,
            "difference": 3.0,
        });
        Row { interval, ..serde_json::from_value(fields).unwrap() }
    }

    #[test]
    fn limit_fails_only_beyond_chance() {
        let surely = Some(Ends { low: 2.5, high: 3.5 });
        let perhaps = Some(Ends { low: 1.5, high: 4.5 });
        for (text, interval, fails) in [
            ("difference.ttft.median <= 2ms", surely, true),
            ("difference.ttft.median <= 2ms", perhaps, false),
            ("difference.ttft.median <= 2ms", None, true),
            ("difference.ttft.median <= 2%", surely, true),
            ("difference.ttft.median <= 3ms", surely, false),
            ("difference.ttft.median >= 4ms", surely, true),
            ("difference.ttft.median >= 4ms", perhaps, false),
        ] {
            let limit: Threshold = text.parse().unwrap();
            let Threshold::Difference(_, relation, amount) = limit else { panic!("{text}") };
            let outcome = outcome(text.to_owned(), "B", Some(&row(interval)), (relation, amount));
            assert_eq!((outcome.fails, outcome.is_absent), (fails, false), "{text}: {outcome:?}");
        }
        let limit: Threshold = "difference.ttft.median <= 2%".parse().unwrap();
        assert_eq!(limit.to_string(), "difference.ttft.median <= 2%");
        assert!("difference.nonsense <= 2ms".parse::<Threshold>().is_err());
    }
}
