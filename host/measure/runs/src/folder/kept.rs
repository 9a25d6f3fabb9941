//! A plan as a run's folder keeps it: without secrets.

use sha2::{Digest, Sha256};

use crate::assessment::Later;
use model::redact;
use scenario::plan::Plan;

/// The plan as it is kept. Bodies and configurations may hold keys: of such a value, a digest is
/// kept, so that runs that differ in it can be told apart. Its 32 bits do not reveal a key.
pub fn without_secrets(plan: &Plan) -> serde_json::Value {
    let mut plan = serde_json::to_value(plan).unwrap_or_default();
    for place in ["/request/extra-body", "/backend/config", "/dataset/config"] {
        if let Some(value) = plan.pointer_mut(place) {
            redact::fields(value, &mark);
        }
    }
    let scorers = plan.get_mut("scorers").and_then(|list| list.as_array_mut());
    for scorer in scorers.into_iter().flatten() {
        if let Some(config) = scorer.get_mut("config") {
            redact::fields(config, &mark);
        }
    }
    plan
}

/// Scores that were given later, likewise.
pub(super) fn without_secret_configs(later: &[Later]) -> serde_json::Value {
    let mut all = serde_json::to_value(later).unwrap_or_default();
    let each = all.as_array_mut().into_iter().flatten();
    let scorers = each.filter_map(|later| later.get_mut("scorers")?.as_array_mut());
    for scorer in scorers.flatten() {
        if let Some(config) = scorer.get_mut("config") {
            redact::fields(config, &mark);
        }
    }
    all
}

fn mark(secret: &serde_json::Value) -> String {
    let digest = model::hex(&Sha256::digest(secret.to_string().as_bytes())[..4]);
    format!("[redacted, sha256 {digest}]")
}
