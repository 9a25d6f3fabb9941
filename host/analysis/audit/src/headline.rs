//! Statements of a page outside of its results, linked to the results that they rest on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Audited;
use super::figures::percent;
use super::id::Id;
use crate::claim::{Claim, Document, Quote};
use result::finding::{Severity, Verdict};

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

/// The most results that a quote names: several are alike where a page states a result twice.
const NAMED: usize = 100;

/// A quote, and the results that have its figures.
struct Basis<'a> {
    quote: &'a Quote,
    /// The first of them, the best among them.
    rests_on: Vec<usize>,
    best: Option<usize>,
}

/// The headlines of a document that rest on doubtful results.
pub(super) fn headlines(document: &Document, results: &[Audited]) -> Vec<Headline> {
    let index = Index::new(document, results);
    let found: Vec<Basis<'_>> =
        document.quotes.iter().map(|quote| index.basis(quote, results)).collect();
    let bases = bases(&found);
    (found.iter())
        .filter_map(|Basis { quote, rests_on, best }| {
            let verdict = best.map_or(Verdict::Invalid, |best| results[best].verdict);
            let seen = match best {
                None => Some("no result has these figures".to_owned()),
                Some(best) => change(quote, *best, &bases, results),
            };
            if verdict == Verdict::Valid && seen.is_none() {
                return None;
            }
            let findings = best.map_or_else(Vec::new, |best| {
                let mut ids: Vec<Id> = (results[best].findings.iter())
                    .filter(|finding| finding.severity != Severity::Note)
                    .map(|finding| finding.id)
                    .collect();
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

/// The results of a document by the figures that its quotes repeat.
struct Index<'a>(BTreeMap<&'a str, Values>);

/// The results' values of a figure, in the order of the least that each may mean.
#[derive(Default)]
struct Values {
    stated: Vec<(f64, f64, usize)>,
    /// The most that rounding has left open in any of them.
    widest: f64,
}

impl<'a> Index<'a> {
    fn new(document: &'a Document, results: &[Audited]) -> Self {
        let quoted = document.quotes.iter().flat_map(|quote| &quote.figures);
        let mut index: BTreeMap<&str, Values> =
            quoted.map(|(name, _)| (name.as_str(), Values::default())).collect();
        for (place, result) in results.iter().enumerate() {
            if result.claim.source.file != document.file {
                continue;
            }
            for (name, sorted) in &mut index {
                if let Some(stated) = result.claim.stated(name) {
                    let off = stated.rounding + 1e-9;
                    sorted.stated.push((stated.value - off, stated.value + off, place));
                    sorted.widest = sorted.widest.max(2.0 * off);
                }
            }
        }
        for sorted in index.values_mut() {
            sorted.stated.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        Index(index)
    }

    /// The results that have all of a quote's figures.
    fn basis<'q>(&self, quote: &'q Quote, results: &[Audited]) -> Basis<'q> {
        let mut rests_on: Vec<usize> = Vec::new();
        if let Some((name, value)) = quote.figures.first()
            && let Some(sorted) = self.0.get(name.as_str())
        {
            let first = sorted.stated.partition_point(|(low, ..)| *low < value - sorted.widest);
            rests_on = (sorted.stated[first..].iter())
                .take_while(|(low, ..)| low <= value)
                .filter(|(_, high, _)| high >= value)
                .map(|(.., place)| *place)
                .filter(|place| has_all(&results[*place].claim, quote))
                .collect();
            rests_on.sort_unstable();
        }
        let best = rests_on.iter().min_by_key(|index| results[**index].verdict).copied();
        rests_on.truncate(NAMED);
        rests_on.shrink_to_fit();
        // If there are many, the best is always named.
        if let (Some(best), Some(last)) = (best, rests_on.last_mut()) {
            *last = best.max(*last);
        }
        Basis { quote, rests_on, best }
    }
}

fn has_all(claim: &Claim, quote: &Quote) -> bool {
    quote.figures.iter().skip(1).all(|(name, value)| {
        let stated = claim.stated(name);
        stated.is_some_and(|stated| (stated.value - value).abs() <= stated.rounding + 1e-9)
    })
}

/// Finds the results that changes are relative to: the first that a row states, by row and line.
fn bases<'a>(found: &[Basis<'a>]) -> BTreeMap<&'a str, Vec<(usize, usize)>> {
    let mut bases: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    for Basis { quote, rests_on, .. } in found {
        if let (Some(row), None, Some(first)) = (&quote.row, quote.change, rests_on.first()) {
            bases.entry(row).or_default().push((quote.line, *first));
        }
    }
    bases
}

/// A change in throughput recomputed as tokens over duration, if it differs.
fn change(
    quote: &Quote,
    own: usize,
    bases: &BTreeMap<&str, Vec<(usize, usize)>>,
    results: &[Audited],
) -> Option<String> {
    let stated = quote.change?;
    let bases = bases.get(quote.row.as_deref()?)?;
    let near = bases.partition_point(|(line, _)| line + 1 < quote.line);
    let (_, base) = *bases.get(near).filter(|(line, _)| *line <= quote.line + 1)?;
    let rate = |index: usize| {
        let claim = &results[index].claim;
        let tokens = claim.value("tokens.input")? + claim.value("tokens.output")?;
        let duration = claim.value("throughput.duration-s").filter(|duration| *duration > 0.0)?;
        Some(tokens / duration)
    };
    let by_counts = (rate(own)? / rate(base)? - 1.0) * 100.0;
    ((by_counts - stated).abs() > POINTS).then(|| {
        // A zero has no sign.
        let by_counts = if by_counts.abs() < 0.05 { 0.0 } else { by_counts };
        let sign = if by_counts > 0.0 { "+" } else { "" };
        format!(
            "computed as tokens over duration, the change is {sign}{}, not {stated:+} %",
            percent(by_counts / 100.0)
        )
    })
}
