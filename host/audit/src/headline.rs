//! What a page states outside of its results, linked to the results that it rests on.

use schemars::JsonSchema;
use serde::Serialize;

use super::figures::percent;
use super::{Audited, Id};
use crate::claim::{Claim, Document, Quote};
use result::finding::Verdict;

/// A place that repeats figures of doubtful results, or figures that no result has.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Headline {
    /// The file.
    pub file: String,
    /// The quoted text and its place.
    pub quote: Quote,
    /// The results that have these figures, by their index in the list of results.
    pub rests_on: Vec<usize>,
    /// The best verdict among them; invalid if there are none.
    pub verdict: Verdict,
    /// The findings of that result, without notes.
    pub findings: Vec<Id>,
    /// Anything else that is odd about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// Points of percent that rounding may make of a change.
const POINTS: f64 = 1.0;

/// The headlines of a document that rest on doubtful results.
pub(super) fn of(document: &Document, results: &[Audited]) -> Vec<Headline> {
    let quotes = document.quotes.iter();
    let tied = quotes.map(|quote| (quote, resting(&document.file, quote, results)));
    let tied: Vec<(&Quote, Vec<usize>)> = tied.collect();
    tied.iter()
        .filter_map(|(quote, rests_on)| {
            let best = rests_on
                .iter()
                .min_by_key(|index| results[**index].verdict)
                .copied();
            let verdict = best.map_or(Verdict::Invalid, |best| results[best].verdict);
            let seen = match best {
                None => Some("no result has these figures".to_owned()),
                Some(best) => change(quote, best, &tied, results),
            };
            if verdict == Verdict::Valid && seen.is_none() {
                return None;
            }
            let findings = best.map_or_else(Vec::new, |best| {
                let grave = results[best].findings.iter();
                let grave =
                    grave.filter(|finding| finding.severity != result::finding::Severity::Note);
                let mut ids: Vec<Id> = grave.map(|finding| finding.id).collect();
                ids.dedup();
                ids
            });
            Some(Headline {
                file: document.file.clone(),
                quote: (*quote).clone(),
                rests_on: rests_on.clone(),
                verdict,
                findings,
                seen,
            })
        })
        .collect()
}

/// The results of the file that have all of a quote's figures.
fn resting(file: &str, quote: &Quote, results: &[Audited]) -> Vec<usize> {
    let has = |claim: &Claim| {
        claim.source.file == file
            && quote.figures.iter().all(|(name, value)| {
                let stated = claim.stated(name);
                stated.is_some_and(|stated| (stated.value - value).abs() <= stated.rounding + 1e-9)
            })
    };
    let results = results.iter().enumerate();
    results
        .filter(|(_, result)| has(&result.claim))
        .map(|(index, _)| index)
        .collect()
}

/// A change in throughput recomputed as tokens over duration, if it differs.
fn change(
    quote: &Quote,
    own: usize,
    tied: &[(&Quote, Vec<usize>)],
    results: &[Audited],
) -> Option<String> {
    let told = quote.change?;
    let row = quote.row.as_ref()?;
    let base = tied
        .iter()
        .filter(|(other, _)| {
            other.line.abs_diff(quote.line) <= 1 && other.row.as_ref() == Some(row)
        })
        .find(|(other, rests_on)| other.change.is_none() && !rests_on.is_empty())?
        .1[0];
    let rate = |index: usize| {
        let claim = &results[index].claim;
        let tokens = claim.value("tokens.input")? + claim.value("tokens.output")?;
        let duration = claim
            .value("throughput.duration-s")
            .filter(|duration| *duration > 0.0)?;
        Some(tokens / duration)
    };
    let by_counts = (rate(own)? / rate(base)? - 1.0) * 100.0;
    ((by_counts - told).abs() > POINTS).then(|| {
        // A zero has no sign.
        let by_counts = if by_counts.abs() < 0.05 {
            0.0
        } else {
            by_counts
        };
        let sign = if by_counts > 0.0 { "+" } else { "" };
        format!(
            "computed as tokens over duration, the change is {sign}{}, not {told:+} %",
            percent(by_counts / 100.0)
        )
    })
}
