//! A plan as a run's folder keeps it: without secrets.

use sha2::{Digest, Sha256};

use model::redact;
use scenario::plan::Plan;

/// The plan as it is kept. Bodies and configurations may hold keys: of such a value, a digest is kept, so that runs
/// that differ in it can be told apart. Its 32 bits do not reveal a key.
pub(super) fn without_secrets(plan: &Plan) -> serde_json::Value {
    let mark = |secret: &serde_json::Value| {
        let digest = model::hex(&Sha256::digest(secret.to_string().as_bytes())[..4]);
        format!("[redacted, sha256 {digest}]")
    };
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
