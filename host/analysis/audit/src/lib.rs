//! Checks the claims of other tools against rules that any honest measurement satisfies. It
//! compares the figures of a result, the results of a page, and a page's headlines with their
//! results.
//!
//! Severities follow one line. *Invalid*: the figures contradict each other beyond rounding, so
//! that no measurement gives them, or they do not describe the requested work. *Suspect*: a figure
//! follows a different formula than its name says, or covers only part of the requested work.
//! *Note*: a trait of the tool or the run that readers should know. If only means are known, a rule
//! reports only figures that no distribution allows, never merely unusual ones.
//!
//! This crate owns these rules and the reading of other tools' results. It leaves the definitions
//! of metrics to `result`, and the output to the command line.
//!
//! A claim is a result as its tool stated it, each figure with the size of its rounding. Nothing is
//! filled in that the source does not state. A rule that fires on an honest measurement is worse
//! than none, so a rule fires beyond the limits of any distribution. Line breaks make no
//! difference, reading takes time in proportion to the file, and the memory used has a bound. A new
//! tool takes a reader in `claim` and a row in `claim/definition.rs`; a new rule a function in
//! `RULES` and an `Id`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]

pub mod claim;
mod concurrency;
pub mod figures;
mod headline;
mod id;
mod latency;
mod lengths;
mod order;
mod peers;
pub mod published;
mod spread;
pub mod text;
mod throughput;
mod tokens;
mod zeros;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Document};
use result::finding::{Severity, Verdict};

use figures::Figures;
pub use headline::Headline;
pub use id::Id;

/// An audit of one or more files.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The numbers of claims that are valid, suspect and invalid.
    pub totals: Totals,
    /// Every claim, in the order of the files.
    pub results: Vec<Audited>,
    /// Figures that the files repeat elsewhere and that rest on doubtful results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<Headline>,
}

impl Report {
    /// Removes the results that `keep` rejects, and the headlines, which refer to results by index.
    pub fn keep(&mut self, keep: impl Fn(&Audited) -> bool) {
        self.results.retain(keep);
        self.headlines.clear();
        self.totals = Totals::new(&self.results);
    }
}

impl Totals {
    fn new(results: &[Audited]) -> Self {
        let count =
            |verdict: Verdict| results.iter().filter(|result| result.verdict == verdict).count();
        Totals {
            valid: count(Verdict::Valid),
            suspect: count(Verdict::Suspect),
            invalid: count(Verdict::Invalid),
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} valid, {} suspect, {} invalid", self.valid, self.suspect, self.invalid)
    }
}

/// Claims by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// No check found a reason to doubt them.
    pub valid: usize,
    /// Some figures may mislead.
    pub suspect: usize,
    /// The figures are wrong, or of another load than planned.
    pub invalid: usize,
}

/// A rule on one claim.
type Rule = fn(&Figures<'_>) -> Option<Finding>;

/// Every rule on one claim, in the order in which findings of equal weight are listed.
const RULES: [Rule; 27] = [
    zeros::failures,
    zeros::short_answers,
    latency::whole,
    latency::first_over_last,
    latency::gaps,
    latency::over_duration,
    spread::one_length,
    spread::longest_gap,
    |figures| zeros::absent(figures, Severity::Invalid),
    |figures| zeros::absent(figures, Severity::Suspect),
    |figures| zeros::absent(figures, Severity::Note),
    zeros::gaps,
    throughput::requests,
    throughput::tokens,
    throughput::total,
    throughput::peak,
    throughput::requested_rate,
    concurrency::cap,
    concurrency::little,
    concurrency::peak_below_mean,
    concurrency::peak_over_cap,
    concurrency::kept_full,
    tokens::retokenized,
    tokens::served,
    tokens::samples,
    order::percentiles,
    order::means,
];

/// Audits claims together.
pub fn claims(claims: &[Claim]) -> Vec<Audited> {
    let mut found: Vec<Vec<Finding>> = claims.iter().map(alone).collect();
    for (index, finding) in peers::compare(claims) {
        found[index].push(finding);
    }
    (claims.iter().zip(found))
        .map(|(claim, mut findings)| {
            findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
            Audited { claim: claim.clone(), verdict: verdict(&findings), findings }
        })
        .collect()
}

fn alone(claim: &Claim) -> Vec<Finding> {
    let figures = Figures::new(claim);
    if let Some(nothing) = zeros::nothing_answered(&figures) {
        // Every other figure is a zero that stands for nothing.
        return vec![nothing];
    }
    RULES.iter().filter_map(|rule| rule(&figures)).collect()
}

fn verdict(findings: &[Finding]) -> Verdict {
    match findings.iter().map(|finding| finding.severity).max() {
        None | Some(Severity::Note) => Verdict::Valid,
        Some(Severity::Suspect) => Verdict::Suspect,
        Some(Severity::Invalid) => Verdict::Invalid,
    }
}

/// Audits files together.
pub fn documents(documents: &[Document]) -> Report {
    let all: Vec<Claim> = documents.iter().flat_map(|document| document.claims.clone()).collect();
    let results = claims(&all);
    let headlines =
        documents.iter().flat_map(|document| headline::headlines(document, &results)).collect();
    Report { totals: Totals::new(&results), results, headlines }
}

/// A reason to doubt a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// The kind of finding.
    pub id: Id,
    /// Its severity for the claim.
    pub severity: Severity,
    /// The observation, with its figures.
    pub seen: String,
    /// A formula that would produce the odd figure, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// The reason why it matters.
    pub why: String,
    /// The advice: what to do about it.
    pub advice: String,
}

impl Finding {
    fn new(id: Id, severity: Severity, seen: impl Into<String>) -> Self {
        Finding {
            id,
            severity,
            seen: seen.into(),
            formula: None,
            why: id.why().into(),
            advice: id.advice().into(),
        }
    }

    fn by(mut self, formula: Option<String>) -> Self {
        self.formula = formula;
        self
    }
}

/// A claim and its findings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Audited {
    /// The claim.
    pub claim: Claim,
    /// The verdict: can the claim be trusted?
    pub verdict: Verdict,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}
