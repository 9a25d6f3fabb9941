//! Findings on a claim.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::id::Id;
use result::finding::{Severity, Verdict};

/// A reason to doubt a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// The kind of finding.
    pub id: Id,
    /// Its severity for the claim.
    pub severity: Severity,
    /// The observation, with its figures.
    pub seen: String,
    /// A formula that would produce the odd figure, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// The reason why it matters.
    pub why: String,
    /// The advice: what to do about it.
    pub advice: String,
}

impl Finding {
    pub(super) fn new(id: Id, severity: Severity, seen: impl Into<String>) -> Self {
        Finding {
            id,
            severity,
            seen: seen.into(),
            formula: None,
            why: id.why().into(),
            advice: id.advice().into(),
        }
    }

    pub(super) fn by(mut self, formula: Option<String>) -> Self {
        self.formula = formula;
        self
    }
}

/// A claim and its findings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Audited {
    /// The claim.
    pub claim: Claim,
    /// The verdict: can the claim be trusted?
    pub verdict: Verdict,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}
