//! Rows of dashboards: a row for each load of a configuration. InferenceX's are by
//! `utils/process_result.py`, `utils/agentic/aggregation` and its API; vLLM's perf-eval's are by
//! `lib/ingest_perf.py`. Times are in seconds, and throughput is per device.
//!
//! Throughput of the whole engine needs the number of devices. Sizes of parallel groups are not
//! that number, so a row without it keeps no throughput. `*_intvty` is 1/TPOT, and is left out.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Source, Tool, definitions};

/// Seconds, the rows' unit of time, in milliseconds.
const MS: f64 = 1e3;

/// Latencies, as their keys end (`p99_ttft`) and as agentic rows name them.
const LATENCIES: [(&str, &str); 4] =
    [("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl"), ("e2el", "e2e")];

/// Throughput of the whole engine: by its key, by its key in agentic rows, by the key per device.
const THROUGHPUTS: [(&str, &str, &str, &str); 3] = [
    ("total_tput_tps", "total", "tput_per_gpu", "throughput.total-tokens-per-s"),
    ("output_tput_tps", "output", "output_tput_per_gpu", "throughput.output-tokens-per-s"),
    ("input_tput_tps", "input", "input_tput_per_gpu", "throughput.input-tokens-per-s"),
];

/// Keys of the configuration: without them, points of several ones would be one series.
const CONFIGURATION: [&str; 9] = [
    "precision",
    "spec_decoding",
    "spec_method",
    "disagg",
    "is_multinode",
    "kv_offloading",
    "offload_mode",
    "prefill_hw",
    "decode_hw",
];

/// Keys of the configuration that each role may have.
const SIZES: [&str; 7] = ["num_workers", "tp", "pp", "dcp_size", "pcp_size", "ep", "dp_attention"];

/// The beginnings of those keys.
const ROLES: [&str; 3] = ["", "prefill_", "decode_"];

/// Values that other versions of the tools leave out.
const DEFAULTS: [&str; 6] = ["", "false", "none", "off", "0", "1"];

/// Tags of images that name another version by the day.
const MOVING: [&str; 2] = ["latest", "nightly"];

/// Finds the tool that wrote a row; nothing if it is no such row.
pub(super) fn tool(object: &Object) -> Option<Tool> {
    let is_row = ["conc", "framework", "precision"].iter().all(|key| object.contains_key(*key))
        && (figures(object).contains_key("tput_per_gpu") || object.contains_key("request_metrics"));
    let tool = if object.contains_key("device") { Tool::PerfEval } else { Tool::Inferencex };
    is_row.then_some(tool)
}

/// The flat figures, which rows of the API have under a separate key.
fn figures(object: &Object) -> &Object {
    object.get("metrics").and_then(Value::as_object).unwrap_or(object)
}

pub(super) fn read(object: &Object, tool: Tool, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(tool, source);
    let kind = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = kind("scenario_type").or(kind("benchmark_type"));
    let agentic = kind.filter(|kind| kind.starts_with("agentic"));
    settings(&mut claim, object, agentic, &mut lookup);
    if agentic.is_some() {
        // AIPerf measures these rows, and its TPOT is their ITL too.
        claim.definitions = definitions(Tool::Aiperf);
        claim.definitions.remove("itl");
        claim.paced = true;
    }
    let mut latencies = LATENCIES.to_vec();
    latencies.retain(|(_, metric)| claim.definitions.contains_key(*metric));
    let flat = figures(object);
    for key in flat.keys() {
        let parts = key.rsplit_once('_').and_then(|(statistic, theirs)| {
            let (_, metric) = latencies.iter().find(|(name, _)| *name == theirs)?;
            Some((super::statistic(statistic)?, metric))
        });
        if let Some((statistic, metric)) = parts {
            lookup.state(&mut claim, (flat, key), format!("{metric}.{statistic}"), MS);
        }
    }
    lookup.inner(object, "request_metrics", |lookup, metrics| {
        lookup.inner(metrics, "latency", |lookup, all| {
            for (theirs, metric) in &latencies {
                lookup.inner(all, theirs, |lookup, latency| {
                    lookup.statistics(&mut claim, latency, metric, MS);
                });
            }
        });
        lookup.inner(metrics, "throughput", |lookup, all| {
            lookup.state(&mut claim, (all, "duration_seconds"), "throughput.duration-s", 1.0);
            for (_, theirs, _, name) in THROUGHPUTS {
                lookup.inner(all, theirs, |lookup, rate| {
                    lookup.state(&mut claim, (rate, "tokens_per_second"), name, 1.0);
                });
            }
        });
    });
    requests(&mut claim, object, &mut lookup);
    throughput(&mut claim, object, &mut lookup);
    lookup.finish(claim)
}

fn settings(claim: &mut Claim, object: &Object, agentic: Option<&str>, lookup: &mut Lookup) {
    let mut text = |key: &str| lookup.text(object, key).filter(|text| !text.is_empty());
    let model = text("model").or(text("infmax_model_prefix"));
    claim.model = model.map(str::to_owned);
    claim.about.engine = text("framework").map(str::to_owned);
    let hardware = text("hw").or(text("hardware")).or(text("device"));
    claim.about.hardware = hardware.map(str::to_owned);
    if let Some(image) = text("image") {
        let name = image.rsplit('/').next().unwrap_or(image);
        let tag = name.split_once(':').map(|(_, tag)| tag.to_owned());
        claim.about.engine_version = tag.filter(|tag| !MOVING.contains(&tag.as_str()));
        claim.about.notes.insert("image".into(), image.into());
    }
    let expected = "a date in UTC, such as `2026-04-17` or `2026-04-17 06:30:00`";
    let mut date = |key: &str| lookup.value(object, key, expected, |date| instant(date.as_str()?));
    claim.date = date("run_started_at").or(date("date"));
    let lengths = lookup.count(object, "isl").zip(lookup.count(object, "osl"));
    let mut parts: Vec<String> = (lengths.iter())
        .map(|(input, output)| format!("{input}/{output}"))
        .chain(agentic.map(str::to_owned))
        .collect();
    let cap = lookup.count(object, "conc");
    if agentic.is_some() {
        // Each lane has a session, whose sub-agents send requests of their own.
        parts.extend(cap.map(|lanes| format!("{lanes} lanes")));
    } else {
        claim.asked.max_concurrency = cap;
    }
    let sizes = ROLES.iter().flat_map(|role| SIZES.map(|size| format!("{role}{size}")));
    for key in CONFIGURATION.map(str::to_owned).into_iter().chain(sizes) {
        let expected = "text, a number, or true or false";
        let value = lookup.value(object, &key, expected, |value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        });
        let Some(value) = value else { continue };
        if !DEFAULTS.contains(&value.as_str()) {
            parts.push(if value == "true" { key.clone() } else { format!("{key} {value}") });
        }
        claim.about.notes.insert(key, value);
    }
    claim.scenario = Some(parts.join(", "));
}

/// The instant of a date in UTC, with a time or without.
fn instant(text: &str) -> Option<String> {
    let instant = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let date = text.parse::<jiff::civil::DateTime>().ok()?;
        Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    });
    instant.map(|instant| instant.to_string())
}

/// The requests of an agentic row. Its totals include requests of the warm-up.
fn requests(claim: &mut Claim, object: &Object, lookup: &mut Lookup) {
    lookup.inner(object, "request_accounting", |lookup, counts| {
        lookup.state_count(claim, (counts, "records_profiled"), "requests.successful");
        let dropped = lookup.count(counts, "records_dropped_total");
        let warmup = lookup.count(counts, "records_warmup_dropped");
        if let Some((dropped, warmup)) = dropped.zip(warmup) {
            claim.state("requests.failed", dropped.saturating_sub(warmup) as f64, 0.0);
        }
    });
}

/// States the throughput of the whole engine: as stated, or per device times devices. The sum over
/// roles has to be the total, because some rows count a device once for each of its roles.
fn throughput(claim: &mut Claim, object: &Object, lookup: &mut Lookup) {
    let flat = figures(object);
    for (key, _, _, name) in THROUGHPUTS {
        lookup.state(claim, (flat, key), name, 1.0);
    }
    let rates = THROUGHPUTS.map(|(_, _, key, _)| lookup.number(flat, key));
    if claim.value("throughput.total-tokens-per-s").is_some() {
        return;
    }
    let fits = |devices: &[f64; 3]| {
        let whole = [0, 1, 2].map(|i| Some(rates[i]?.value * devices[i]));
        let [Some(total), Some(output), Some(input)] = whole else {
            return devices[0] == devices[1];
        };
        (output + input - total).abs() <= 0.01 * total
    };
    let Some(devices) = devices(object, lookup).filter(fits) else {
        if rates.iter().any(Option::is_some) {
            let words =
                "left out: it is per device, and the row states no number of devices that fits";
            claim.about.notes.insert("throughput".into(), words.into());
        }
        return;
    };
    for ((rate, devices), (_, _, _, name)) in rates.into_iter().zip(devices).zip(THROUGHPUTS) {
        // perf-eval writes zero for throughput that its client did not state.
        if let Some(rate) = rate.filter(|rate| rate.value > 0.0) {
            claim.state(name, rate.value * devices, rate.rounding * devices);
        }
    }
}

/// The devices over which a row divides its total, output and input throughput: each role's own
/// where prefill and decoding have devices of their own.
fn devices(object: &Object, lookup: &mut Lookup) -> Option<[f64; 3]> {
    let mut count = |key: &str| lookup.count(object, key).map(|count| count as f64);
    let all = count("num_gpus").filter(|all| *all > 0.0);
    let roles = count("num_prefill_gpu").zip(count("num_decode_gpu"));
    match (roles.filter(|(prefill, _)| *prefill > 0.0), all) {
        (Some((prefill, decode)), _) if decode > 0.0 => Some([prefill + decode, decode, prefill]),
        (_, Some(all)) => Some([all; 3]),
        (Some((prefill, _)), None) => Some([prefill; 3]),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::read as read_file;

    /// The first row of the case is a file of InferenceX at `bf03096`. Its and perf-eval's scripts
    /// wrote the others, at `843c625` and `bbd3fc7`, of results in InferenceX (`24b02df`) and in
    /// vLLM's perf-dashboard (`5533cde`), and of an export of AIPerf.
    const ROWS: [&str; 3] = [
        include_str!("../../../../../tests/audit/inferencex/input.json"),
        include_str!("../../../../../tests/audit/inferencex-agentic/input.json"),
        include_str!("../../../../../tests/audit/perf-eval/input.json"),
    ];

    /// The tool, the scenario, the cap, and figures of a claim.
    type Wanted<'w> = (Tool, &'w str, Option<u64>, &'w [(&'w str, Option<f64>)]);

    #[test]
    fn rows_keep_their_figures_in_our_units() {
        let read = |text: &str| read_file("rows.json", text.as_bytes()).unwrap().claims;
        let claims: Vec<Claim> = ROWS.iter().flat_map(|text| read(text)).collect();
        let wanted: [Wanted<'_>; 4] = [
            (
                Tool::Inferencex,
                "8192/1024, precision int4, spec_decoding mtp, tp 8",
                Some(64),
                &[
                    ("ttft.median", Some(2347.470808425)),
                    ("e2e.p99", Some(326_369.237_36)),
                    ("throughput.output-tokens-per-s", None),
                ],
            ),
            (
                Tool::Inferencex,
                "1024/1024, precision fp4, disagg, is_multinode, prefill_tp 8, decode_tp 8",
                Some(128),
                &[
                    ("tpot.mean", Some(14.871257350025)),
                    ("throughput.total-tokens-per-s", Some(16_736.560_504_3)),
                    ("throughput.output-tokens-per-s", Some(8368.280252140)),
                    ("throughput.input-tokens-per-s", Some(8368.280252140)),
                ],
            ),
            (
                Tool::Inferencex,
                "agentic-coding, 3 lanes, precision fp8, tp 4",
                None,
                &[
                    ("requests.successful", Some(8.0)),
                    ("requests.failed", Some(1.0)),
                    ("ttft.p90", Some(55.9)),
                    ("tpot.mean", Some(12.7)),
                    ("itl.mean", None),
                    ("throughput.output-tokens-per-s", Some(9.02935)),
                ],
            ),
            (
                Tool::PerfEval,
                "1024/1024, precision fp4, tp 8",
                Some(64),
                &[("itl.p99", Some(8.592544899898)), ("throughput.total-tokens-per-s", None)],
            ),
        ];
        assert_eq!(claims.len(), wanted.len());
        for (claim, (tool, scenario, cap, figures)) in claims.iter().zip(wanted) {
            assert_eq!((claim.tool, claim.scenario.as_deref()), (tool, Some(scenario)));
            assert_eq!(claim.asked.max_concurrency, cap, "{scenario}");
            for (name, value) in figures {
                let found = claim.value(name);
                let is_near = match (found, value) {
                    (Some(found), Some(value)) => (found - value).abs() <= 1e-9 * value,
                    (found, value) => found == *value,
                };
                assert!(is_near, "{name} of {scenario}: {found:?}");
            }
            let whole = claim.figures.contains_key("throughput.output-tokens-per-s");
            assert_eq!(claim.about.notes.contains_key("throughput"), !whole, "{scenario}");
        }
        let about = &claims[0].about;
        let stated = [&about.engine, &about.engine_version, &about.hardware, &claims[0].model];
        let wanted = ["vllm", "v0.21.0", "mi355x", "moonshotai/Kimi-K2.5"];
        assert_eq!(stated.map(|text| text.as_deref().unwrap()), wanted);
        assert_eq!(claims[3].date.as_deref(), Some("2026-02-10T00:24:44Z"));
    }

    #[test]
    fn throughput_is_of_the_engine_only_if_the_devices_are_known() {
        for (devices, rates, wanted) in [
            (r#""num_gpus": 8"#, [30, 20, 10], Some([240.0, 160.0, 80.0])),
            (
                r#""num_prefill_gpu": 2, "num_decode_gpu": 4"#,
                [30, 40, 10],
                Some([180.0, 160.0, 20.0]),
            ),
            (
                r#""num_prefill_gpu": 8, "num_decode_gpu": 0"#,
                [30, 20, 10],
                Some([240.0, 160.0, 80.0]),
            ),
            // The API's row of one node has each device twice.
            (r#""num_prefill_gpu": 8, "num_decode_gpu": 8"#, [30, 20, 10], None),
            (r#""tp": 8, "ep": 8"#, [30, 20, 10], None),
        ] {
            let [total, output, input] = rates;
            let row = format!(
                r#"{{"hardware": "h200", "framework": "vllm", "precision": "fp8", "conc": 4,
                    "date": "2026-03-01", "spec_method": "none", {devices}, "metrics": {{
                    "tput_per_gpu": {total}, "output_tput_per_gpu": {output},
                    "input_tput_per_gpu": {input}, "p99_ttft": 0.35}}}}"#
            );
            let claims = read_file("rows.json", row.as_bytes()).unwrap().claims;
            let names = THROUGHPUTS.map(|(_, _, _, name)| claims[0].value(name));
            assert_eq!(names, wanted.map_or([None; 3], |rates| rates.map(Some)), "{devices}");
            assert_eq!(claims[0].value("ttft.p99"), Some(350.0));
            assert_eq!(claims[0].date.as_deref(), Some("2026-03-01T00:00:00Z"));
        }
    }
}
