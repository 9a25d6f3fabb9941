//! The row of InferenceX's agentic results, as its `utils/agentic/aggregation` makes it of AIPerf's
//! export, at `843c625`, and its power fields (`utils/aggregate_power.py`, schema 2).
//!
//! This module owns the row's fields. It leaves requests' metrics to
//! [`aiperf`](super::aiperf). The engine's build is not in our records, so an author states it by
//! the row's own names: `[about.notes]`, `--metadata hw=h200`. Absent numbers are left out or null,
//! as in that tool. `full_response_*` is empty: AIPerf 0.13 has no such metric.

use model::units::Nanos;
use serde_json::{Map, Value, json};
use series::Name;
use statistics::{Figures, Ranked};

use super::aiperf::Export;

/// Decimal places of every number in the row.
const PLACES: f64 = 1e5;

const SECOND: u64 = 1_000_000_000;

/// The most windows of a second whose requests are counted: eleven days.
const WINDOWS: usize = 1_000_000;

/// Metrics of the export are in milliseconds, the row's times in seconds.
const PER_MS: f64 = 1e-3;

/// The type of a stated field.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Whole,
    Flag,
    Object,
}

/// The fields that an author states, for every row: name, type, and value if not stated.
const STATED: [(&str, Form, &str); 17] = [
    ("hw", Form::Text, ""),
    ("image", Form::Text, ""),
    ("recipe_fingerprint", Form::Text, ""),
    ("infmax_model_prefix", Form::Text, ""),
    ("framework", Form::Text, ""),
    ("precision", Form::Text, ""),
    ("spec_decoding", Form::Text, "none"),
    ("disagg", Form::Flag, "false"),
    ("is_multinode", Form::Flag, "false"),
    ("tp", Form::Whole, "1"),
    ("ep", Form::Whole, "1"),
    ("dp_attention", Form::Text, "false"),
    ("kv_offloading", Form::Text, "none"),
    ("kv_offload_backend", Form::Object, "null"),
    ("allocated_cpu_dram_gb", Form::Whole, "0"),
    ("router", Form::Object, ""),
    ("kv_p2p_transfer", Form::Text, ""),
];

/// The fields of one node.
const ONE_NODE: [(&str, Form, &str); 3] =
    [("pp", Form::Whole, "1"), ("dcp_size", Form::Whole, "1"), ("pcp_size", Form::Whole, "1")];

/// The same of several nodes, for `prefill_` and `decode_`.
const ROLE: [(&str, Form, &str); 7] = [
    ("num_workers", Form::Whole, "0"),
    ("tp", Form::Whole, "0"),
    ("pp", Form::Whole, "1"),
    ("dcp_size", Form::Whole, "1"),
    ("pcp_size", Form::Whole, "1"),
    ("ep", Form::Whole, "0"),
    ("dp_attention", Form::Text, "false"),
];

/// Fields without which a row cannot be placed.
const NEEDED: [&str; 4] = ["hw", "framework", "precision", "image"];

/// A row with its gaps.
pub struct Row {
    pub json: String,
    /// Fields that place the row, and that the run does not state.
    pub unstated: Vec<&'static str>,
}

/// The row of a run. Errors: stated fields of another type, each by name.
pub fn row(export: &Export<'_>) -> Result<Row, Vec<String>> {
    let plan = &export.reported.plan;
    let mut row = Map::new();
    let mut errors = Vec::new();
    for (name, form, default) in STATED {
        let note = plan.about.notes.get(name).map(String::as_str);
        let known = match name {
            "hw" => plan.about.hardware.as_deref(),
            "framework" => plan.about.engine.as_deref(),
            _ => None,
        };
        stated(&mut row, &mut errors, name, note.or(known).unwrap_or(default), form);
    }
    let note = |name: &str| plan.about.notes.get(name).map(String::as_str);
    let devices = if row.get("is_multinode") == Some(&Value::Bool(true)) {
        nodes(&mut row, &mut errors, note)
    } else {
        for (name, form, default) in ONE_NODE {
            stated(&mut row, &mut errors, name, note(name).unwrap_or(default), form);
        }
        ["tp", "pp", "pcp_size"].iter().map(|size| whole(&row, size)).product()
    };
    if !errors.is_empty() {
        return Err(errors);
    }
    let answered = export.ends.len() as u64;
    let total = answered + export.failed() + export.unmeasured;
    let categories = export.failures.iter().fold(Map::new(), |mut all, ((_, class), (n, _))| {
        let before = all.get(*class).and_then(Value::as_u64).unwrap_or(0);
        all.insert((*class).to_owned(), (before + n).into());
        all
    });
    let isl = export.sum("input_sequence_length");
    let osl = export.sum("output_sequence_length");
    for (name, value) in [
        ("conc", json!(plan.load.slots())),
        ("model", plan.target.model().into()),
        ("scenario_type", "agentic-coding".into()),
        ("num_requests_total", total.into()),
        ("num_requests_successful", answered.into()),
        (
            "request_accounting",
            json!({
                "records_total": total,
                "records_profiled": answered,
                "records_dropped_total": total - answered,
                "records_warmup_dropped": export.unmeasured,
                "records_error_dropped": export.failed(),
                "error_categories": categories,
            }),
        ),
        ("request_metrics", metrics(export, devices, isl, osl)),
        ("server_metrics", server(export, isl, osl)),
        ("kv_cache_pool_tokens", Value::Null),
    ] {
        row.insert(name.to_owned(), value);
    }
    row.extend(power(export, isl, osl));
    let unstated = NEEDED.into_iter().filter(|name| row[*name] == "").collect();
    let mut row = Value::Object(row);
    round(&mut row);
    let json = serde_json::to_string_pretty(&row).expect("a map with names as keys is JSON");
    Ok(Row { json: json + "\n", unstated })
}

fn stated(
    row: &mut Map<String, Value>,
    errors: &mut Vec<String>,
    name: &str,
    text: &str,
    form: Form,
) {
    if text.is_empty() && matches!(name, "router" | "kv_p2p_transfer") {
        return;
    }
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let (value, expected) = match form {
        Form::Text => (Some(text.into()), "text"),
        Form::Whole => (parsed.filter(Value::is_u64), "a whole number"),
        Form::Flag => (parsed.filter(Value::is_boolean), "true or false"),
        Form::Object => (
            parsed.filter(|value| value.is_object() || value.is_null()),
            "an object such as {\"name\": \"lmcache\"}",
        ),
    };
    match value {
        Some(value) => _ = row.insert(name.to_owned(), value),
        None => {
            errors.push(format!("`{name}` is `{text}` in the run's notes: expected {expected}"))
        }
    }
}

fn whole(row: &Map<String, Value>, name: &str) -> u64 {
    row.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// Adds the fields of several nodes. Returns the number of devices.
fn nodes<'n>(
    row: &mut Map<String, Value>,
    errors: &mut Vec<String>,
    note: impl Fn(&str) -> Option<&'n str>,
) -> u64 {
    let devices = ["prefill", "decode"].map(|role| {
        for (name, form, default) in ROLE {
            let name = format!("{role}_{name}");
            stated(row, errors, &name, note(&name).unwrap_or(default), form);
        }
        let size = |name: &str| whole(row, &format!("{role}_{name}"));
        let count = size("num_workers") * size("tp") * size("pp") * size("pcp_size");
        row.insert(format!("num_{role}_gpu"), count.into());
        if let Some(hardware) = note(&format!("{role}_hw")) {
            row.insert(format!("{role}_hw"), hardware.into());
        }
        count
    });
    // Without decoding workers, the prefill workers decode.
    let decode = |name: &str| if devices[1] == 0 { 0 } else { whole(row, name) };
    let tp = whole(row, "prefill_tp") + decode("decode_tp");
    let ep = whole(row, "prefill_ep").max(decode("decode_ep"));
    let attention = ["prefill_dp_attention", "decode_dp_attention"];
    let attention = attention.iter().any(|name| row.get(*name) == Some(&"true".into()));
    row.insert("tp".to_owned(), tp.into());
    row.insert("ep".to_owned(), ep.into());
    row.insert("dp_attention".to_owned(), attention.to_string().into());
    devices.iter().sum()
}

fn metrics(export: &Export<'_>, devices: u64, isl: Option<f64>, osl: Option<f64>) -> Value {
    let time = |name: &str| scaled(export.of(name), PER_MS);
    let per_user = export.of("output_token_throughput_per_user");
    let itl = export.of("inter_token_latency");
    let tokens = |figures: Option<&Figures>| scaled(figures, 1.0);
    let span = export.seconds();
    let rate = |tokens: Option<f64>| Some(tokens? / span?);
    let (input, output) = (rate(isl), rate(osl));
    let total = input.zip(output).map(|(input, output)| input + output);
    let per_device = |rate: Option<f64>| rate.filter(|_| devices > 0).map(|r| r / devices as f64);
    json!({
        "qps": qps(&export.ends),
        "latency": {
            "ttft": time("time_to_first_token"),
            "e2el": time("request_latency"),
            "itl": time("inter_token_latency"),
            "tpot": time("inter_token_latency"),
            "intvty": speeds(itl, PER_MS, per_user),
            "e2e_norm_intvty":
                speeds(export.per_token_s.as_ref(), 1.0, export.of("e2e_output_token_throughput")),
            "full_response_itl": {},
            "full_response_intvty": {},
        },
        "tokens": {
            "input": tokens(export.of("input_sequence_length")),
            "output_actual": tokens(export.of("output_sequence_length")),
            "output_expected": tokens(export.requested.as_ref()),
        },
        "throughput": {
            "input": { "tokens_per_second": input },
            "output": { "tokens_per_second": output },
            "total": { "tokens_per_second": total },
            "duration_seconds": span,
            "per_gpu": {
                "total_tput_tps": per_device(total),
                "output_tput_tps": per_device(output),
                "input_tput_tps": per_device(input),
            },
        },
        "cache": { "theoretical_cache_hit_rate": theoretical(export) },
    })
}

/// The share of the prompts' tokens that a cache without limits would have found.
fn theoretical(export: &Export<'_>) -> Option<f64> {
    let cache = export.reported.summary.cache.as_ref().filter(|cache| cache.tokens > 0)?;
    Some(cache.reusable as f64 / cache.tokens as f64)
}

const PERCENTILES: [f64; 4] = [50.0, 75.0, 90.0, 95.0];

/// The statistics of samples, times `scale`; empty without samples.
fn scaled(figures: Option<&Figures>, scale: f64) -> Value {
    let Some(figures) = figures else { return json!({}) };
    let mut all = Map::new();
    all.insert("mean".to_owned(), json!(figures.mean() * scale));
    for percent in PERCENTILES {
        all.insert(format!("p{percent}"), json!(figures.percentile(percent) * scale));
    }
    all.insert("std".to_owned(), json!(figures.std() * scale));
    all.into()
}

/// The speeds of a user: each statistic of the time for a token, inverted, so that `p90` is of the
/// slow tail. The deviation is of the requests' own speeds.
fn speeds(times: Option<&Figures>, scale: f64, each: Option<&Figures>) -> Value {
    let Value::Object(times) = scaled(times, scale) else { return Value::Null };
    let inverted = times.into_iter().filter(|(name, _)| name != "std");
    let inverted = inverted.filter_map(|(name, time)| {
        let time = time.as_f64().filter(|time| *time > 0.0)?;
        Some((name, json!(1.0 / time)))
    });
    let mut all: Map<String, Value> = inverted.collect();
    if let Some(each) = each {
        all.insert("std".to_owned(), json!(each.std()));
    }
    all.into()
}

/// Ends of requests within each whole second since the first.
fn qps(ends: &[Nanos]) -> Value {
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return json!({}) };
    let span = last.since(*first).0;
    let seconds = (span / SECOND) as usize;
    if span == 0 || seconds > WINDOWS {
        return json!({});
    }
    let mut counts = vec![0.0; seconds];
    for end in ends {
        if let Some(count) = counts.get_mut((end.since(*first).0 / SECOND) as usize) {
            *count += 1.0;
        }
    }
    let figures = statistics::Sorted::new(counts).map(Figures::Samples);
    let mean = || json!({ "mean": ends.len() as f64 * SECOND as f64 / span as f64 });
    let mut all = figures.map_or_else(mean, |figures| scaled(Some(&figures), 1.0));
    all["window_seconds"] = json!(1.0);
    all["samples"] = seconds.into();
    all
}

/// The server's own figures, where its metrics page was sampled.
fn server(export: &Export<'_>, isl: Option<f64>, osl: Option<f64>) -> Value {
    let series = export.reported.summary.server_series.as_ref();
    let figure = |name: Name| series.and_then(|series| series.figures.get(&name));
    let hits = figure(Name::CacheHitRate).and_then(|figure| figure.mean);
    json!({
        "present": series.is_some(),
        "adapter": export.reported.plan.about.engine.as_deref().unwrap_or("none"),
        "metric_count": series.map_or(0, |series| series.figures.len()),
        "cache": { "gpu_cache_hit_rate": hits, "overall_cache_hit_rate": hits },
        "kv_cache": {
            "gpu_usage_pct": figure(Name::KvUsage).and_then(|figure| figure.max),
            "gpu_total_tokens": null,
        },
        "tokens": {
            "prompt_total": figure(Name::InputTokens).and_then(|figure| figure.total).or(isl),
            "generation_total": figure(Name::OutputTokens).and_then(|figure| figure.total).or(osl),
            "requests_completed": export.ends.len(),
        },
        "sources": [],
    })
}

/// The power of the devices over the measurement; only `power_valid` if it is not known.
fn power(export: &Export<'_>, isl: Option<f64>, osl: Option<f64>) -> Map<String, Value> {
    let devices = export.reported.summary.devices.as_ref();
    let of = devices.and_then(|devices| {
        let (energy, mean) = (devices.energy_j?, devices.mean_power_w?);
        let (answered, both) = (export.ends.len() as f64, isl? + osl?);
        Some(json!({
            "avg_power_w": mean / devices.each.len() as f64,
            "avg_total_gpu_power_w": mean,
            "total_gpu_energy_j": energy,
            "joules_per_successful_query": energy / answered,
            "joules_per_input_token": energy / isl?,
            "joules_per_output_token": energy / osl?,
            "joules_per_total_token": energy / both,
        }))
    });
    let valid = of.is_some();
    let mut all = match of {
        Some(Value::Object(all)) => all,
        _ => Map::new(),
    };
    if devices.is_some() {
        all.insert("power_metric_schema_version".to_owned(), 2.into());
        all.insert("power_valid".to_owned(), u8::from(valid).into());
    }
    all
}

/// Rounds every number, as the tool does: whole numbers above one lose their point.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|number| (number * PLACES).round() / PLACES);
            let Some(rounded) = rounded else { return };
            let is_whole = rounded.abs() >= 1.0 && rounded.fract() == 0.0;
            *value = if is_whole { json!(rounded as i64) } else { json!(rounded) };
        }
        Value::Array(all) => all.iter_mut().for_each(round),
        Value::Object(all) => all.values_mut().for_each(round),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    //! `cases/aiperf.jsonl` is our export of a few requests, and `cases/inferencex.json` the row
    //! that InferenceX's `process_agentic_result.py` made of that file, with `TP=4 PP_SIZE=2
    //! RUNNER_TYPE=h200 FRAMEWORK=vllm CONC=3 MODEL=tiny DISAGG=true`.

    use std::convert::Infallible;

    use model::arrival::Arrival;
    use model::exchange::{Class, Exchange, Kind, Phase, Turn, Usage};

    use super::*;
    use crate::compatible::aiperf::Lines;
    use crate::exchanges::{facts, failed, reply};
    use crate::fixture::reported;
    use crate::tests::golden;

    /// 2026-01-02 03:04:05 UTC.
    const ORIGIN: Option<u64> = Some(1_767_323_045_000_000_000);

    /// A warm-up, eight answers of unequal gaps over four seconds, one of one token, a failure.
    fn exchanges() -> Vec<Exchange> {
        let exchange = |index: u64| {
            let (sent, gap) = (1000 + 431 * index, 7 + index * 5 % 13);
            let first = sent + 40 + 3 * (index % 7);
            let tokens = if index == 5 { 1 } else { 2 + index % 6 };
            let mut events: Vec<_> = (0..tokens)
                .map(|nth| (first + nth * gap + nth % 2, Kind::Text, Some(1), 4))
                .collect();
            events.push((first + tokens * gap + 9, Kind::End, None, 0));
            let mut exchange = reply(index, sent, &events);
            exchange.usage = Some(Usage {
                input_tokens: Some(100 + 17 * index as u32),
                output_tokens: Some(tokens as u32),
                ..Usage::default()
            });
            exchange.sample.turn = Some(Turn { session: "a".into(), index: index as u32 });
            exchange
        };
        let mut all: Vec<Exchange> = (0..10).map(exchange).collect();
        all[0].phase = Phase::Warmup;
        all[9] = failed(all[9].clone(), Class::HttpStatus, "overloaded");
        all
    }

    fn with<T>(notes: &[(&str, &str)], look: impl FnOnce(&Export<'_>) -> T) -> T {
        let (facts, exchanges) = (facts(), exchanges());
        let mut reported = reported(&facts, &exchanges);
        reported.plan.target.model = "tiny".into();
        reported.plan.load.arrival = Arrival::Closed { concurrency: 3, think: None };
        let notes = notes.iter().map(|(name, note)| ((*name).to_owned(), (*note).to_owned()));
        reported.plan.about.notes = notes.collect();
        let all = exchanges.into_iter().map(Ok::<_, Infallible>);
        let Ok(export) = Export::read(&reported, &facts, ORIGIN, all);
        look(&export)
    }

    #[test]
    fn row_equals_the_tools_own() {
        let (facts, exchanges) = (facts(), exchanges());
        let reported = reported(&facts, &exchanges);
        let lines = Lines::new(&reported, &facts, ORIGIN);
        let text: String = exchanges.iter().filter_map(|it| Some(lines.line(it)? + "\n")).collect();
        golden("src/compatible/cases/aiperf.jsonl", &text);

        let theirs = serde_json::from_str(include_str!("cases/inferencex.json")).unwrap();
        let notes =
            [("hw", "h200"), ("framework", "vllm"), ("tp", "4"), ("pp", "2"), ("disagg", "true")];
        let ours = with(&notes, |export| row(export).unwrap());
        assert_eq!(ours.unstated, ["precision", "image"]);
        let ours: Value = serde_json::from_str(&ours.json).unwrap();
        let (mut compared, mut wrong) = (0, Vec::new());
        compare("", &theirs, &ours, &mut compared, &mut wrong);
        assert!(wrong.is_empty() && compared > 90, "{compared} {wrong:#?}");
    }

    /// Compares every value of theirs with ours. A server's figure that is null there may be left
    /// out; its warning is about its own missing file.
    fn compare(at: &str, theirs: &Value, ours: &Value, count: &mut u32, wrong: &mut Vec<String>) {
        match theirs {
            Value::Object(all) => {
                for (name, value) in all.iter().filter(|(name, _)| *name != "warnings") {
                    compare(&format!("{at}.{name}"), value, &ours[name], count, wrong);
                }
            }
            Value::Null => {}
            _ if theirs == ours => *count += 1,
            _ => wrong.push(format!("{at}: {theirs} is {ours} here")),
        }
    }

    #[test]
    fn rows_of_several_nodes_count_the_devices_of_both_roles() {
        let notes = [
            ("is_multinode", "true"),
            ("prefill_num_workers", "2"),
            ("prefill_tp", "4"),
            ("decode_num_workers", "1"),
            ("decode_tp", "8"),
            ("decode_ep", "8"),
            ("decode_dp_attention", "true"),
        ];
        let row = with(&notes, |export| row(export).unwrap().json);
        let row: Value = serde_json::from_str(&row).unwrap();
        let [prefill, decode] = [&row["num_prefill_gpu"], &row["num_decode_gpu"]];
        assert_eq!((prefill, decode, &row["tp"]), (&json!(8), &json!(8), &json!(12)));
        assert_eq!((&row["ep"], &row["dp_attention"]), (&json!(8), &json!("true")));
        let throughput = &row["request_metrics"]["throughput"];
        let total = throughput["total"]["tokens_per_second"].as_f64().unwrap();
        let each = throughput["per_gpu"]["total_tput_tps"].as_f64().unwrap();
        assert!((total / 16.0 - each).abs() < 1e-4);
    }

    #[test]
    fn all_wrong_notes_are_named() {
        let wrong = with(&[("tp", "four"), ("disagg", "yes"), ("router", "[]")], |export| {
            row(export).err().unwrap()
        });
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].contains("`disagg` is `yes`"), "{wrong:?}");
    }
}
