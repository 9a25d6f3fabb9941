//! The kinds of findings: their stable names, the reason why each matters and the advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($(#[$doc:meta] $id:ident $name:literal: $why:literal, $advice:literal;)+) => {
        /// The kind of finding. The names are stable.
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Id {
            $(#[$doc] $id,)+
        }

        impl Id {
            /// The name used in results.
            pub fn name(self) -> &'static str {
                match self { $(Id::$id => $name,)+ }
            }

            pub fn why(self) -> &'static str {
                match self { $(Id::$id => $why,)+ }
            }

            pub fn advice(self) -> &'static str {
                match self { $(Id::$id => $advice,)+ }
            }
        }
    };
}

// Each kind with its name, the reason why it matters, and the advice.
ids! {
    /// No request was answered.
    NothingAnswered "nothing-answered":
        "latency and throughput need answered requests; the tool wrote zeros instead",
        "look in the tool's log for why requests failed";
    /// Requests failed, or are missing from the result.
    Failures "failures":
        "latency and throughput cover answered requests only: requests that failed or went \
         missing, often the slowest, are left out, and each took load off the server",
        "find out why they failed and measure again; do not compare with a result in which \
         all requests were answered";
    /// Answers have fewer tokens than requested.
    ShortAnswers "short-answers":
        "shorter answers are less work, so request throughput and end-to-end latency look \
         better",
        "make the server ignore the end token, or compare with results of the same answer \
         length";
    /// The text of the answers has a different number of tokens than the result.
    RetokenizedDiffers "retokenized-differs":
        "the received text has another number of tokens than requested, or than the server \
         counted; per-token figures are off by that factor",
        "count by the server's usage; check whether the text leaves out special tokens or a \
         reasoning channel";
    /// The figures of the requests do not add up to the figures of the run.
    SamplesDisagree "samples-disagree":
        "the file contains requests and figures computed from them, and the two do not agree",
        "recompute the figures from the requests, and ask where the file was changed";
    /// The request throughput is not requests over duration.
    RequestRateDisagrees "request-rate-disagrees":
        "any two of requests, duration and rate determine the third; one of them measures \
         something else",
        "trust the counts and the duration, and ask what time span the rate covers";
    /// A token throughput is not tokens over duration.
    TokenRateDisagrees "token-rate-disagrees":
        "a throughput over a time span other than the run's duration is not comparable with \
         other tools",
        "divide the tokens by the duration, and compare the result";
    /// The total throughput is not the sum of its parts.
    TotalDisagrees "total-disagrees":
        "input, output and total throughput describe the same run, so the parts must add up \
         to the total",
        "compute throughput from the token counts and the duration";
    /// The peak is more than the server can have generated.
    PeakImpossible "peak-impossible":
        "a peak is the tokens of one second, and the run had fewer tokens; this peak is the \
         inverse of a tiny gap",
        "ignore the peak in comparisons, and do not use it for sizing";
    /// The peak is far above the speed of the requests in flight.
    PeakImplausible "peak-implausible":
        "requests in flight at their mean speed do not reach the peak: a few were far faster \
         than the rest, or tokens arrived together",
        "ignore the peak in comparisons";
    /// The peak is below the mean.
    PeakBelowMean "peak-below-mean":
        "the busiest second cannot be below the mean; the tool counts events for the peak, \
         and an event holds several tokens",
        "ignore the peak in comparisons";
    /// The server did not keep up with the requested rate.
    RateNotReached "rate-not-reached":
        "the figures describe an overloaded server, or the cap on requests in flight, not the \
         stated rate",
        "state the throughput that was reached; lower the rate to measure latency without \
         overload";
    /// Requests were sent faster than the requested rate.
    RateExceeded "rate-exceeded":
        "the load differed from the stated one",
        "ask how the requests were sent";
    /// More requests were in flight than the cap allows.
    OverCap "over-cap":
        "the cap limits the requests in flight at any time, and so on average too",
        "ask whether latency includes waiting before the request was sent, or whether failed \
         requests are missing";
    /// Slots of the cap stayed empty while requests were waiting.
    CapNotFull "cap-not-full":
        "by the source, requests waited only for the cap; empty slots are then the client's \
         time between requests, unless the client paused or ramped up on purpose, so the \
         server had less load than the cap",
        "check whether the client paused, ramped up or was at its limit (CPU, connections), \
         or read the result as one at the reached concurrency";
    /// The requests in flight contradict Little's law.
    ConcurrencyDisagrees "concurrency-disagrees":
        "the mean number of requests in flight is the sum of latencies over the duration, at \
         any load",
        "ask what time span the duration covers and which requests the latency covers";
    /// A latency is longer than the whole run.
    LatencyOverDuration "latency-over-duration":
        "no request can take longer than the whole run",
        "check for a wrong unit, or for figures of two runs in one result";
    /// A time to the first token is longer than the time to the last.
    TtftOverE2e "ttft-over-e2e":
        "no request gets its first token after its last, so no statistic can show that",
        "check for a wrong unit, or for requests that one of the two leaves out";
    /// A gap between two tokens is longer than the longest request.
    GapOverE2e "gap-over-e2e":
        "every gap lies between the first and the last token of a request, so none is longer \
         than the longest request",
        "check for a wrong unit, or for gaps of requests that the end-to-end latency leaves \
         out";
    /// The tool wrote zero where it measured nothing.
    ZeroMeansAbsent "zero-means-absent":
        "nothing takes zero time: the tool writes 0 where it measured nothing, and includes \
         it in the mean",
        "treat it as not measured; check whether the client recognised the server's chunks \
         (reasoning, tool calls, a whole reply)";
    /// At least half of the gaps are zero: tokens arrived together.
    ZeroGaps "zero-gaps":
        "tokens that arrive together have no time between them; percentiles of such gaps do \
         not show how text reaches a user",
        "compare TPOT, or gaps between events; ask whether the client read too slowly, or \
         whether the server sends several tokens per event";
    /// TTFT, TPOT and the number of tokens do not add up to the end-to-end latency.
    LatencyDisagrees "latency-disagrees":
        "the end-to-end latency is the time to the first token plus the time for all others; \
         a figure that does not fit measures something else",
        "trust the end-to-end latency, and compute the time per token from it";
    /// TPOT includes the time to the first token, unlike its name.
    TpotWithFirst "tpot-with-first":
        "the TPOT of other tools excludes the time to the first token; this one is larger by \
         TTFT / n, and reflects queueing more than decoding",
        "compute (E2E - TTFT) / (n - 1), and compare that";
    /// The last timed token came long before the end.
    LastTokenEarly "last-token-early":
        "time per token and gaps cover only the part of the answers whose chunks the tool \
         recognised; the rest of the time is missing, so both are far too small",
        "do not use its TPOT or ITL; (E2E - TTFT) / (n - 1) is the time per token, if TTFT is \
         correct";
    /// The gaps do not add up to the time between first and last token.
    GapsDisagree "gaps-disagree":
        "the gaps of a request add up to the time between its first and last token; these \
         leave out most of it",
        "do not use its ITL; look for chunks that the client did not recognise";
    /// A gap covers several tokens.
    TokensPerGap "tokens-per-gap":
        "gaps are between events, not tokens: ITL is larger than the time per token, and its \
         percentiles describe bursts",
        "compare TPOT instead of ITL with servers that send one token per event";
    /// Percentiles are not in order.
    Disordered "disordered":
        "a higher percentile is never smaller than a lower one",
        "check for figures of two results in one, or for percentiles of different samples";
    /// The percentiles rule out a mean or deviation.
    MeanImpossible "mean-impossible":
        "no set of samples has this mean and these percentiles",
        "check for figures of two results in one, or for a mean over other samples than the \
         percentiles";
    /// Another result has exactly the same figures.
    SameTwice "same-twice":
        "two measurements never agree to the last digit: this is one measurement shown twice, \
         and it does not show how runs vary",
        "count it once; ask which of the two setups it belongs to";
    /// The scenario's other results have other prompts.
    OtherPrompts "other-prompts":
        "results of one scenario are compared as if the work were the same; shorter prompts \
         are less work",
        "do not compare it with the others";
    /// A headline rests on a missing result or on doubtful ones.
    Headline "headline":
        "readers take a page's tables and summaries for measurements",
        "read them together with the findings of the results they rest on";
}
