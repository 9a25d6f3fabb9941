//! What any honest measurement satisfies, held against what other tools claim: figures of one result
//! against each other, results of one page against each other, and a page's headlines against the
//! results they rest on.
//!
//! How grave a finding is follows one line. *Invalid*: the figures contradict each other beyond rounding, so
//! that no measurement gives them, or they are not of the work that was asked. *Suspect*: a figure
//! is another formula's than its name says, or stands on a part of what was asked. *Note*: a trait
//! of the tool or the run, to know when reading. Where only means are known, a rule speaks up beyond what any
//! distribution allows, never beyond what is usual.

mod concurrency;
mod counts;
pub mod figures;
pub mod github;
mod headline;
mod latency;
mod order;
mod peers;
mod range;
pub mod text;
mod throughput;
mod tokens;
mod zeros;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Document};
use crate::finding::{Severity, Verdict};

use figures::Figures;
pub use headline::Headline;

/// What was found. The names are stable.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Id {
    /// No request was answered.
    NothingAnswered,
    /// Requests failed, or are missing from the result.
    Failures,
    /// Fewer tokens came than were asked for.
    ShortAnswers,
    /// The answers' text has other tokens than the result counts.
    RetokenizedDiffers,
    /// A request's own figures do not give those of the whole.
    SamplesDisagree,
    /// The request throughput is not requests over duration.
    RequestRateDisagrees,
    /// A token throughput is not tokens over duration.
    TokenRateDisagrees,
    /// The total throughput is not the sum of its parts.
    TotalDisagrees,
    /// The peak is more than can have been generated.
    PeakImpossible,
    /// The peak is far above what the requests in flight were generating.
    PeakImplausible,
    /// The peak is below the mean.
    PeakBelowMean,
    /// The server did not keep up with the rate that was asked for.
    RateNotReached,
    /// Requests came faster than they were asked for.
    RateExceeded,
    /// More were in flight than the cap allowed.
    OverCap,
    /// What was in flight does not agree with Little's law.
    ConcurrencyDisagrees,
    /// A latency is longer than the whole run.
    LatencyOverDuration,
    /// A latency to the first token is longer than that to the last.
    TtftOverE2e,
    /// A zero stands where nothing was measured.
    ZeroMeansAbsent,
    /// Half of the gaps or more are nothing: tokens came together.
    ZeroGaps,
    /// TTFT, TPOT and the number of tokens do not give the end-to-end latency.
    LatencyDisagrees,
    /// TPOT is not what it is called: the time to the first token is in it.
    TpotWithFirst,
    /// The last token that was timed came long before the end.
    LastTokenEarly,
    /// The gaps do not add up to the time between first and last token.
    GapsDisagree,
    /// A gap stands for several tokens.
    TokensPerGap,
    /// Percentiles are not in order.
    Disordered,
    /// A mean or deviation is outside of what the percentiles allow.
    MeanImpossible,
    /// Another result has the same figures to the digit.
    SameTwice,
    /// The prompts are others than those of the results it stands beside.
    OtherPrompts,
    /// A headline rests on a result that is not there, or on doubtful ones.
    Headline,
}

impl Id {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        self.told().0
    }

    /// Why such a finding matters.
    pub fn why(self) -> &'static str {
        self.told().1
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        self.told().2
    }

    /// Name, why it matters, what to do.
    fn told(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Id::NothingAnswered => (
                "nothing-answered",
                "latency and throughput are of answered requests; zeros stand in their place",
                "see the tool's log for why requests failed",
            ),
            Id::Failures => (
                "failures",
                "latency and throughput are of answered requests only; what failed or went missing, often the slowest, is left out, and took load off the server",
                "find out why they failed and measure again; do not compare it with a result that answered all",
            ),
            Id::ShortAnswers => (
                "short-answers",
                "shorter answers are less work: throughput in requests and end-to-end latency look better",
                "have the server ignore the end token, or compare with results of the same length",
            ),
            Id::RetokenizedDiffers => (
                "retokenized-differs",
                "the count is of tokens asked for or claimed, and the text that came has others; each figure a token is off by as much",
                "count by the server's usage; look whether special tokens or a reasoning channel were left out of the text",
            ),
            Id::SamplesDisagree => (
                "samples-disagree",
                "the file holds the requests and figures of them, and one does not follow from the other",
                "work the figures out again from the requests, and ask where the file was changed",
            ),
            Id::RequestRateDisagrees => (
                "request-rate-disagrees",
                "requests, duration and rate say the same thing thrice; one of them is of something else",
                "trust the counts and the duration, and ask what the rate was taken over",
            ),
            Id::TokenRateDisagrees => (
                "token-rate-disagrees",
                "a throughput over another time than the run's duration is not comparable with those of other tools",
                "divide the tokens by the duration, and compare that",
            ),
            Id::TotalDisagrees => (
                "total-disagrees",
                "input, output and total throughput are of the same run, so the parts must give the whole",
                "trust the token counts over the duration",
            ),
            Id::PeakImpossible => (
                "peak-impossible",
                "a peak is tokens in a second; there are not that many, so it is the inverse of a tiny gap",
                "leave the peak out of any comparison, and do not size anything by it",
            ),
            Id::PeakImplausible => (
                "peak-implausible",
                "requests in flight at their mean speed do not come near it; tokens that came together were taken for speed",
                "leave the peak out of any comparison",
            ),
            Id::PeakBelowMean => (
                "peak-below-mean",
                "the busiest second cannot have less than the mean; the tool counts events there, and an event holds several tokens",
                "leave the peak out of any comparison",
            ),
            Id::RateNotReached => (
                "rate-not-reached",
                "the figures are of a server that is behind, or of the cap on requests in flight, not of the rate that is named",
                "name the throughput that was reached; lower the rate to learn the latency under it",
            ),
            Id::RateExceeded => (
                "rate-exceeded",
                "the load was another than the one that is named",
                "ask how the requests were sent",
            ),
            Id::OverCap => (
                "over-cap",
                "the cap bounds how many are in flight, at any time and so in the mean",
                "ask whether latency counts waiting before the request was sent, or failed requests are missing",
            ),
            Id::ConcurrencyDisagrees => (
                "concurrency-disagrees",
                "requests in flight in the mean are the sum of latencies over the duration, whatever the load",
                "ask what duration and latency were taken over",
            ),
            Id::LatencyOverDuration => (
                "latency-over-duration",
                "no request of a run lasts longer than the run",
                "look for a wrong unit, or figures of two runs in one result",
            ),
            Id::TtftOverE2e => (
                "ttft-over-e2e",
                "the first token cannot come after the last, for any request and so for no statistic of them",
                "look for a wrong unit, or requests that one of the two leaves out",
            ),
            Id::ZeroMeansAbsent => (
                "zero-means-absent",
                "nothing takes no time: the tool writes 0 where it saw nothing, and takes it into the mean",
                "read it as not measured; look whether the client knew the server's chunks (reasoning, tool calls, a whole reply)",
            ),
            Id::ZeroGaps => (
                "zero-gaps",
                "tokens that came together have no time between them; percentiles of such gaps say nothing of how a user sees the text come",
                "compare TPOT, or gaps between events; ask whether the client was too slow to read, or the server sends several tokens an event",
            ),
            Id::LatencyDisagrees => (
                "latency-disagrees",
                "the end-to-end latency is the time to the first token and that of all others; a figure that does not fit is of something else",
                "trust the end-to-end latency, and work the time per token out from it",
            ),
            Id::TpotWithFirst => (
                "tpot-with-first",
                "other tools' TPOT leaves the first token's time out; this one is larger by TTFT / n, and says more of queueing than of decoding",
                "work out (E2E - TTFT) / (n - 1), and compare that",
            ),
            Id::LastTokenEarly => (
                "last-token-early",
                "time per token and gaps cover only the part of the answers whose chunks the tool knew; the rest of the time is nobody's, so both are far too small",
                "do not use TPOT or ITL of it; (E2E - TTFT) / (n - 1) is what a token took, if TTFT is right",
            ),
            Id::GapsDisagree => (
                "gaps-disagree",
                "the gaps of a request add up to the time between its first and last token; these leave most of it out",
                "do not use ITL of it; look for chunks that the client did not know",
            ),
            Id::TokensPerGap => (
                "tokens-per-gap",
                "gaps are between events, not tokens: ITL is larger than the time of a token, and its percentiles are of bursts",
                "compare TPOT rather than ITL with servers that send a token an event",
            ),
            Id::Disordered => (
                "disordered",
                "a higher percentile is never less than a lower one",
                "look for figures of two results in one, or percentiles of different samples",
            ),
            Id::MeanImpossible => (
                "mean-impossible",
                "no samples have this mean and these percentiles",
                "look for figures of two results in one, or a mean of other samples than the percentiles",
            ),
            Id::SameTwice => (
                "same-twice",
                "two measurements never agree to the digit: it is one, shown twice, and says nothing of the spread between runs",
                "count it once; ask which of two different set-ups it was of",
            ),
            Id::OtherPrompts => (
                "other-prompts",
                "results of one scenario are compared as if of the same work; shorter prompts are less of it",
                "do not compare it with the others",
            ),
            Id::Headline => (
                "headline",
                "readers take a page's tables and summaries for what was measured",
                "read them with the findings of the results they rest on",
            ),
        }
    }
}

/// A reason to doubt a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// What was found.
    pub id: Id,
    /// How much it takes from the claim.
    pub severity: Severity,
    /// What was seen, with its figures.
    pub seen: String,
    /// Which formula would have given the odd figure, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
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

/// A claim and what was found of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Audited {
    /// The claim.
    pub claim: Claim,
    /// Whether it can be believed.
    pub verdict: Verdict,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

/// An audit of one or more files.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// How many claims are valid, suspect and invalid.
    pub totals: Totals,
    /// Every claim, in the order of the files.
    pub results: Vec<Audited>,
    /// Figures that the files repeat elsewhere, where they rest on doubtful results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<Headline>,
}

impl Report {
    /// Leaves out the results that are not to be kept, and headlines, which count results by their place.
    pub fn keep(&mut self, keep: impl Fn(&Audited) -> bool) {
        self.results.retain(keep);
        self.headlines.clear();
        self.totals = Totals::of(&self.results);
    }
}

impl Totals {
    fn of(results: &[Audited]) -> Self {
        let count = |verdict: Verdict| {
            results
                .iter()
                .filter(|result| result.verdict == verdict)
                .count()
        };
        Totals {
            valid: count(Verdict::Valid),
            suspect: count(Verdict::Suspect),
            invalid: count(Verdict::Invalid),
        }
    }
}

/// Claims by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Nothing speaks against them.
    pub valid: usize,
    /// Some figures may not be what they seem.
    pub suspect: usize,
    /// They do not say what they were to measure.
    pub invalid: usize,
}

/// A rule on one claim.
type Rule = fn(&Figures<'_>) -> Vec<Finding>;

/// Every rule on one claim, in the order in which findings of equal weight are listed.
const RULES: [Rule; 20] = [
    counts::failures,
    counts::short_answers,
    latency::whole,
    latency::first_over_last,
    latency::gaps,
    latency::over_duration,
    zeros::absent,
    zeros::gaps,
    throughput::requests,
    throughput::tokens,
    throughput::total,
    throughput::peak,
    throughput::asked,
    concurrency::cap,
    concurrency::little,
    concurrency::peak,
    tokens::retokenized,
    tokens::samples,
    order::percentiles,
    order::means,
];

/// What is found of claims that are looked at together.
pub fn claims(claims: &[Claim]) -> Vec<Audited> {
    let mut found: Vec<Vec<Finding>> = claims.iter().map(alone).collect();
    for (index, finding) in peers::compare(claims) {
        found[index].push(finding);
    }
    claims
        .iter()
        .zip(found)
        .map(|(claim, mut findings)| {
            findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
            Audited {
                claim: claim.clone(),
                verdict: verdict(&findings),
                findings,
            }
        })
        .collect()
}

/// What is found of a claim by itself.
fn alone(claim: &Claim) -> Vec<Finding> {
    let figures = Figures::of(claim);
    if let Some(nothing) = counts::nothing_answered(&figures) {
        // Every other figure is a zero that stands for nothing.
        return vec![nothing];
    }
    RULES.iter().flat_map(|rule| rule(&figures)).collect()
}

fn verdict(findings: &[Finding]) -> Verdict {
    match findings.iter().map(|finding| finding.severity).max() {
        None | Some(Severity::Note) => Verdict::Valid,
        Some(Severity::Suspect) => Verdict::Suspect,
        Some(Severity::Invalid) => Verdict::Invalid,
    }
}

/// The audit of files, all looked at together.
pub fn documents(documents: &[Document]) -> Report {
    let all: Vec<Claim> = documents
        .iter()
        .flat_map(|document| document.claims.clone())
        .collect();
    let results = claims(&all);
    let headlines = documents
        .iter()
        .flat_map(|document| headline::of(document, &results))
        .collect();
    Report {
        totals: Totals::of(&results),
        results,
        headlines,
    }
}
