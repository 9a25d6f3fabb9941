//! Reasons to doubt a run, derived from its summary: the observation, the reason why it matters,
//! the advice.
//!
//! This module defines a finding; the modules below look for findings, and `raise` lists their
//! rules. A finding never changes a figure. Thresholds are a separate question, in module
//! `threshold`.

mod acceptance;
mod cache;
mod client;
mod course;
mod devices;
mod input;
mod load;
pub(crate) mod raise;
mod rules;
mod server;
mod tokens;
mod vitals;

#[cfg(test)]
mod tests;

model::words! {
    /// The severity of a finding.
    pub enum Severity {
        /// Worth knowing when reading the figures; the figures are correct.
        Note = "note",
        /// Some figures may mislead.
        Suspect = "suspect",
        /// The figures are wrong, or of another load than planned.
        Invalid = "invalid",
    }
}

model::words! {
    /// The kind of finding. The names are stable.
    pub enum Id {
        /// No request was answered.
        NothingAnswered = "nothing-answered",
        /// Requests failed.
        Failures = "failures",
        /// The run does not keep the rules of the benchmark that it was to follow.
        RulesBroken = "rules-broken",
        /// Requests were due but never sent.
        NotSent = "not-sent",
        /// A load machine was lost during the run.
        AgentLost = "agent-lost",
        /// A load machine's part of the run ended early.
        AgentFailed = "agent-failed",
        /// The clock of a load machine moved against the others during the run.
        AgentClock = "agent-clock",
        /// The file of records is damaged.
        RecordsDamaged = "records-damaged",
        /// The file of the server's series is damaged.
        SeriesDamaged = "series-damaged",
        /// The run was stopped before it completed its plan.
        Interrupted = "interrupted",
        /// The dataset had fewer samples than the plan has requests.
        ShortDataset = "short-dataset",
        /// The dataset dropped, truncated, repaired or repeated parts of its input. Repeated
        /// prompts warm the prefix cache.
        DatasetAltered = "dataset-altered",
        /// Histories that were to hold the server's answers hold answers on record.
        RecordedAnswers = "recorded-answers",
        /// The backend ignores options that the scenario states.
        OptionsIgnored = "options-ignored",
        /// The backend read replies with the status of an error as answers.
        ErrorsAccepted = "errors-accepted",
        /// TLS certificates were not checked.
        Insecure = "insecure",
        /// Requests were sent at a lower rate than planned.
        RateNotReached = "rate-not-reached",
        /// The server answered at a lower rate than requests were offered.
        Overloaded = "overloaded",
        /// Requests were sent with other gaps than planned.
        ArrivalsChanged = "arrivals-changed",
        /// This machine ran out of file descriptors or ports.
        ClientLimits = "client-limits",
        /// A plugin failed.
        PluginErrors = "plugin-errors",
        /// A scorer gave no score.
        ScorerSilent = "scorer-silent",
        /// Scorers judged answers that the limit of tokens had ended.
        AnswersCut = "answers-cut",
        /// Calls to a plugin ran longer than allowed.
        PluginOverruns = "plugin-overruns",
        /// Requests left later than they were due.
        SendLag = "send-lag",
        /// Replies waited in the socket before this client read them.
        ReadLag = "read-lag",
        /// Requests waited for a connection to be opened.
        ConnectionWaits = "connection-waits",
        /// A thread that sends or reads did not get enough processor time.
        ClientSaturated = "client-saturated",
        /// This process was paused.
        ClientPaused = "client-paused",
        /// A hypervisor took time from this machine's cores.
        StolenTime = "stolen-time",
        /// A CPU quota kept this process from running.
        Throttled = "throttled",
        /// The system clock was stepped during the measurement.
        ClockStep = "clock-step",
        /// Replies were decoded long after they were read.
        DecodeBehind = "decode-behind",
        /// Requests that a backend wanted sent after exchanges failed.
        CleanUpsFailed = "clean-ups-failed",
        /// Requests that renew a token or a backend's preparation failed.
        RenewalsFailed = "renewals-failed",
        /// Replies were not read for a time, because decoding or recording was behind.
        HeldBack = "held-back",
        /// Sessions began late, because those under way took all the memory that they may take.
        SessionsWaited = "sessions-waited",
        /// Other processes kept this machine's cores busy.
        SharedMachine = "shared-machine",
        /// In a run that offers a rate, the cap on requests in flight held back requests.
        CapReached = "cap-reached",
        /// Answers are shorter than requested, although the server was told to ignore the end of
        /// the text.
        ShortAnswers = "short-answers",
        /// Requests ask for more tokens than the model's context holds.
        BeyondContext = "beyond-context",
        /// The output tokens of some answers are unknown.
        TokensUnknown = "tokens-unknown",
        /// Token counts come from a tokenizer that is not the model's.
        ApproximateTokens = "approximate-tokens",
        /// The server and the dataset count different numbers of prompt tokens.
        InputTokensDisagree = "input-tokens-disagree",
        /// The counted output tokens differ from the tokens of the retokenized text.
        OutputTokensDisagree = "output-tokens-disagree",
        /// The server's total of an answer's tokens differs from the sum it states for the events.
        EventTokensDisagree = "event-tokens-disagree",
        /// An event of a reply carries several tokens, or part of one.
        TokensPerEvent = "tokens-per-event",
        /// The acceptance length of drafts differs from the expected length.
        AcceptanceDiffers = "acceptance-differs",
        /// The answers do not report their acceptance length, although the scenario expects one.
        AcceptanceNotReported = "acceptance-not-reported",
        /// The engine simulates the acceptance of drafts.
        AcceptanceSimulated = "acceptance-simulated",
        /// The server's totals differ from this client's.
        ServerCountsDisagree = "server-counts-disagree",
        /// The server had prompt tokens in its prefix cache.
        WarmCache = "warm-cache",
        /// The server found prompt tokens in its prefix cache that the run itself did not put
        /// there.
        WarmByAccident = "warm-by-accident",
        /// The server's share of cached prompt tokens differs from the share of a cache without
        /// limits.
        CacheDiffers = "cache-differs",
        /// The server did not report its prefix cache's hits, although the scenario requested it.
        CacheNotReported = "cache-not-reported",
        /// The server put requests back that it had begun.
        Preempted = "preempted",
        /// Requests waited in the server's queue.
        ServerQueue = "server-queue",
        /// The server's limit on running requests made others wait.
        AdmissionThrottled = "admission-throttled",
        /// The server's series have gaps.
        ServerGaps = "server-gaps",
        /// Heat or the power supply kept a device's clock down.
        DeviceThrottled = "device-throttled",
        /// The limit on a device's power kept its clock down.
        DevicePowerCapped = "device-power-capped",
        /// The telemetry of a device has gaps.
        DeviceGaps = "device-gaps",
        /// The requests of the beginning met an engine that was not ready yet.
        ColdStart = "cold-start",
        /// The warm-up ended before the engine was stable.
        WarmupUnstable = "warmup-unstable",
        /// A figure drifted over the steady window.
        Drift = "drift",
        /// Throughput oscillated with a period.
        Swing = "swing",
        /// There is no steady state.
        NotSteady = "not-steady",
        /// Requests were sent for little longer than one takes.
        ShortRun = "short-run",
        /// Throughput over the run is lower than in its steady window, because the run drains.
        LongDrain = "long-drain",
        /// Chunks of replies arrived together, though they were generated one after the other.
        BufferedReplies = "buffered-replies",
        /// Some requests cannot be judged by an objective.
        ObjectiveUnknown = "objective-unknown",
        /// A percentile rests on too few samples.
        FewSamples = "few-samples",
        /// The run holds too few independent loads for confidence intervals.
        FewLoads = "few-loads",
        /// A mean is known only roughly.
        WideInterval = "wide-interval",
    }
}

impl Id {
    /// A finding: the observation with its figures, the reason why it matters, and the advice.
    fn finding(
        self,
        severity: Severity,
        seen: impl Into<String>,
        why: &str,
        advice: &str,
    ) -> Finding {
        let (seen, why, advice) = (seen.into(), why.to_owned(), advice.to_owned());
        Finding { id: self, severity, seen, why, advice }
    }

    fn note(self, seen: impl Into<String>, why: &str, advice: &str) -> Finding {
        self.finding(Severity::Note, seen, why, advice)
    }

    fn suspect(self, seen: impl Into<String>, why: &str, advice: &str) -> Finding {
        self.finding(Severity::Suspect, seen, why, advice)
    }

    fn invalid(self, seen: impl Into<String>, why: &str, advice: &str) -> Finding {
        self.finding(Severity::Invalid, seen, why, advice)
    }

    /// Suspect where a figure is in doubt, else a note.
    fn doubted(self, is_doubted: bool, seen: String, why: &str, advice: &str) -> Finding {
        self.finding(if is_doubted { Severity::Suspect } else { Severity::Note }, seen, why, advice)
    }
}

/// A reason to doubt a run.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Finding {
    /// The kind of finding.
    pub id: Id,
    /// Its severity for the run.
    pub severity: Severity,
    /// The observation, with its figures.
    pub seen: String,
    /// The reason why it matters.
    pub why: String,
    /// The advice: what to do about it.
    pub advice: String,
}

model::words! {
    /// The verdict on a measurement: can it be trusted?
    pub enum Verdict {
        /// No check found a reason to doubt it.
        Valid = "valid",
        /// Some figures may mislead.
        Suspect = "suspect",
        /// The figures are wrong, or of another load than planned.
        Invalid = "invalid",
    }
}

impl Verdict {
    /// The worst of the findings; notes leave a run valid.
    pub fn from_findings(findings: &[Finding]) -> Verdict {
        match findings.iter().map(|finding| finding.severity).max() {
            None | Some(Severity::Note) => Verdict::Valid,
            Some(Severity::Suspect) => Verdict::Suspect,
            Some(Severity::Invalid) => Verdict::Invalid,
        }
    }
}
