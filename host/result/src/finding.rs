//! Reasons to doubt a run, read off its summary: what was seen, why it matters, what to do.
//!
//! A finding never changes a figure. Whether thresholds hold is another question, and another
//! module's.

mod client;
mod course;
mod rules;
mod server;
mod tokens;
mod vitals;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::summary::Summary;

model::words! {
    /// How much a finding takes from a run.
    pub enum Severity {
        /// To know when reading the figures; they stand.
        Note = "note",
        /// Some figures may not be what they seem.
        Suspect = "suspect",
        /// The figures do not say what the run was to measure.
        Invalid = "invalid",
    }
}

model::words! {
    /// What was found. The names are stable.
    pub enum Id {
        /// No request was answered.
        NothingAnswered = "nothing-answered",
        /// Requests failed.
        Failures = "failures",
        /// Requests were due but never sent.
        NotSent = "not-sent",
        /// The run was stopped before its plan was done.
        Interrupted = "interrupted",
        /// Whoever answered, nobody checked who it was.
        Insecure = "insecure",
        /// Requests left later than they should have.
        SendLag = "send-lag",
        /// The cap on requests in flight held back requests of a run that offers a rate.
        CapReached = "cap-reached",
        /// Answers are shorter than asked for, though the server was told to go on.
        ShortAnswers = "short-answers",
        /// Output tokens of some answers are unknown.
        TokensUnknown = "tokens-unknown",
        /// Token counts come from a tokenizer that is not the model's.
        ApproximateTokens = "approximate-tokens",
        /// The server and the dataset count the prompts differently.
        InputTokensDisagree = "input-tokens-disagree",
        /// Counted output tokens and those of the text differ.
        OutputTokensDisagree = "output-tokens-disagree",
        /// The server's total of an answer's tokens and those it states of each event differ.
        EventTokensDisagree = "event-tokens-disagree",
        /// An event of a reply stands for several tokens, or for a part of one.
        TokensPerEvent = "tokens-per-event",
        /// The dataset had fewer samples than the plan has requests.
        ShortDataset = "short-dataset",
        /// Replies lay in the socket before this client read them.
        ReadLag = "read-lag",
        /// Requests waited for a connection to be opened.
        ConnectionWaits = "connection-waits",
        /// Pieces of replies came together that were made one after the other.
        BufferedReplies = "buffered-replies",
        /// Whether requests kept to an objective is not known.
        ObjectiveUnknown = "objective-unknown",
        /// A thread that sends or reads had not enough of a core.
        ClientSaturated = "client-saturated",
        /// This process stood still.
        ClientPaused = "client-paused",
        /// A hypervisor took time from this machine's cores.
        StolenTime = "stolen-time",
        /// Replies were decoded long after they were read.
        DecodeBehind = "decode-behind",
        /// Other processes kept this machine's cores busy.
        SharedMachine = "shared-machine",
        /// The server counted other totals than this client.
        ServerCountsDisagree = "server-counts-disagree",
        /// Requests were sent at a lower rate than the plan's.
        RateNotReached = "rate-not-reached",
        /// The server answered at a lower rate than requests were offered.
        Overloaded = "overloaded",
        /// This machine ran out of file descriptors or ports.
        ClientLimits = "client-limits",
        /// The server had prompts in its prefix cache.
        WarmCache = "warm-cache",
        /// There is no steady state.
        NotSteady = "not-steady",
        /// A figure drifted over the steady window.
        Drift = "drift",
        /// Throughput swung with a period.
        Swing = "swing",
        /// The system's clock was set while it counted.
        ClockStep = "clock-step",
        /// A limit on processor time kept this process from running.
        Throttled = "throttled",
        /// A plugin failed.
        PluginErrors = "plugin-errors",
        /// A percentile rests on too few samples.
        FewSamples = "few-samples",
        /// A mean is known only roughly.
        WideInterval = "wide-interval",
    }
}

/// A reason to doubt a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Finding {
    /// What was found.
    pub id: Id,
    /// How much it takes from the run.
    pub severity: Severity,
    /// What was seen, with its figures.
    pub seen: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

model::words! {
    /// Whether a measurement can be believed.
    pub enum Verdict {
        /// Nothing speaks against it.
        Valid = "valid",
        /// Some figures may not be what they seem.
        Suspect = "suspect",
        /// It does not say what it was to measure.
        Invalid = "invalid",
    }
}

impl Verdict {
    /// The worst of the findings; notes leave a run valid.
    pub fn of(findings: &[Finding]) -> Verdict {
        match findings.iter().map(|finding| finding.severity).max() {
            None | Some(Severity::Note) => Verdict::Valid,
            Some(Severity::Suspect) => Verdict::Suspect,
            Some(Severity::Invalid) => Verdict::Invalid,
        }
    }
}

/// The findings of a run, the worst first. What the summary itself says of findings and verdict
/// is not looked at.
pub fn of(summary: &Summary) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules::ALL.iter().filter_map(|rule| rule(summary)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
