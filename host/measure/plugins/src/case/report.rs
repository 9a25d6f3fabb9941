//! The results of running cases, as types: `cli` prints them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Info, Plugin};
use model::plugin::{Kind, Limits};

/// The results of all cases of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SuiteReport {
    /// The plugin that was tested.
    pub plugin: Tested,
    /// The reason why no case was run: the plugin could not be loaded, or the cases could not be
    /// read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its limits in the sandbox.
    pub limits: Limits,
    /// Each case.
    pub cases: Vec<TimedReport>,
    /// The number of cases that passed.
    pub held: usize,
    /// The number of cases that failed.
    pub failed: usize,
    /// The number of checks in all cases together.
    pub checks: Checks,
    /// The inputs of a backend that no case has: its code for them did not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untouched: Vec<String>,
    /// The time that the cases took, in seconds.
    pub seconds: f64,
}

/// A plugin under test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tested {
    /// The file as it was requested.
    pub file: String,
    /// Facts about it; absent if it could not be loaded.
    #[serde(flatten)]
    pub loaded: Option<Loaded>,
}

/// The facts about a plugin that was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Loaded {
    /// The file's SHA-256 in hexadecimal.
    pub digest: String,
    /// The kind of work that it does.
    pub kind: Kind,
    /// Its name, as it describes itself.
    pub name: String,
    /// Its version, as it describes itself.
    pub version: String,
}

impl Tested {
    /// Its name, or its file's if it could not be loaded.
    pub fn name(&self) -> &str {
        self.loaded.as_ref().map_or(&self.file, |known| &known.name)
    }
}

/// The result of one case, and how long it took.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TimedReport {
    /// The result.
    #[serde(flatten)]
    pub report: CaseReport,
    /// The time that it took, in seconds.
    pub seconds: f64,
}

impl SuiteReport {
    /// A report without cases.
    pub fn new(plugin: &Plugin, limits: &Limits, info: &Info) -> Self {
        let loaded = Loaded {
            digest: plugin.digest.clone(),
            kind: plugin.kind,
            name: info.name.clone(),
            version: info.version.clone(),
        };
        let plugin = Tested { file: plugin.name.clone(), loaded: Some(loaded) };
        SuiteReport { plugin, limits: limits.clone(), ..SuiteReport::default() }
    }

    /// A report of a plugin that was not tested, and why.
    pub fn untested(file: String, error: String) -> Self {
        let plugin = Tested { file, loaded: None };
        SuiteReport { plugin, error: Some(error), ..SuiteReport::default() }
    }

    /// Adds a case.
    pub fn add(&mut self, case: TimedReport) {
        if case.report.holds() {
            self.held += 1
        } else {
            self.failed += 1
        }
        self.checks += case.report.checks;
        self.seconds += case.seconds;
        self.cases.push(case);
    }

    /// True if rewriting expectations would fix any failure.
    pub fn can_be_blessed(&self) -> bool {
        let mut failures = self.cases.iter().map(|case| &case.report.failures);
        failures.any(|all| !all.is_empty() && all.iter().all(Failure::can_be_blessed))
    }
}

/// The result of one case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseReport {
    /// The case's name, from its folder.
    pub name: String,
    /// The failures; empty if the case passed.
    pub failures: Vec<Failure>,
    /// Expectations that were written at the user's request.
    pub written: Vec<Written>,
    /// The lines that the plugin wrote to its log, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// The number of checks.
    pub checks: Checks,
}

impl CaseReport {
    /// True if the case passed.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Numbers of checks of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Checks {
    /// Requests written.
    pub requests: u64,
    /// Replies decoded from beginning to end, including damaged ones.
    pub decodings: u64,
    /// Replies that were truncated or damaged before they were passed to the plugin.
    pub damaged: u64,
    /// Sequences of samples drawn.
    pub draws: u64,
    /// Exchanges scored.
    pub scored: u64,
}

impl Checks {
    /// All together.
    pub fn sum(&self) -> u64 {
        self.requests + self.decodings + self.draws + self.scored
    }
}

impl std::ops::AddAssign for Checks {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.decodings += other.decodings;
        self.damaged += other.damaged;
        self.draws += other.draws;
        self.scored += other.scored;
    }
}

/// An expectation that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Written {
    /// The file in the case's folder.
    pub file: String,
    /// True if it was removed, because the case has no output for it.
    pub removed: bool,
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Failure {
    /// The plugin's output differs from an expectation.
    Differs {
        /// The expectation's file.
        file: String,
        /// True if the file exists.
        expected: bool,
        /// True if the plugin gave any such output.
        found: bool,
        /// A unified diff from expected to found.
        diff: String,
    },
    /// The plugin's output changes between repetitions.
    Unstable {
        /// The output that differed, and under which circumstances.
        what: String,
        /// A unified diff from the first to the second.
        diff: String,
    },
    /// The plugin trapped, or broke its contract.
    Misbehaved {
        /// The operation.
        doing: String,
        /// The error with which it ended.
        error: String,
    },
    /// The plugin's output violates its contract.
    Breach {
        /// The message about the breach.
        what: String,
    },
    /// The case and the plugin do not match.
    Misfit {
        /// The misfit, and what to do.
        what: String,
    },
    /// An expectation could not be written.
    Unwritable {
        /// Its file.
        file: String,
        /// The system's error.
        cause: String,
    },
}

impl Failure {
    /// The failure in one line.
    pub fn headline(&self) -> String {
        match self {
            Failure::Differs { file, expected: false, .. } => {
                format!("{file} is missing, but the plugin gave a result for it")
            }
            Failure::Differs { file, found: false, .. } => {
                format!("{file} is there, but the plugin gave no result for it")
            }
            Failure::Differs { file, .. } => format!("the result differs from {file}"),
            Failure::Unstable { what, .. } => what.clone(),
            Failure::Misbehaved { doing, error } => format!("{doing}: {error}"),
            Failure::Breach { what } | Failure::Misfit { what } => what.clone(),
            Failure::Unwritable { file, cause } => format!("cannot write {file}: {cause}"),
        }
    }

    /// The word for its kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Differs { .. } => "differs",
            Failure::Unstable { .. } => "unstable",
            Failure::Misbehaved { .. } => "misbehaved",
            Failure::Breach { .. } => "breach",
            Failure::Misfit { .. } => "misfit",
            Failure::Unwritable { .. } => "unwritable",
        }
    }

    /// Its diff, where it has one.
    pub fn diff(&self) -> Option<&str> {
        match self {
            Failure::Differs { diff, .. } | Failure::Unstable { diff, .. } => Some(diff),
            _ => None,
        }
    }

    /// True if rewriting the expectations would fix it.
    pub fn can_be_blessed(&self) -> bool {
        matches!(self, Failure::Differs { .. })
    }
}
