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

/// How much a finding takes from a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// To know when reading the figures; they stand.
    Note,
    /// Some figures may not be what they seem.
    Suspect,
    /// The figures do not say what the run was to measure.
    Invalid,
}

impl Severity {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Suspect => "suspect",
            Severity::Invalid => "invalid",
        }
    }
}

/// What was found. The names are stable.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Id {
    /// No request was answered.
    NothingAnswered,
    /// Requests failed.
    Failures,
    /// Requests were due but never sent.
    NotSent,
    /// The run was stopped before its plan was done.
    Interrupted,
    /// Whoever answered, nobody checked who it was.
    Insecure,
    /// Requests left later than they should have.
    SendLag,
    /// The cap on requests in flight held back requests of a run that offers a rate.
    CapReached,
    /// Answers are shorter than asked for, though the server was told to go on.
    ShortAnswers,
    /// Output tokens of some answers are unknown.
    TokensUnknown,
    /// Token counts come from a tokenizer that is not the model's.
    ApproximateTokens,
    /// The server and the dataset count the prompts differently.
    InputTokensDisagree,
    /// Counted output tokens and those of the text differ.
    OutputTokensDisagree,
    /// The server's total of an answer's tokens and those it states of each event differ.
    EventTokensDisagree,
    /// An event of a reply stands for several tokens, or for a part of one.
    TokensPerEvent,
    /// The dataset had fewer samples than the plan has requests.
    ShortDataset,
    /// Replies lay in the socket before this client read them.
    ReadLag,
    /// Requests waited for a connection to be opened.
    ConnectionWaits,
    /// Pieces of replies came together that were made one after the other.
    BufferedReplies,
    /// Whether requests kept to an objective is not known.
    ObjectiveUnknown,
    /// A thread that sends or reads had not enough of a core.
    ClientSaturated,
    /// This process stood still.
    ClientPaused,
    /// A hypervisor took time from this machine's cores.
    StolenTime,
    /// Replies were decoded long after they were read.
    DecodeBehind,
    /// Other processes kept this machine's cores busy.
    SharedMachine,
    /// The server counted other totals than this client.
    ServerCountsDisagree,
    /// Requests were sent at a lower rate than the plan's.
    RateNotReached,
    /// The server answered at a lower rate than requests were offered.
    Overloaded,
    /// This machine ran out of file descriptors or ports.
    ClientLimits,
    /// The server had prompts in its prefix cache.
    WarmCache,
    /// There is no steady state.
    NotSteady,
    /// A figure drifted over the steady window.
    Drift,
    /// Throughput swung with a period.
    Swing,
    /// The system's clock was set while it counted.
    ClockStep,
    /// A limit on processor time kept this process from running.
    Throttled,
    /// A plugin failed.
    PluginErrors,
    /// A percentile rests on too few samples.
    FewSamples,
    /// A mean is known only roughly.
    WideInterval,
}

impl Id {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Id::NothingAnswered => "nothing-answered",
            Id::Failures => "failures",
            Id::NotSent => "not-sent",
            Id::Interrupted => "interrupted",
            Id::Insecure => "insecure",
            Id::SendLag => "send-lag",
            Id::CapReached => "cap-reached",
            Id::ShortAnswers => "short-answers",
            Id::TokensUnknown => "tokens-unknown",
            Id::ApproximateTokens => "approximate-tokens",
            Id::InputTokensDisagree => "input-tokens-disagree",
            Id::OutputTokensDisagree => "output-tokens-disagree",
            Id::EventTokensDisagree => "event-tokens-disagree",
            Id::TokensPerEvent => "tokens-per-event",
            Id::ShortDataset => "short-dataset",
            Id::ReadLag => "read-lag",
            Id::ConnectionWaits => "connection-waits",
            Id::BufferedReplies => "buffered-replies",
            Id::ObjectiveUnknown => "objective-unknown",
            Id::ClientSaturated => "client-saturated",
            Id::ClientPaused => "client-paused",
            Id::StolenTime => "stolen-time",
            Id::DecodeBehind => "decode-behind",
            Id::SharedMachine => "shared-machine",
            Id::ServerCountsDisagree => "server-counts-disagree",
            Id::RateNotReached => "rate-not-reached",
            Id::Overloaded => "overloaded",
            Id::ClientLimits => "client-limits",
            Id::WarmCache => "warm-cache",
            Id::NotSteady => "not-steady",
            Id::Drift => "drift",
            Id::Swing => "swing",
            Id::ClockStep => "clock-step",
            Id::Throttled => "throttled",
            Id::PluginErrors => "plugin-errors",
            Id::FewSamples => "few-samples",
            Id::WideInterval => "wide-interval",
        }
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

/// Whether a measurement can be believed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing speaks against it.
    Valid,
    /// Some figures may not be what they seem.
    Suspect,
    /// It does not say what it was to measure.
    Invalid,
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

    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Suspect => "suspect",
            Verdict::Invalid => "invalid",
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
