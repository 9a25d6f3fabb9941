//! The conditions of runs: plan, machine, client, command line; and the differences between several
//! runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::charts::RunView;
use crate::document::{Pair, Table, pair, pairs};
use model::client::Thread;
use model::duration;
use model::number::{bytes, count, percent, plural, significant};
use result::summary::Summary;
use runs::Reported;
use scenario::plan::{Amount, Plan, flat};

/// Replaces a value that a page does not show.
const HIDDEN: &str = "[hidden, may be secret]";

/// The most files of a dataset that are shown: a folder may have thousands.
const MOST_FILES: usize = 20;

/// Describes the offered load, in few words.
pub(crate) fn load(plan: &Plan) -> String {
    let slots = plan.slots().map(|slots| format!(", at most {} in flight", count(slots as u64)));
    format!("{}{}", plan.load.arrival, slots.unwrap_or_default())
}

pub(super) fn settings(plan: &Plan) -> Vec<Pair> {
    let amount = match plan.load.amount {
        Amount::Requests(requests) => plural(requests, "request"),
        Amount::Sessions(sessions) => plural(sessions, "session"),
        Amount::Duration(span) => duration::format(span.into()),
    };
    let config = |config: &Value| match config {
        Value::Object(map) if map.is_empty() => String::new(),
        Value::Null => String::new(),
        config => format!(" {config}"),
    };
    let request = &plan.request;
    let given = |yes: bool, word: &str| yes.then(|| word.to_owned());
    let replies: Vec<String> = [
        Some(if request.stream { "streamed" } else { "whole replies" }.to_owned()),
        given(request.asks_to_go_on(), "ignoring the end of the text"),
        request.output_tokens.map(|n| plural(n.into(), "output token")),
        request.temperature.map(|t| format!("temperature {t}")),
        request.top_p.map(|p| format!("top-p {p}")),
        request.top_k.map(|k| format!("top-k {k}")),
        request.cancel.map(|cancel| {
            let (share, after) = (cancel.share * 100.0, duration::format(cancel.after.into()));
            format!("{share} % cancelled after {after}")
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let further = plan.dataset.files.len().saturating_sub(MOST_FILES);
    let files = plan.dataset.files.iter().take(MOST_FILES).map(|(name, file)| {
        let digest = file.digest.get(..16).unwrap_or(&file.digest);
        format!("{name}: {} ({}, sha256 {digest}…)", file.path.display(), bytes(file.bytes))
    });
    let mut files: Vec<String> = files.collect();
    if further > 0 {
        files.push(format!("and {further} more"));
    }
    pairs([
        ("Amount", Some(amount)),
        ("Load", Some(load(plan))),
        ("Warm-up", Some(plural(plan.load.warmup.into(), "request"))),
        ("Seed", Some(plan.load.seed.to_string())),
        (
            "Dataset",
            Some(format!("{}{}", plan.dataset.plugin.plugin, config(&plan.dataset.plugin.config))),
        ),
        ("Files", (!files.is_empty()).then(|| files.join("; "))),
        ("Backend", Some(format!("{}{}", plan.backend.plugin, config(&plan.backend.config)))),
        ("Target", Some(plan.target.base_urls.join(", "))),
        ("API key", (plan.target.api_key.variable()).map(|variable| format!("from {variable}"))),
        ("Tokenizer", Some(plan.tokenizer.summary().label())),
        ("Replies", Some(replies.join(", "))),
        (
            "Part of the plan",
            plan.slice.map(|slice| format!("{} of {}", slice.index + 1, slice.of)),
        ),
    ])
}

/// The environment of the run, and the duration of its start.
pub(super) fn environment(reported: &Reported) -> Vec<Pair> {
    let mut facts = vec![pair("Runner", &reported.plan.runner)];
    if let Some(environment) = &reported.environment {
        facts.extend(pairs([
            ("Plugin contract", Some(environment.contract.clone())),
            ("Platform", Some(environment.platform.clone())),
            ("Processor", environment.cpu.clone()),
            ("Cores", environment.cores.map(|cores| count(cores as u64))),
            ("Memory", environment.memory_bytes.map(bytes)),
            ("Kernel", environment.kernel.clone()),
            ("File descriptors", environment.descriptors.map(count)),
        ]));
    }
    let timings = reported.status.as_ref().map(|status| &status.timings);
    let first = timings.and_then(|timings| timings.first_sent_ms);
    facts.extend(pairs([(
        "First request sent after",
        first.map(|ms| format!("{} ms", significant(ms, 3))),
    )]));
    facts
}

/// Describes the performance of this client during the measurement.
pub(super) fn client(summary: &Summary) -> Vec<Pair> {
    let Some(client) = &summary.client else { return Vec::new() };
    let share = |thread: &Thread| {
        let most = thread.cpu_most.map(|most| format!(", at most {} in a second", percent(most)));
        format!("{}{}", percent(thread.cpu), most.unwrap_or_default())
    };
    let busiest = |role| client.busiest(role).map(|(_, thread)| share(thread));
    let with = |value: Option<f64>, unit: &str| {
        value.map(|value| format!("{} {unit}", significant(value, 3)))
    };
    let machine = client.machine;
    pairs([
        ("Busiest reader, of a core", busiest("read")),
        ("Pacer, of a core", busiest("pace")),
        ("Busiest decoder, of a core", busiest("decode")),
        ("Recorder, of a core", busiest("record")),
        ("Largest decode backlog, in replies", Some(count(client.decode_backlog))),
        ("Largest decode delay", with(Some(client.decode_behind_ms), "ms")),
        ("Longest pause", with(Some(client.longest_pause_ms), "ms")),
        ("Throttled by a CPU quota", with(client.throttled_s, "s")),
        ("Largest step of the clock", with(client.clock_step_ms, "ms")),
        ("Machine busy", machine.map(|machine| percent(machine.busy))),
        ("Stolen by a hypervisor", with(machine.map(|machine| machine.stolen_s), "s")),
    ])
}

/// The plan as JSON, without anything that may be secret.
pub(super) fn whole(plan: &Plan) -> String {
    serde_json::to_string_pretty(&redacted(plan)).unwrap_or_default()
}

/// Bodies may carry keys of a proxy or a tenant, so the values of their fields are hidden.
fn redacted(plan: &Plan) -> Value {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    if let Some(body) = value.pointer_mut("/request/extra-body") {
        match body {
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| *value = Value::String(HIDDEN.to_owned()));
            }
            other => *other = Value::String(HIDDEN.to_owned()),
        }
    }
    value
}

/// The settings that not all runs have alike, by their place in the plan.
pub(super) fn differences(runs: &[RunView]) -> Table {
    let plans: Vec<BTreeMap<String, String>> =
        runs.iter().map(|run| flat(&redacted(&run.reported.plan))).collect();
    let names: BTreeSet<&String> = plans.iter().flat_map(BTreeMap::keys).collect();
    let labels = runs.iter().map(|run| run.label.as_str());
    let mut table = Table::new(["Setting"].into_iter().chain(labels));
    for name in names {
        let values = plans.iter().map(|plan| plan.get(name));
        if values.clone().any(|value| value != plans[0].get(name)) {
            let values = values.map(|value| value.cloned().unwrap_or_default());
            table.row(std::iter::once(name.clone()).chain(values));
        }
    }
    table
}
