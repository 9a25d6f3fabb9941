//! A plan as a run's folder keeps it: without secrets.

use sha2::{Digest, Sha256};

use crate::assessment::Later;
use model::redact::{self, Known};
use scenario::plan::{Plan, PlannedPlugin};

/// The plan as it is kept. Bodies and configurations may hold keys: of such a value, a digest is
/// kept, so that runs that differ in it can be told apart. Its 32 bits do not reveal a key.
pub fn without_secrets(plan: &Plan) -> serde_json::Value {
    let mut json = serde_json::to_value(plan).unwrap_or_default();
    let mut hide = |place: &str, names: &[String]| {
        if let Some(value) = json.pointer_mut(place) {
            redact::fields_named(value, names, &mark);
        }
    };
    hide("/request/extra-body", &[]);
    hide("/backend/config", &plan.backend.secret_keys);
    hide("/dataset/config", &plan.dataset.plugin.secret_keys);
    for (number, scorer) in plan.scorers.iter().enumerate() {
        hide(&format!("/scorers/{number}/config"), &scorer.secret_keys);
    }
    json
}

/// A command line without the secrets in the configurations of a plan's plugins.
pub(super) fn without_configs(plan: &Plan, words: &[String]) -> Vec<String> {
    let plugins = [&plan.backend, &plan.dataset.plugin].into_iter().chain(&plan.scorers);
    let known = Known::new(plugins.flat_map(PlannedPlugin::secrets));
    words.iter().map(|word| known.redact(word)).collect()
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
