//! The card of a client: its task, its figures, and whether they are true. Its JSON is described by
//! the schema `verify`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ceiling::Ceiling;
use crate::types::{Check, Part, Verdict};

/// The card of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Card {
    /// The version of the runner that judged.
    pub runner: String,
    /// The day on which it did, as `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The machine on which it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The client.
    pub client: Client,
    /// The tokenizer that counted.
    pub tokenizer: String,
    /// Every case.
    pub cases: Vec<CaseCard>,
    /// The number of cases of each verdict.
    pub totals: Totals,
    /// The load up to which its times are true, if the ceiling was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
}

/// The client that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Client {
    /// Its name, as of its profile.
    pub name: String,
    /// Its name as people write it.
    pub title: String,
    /// Its version, if it said one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// One case of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseCard {
    /// Its name.
    pub name: String,
    /// The part that it belongs to.
    pub part: Part,
    /// Its events, in a line.
    pub title: String,
    /// The reason why it matters.
    pub why: String,
    /// The way it ended.
    pub outcome: Outcome,
    /// The number of times that the client was run until the verdict.
    pub tries: u32,
    /// The tolerance of times, as text.
    pub tolerance: String,
    /// Each judged figure and property.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// The last lines that the client wrote, where it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// The command that ran, without the parts that differ from run to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// The way a case ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The worst verdict of its checks.
    Judged(Verdict),
    /// The client left no result, for this reason.
    Failed(String),
    /// The client does not do such a thing, for this reason.
    NotApplicable(String),
}

impl Outcome {
    pub fn label(&self) -> &'static str {
        match self {
            Outcome::Judged(verdict) => verdict.label(),
            Outcome::Failed(_) => "failed",
            Outcome::NotApplicable(_) => "not applicable",
        }
    }
}

/// The numbers of cases by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Every figure is exact.
    pub exact: usize,
    /// Every figure is exact or within the error that the client states.
    pub within_stated_error: usize,
    /// A figure follows another definition than the client claims.
    pub another_definition: usize,
    /// A figure follows no definition.
    pub wrong: usize,
    /// The client left no result.
    pub failed: usize,
    /// The client does not do such a thing.
    pub not_applicable: usize,
}

impl Totals {
    pub fn new(cases: &[CaseCard]) -> Self {
        let mut totals = Totals::default();
        for case in cases {
            *match &case.outcome {
                Outcome::Judged(Verdict::Exact) => &mut totals.exact,
                Outcome::Judged(Verdict::WithinStatedError) => &mut totals.within_stated_error,
                Outcome::Judged(Verdict::AnotherDefinition) => &mut totals.another_definition,
                Outcome::Judged(Verdict::Wrong) => &mut totals.wrong,
                Outcome::Failed(_) => &mut totals.failed,
                Outcome::NotApplicable(_) => &mut totals.not_applicable,
            } += 1;
        }
        totals
    }

    /// True if nothing is off: every case that applies is exact or within its stated error.
    pub fn is_clean(&self) -> bool {
        self.another_definition + self.wrong + self.failed == 0
    }
}

impl Card {
    pub fn new(runner: String, client: Client, tokenizer: String, cases: Vec<CaseCard>) -> Self {
        let totals = Totals::new(&cases);
        Card { runner, date: None, machine: None, client, tokenizer, cases, totals, ceiling: None }
    }
}

impl CaseCard {
    /// True if another try may do better: only times are off, perhaps because the machine was busy.
    pub fn may_be_noise(&self) -> bool {
        let mut off = self.off().peekable();
        let is_judged = matches!(self.outcome, Outcome::Judged(_));
        is_judged && off.peek().is_some() && off.all(Check::is_timed)
    }

    /// The figures that are off with the definition that each fits; nothing if one fits none. The
    /// same in two tries is no noise.
    pub fn other_definitions(&self) -> Option<Vec<(String, String)>> {
        let named = |check: &Check| Some((check.figure.clone(), check.fits.clone()?));
        self.off().map(named).collect()
    }

    fn off(&self) -> impl Iterator<Item = &Check> {
        let off = |check: &&Check| check.verdict > Verdict::WithinStatedError;
        self.checks.iter().filter(off)
    }
}
