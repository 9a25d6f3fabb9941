//! The kinds of findings: their stable names, why each matters and what to do about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
                "requests in flight at their mean speed do not come near it; a few were far faster than the rest, or tokens that came together were taken for speed",
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
