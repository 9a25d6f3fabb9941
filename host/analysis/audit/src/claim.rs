//! Results as other tools stated them: a text block on a page, a file of `vllm bench serve`, a line
//! of SGLang's JSONL. The tool's definition is kept together with the figure, because one name
//! covers several metrics.
//!
//! A claim holds the statements of the source, without judgement: `audit` judges it. Nothing is
//! filled in that the source does not state.

mod aiperf;
mod benchmark_report;
mod block;
mod dashboard;
mod definition;
mod endpoints;
mod error;
mod evalscope;
mod flat;
mod genai_bench;
mod guidellm;
mod inference_perf;
mod json;
mod number;
mod page;
mod quote;
mod seek;
mod table;
mod yaml;

#[cfg(test)]
mod hostile;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use json::Object;
use model::about::About;
use result::figure::{Figure, Statistic};

pub use definition::{Definition, definitions};
pub use error::ReadError;
pub use quote::Quote;

/// One result as its tool stated it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// The place where it was found.
    pub source: Source,
    /// The tool that wrote it.
    pub tool: Tool,
    /// Engine, version, hardware and launch command, as far as the source states them.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
    /// The instant that it states as its date, in UTC: `2026-04-17T06:30:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The model, as named there.
    pub model: Option<String>,
    /// The scenario: `sharegpt`, `random 1024/1024`, or a profile's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The settings of the tool.
    pub asked: Settings,
    /// The stated figures, under our names and in our units. `ttft`, `tpot`, `itl` and `e2e` are
    /// the tool's own; `definitions` has their meaning.
    pub figures: BTreeMap<String, Stated>,
    /// The shortest and the longest of all its answers, if it states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_lengths: Option<Lengths>,
    /// The definition of each of its latencies, and the equivalent metric of our catalogue.
    pub definitions: BTreeMap<String, Definition>,
    /// True if its settings name a schedule, pauses or a ramp, so that requests wait for more than
    /// a rate and a cap; not part of the JSON.
    #[serde(skip)]
    pub paced: bool,
    /// True if its latencies and tokens leave out requests that its counts include, as the first
    /// and the last ones; not part of the JSON.
    #[serde(skip)]
    pub trimmed: bool,
    /// Figures that it states about each request; not part of the JSON.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// The place where a claim was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Source {
    /// The file as given, `-` for standard input, or `published:` and a name.
    pub file: String,
    /// The line where it begins, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The byte of that line where it begins, from 1: pages that lost their line breaks have many
    /// blocks on a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Its place among several in a JSON file: `benchmarks[2]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The headings above it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headings: Vec<String>,
    /// The text just above it on the page: `Optimized benchmark result`.
    pub caption: Option<String>,
    /// The page's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

model::words! {
    /// The tool that wrote a claim.
    pub enum Tool {
        /// This program's own text block.
        Runner = "runner",
        /// LMDeploy's `profile_restful_api.py`, and the suite built on it.
        Lmdeploy = "lmdeploy",
        /// SGLang's `bench_serving`.
        Sglang = "sglang",
        /// `vllm bench serve`, and its native client.
        Vllm = "vllm",
        /// GPUStack's benchmark-runner, which wraps guidellm.
        Gpustack = "gpustack",
        /// guidellm.
        Guidellm = "guidellm",
        /// NVIDIA's AIPerf.
        Aiperf = "aiperf",
        /// NVIDIA's GenAI-Perf.
        GenaiPerf = "genai-perf",
        /// Kubernetes' inference-perf.
        InferencePerf = "inference-perf",
        /// `evalscope perf`.
        Evalscope = "evalscope",
        /// SGLang's genai-bench.
        GenaiBench = "genai-bench",
        /// MLPerf Endpoints.
        Endpoints = "endpoints",
        /// InferenceX, by SemiAnalysis.
        Inferencex = "inferencex",
        /// vLLM's perf-eval.
        PerfEval = "perf-eval",
        /// A block of that family that none of these tools writes.
        Unknown = "unknown",
    }
    default Unknown
}

impl Tool {
    /// Names the tool as people do.
    pub fn label(self) -> &'static str {
        match self {
            Tool::Runner => "runner",
            Tool::Lmdeploy => "LMDeploy's benchmark",
            Tool::Sglang => "SGLang's bench_serving",
            Tool::Vllm => "vllm bench serve",
            Tool::Gpustack => "GPUStack's benchmark-runner",
            Tool::Guidellm => "guidellm",
            Tool::Aiperf => "AIPerf",
            Tool::GenaiPerf => "GenAI-Perf",
            Tool::InferencePerf => "inference-perf",
            Tool::Evalscope => "evalscope perf",
            Tool::GenaiBench => "genai-bench",
            Tool::Endpoints => "MLPerf Endpoints",
            Tool::Inferencex => "InferenceX",
            Tool::PerfEval => "vLLM's perf-eval",
            Tool::Unknown => "an unknown tool",
        }
    }
}

/// The settings of a tool. Settings that the source does not state are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// The number of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Requests per second; infinite if all were to be sent at once, `"inf"` in JSON.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rate")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub request_rate: Option<f64>,
    /// The cap on requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// Tokens of each prompt, if all were to have the same length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of each answer, if all were to have the same length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The most tokens of an answer, if lengths were to differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_output_tokens: Option<u64>,
    /// The shape of the gamma distribution of the times between two requests: 1 is Poisson, less is
    /// burstier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burstiness: Option<f64>,
    /// The dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// True if replies were streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

/// A rate as JSON: a number, or `"inf"`, for which JSON has no number.
fn rate<S: Serializer>(rate: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match rate {
        Some(rate) if rate.is_finite() => serializer.serialize_f64(*rate),
        Some(_) => serializer.serialize_str("inf"),
        None => serializer.serialize_none(),
    }
}

/// The extremes of a set of lengths, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Lengths {
    /// The shortest.
    pub least: u64,
    /// The longest.
    pub most: u64,
}

/// A figure as it was stated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Stated {
    /// The figure, in our unit.
    pub value: f64,
    /// The largest rounding error, in our unit: half of its last digit. 0 if it was written in
    /// full.
    pub rounding: f64,
}

/// One request, as the tool states it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The time of sending, in seconds from an origin of the tool's.
    pub start_s: Option<f64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub ttft_ms: Option<f64>,
    pub e2e_ms: Option<f64>,
    /// Its time per output token as the tool states it, in milliseconds; few tools do.
    pub tpot_ms: Option<f64>,
    /// The gaps between its pieces, in milliseconds.
    pub gaps_ms: Vec<f64>,
    /// The reason for its failure, if it failed.
    pub error: Option<String>,
}

impl Claim {
    /// A claim of that tool that so far has only its source.
    pub fn new(tool: Tool, source: Source) -> Self {
        Claim { source, tool, definitions: definitions(tool), ..Claim::default() }
    }

    /// A figure under the tool's own name: `ttft` is the tool's TTFT, whichever metric that is.
    pub fn stated(&self, figure: &str) -> Option<Stated> {
        self.figures.get(figure).copied()
    }

    pub fn value(&self, figure: &str) -> Option<f64> {
        self.stated(figure).map(|stated| stated.value)
    }

    /// A figure by our definition: `ttft-any` is vLLM's TTFT, and claims of vLLM have no `ttft`.
    pub fn figure(&self, figure: &Figure) -> Option<Stated> {
        match figure {
            Figure::Whole(_) | Figure::Score(_) => {
                let name = figure.to_string();
                self.stated(&name).or_else(|| {
                    let is_share = name == "requests.success-share";
                    let all = self.requests().filter(|all| *all > 0 && is_share)?;
                    let value = self.value("requests.successful")? / all as f64;
                    Some(Stated { value, rounding: 0.0 })
                })
            }
            Figure::Of(metric, statistic) => {
                let theirs = self.definitions.iter().find_map(|(theirs, definition)| {
                    (definition.metric.as_deref() == Some(metric)).then_some(theirs)
                })?;
                self.stated(&format!("{theirs}.{statistic}"))
            }
        }
    }

    /// The number of requests, with failed requests.
    pub fn requests(&self) -> Option<u64> {
        let ended = || Some(self.value("requests.successful")? + self.value("requests.failed")?);
        self.value("requests.total").or_else(ended).map(|count| count as u64)
    }

    /// The stated statistics of a latency, by the tool's name for it: `ttft`, `tpot`, `itl`, `e2e`.
    pub fn statistics(&self, theirs: &str) -> Vec<(Statistic, Stated)> {
        let stated = self.figures.iter().filter_map(|(name, stated)| {
            let (metric, statistic) = name.split_once('.')?;
            (metric == theirs).then_some((statistic.parse().ok()?, *stated))
        });
        stated.collect()
    }

    /// The values of a latency per request in milliseconds, if the source has them, under the
    /// tool's name; for `itl`, all gaps of all requests. Requests that failed have none.
    pub fn values(&self, theirs: &str) -> Vec<f64> {
        values(self.samples.iter().filter(|sample| sample.error.is_none()), theirs)
    }

    pub fn state(&mut self, figure: impl Into<String>, value: f64, rounding: f64) {
        let stated = Stated { value, rounding };
        self.figures.insert(figure.into(), stated);
    }
}

/// The values of a latency of these requests, as [`Claim::values`] has them.
pub fn values<'s>(samples: impl Iterator<Item = &'s Sample>, theirs: &str) -> Vec<f64> {
    match theirs {
        "ttft" => samples.filter_map(|sample| sample.ttft_ms).collect(),
        "e2e" => samples.filter_map(|sample| sample.e2e_ms).collect(),
        "tpot" => samples.filter_map(Sample::tpot).collect(),
        "itl" => samples.flat_map(|sample| sample.gaps_ms.iter().copied()).collect(),
        _ => Vec::new(),
    }
}

impl Sample {
    /// Milliseconds per output token: as stated, else computed if there are at least two tokens.
    pub fn tpot(&self) -> Option<f64> {
        if self.tpot_ms.is_some() {
            return self.tpot_ms;
        }
        let tokens = self.output_tokens.filter(|tokens| *tokens > 1)?;
        Some((self.e2e_ms? - self.ttft_ms?) / (tokens - 1) as f64)
    }
}

/// Parses a figure; `None` if the text is not a number, or states that there is none.
pub(crate) fn stated(digits: &str) -> Option<Stated> {
    number::read(digits).ok().flatten()
}

/// A statistic's name as figures have it (`median`, `p99.9`), from a tool's (`Mean`, `P99`, `p50`).
fn statistic(theirs: &str) -> Option<String> {
    let name = theirs.to_lowercase();
    let name = match name.as_str() {
        "avg" | "average" => "mean",
        other => other,
    };
    let statistic: Statistic = name.parse().ok()?;
    Some(statistic.to_string())
}

/// The largest file that is read. JSON takes several times its length in memory.
pub const MOST_BYTES: usize = 64 << 20;

/// The most results in a file: many more than anybody publishes on one page.
pub(crate) const MOST_RESULTS: usize = 10_000;

const MOST_ERRORS: usize = 20;

/// All results, or the mistakes in them.
fn in_order(
    file: &str,
    results: impl IntoIterator<Item = Result<Vec<Claim>, Vec<ReadError>>>,
) -> Result<Vec<Claim>, Vec<ReadError>> {
    let (mut read, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(more) => read.extend(more),
            Err(more) => errors.extend(more),
        }
        if read.len() > MOST_RESULTS {
            return Err(vec![too_many(file)]);
        }
        if errors.len() > MOST_ERRORS {
            errors.truncate(MOST_ERRORS);
            let what = "there are more mistakes after these".into();
            let expected = "expected results of one tool; is this the right file?";
            errors.push(ReadError::of_file(file, what, expected));
            return Err(errors);
        }
    }
    if errors.is_empty() { Ok(read) } else { Err(errors) }
}

fn too_many(file: &str) -> ReadError {
    let what = format!("it holds more than {MOST_RESULTS} results");
    ReadError::of_file(file, what, &format!("expected at most {MOST_RESULTS}; split the file"))
}

impl Source {
    /// Writes the place as messages name it: `page.md:12`, `result.json benchmarks[1]`.
    pub fn place(&self) -> String {
        let mut place = self.file.clone();
        if let Some(line) = self.line {
            place.push_str(&format!(":{line}"));
        }
        if let Some(column) = self.column.filter(|column| *column > 1) {
            place.push_str(&format!(":{column}"));
        }
        if let Some(part) = &self.part {
            place.push_str(&format!(" {part}"));
        }
        place
    }
}

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub file: String,
    /// Its results, in the order of the file.
    pub claims: Vec<Claim>,
    /// Statements of its tables and sentences about them.
    pub quotes: Vec<Quote>,
}

/// The kinds of contents that a file may have, for error messages.
const KNOWN: &str = "expected a text block of LMDeploy, SGLang, vLLM or GPUStack (`=== Serving Benchmark Result ===`), \
    JSON of vllm bench serve, guidellm, AIPerf, GenAI-Perf, inference-perf, evalscope, genai-bench or MLPerf Endpoints, \
    rows of InferenceX or perf-eval, llm-d's Benchmark Report as YAML or JSON, \
    JSON lines of SGLang or vLLM, or LMDeploy's csv";

/// True if a text is llm-d's Benchmark Report as YAML: its keys stand at the beginning of lines.
fn is_yaml_report(text: &str) -> bool {
    let after = |key: &'static str| text.lines().filter_map(move |line| line.strip_prefix(key));
    let is_version = |value: &str| value.trim_start_matches([' ', '\'', '"']).starts_with("0.2");
    after("version:").any(is_version)
        && after("run:").next().is_some()
        && after("results:").next().is_some()
}

/// Reads a file's content; `name` is for messages only. Errors: all mistakes in it, at once.
pub fn read(name: &str, content: &[u8]) -> Result<Document, Vec<ReadError>> {
    if content.len() > MOST_BYTES {
        let what = format!("the file is larger than {} MiB", MOST_BYTES >> 20);
        let expected =
            "expected a result; leave out the entries of single requests, or split the file";
        return Err(vec![ReadError::of_file(name, what, expected)]);
    }
    let text = String::from_utf8_lossy(content);
    let text = text.trim_start_matches('\u{feff}');
    let begun = text.trim_start();
    if begun.is_empty() {
        return Err(vec![ReadError::of_file(name, "the file is empty".into(), KNOWN)]);
    }
    let mut document = Document { file: name.to_owned(), ..Document::default() };
    if begun.starts_with(['{', '[']) {
        document.claims = read_json(name, text)?;
    } else if is_yaml_report(begun) {
        document.claims = read_yaml(name, text)?;
    } else if let Some(claims) = table::read(name, begun) {
        document.claims = claims?;
    } else {
        (document.claims, document.quotes) = page::read(name, text)?;
        if document.claims.is_empty() {
            let first = begun.lines().next().unwrap_or_default();
            let first: String = first.chars().take(60).collect();
            let what = format!("no result found; the file begins with `{first}`");
            return Err(vec![ReadError::of_file(name, what, KNOWN)]);
        }
    }
    Ok(document)
}

fn error(file: &str, place: Option<String>, what: String, expected: &str) -> ReadError {
    ReadError { file: file.to_owned(), place, what, expected: expected.to_owned() }
}

fn read_yaml(name: &str, text: &str) -> Result<Vec<Claim>, Vec<ReadError>> {
    let value = yaml::parse(text).map_err(|wrong| {
        let what = format!("the YAML cannot be read from here: {}", wrong.what);
        let expected = "expected one complete report, as llm-d's tool writes it";
        vec![error(name, wrong.place, what, expected)]
    })?;
    read_value(name, &value)
}

/// One value, or a value a line.
fn read_json(name: &str, text: &str) -> Result<Vec<Claim>, Vec<ReadError>> {
    let whole = match json::parse(text) {
        Ok(value) => return read_value(name, &value),
        Err(whole) => whole,
    };
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    // The first line is JSON by itself where there is one a line; else the whole is one and broken.
    let by_line =
        lines.len() > 1 && lines.first().is_some_and(|(_, line)| json::parse(line).is_ok());
    if !by_line {
        let place = format!("line {}, column {}", whole.line(), whole.column());
        let what = format!("the JSON is incomplete or malformed here: {whole}");
        let expected =
            "expected complete JSON; was the file truncated, or is the tool still writing it?";
        return Err(vec![error(name, Some(place), what, expected)]);
    }
    let read_line = |(index, line): (usize, &str)| {
        let number = index + 1;
        let value = json::parse(line).map_err(|wrong| {
            let place = format!("line {number}, column {}", wrong.column());
            let what = format!("the line is not JSON: {wrong}");
            vec![error(name, Some(place), what, "expected one result per line")]
        })?;
        let object = object(name, format!("line {number}"), &value)?;
        let source = Source { file: name.to_owned(), line: Some(number), ..Source::default() };
        read_object(name, object, source)
    };
    in_order(name, lines.into_iter().map(read_line))
}

fn read_value(name: &str, value: &Value) -> Result<Vec<Claim>, Vec<ReadError>> {
    let source = Source { file: name.to_owned(), ..Source::default() };
    let Value::Array(list) = value else {
        return read_object(name, object(name, String::new(), value)?, source);
    };
    if let Some(merged) = pytorch(list) {
        return read_object(name, &merged, source);
    }
    if inference_perf::is_requests(list) {
        return Ok(vec![inference_perf::read_requests(list, source)?]);
    }
    if evalscope::is_percentiles(list) {
        return Ok(vec![evalscope::read_percentiles(list, source)?]);
    }
    let read_one = |(index, value): (usize, &Value)| {
        let part = format!("[{index}]");
        let object = object(name, part.clone(), value)?;
        let source = Source { part: Some(part), ..source.clone() };
        read_object(name, object, source)
    };
    if list.is_empty() {
        return Err(vec![ReadError::of_file(name, "the list is empty".into(), KNOWN)]);
    }
    in_order(name, list.iter().enumerate().map(read_one))
}

fn object<'v>(name: &str, place: String, value: &'v Value) -> Result<&'v Object, Vec<ReadError>> {
    value.as_object().ok_or_else(|| {
        let place = (!place.is_empty()).then_some(place);
        let expected = "expected an object that holds a result";
        vec![error(name, place, "it is not a JSON object".into(), expected)]
    })
}

fn read_object(name: &str, object: &Object, source: Source) -> Result<Vec<Claim>, Vec<ReadError>> {
    let claim = if guidellm::is(object) {
        return guidellm::read(object, name);
    } else if let Some(tool) = aiperf::tool(object) {
        aiperf::read(object, tool, source)
    } else if let Some(tool) = flat::tool(object) {
        flat::read(object, tool, source)
    } else if let Some(tool) = dashboard::tool(object) {
        dashboard::read(object, tool, source)
    } else if inference_perf::is_summary(object) {
        inference_perf::read(object, source)
    } else if evalscope::is_summary(object) {
        evalscope::read(object, source)
    } else if genai_bench::is(object) {
        genai_bench::read(object, source)
    } else if endpoints::is(object) {
        endpoints::read(object, source)
    } else if benchmark_report::is(object) {
        benchmark_report::read(object, source)
    } else if genai_bench::is_experiment(object) {
        let what = "it describes an experiment of genai-bench, and states no result".into();
        let expected =
            "expected a file that genai-bench wrote beside it for a scenario and a number of users";
        Err(vec![error(name, source.part, what, expected)])
    } else {
        let keys: Vec<String> = object.keys().take(6).map(|key| seek::shortened(key, 60)).collect();
        let place = source.part.clone().or(source.line.map(|line| format!("line {line}")));
        let keys = keys.join(", ");
        let what = format!("the JSON does not match any known tool; its first keys are {keys}");
        Err(vec![error(name, place, what, KNOWN)])
    };
    Ok(vec![claim?])
}

/// Merges the JSON of `vllm bench serve` for PyTorch's dashboard, which has an entry a metric.
fn pytorch(list: &[Value]) -> Option<Object> {
    let mut merged = Object::new();
    for entry in list {
        let metric = entry.get("metric")?;
        let name = metric.get("name")?.as_str()?;
        let values = metric.get("benchmark_values")?.as_array()?;
        if let Some(rest) = metric.get("extra_info").and_then(Value::as_object) {
            merged.extend(rest.clone());
        }
        if let [value] = values.as_slice() {
            merged.insert(name.to_owned(), value.clone());
        }
        if let Some(model) = entry.pointer("/model/name") {
            merged.insert("model_id".into(), model.clone());
        }
    }
    (!list.is_empty()).then_some(merged)
}
