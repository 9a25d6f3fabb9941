//! Answers that a scorer did not judge, with the reasons.

/// Answers without a score, by reason.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Unjudged {
    /// The scorer failed on them, or was left out before them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub failed: u64,
    /// They were not drawn: only some of the answers were to be judged.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub left_out: u64,
    /// Their samples have no reference, and the scorer gave them no score.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub without_reference: u64,
    /// Their samples have a reference, and the scorer gave them no score.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub passed_over: u64,
}

impl Unjudged {
    pub fn is_none(&self) -> bool {
        *self == Unjudged::default()
    }

    pub fn count(&self) -> u64 {
        self.failed + self.left_out + self.without_reference + self.passed_over
    }

    pub fn label(&self) -> Option<String> {
        let parts = [
            (self.failed, "on which the scorer failed"),
            (self.left_out, "that were not drawn"),
            (self.without_reference, "without a reference"),
            (self.passed_over, "that the scorer passed over"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, why)| format!("{count} {why}")).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A scorer that gave no score at all.
#[model::apply(model::document!)]
pub struct SilentScorer {
    /// The plugin as the user named it.
    pub name: String,
    /// The answers that it did not judge, by reason.
    pub unjudged: Unjudged,
}

impl SilentScorer {
    pub fn label(&self) -> String {
        let why = self.unjudged.label().unwrap_or_else(|| "there were no answers".to_owned());
        format!("`{}` judged no answer: {why}", self.name)
    }
}
