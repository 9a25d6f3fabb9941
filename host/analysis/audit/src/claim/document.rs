//! A file with claims, from any tool: the format is detected from its content, not its name.

use serde_json::Value;

use super::json::{self, Object};
use super::quote::Quote;
use super::{
    Claim, MOST_BYTES, ReadError, Source, aiperf, benchmark_report, dashboard, endpoints,
    evalscope, flat, genai_bench, guidellm, in_order, inference_perf, page, seek, table, yaml,
};

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

/// Reads a file's content. Effects are the caller's: `name` is for messages only. Errors: all that
/// is wrong with it, at once.
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

/// One value.
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
        return Err(vec![error(
            name,
            Some(place),
            format!("the JSON is incomplete or malformed here: {whole}"),
            "expected complete JSON; was the file truncated, or is the tool still writing it?",
        )]);
    }
    let read_line = |(index, line): (usize, &str)| {
        let number = index + 1;
        let value = json::parse(line).map_err(|wrong| {
            let place = format!("line {number}, column {}", wrong.column());
            vec![error(
                name,
                Some(place),
                format!("the line is not JSON: {wrong}"),
                "expected one result per line",
            )]
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
        vec![error(
            name,
            place,
            "it is not a JSON object".into(),
            "expected an object that holds a result",
        )]
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
        Err(vec![error(
            name,
            source.part,
            "it describes an experiment of genai-bench, and states no result".into(),
            "expected a file that genai-bench wrote beside it for a scenario and a number of users",
        )])
    } else {
        let keys: Vec<String> = object.keys().take(6).map(|key| seek::shortened(key, 60)).collect();
        let place = source.part.clone().or(source.line.map(|line| format!("line {line}")));
        let keys = keys.join(", ");
        let what = format!("the JSON does not match any known tool; its first keys are {keys}");
        Err(vec![error(name, place, what, KNOWN)])
    };
    Ok(vec![claim?])
}

/// Reads the JSON of `vllm bench serve` for PyTorch's dashboard: an entry a metric, each with all
/// the rest under `extra_info`.
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
