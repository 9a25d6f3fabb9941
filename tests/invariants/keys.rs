//! Each key of a scenario changes the plan where its declaration says, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use scenario::{Key, Scenario, keys};
use serde_json::Value;
use session::{Source, Variables, resolve};

/// A run that says little.
const PLAIN: [&str; 6] = [
    // Without it, a run is called after its dataset and its load.
    "name=plain",
    "target.base-url=http://127.0.0.1:1",
    "target.model=m",
    "backend.plugin=backends/vllm.wasm",
    "dataset.plugin=datasets/random.wasm",
    "load.requests=10",
];

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
/// Returns the settings that a key needs beside it, and its value if its type does not do.
fn beside(key: &Key, times: &str) -> (Vec<String>, Option<String>) {
    let poisson = ["load.arrival=poisson", "load.rate=2"];
    let ramp = ["load.arrival=poisson", "load.ramp.from=1", "load.ramp.to=2", "load.ramp.over=9s"];
    let closed = ["load.arrival=closed", "load.concurrency=3", "load.think-time=1s"];
    let cancelled = ["request.cancel-share=0.1", "request.cancel-after=1s"];
    let watched = ["run.device-metrics=nvml", "run.device-interval=5s"];
    let trace = format!("load.trace.file={times}");
    let exact = "scorers=[{plugin='scorers/exact-match.wasm'}]";
    let scorer = "scorers=[{plugin='scorers/exact-match.wasm', config={strip=false}}]";
    let stages = "load.stages=[{from=1, to=2, shape='exponential', for='9s'}]";
    let (with, value): (&[&str], Option<String>) = match key.path.as_str() {
        "target.base-url" => (&[], Some("http://127.0.0.1:2".into())),
        // Without it, the pages are read every second.
        "target.metrics-url" => (&["report.server-series=1s"], Some("http://127.0.0.1:3".into())),
        "target.api-key-env" => (&[], Some("PATH".into())),
        "target.headers.NAME" => (&[], Some("target.headers.x=7".into())),
        "about.notes.NAME" => (&[], Some("about.notes.x=7".into())),
        "backend.plugin" => (&[], Some("backends/openai.wasm".into())),
        "backend.config" => (&[], Some("backend.config.route=chat".into())),
        "dataset.plugin" => (&[], Some("datasets/sharegpt.wasm".into())),
        "dataset.config" => (&[], Some("dataset.config.input-len=7".into())),
        "dataset.files.NAME" => (&[], Some(format!("dataset.files.data={FILE}"))),
        "request.extra-body" => (&[], Some("request.extra-body.a=1".into())),
        "request.adapter-assignment" => (&["request.adapters=a"], None),
        "request.cancel-share" | "request.cancel-after" => (&cancelled, None),
        "run.device-metrics" => (&watched, Some("http://127.0.0.1:1/metrics".into())),
        "run.device-interval" | "run.devices" => (&watched, None),
        "report.server-series" => (&[], Some("7s".into())),
        "cost.currency" => (&["cost.per-hour=2"], None),
        "goodput.METRIC" => (&[], Some("goodput.ttft=7".into())),
        "thresholds.FIGURE" => (&[], Some("thresholds.ttft.p99=<= 7ms".into())),
        "scorers[].plugin" => (&[], Some(exact.into())),
        "scorers[].config" => (&[exact], Some(scorer.into())),
        "load.arrival" | "load.duration" | "load.rate" | "load.normalise" => (&poisson, None),
        "load.sessions" => (&["load.sessions=3"], None),
        "load.burstiness" => (&["load.burstiness=0.9", "load.rate=2"], None),
        "load.warmup-limit" => (&["load.warming=until-stable"], None),
        "load.trace.file" => (&[], Some(times.into())),
        "load.trace.time-scale" => (&[&trace], None),
        "load.concurrency" | "load.think-time" | "load.think-spread" => (&closed, None),
        path if path.starts_with("load.ramp.") => (&ramp, None),
        path if path.starts_with("load.stages[].") => {
            let (from, to) = match path {
                "load.stages[].rate" => ("from=1, to=2, shape='exponential'", "rate=7"),
                "load.stages[].from" => ("from=1", "from=7"),
                "load.stages[].to" => ("to=2", "to=7"),
                "load.stages[].shape" => ("exponential", "linear"),
                _ => ("'9s'", "'7s'"),
            };
            return (vec![poisson[0].into(), stages.into()], Some(stages.replace(from, to)));
        }
        _ => (&[], None),
    };
    (with.iter().map(|text| (*text).to_owned()).collect(), value)
}

/// The plan of these assignments, leaf by leaf, or why they make none.
fn plan(assignments: &[String], over: &[String]) -> Result<BTreeMap<String, String>, String> {
    let assigned = |texts: &[String]| {
        let (scenario, problems) = Scenario::assigned(texts);
        if problems.is_empty() { Ok(scenario) } else { Err(format!("{problems:?}")) }
    };
    let source = Source {
        scenario: assigned(assignments)?.overlay(assigned(over)?),
        shipped: shipped::PLUGINS,
        variables: Variables::Process,
        ..Source::default()
    };
    let resolved = resolve(&source).map_err(|faults| format!("{faults:?}"))?;
    let mut leaves = BTreeMap::new();
    walk("", serde_json::to_value(resolved.draft).unwrap(), &mut leaves);
    Ok(leaves)
}

fn walk(path: &str, value: Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let below = format!("{path}.{name}");
                walk(below.trim_start_matches('.'), value, leaves);
            }
        }
        other => _ = leaves.insert(path.to_owned(), other.to_string()),
    }
}

#[test]
fn each_key_changes_the_plan_where_it_says() {
    let any = ["7", "0.5", "7s", "7MiB", "7000000", "700MiB", "true", "false", "[7]", "/dev/null"];
    let folder = tempfile::tempdir().unwrap();
    let times = folder.path().join("times.jsonl");
    std::fs::write(&times, "{\"timestamp\": 0}\n{\"timestamp\": 3000}\n").unwrap();
    for key in keys() {
        // Nothing in the repository is a tokenizer's file, and lanes need a load of their own.
        if key.path == "tokenizer.path" || key.path.starts_with("load.lanes.") {
            continue;
        }
        // One plan has no sides (`command_line/versus.rs`).
        if ["sides[]", "paired"].contains(&key.table()) {
            assert!(key.plan.is_none(), "{}", key.path);
            continue;
        }
        let (with, value) = beside(key, times.to_str().unwrap());
        let plain: Vec<String> = PLAIN
            .iter()
            // A run counts requests or sessions.
            .filter(|text| key.path != "load.sessions" || !text.starts_with("load.requests"))
            .map(|text| (*text).to_owned())
            .chain(with)
            .collect();
        let before =
            plan(&plain, &[]).unwrap_or_else(|faults| panic!("{plain:?} makes no plan: {faults}"));
        let words = key.words.iter().map(|(name, _)| *name);
        let candidates: Vec<String> = match value {
            Some(assignment) if assignment.contains('=') => vec![assignment],
            Some(value) => vec![format!("{}={value}", key.path)],
            None => words.chain(any).map(|text| format!("{}={text}", key.path)).collect(),
        };
        let mut made =
            candidates.iter().filter_map(|over| plan(&plain, std::slice::from_ref(over)).ok());
        let Some((place, _)) = key.plan else {
            assert_eq!(made.next().as_ref(), Some(&before), "{}", key.path);
            continue;
        };
        let after = made.find(|after| *after != before);
        let after = after.unwrap_or_else(|| panic!("`{}` changes nothing", key.path));
        let leaves: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for leaf in leaves.into_iter().filter(|leaf| before.get(*leaf) != after.get(*leaf)) {
            let rest = leaf.strip_prefix(place);
            let below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            // The number of warm-up requests follows from the way to warm up, and the reading of
            // series from the reading of metrics. Not every backend tells an engine to go on.
            let follows = match key.path.as_str() {
                "load.warming" => leaf.as_str() == "load.warmup",
                "backend.plugin" => ["request.ignore-eos", "request.unforced"].contains(&&**leaf),
                "report.server-metrics" => leaf.starts_with("control.server-series"),
                _ => false,
            };
            assert!(below || follows, "`{}` changes `{leaf}`, which is not in `{place}`", key.path);
        }
    }
}
