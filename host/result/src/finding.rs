//! Reasons to doubt a run, derived from its summary: what was observed, why it matters, what to do.
//!
//! A finding never changes a figure. Thresholds are a separate question, in module `threshold`.

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

/// How serious a finding is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing when reading the figures; the figures are correct.
    Note,
    /// Some figures may not be what they seem.
    Suspect,
    /// The run did not measure what it was meant to measure.
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
    /// The run was stopped before it completed its plan.
    Interrupted,
    /// TLS certificates were not checked.
    Insecure,
    /// Requests left later than they were due.
    SendLag,
    /// The cap on requests in flight held back requests of a run that offers a rate.
    CapReached,
    /// Answers are shorter than requested, although the server was told to ignore the end of the text.
    ShortAnswers,
    /// The output tokens of some answers are unknown.
    TokensUnknown,
    /// Token counts come from a tokenizer that is not the model's.
    ApproximateTokens,
    /// The server and the dataset count different numbers of prompt tokens.
    InputTokensDisagree,
    /// The counted output tokens differ from those of the retokenized text.
    OutputTokensDisagree,
    /// The server's total of an answer's tokens differs from the sum it states for the events.
    EventTokensDisagree,
    /// An event of a reply carries several tokens, or part of one.
    TokensPerEvent,
    /// The dataset had fewer samples than the plan has requests.
    ShortDataset,
    /// Replies waited in the socket before this client read them.
    ReadLag,
    /// Requests waited for a connection to be opened.
    ConnectionWaits,
    /// Chunks of replies that were generated one after the other arrived together.
    BufferedReplies,
    /// It is unknown whether some requests met an objective.
    ObjectiveUnknown,
    /// A thread that sends or reads did not get enough processor time.
    ClientSaturated,
    /// This process was paused.
    ClientPaused,
    /// A hypervisor took time from this machine's cores.
    StolenTime,
    /// Replies were decoded long after they were read.
    DecodeBehind,
    /// Other processes kept this machine's cores busy.
    SharedMachine,
    /// The server's totals differ from this client's.
    ServerCountsDisagree,
    /// Requests were sent at a lower rate than planned.
    RateNotReached,
    /// The server answered at a lower rate than requests were offered.
    Overloaded,
    /// This machine ran out of file descriptors or ports.
    ClientLimits,
    /// The server had prompt tokens in its prefix cache.
    WarmCache,
    /// There is no steady state.
    NotSteady,
    /// A figure drifted over the steady window.
    Drift,
    /// Throughput oscillated with a period.
    Swing,
    /// The system clock was stepped during the measurement.
    ClockStep,
    /// A CPU quota kept this process from running.
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
    /// How serious it is for the run.
    pub severity: Severity,
    /// What was observed, with its figures.
    pub seen: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

/// Whether a measurement can be trusted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No check found a reason to doubt it.
    Valid,
    /// Some figures may not be what they seem.
    Suspect,
    /// It did not measure what it was meant to measure.
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

/// The findings of a run, the worst first. Ignores the findings and the verdict in the summary
/// itself.
pub fn of(summary: &Summary) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules::ALL.iter().filter_map(|rule| rule(summary)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
