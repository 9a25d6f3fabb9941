//! Conditions that make a comparison fail: `ttft.p99 +5%`, `e2e.mean +20ms`,
//! `throughput.output-tokens-per-s -3%`.
//!
//! A condition holds if the side is worse by at least that much, beyond chance: the interval
//! excludes zero. So chance alone fails no build, however tight the limit, and a small difference
//! fails none, however certain it is. Conditions of all sides are judged together, and apart from
//! the table: its other figures do not make them harder to meet. If a figure has no interval, such
//! as one published without samples, the difference alone decides, and the outcome says so; but not
//! where its slow samples may be one event, or other work changed its times. Enough of a side's
//! requests may fail that a percentile is the worst there is with them (infinite, or zero for a
//! speed). If this happens in fewer of the baseline's runs, the condition holds: the answered
//! requests alone do not show the latency of the others.

use std::fmt;
use std::str::FromStr;

use super::NoInterval;
use super::row::{Judgement, Means, Row, judge, row};
use super::side::Side;
use result::figure::{Better, Figure};
use result::limit::{DIRECTIONS, Difference, Grammar, LimitError, Numbers};

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub figure: Figure,
    /// The difference that is too much; above zero if more is worse, below zero if less is worse.
    pub limit: Difference,
    /// The text as it was written.
    text: String,
}

/// The outcome of a condition.
#[model::apply(model::document!)]
pub struct Outcome {
    /// The condition as it was written.
    pub condition: String,
    /// The side's letter.
    pub side: String,
    /// True if it holds, so that the comparison fails.
    pub fails: bool,
    /// True if the figure is missing on a side, so that the condition could not be checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_absent: bool,
    /// The observation.
    pub seen: String,
}

const GRAMMAR: Grammar<f64> = Grammar {
    signs: DIRECTIONS,
    numbers: Numbers::FromZero,
    example: "`ttft.p99 +5%`, `e2e.mean +20ms` or `throughput.output-tokens-per-s -3%`",
};

impl FromStr for Condition {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut written = GRAMMAR.read(text)?;
        let figure = written.figure();
        if let Some(figure) = &figure {
            let (number, is_more) = (written.number, written.relation > 0.0);
            match (figure.better(), is_more) {
                (Better::Lower, true) | (Better::Higher, false) => {}
                (Better::Lower, false) => written.wrong(format!(
                    "for `{figure}`, more is worse; write `{figure} +{number}`"
                )),
                (Better::Higher, true) => written.wrong(format!(
                    "for `{figure}`, less is worse; write `{figure} -{number}`"
                )),
                (Better::Neither, _) => written.wrong(format!(
                    "neither direction of `{figure}` is better; name a figure with a better direction, such as `ttft.p99`"
                )),
            }
        }
        let amount = written.difference(figure.as_ref().map(Figure::unit));
        let limit = amount.map(|amount| amount.towards(written.relation));
        let condition = figure.zip(limit).map(|(figure, limit)| Condition {
            figure,
            limit,
            text: text.trim().to_owned(),
        });
        written.finish(condition)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Judges conditions of every further side against the first, all together.
pub(super) fn outcomes(
    conditions: &[Condition],
    sides: &[Side],
    names: &[String],
    means: Means<'_>,
) -> Vec<Outcome> {
    let mut figures: Vec<Figure> = Vec::new();
    for condition in conditions {
        if !figures.contains(&condition.figure) {
            figures.push(condition.figure.clone());
        }
    }
    // The condition's own limit judges a difference that is small enough to count as the same.
    let means = Means { same_within: None, ..means };
    let Some(baseline) = sides.first() else { return Vec::new() };
    let rows = |side| {
        let (with, means) = ([baseline, side], means.between([baseline, side]));
        (figures.iter()).map(move |figure| row(figure, with, means))
    };
    let mut rows: Vec<Vec<Row>> = (sides.iter().skip(1)).map(|side| rows(side).collect()).collect();
    judge(rows.iter_mut().flatten().collect(), &figures);
    let sides = sides.iter().zip(names).skip(1).zip(&rows);
    let found = sides.flat_map(|((side, name), rows)| {
        conditions.iter().filter_map(|condition| {
            let place = figures.iter().position(|figure| *figure == condition.figure)?;
            let spoiled = [baseline, side].map(|of| of.spoiled(&condition.figure));
            Some(condition.outcome(&rows[place], name, spoiled))
        })
    });
    found.collect()
}

impl Condition {
    fn outcome(&self, row: &Row, side: &str, spoiled: [f64; 2]) -> Outcome {
        let outcome = |fails, is_absent, seen: String| Outcome {
            condition: self.text.clone(),
            side: side.to_owned(),
            fails,
            is_absent,
            seen,
        };
        let Some((difference, judgement)) = row.difference.zip(row.judgement) else {
            let who = match (row.baseline, row.value) {
                (None, None) => "neither side has it".to_owned(),
                (None, Some(_)) => "the baseline does not have it".to_owned(),
                _ => format!("{side} does not have it"),
            };
            return outcome(false, true, who);
        };
        // A gate that cannot see its figure must not stand open.
        if row.no_interval == Some(NoInterval::Unpaired) {
            let words = "no sample was judged in both runs, so nothing is paired".to_owned();
            return outcome(false, true, words);
        }
        let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
        let percent = row.percent.map(|percent| format!(" ({percent:+.1} %)"));
        let decimals = match self.figure {
            Figure::Score(_) => 4,
            Figure::Of(..) | Figure::Whole(_) => 2,
        };
        let seen = format!("{difference:+.decimals$}{unit}{}", percent.unwrap_or_default());
        let reached = match self.limit {
            // From zero, any change for the worse is more than any share.
            Difference::Percent(limit) => match row.percent {
                Some(percent) => worse(percent, limit),
                None => difference * limit.signum() > 0.0,
            },
            Difference::Absolute(limit) => worse(difference, limit),
        };
        if spoiled[1] > spoiled[0] {
            let words = format!(
                "{seen} over the answered requests; with failed and unsent requests, it is the worst possible"
            );
            return outcome(true, false, words);
        }
        let seen = if spoiled[1] > 0.0 {
            format!(
                "{seen} over the answered requests; too many requests failed on both sides to judge"
            )
        } else {
            seen
        };
        match (reached, judgement) {
            (false, _) => outcome(false, false, seen),
            (true, Judgement::Worse) => outcome(true, false, format!("{seen}, beyond chance")),
            (true, Judgement::NotJudged) if row.no_interval == Some(NoInterval::FewBlocks) => {
                let words = "not judged: the samples beyond it lie in fewer than five blocks of the run, so they may be one event; compare repeats";
                outcome(false, false, format!("{seen}; {words}"))
            }
            (true, Judgement::NotJudged) if row.no_interval == Some(NoInterval::TimesInDoubt) => {
                let words = "not judged: other work or a limit on this client changed the times of a run; compare repeats";
                outcome(false, false, format!("{seen}; {words}"))
            }
            (true, Judgement::NotJudged) => {
                let why = row.no_interval.map_or("", |why| why.label());
                let words = format!(
                    "{seen}; there is no interval ({why}), so the difference alone decides"
                );
                outcome(true, false, words)
            }
            (true, _) => outcome(false, false, format!("{seen}, but not beyond chance")),
        }
    }
}

/// True if a difference has the limit's direction, and reaches it.
fn worse(difference: f64, limit: f64) -> bool {
    let (towards, far) = (difference * limit.signum(), limit.abs());
    towards > 0.0 && towards >= far
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        for (text, limit) in [
            ("ttft.p99 +5%", Difference::Percent(5.0)),
            ("  e2el.mean   +20ms ", Difference::Absolute(20.0)),
            ("e2e.mean +1.5s", Difference::Absolute(1500.0)),
            ("throughput.output-tokens-per-s -3%", Difference::Percent(-3.0)),
            ("throughput.output-tokens-per-s -30", Difference::Absolute(-30.0)),
            ("throughput.requests-per-s -0.5req/s", Difference::Absolute(-0.5)),
            ("requests.success-share -0.01", Difference::Absolute(-0.01)),
            ("requests.failed +0", Difference::Absolute(0.0)),
            ("score.final-number -1%", Difference::Percent(-1.0)),
            ("score.final-number-unparsed +0.01", Difference::Absolute(0.01)),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.limit, limit, "{text}");
            assert_eq!(condition.to_string(), text.trim());
        }
    }

    #[test]
    fn worse_goes_one_way_only() {
        assert!(worse(5.0, 5.0) && worse(0.1, 0.0) && worse(-3.5, -3.0));
        assert!(!worse(4.9, 5.0) && !worse(-6.0, 5.0) && !worse(0.0, 0.0) && !worse(3.5, -3.0));
    }
}
