//! The plan as the processes of a fleet compare it: a digest, and its parts for messages.
//!
//! Both hold the digests of plugins, of the dataset's files and of the tokenizer, and no paths.

use std::collections::BTreeMap;

use model::hex;
use runs::folder::without_secrets;
use scenario::plan::{Plan, flat};
use sha2::{Digest, Sha256};

/// The longest part of a plan to send to rank 0 unchanged, in bytes.
const LONGEST_PART: usize = 200;

/// The digest that the plans of all processes must have. Fails if one is no JSON, a bug.
pub(super) fn digest(plan: &Plan) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(&plan.shared())?;
    Ok(hex(&Sha256::digest(text)))
}

/// The parts of a plan by their names, as text and without secrets, for messages about differences.
pub(super) fn parts(plan: &Plan) -> BTreeMap<String, String> {
    let mut parts = flat(&without_secrets(&plan.shared()));
    // Long texts are compared and not shown.
    for part in parts.values_mut().filter(|part| part.len() > LONGEST_PART) {
        *part = format!("a text with the SHA-256 {}", hex(&Sha256::digest(&*part)));
    }
    parts
}
