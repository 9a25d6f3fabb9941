//! Two runs of ours: their plans key by key, and their requests one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CompatibilityCheck, Kind};
use crate::prompts::same;
use crate::side::Measured;
use model::duration;
use scenario::Fate::{self, May, Must, Silent};
use scenario::plan::{Plan, flat};

/// The keys of a plan by their prefix; the longest match counts. Each scenario key declares the
/// treatment of the values that it decides. These are the plan's other keys: of plugins beside
/// their configuration, of the random dataset, and keys that no scenario has.
fn fates() -> impl Iterator<Item = (&'static str, Fate)> {
    let own = [
        ("backend.plugin", Silent),
        ("dataset.plugin", Silent),
        ("dataset.config.input-len", Must(Kind::Lengths)),
        ("dataset.config.output-len", Must(Kind::Lengths)),
        ("dataset.config.range-ratio", Must(Kind::Lengths)),
        ("slice", Must(Kind::Count)),
        // Whether there is one matters, and is a key of its own.
        ("load.salt", Silent),
        // Its digest identifies it, whoever named it.
        ("tokenizer.found", Silent),
        ("tokenizer.revision", Silent),
    ];
    let declared = scenario::keys().iter().filter_map(|key| key.plan);
    declared.chain(own)
}

fn fate(key: &str) -> Fate {
    // A file's digest identifies it, wherever the file lies.
    if key.ends_with(".path") || key.ends_with(".bytes") {
        return Silent;
    }
    let of = |prefix: &str| {
        let rest = key.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let longest = fates().filter(|(prefix, _)| of(prefix)).max_by_key(|(prefix, _)| prefix.len());
    longest.map_or(May, |(_, fate)| fate)
}

/// Finds settings that must agree between two runs but do not.
pub(super) fn obstacles(a: &Measured, b: &Measured, found: &mut CompatibilityCheck<'_>) {
    for (key, a, b) in unlike(&a.reported.plan, &b.reported.plan) {
        if let Must(kind) = fate(&key) {
            found.obstacle(kind, &key, a, b);
        }
    }
    requests(a, b, found);
}

/// Finds settings that differ between two runs on purpose.
pub(super) fn differences(a: &Measured, b: &Measured, found: &mut CompatibilityCheck<'_>) {
    let (a, b) = (&a.reported, &b.reported);
    found.about(&a.plan.about, &b.plan.about);
    for (key, a, b) in unlike(&a.plan, &b.plan) {
        if fate(&key) == May {
            found.may(&key, a, b);
        }
    }
    if let [Some(a), Some(b)] = [a, b].map(|reported| reported.environment.as_ref()) {
        let machine = Kind::Machine;
        found.on_purpose(machine, "client's processor", a.cpu.clone(), b.cpu.clone());
        let [ours, theirs] = [a, b].map(|own| own.cores.map(|cores| cores.to_string()));
        found.on_purpose(machine, "client's cores", ours, theirs);
        found.may("client's kernel", a.kernel.clone(), b.kernel.clone());
    }
}

fn requests(a: &Measured, b: &Measured, found: &mut CompatibilityCheck<'_>) {
    let on_the_wire = same(&a.prompts.requests, &b.prompts.requests);
    if on_the_wire.is_all() {
        return;
    }
    // Another dialect, model, option or salt makes other bytes of the same sample; the dataset's
    // description tells whether samples differ. Where all agree, the bytes must too.
    let is_explained = |key: &str| {
        let parts = ["backend", "target.model", "request", "load.salt"];
        // Ids are in no body.
        !key.starts_with("request.ids") && parts.iter().any(|part| key.starts_with(part))
    };
    let mut unlike = unlike(&a.reported.plan, &b.reported.plan).into_iter();
    let explained = unlike.any(|(key, ..)| is_explained(&key));
    let compared =
        if explained { same(&a.prompts.samples, &b.prompts.samples) } else { on_the_wire };
    if !compared.is_all() {
        let (differ, first) = (compared.different, compared.first.unwrap_or_default());
        let common = compared.common;
        let what = format!("requests ({differ} of {common} differ, the first is number {first})");
        let count = |run: &Measured| Some(format!("{} requests", run.prompts.count()));
        found.obstacle(Kind::Prompts, &what, count(a), count(b));
    }
}

/// A key, and its value in each of two plans.
type Unlike = (String, Option<String>, Option<String>);

/// The keys whose values differ between two plans.
fn unlike(a: &Plan, b: &Plan) -> Vec<Unlike> {
    let [a, b] = [a, b].map(leaves);
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let unlike = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    unlike.map(|key| (key.clone(), a.get(key).cloned(), b.get(key).cloned())).collect()
}

/// A plan's leaves by their dotted keys.
fn leaves(plan: &Plan) -> BTreeMap<String, String> {
    // A plan was read from JSON, and goes back into it.
    let mut leaves = flat(&serde_json::to_value(plan).unwrap_or_default());
    for (key, value) in &mut leaves {
        if let Some(nanos) = value.parse().ok().filter(|_| is_time(key)) {
            *value = duration::format(Duration::from_nanos(nanos));
        }
    }
    leaves
}

/// True if a key's number is nanoseconds.
fn is_time(key: &str) -> bool {
    key.starts_with("timeouts.") || key == "load.amount.duration"
}
