//! The keys of a scenario and their types: TOML in, [`Scenario`] and problems out.
//!
//! [`check`](super::check) decides which values make sense.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use reader::Problem;
use reader::{Reader, parse_table};

use super::{
    About, Arrival, Connection, Dataset, Load, Plugin, Ramp, Report, RequestOptions, SHAPES,
    Sandbox, Scenario, Stage, THINK_SPREADS, Target, Timeouts, Tokenizer, Trace,
};
use model::duration::{self, Span};
use reader::Said;
use reader::Size;
use reader::words::list;
use reader::{Config, ConfigTable, ConfigValue};
use result::metric::{self, objective};

/// Names that other benchmark tools use for keys that have another name here.
const ALIASES: &[(&str, &str)] = &[
    ("num-prompts", "requests"),
    ("num-requests", "requests"),
    ("total-requests", "requests"),
    ("request-rate", "rate"),
    ("max-concurrency", "max-in-flight"),
    ("normalize", "normalise"),
    ("think-time-spread", "think-spread"),
    ("num-warmups", "warmup"),
    ("warmup-requests", "warmup"),
    ("url", "base-url"),
    ("api-key", "api-key-env"),
    ("ready-check-timeout-sec", "wait-ready"),
    ("extra-request-body", "extra-body"),
    ("lora-modules", "adapters"),
    ("lora-assignment", "adapter-assignment"),
    ("extra-args", "extra-body"),
];

/// Reads the whole text. If its syntax is broken, only that is reported, since the intent is unknown.
pub fn read(name: &str, text: &str) -> (Scenario, Vec<Problem>) {
    let (read, problems) = parse_table(name, text, ALIASES, |root, reading| {
        let mut scenario = scenario(root);
        scenario.sections = reading.sections();
        scenario
    });
    (read.unwrap_or_default(), problems)
}

fn scenario(root: &mut Reader<'_, '_>) -> Scenario {
    Scenario {
        name: root.string("name"),
        order: root.integer("order"),
        about: root.table("about", About::read),
        target: root.table("target", target),
        tokenizer: root.table("tokenizer", |t| Tokenizer {
            path: path(t, "path"),
        }),
        backend: root.table("backend", plugin),
        dataset: root.table("dataset", dataset),
        load: root.table("load", load),
        request: root.table("request", request),
        connection: root.table("connection", connection),
        timeouts: root.table("timeouts", timeouts),
        scorers: root.tables("scorers", |t, _| plugin(t)),
        report: root.table("report", |t| Report {
            percentiles: t.numbers("percentiles"),
            server_metrics: t.boolean("server-metrics"),
        }),
        sandbox: root.table("sandbox", sandbox),
        goodput: root.table("goodput", goodput),
        thresholds: thresholds(&root.config("thresholds")),
        ..Scenario::default()
    }
}

fn target(t: &mut Reader<'_, '_>) -> Target {
    Target {
        base_url: t.one_or_more("base-url"),
        model: t.string("model"),
        api_key_env: t.string("api-key-env"),
        wait_ready: span(t, "wait-ready"),
        headers: t
            .strings("headers", |text| Ok(text.to_owned()))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect(),
    }
}

fn plugin(t: &mut Reader<'_, '_>) -> Plugin {
    Plugin {
        plugin: t.string("plugin"),
        config: t.config("config"),
    }
}

fn dataset(t: &mut Reader<'_, '_>) -> Dataset {
    Dataset {
        plugin: t.string("plugin"),
        config: t.config("config"),
        files: t.strings("files", to_path).collect(),
    }
}

fn load(t: &mut Reader<'_, '_>) -> Load {
    Load {
        requests: t.integer("requests"),
        duration: span(t, "duration"),
        arrival: one_of(
            t,
            "arrival",
            &Arrival::ALL.map(|arrival| (arrival.name(), arrival)),
        ),
        rate: rate(t, "rate"),
        burstiness: t.number("burstiness", "a number"),
        normalise: t.boolean("normalise"),
        ramp: t.table("ramp", |t| Ramp {
            shape: one_of(t, "shape", &SHAPES),
            from: rate(t, "from"),
            to: rate(t, "to"),
            over: span(t, "over"),
        }),
        stages: t.tables("stages", |t, place| Stage {
            rate: rate(t, "rate"),
            from: rate(t, "from"),
            to: rate(t, "to"),
            shape: one_of(t, "shape", &SHAPES),
            length: span(t, "for"),
            place,
        }),
        trace: t.table("trace", |t| Trace {
            file: path(t, "file"),
            time_scale: t.number("time-scale", "a number"),
        }),
        concurrency: t.integer("concurrency"),
        think_time: span(t, "think-time"),
        think_spread: one_of(t, "think-spread", &THINK_SPREADS),
        max_in_flight: t.integer("max-in-flight"),
        warmup: t.integer("warmup"),
        flush_cache: t.boolean("flush-cache"),
        seed: t.integer("seed"),
    }
}

fn request(t: &mut Reader<'_, '_>) -> RequestOptions {
    RequestOptions {
        stream: t.boolean("stream"),
        ignore_eos: t.boolean("ignore-eos"),
        output_tokens: t.integer("output-tokens"),
        min_output_tokens: t.integer("min-output-tokens"),
        temperature: t.number("temperature", "a number"),
        top_p: t.number("top-p", "a number"),
        top_k: t.integer("top-k"),
        min_p: t.number("min-p", "a number"),
        frequency_penalty: t.number("frequency-penalty", "a number"),
        presence_penalty: t.number("presence-penalty", "a number"),
        repetition_penalty: t.number("repetition-penalty", "a number"),
        sampling_seed: t.integer("sampling-seed"),
        stop: t.one_or_more("stop"),
        adapters: t.one_or_more("adapters"),
        adapter_assignment: t.word("adapter-assignment"),
        extra_body: t.config("extra-body"),
    }
}

fn connection(t: &mut Reader<'_, '_>) -> Connection {
    Connection {
        http: t.word("http"),
        reuse: t.word("reuse"),
        ca_cert: path(t, "ca-cert"),
        insecure: t.boolean("insecure"),
        timestamps: t.word("timestamps"),
    }
}

fn timeouts(t: &mut Reader<'_, '_>) -> Timeouts {
    Timeouts {
        connect: span(t, "connect"),
        first_token: span(t, "first-token"),
        token_gap: span(t, "token-gap"),
        request: span(t, "request"),
    }
}

fn sandbox(t: &mut Reader<'_, '_>) -> Sandbox {
    Sandbox {
        component: size(t, "component"),
        functions: t.integer("functions"),
        table: t.integer("table"),
        nesting: t.integer("nesting"),
        compile: span(t, "compile"),
        memory: size(t, "memory"),
        backend_call: span(t, "backend-call"),
        dataset_call: span(t, "dataset-call"),
        scorer_call: span(t, "scorer-call"),
        returned: size(t, "returned"),
    }
}

/// Objectives by our metric names; the keys may use these names or those of `vllm bench serve`.
fn goodput(t: &mut Reader<'_, '_>) -> BTreeMap<String, Said<f64>> {
    let ours = objective::metrics().map(|name| (name, name));
    // ITL is asked for too, so that users of it learn why it is not possible.
    ours.chain(objective::ALIASES)
        .chain([(metric::ITL, metric::ITL)])
        .filter_map(|(key, name)| Some((name.to_owned(), t.milliseconds(key)?)))
        .collect()
}

/// Thresholds by their figures: `ttft.p99 = "<= 200ms"`, or a list of several.
fn thresholds(table: &ConfigTable) -> Vec<Said<String>> {
    fn gather(name: &str, value: &ConfigValue, found: &mut Vec<Said<String>>) {
        let condition = match &value.value {
            Config::Table(table) => {
                for entry in table.iter() {
                    gather(&format!("{name}.{}", entry.key.value), &entry.value, found);
                }
                return;
            }
            Config::List(several) => {
                several.iter().for_each(|one| gather(name, one, found));
                return;
            }
            Config::Scalar(Value::String(condition)) => condition.clone(),
            Config::Scalar(other) => other.to_string(),
        };
        found.push(Said::new(
            format!("{name} {condition}"),
            value.place.clone(),
        ));
    }
    let mut found = Vec::new();
    for entry in table.iter() {
        gather(&entry.key.value, &entry.value, &mut found);
    }
    found
}

fn rate(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Said<f64>> {
    t.number(key, "a number of requests per second")
}

fn one_of<T: Copy>(
    t: &mut Reader<'_, '_>,
    key: &'static str,
    all: &[(&str, T)],
) -> Option<Said<T>> {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    t.parsed(key, &format!("one of {}", list(&names)), |text| {
        let known = all.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, value)| *value)
            .ok_or_else(|| format!("found {text:?}"))
    })
}

fn span(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Said<Span>> {
    t.parsed(key, "a duration such as \"30s\"", |text| {
        duration::parse(text)
            .map(Span)
            .map_err(|error| error.to_string())
    })
}

fn size(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Said<Size>> {
    t.parsed(key, "a size such as \"64MiB\"", Size::parse)
}

fn path(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Said<PathBuf>> {
    t.parsed(key, "a path", to_path)
}

fn to_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        Err("it is empty".to_owned())
    } else {
        Ok(PathBuf::from(text))
    }
}
