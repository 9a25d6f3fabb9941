//! The figures of a claim as the rules need them: with their rounding, and with derived figures.

use super::spread::Range;
use crate::claim::{Claim, Tool};
use result::figure::Statistic;
use statistics::{Ranked, Sorted};

pub struct Figures<'a> {
    pub(super) claim: &'a Claim,
}

/// A number as findings show it: with two decimals if they are significant.
pub fn shown(value: f64) -> String {
    let text = if value.abs() >= 100_000.0 {
        format!("{value:.0}")
    } else if value != 0.0 && value.abs() < 0.01 {
        format!("{value:.2e}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A statistic of sorted samples.
pub fn taken(sorted: &Sorted, statistic: Statistic) -> f64 {
    match statistic {
        Statistic::Mean => sorted.mean(),
        Statistic::Std => sorted.std(),
        Statistic::Min => sorted.min(),
        Statistic::Max => sorted.max(),
        Statistic::Percentile(percent) => sorted.percentile(percent),
    }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

impl<'a> Figures<'a> {
    pub fn new(claim: &'a Claim) -> Self {
        Figures { claim }
    }

    /// A figure by the tool's own name for it.
    pub(super) fn get(&self, name: &str) -> Option<Range> {
        self.claim.stated(name).map(Range::from)
    }

    /// A figure above zero: a zero may stand for a missing measurement.
    pub(super) fn positive(&self, name: &str) -> Option<Range> {
        self.get(name).filter(|range| range.high > 0.0 && range.mid() > 0.0)
    }

    pub(super) fn answered(&self) -> Option<f64> {
        self.claim.value("requests.successful").filter(|count| *count > 0.0)
    }

    /// The duration in seconds.
    pub(super) fn duration(&self) -> Option<Range> {
        self.positive("throughput.duration-s")
    }

    /// Mean output tokens of a request, as the result counts them.
    pub(super) fn tokens_each(&self) -> Option<f64> {
        if self.claim.trimmed {
            return None;
        }
        Some(self.claim.value("tokens.output")? / self.answered()?).filter(|tokens| *tokens > 0.0)
    }

    /// The metric of our catalogue that one of its latencies is.
    pub(super) fn metric(&self, theirs: &str) -> Option<&str> {
        self.claim.definitions.get(theirs)?.metric.as_deref()
    }

    /// True if the tool's TPOT is (E2E - TTFT) / (n - 1) by its own E2E latency.
    pub(super) fn tpot_is_after_first(&self) -> bool {
        matches!(
            (self.metric("tpot"), self.metric("e2e")),
            (Some("tpot"), Some("e2e"))
                | (Some("tpot-last-token"), Some("e2e-last-token"))
                | (Some("tpot-usage"), Some("e2e-usage"))
        )
    }

    /// True if ITL is of gaps between pieces, pooled.
    pub(super) fn itl_is_gaps(&self) -> bool {
        self.metric("itl") == Some("itl")
    }

    /// True if the tool times only the first and the last token of a request, and computes means
    /// over all requests' tokens together. These are guidellm and its wrappers, since the version
    /// whose files name it.
    pub(super) fn first_and_last(&self) -> bool {
        self.by_events() && self.metric("tpot") == Some("tpot-with-first")
    }

    /// True if token throughputs are means from the tokens' first event to the last, as guidellm's.
    pub(super) fn by_events(&self) -> bool {
        matches!(self.claim.tool, Tool::Guidellm | Tool::Gpustack)
    }

    /// True if rates are over a longer time than the stated duration. AIPerf's are over the whole
    /// phase, and its duration is from the first request to the last response.
    pub(super) fn longer_span(&self) -> bool {
        self.claim.tool == Tool::Aiperf
    }

    /// Mean time from the first token to the end in milliseconds.
    pub(super) fn decode(&self) -> Option<Range> {
        let decode = self.positive("e2e.mean")? - self.positive("ttft.mean")?;
        (decode.low > 0.0).then_some(decode)
    }

    /// True if the requests were answered whole, not in pieces.
    pub(super) fn whole_replies(&self) -> bool {
        self.claim.asked.stream == Some(false)
    }
}
