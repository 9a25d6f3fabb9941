//! The figures that a scenario expects of its run: numbers, or names of numbers in a file; and the
//! refusal of scorers for an engine whose answers are simulated.
//!
//! A file of numbers is read as a list of full names, `MODEL/MODE/DRAFT`, with a number each. So
//! nested names of JSON, of YAML, and names that hold the separator themselves are all the same.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Faults, Source, path_of};
use model::nearest;
use model::simulation::simulated_acceptance;
use reader::{Problem, read_text, words};
use scenario::AcceptanceLength;
use scenario::plan::Expectations;

/// The most names of a file that a message lists.
const LISTED: usize = 20;

/// The figures that the scenario expects, as far as they can be read.
pub(super) fn expectations(source: &Source, faults: &mut Faults) -> Expectations {
    let key = "expect.acceptance-length";
    let entry = source.scenario.expect.acceptance_length.as_ref();
    let acceptance_length = entry.and_then(|entry| match &entry.value {
        AcceptanceLength::Tokens(tokens) => Some(*tokens),
        AcceptanceLength::Listed { file, name } => {
            let path = path_of(source, &entry.clone().map(|_| file.clone()));
            let text = read_text(&path).map_err(|error| error.to_string());
            let found = text.and_then(|text| number(&text, name)).and_then(|tokens| {
                let wrong =
                    || format!("expected a number from 1 to 1000, found `{name}` = {tokens}");
                AcceptanceLength::is_possible(tokens).then_some(tokens).ok_or_else(wrong)
            });
            let problem = |why| Problem::new(format!("`{key}`: `{}`: {why}", file.display()));
            let fault = |why| problem(why).at(entry.place.clone(), "here");
            found.map_err(|why| faults.scenario.push(fault(why))).ok()
        }
    });
    Expectations { acceptance_length }
}

/// Refuses scorers if the launch command says that the engine simulates acceptance.
pub(super) fn refuse_scorers(source: &Source, faults: &mut Faults) {
    let Some(launch) = &source.scenario.about.launch_command else { return };
    if let Some(setting) = simulated_acceptance(&launch.value) {
        let problem = format!(
            "scorers cannot judge this engine: its launch command sets `{}`, with which {} simulates the acceptance of drafts, so its answers are no texts of the model",
            setting.name, setting.engine
        );
        faults.scenario.push(
            Problem::new(problem).at(launch.place.clone(), "acceptance is simulated").help(
                "leave out the scorers to measure speed, or start the engine without this setting to measure scores",
            ),
        );
    }
}

/// The number of a name in a file's text.
fn number(text: &str, name: &str) -> Result<f64, String> {
    let mut numbers = BTreeMap::new();
    let value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        let plain = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, plain).map_err(|error| error.to_string())?
    };
    collect(String::new(), &value, &mut numbers);
    numbers.get(name).copied().ok_or_else(|| {
        let near = nearest(name, numbers.keys().map(String::as_str));
        let names: Vec<&String> = numbers.keys().take(LISTED).collect();
        let more = if numbers.len() > LISTED { ", and more" } else { "" };
        let known = format!("its numbers are {}{more}", words::list(&names));
        let remedy = near.map_or(known, |near| format!("did you mean `{near}`?"));
        format!("it has no number `{name}`; {remedy}")
    })
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

fn collect(path: String, value: &Value, numbers: &mut BTreeMap<String, f64>) {
    match value {
        Value::Object(entries) => {
            entries.iter().for_each(|(name, value)| collect(below(&path, name), value, numbers));
        }
        other => numbers.extend(other.as_f64().map(|number| (path, number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published file of golden lengths, shortened.
    const PUBLISHED: &str = "\
# Acceptance Length (AL) reference values measured with SPEED-Bench.
# dataset: coding | temperature: 1.0 | output_len: 4096
deepseek-v4-pro-dspark:
  thinking_on:
    1: 1.86
    2: 2.55  # rounded
  thinking_off:
    1: 1.93
\"Qwen/Qwen3.5\":
  thinking_on: { }
  2: 2.73
";

    #[test]
    fn numbers_of_files_have_full_names() {
        let json = r#"{"qwen3.5/on/2": 2.73, "dsv4": {"on": {"3": 2.49}, "note": "x"}}"#;
        for (text, name, expected) in [
            (PUBLISHED, "deepseek-v4-pro-dspark/thinking_on/1", 1.86),
            (PUBLISHED, "deepseek-v4-pro-dspark/thinking_on/2", 2.55),
            (PUBLISHED, "deepseek-v4-pro-dspark/thinking_off/1", 1.93),
            (PUBLISHED, "Qwen/Qwen3.5/2", 2.73),
            (json, "qwen3.5/on/2", 2.73),
            (json, "dsv4/on/3", 2.49),
        ] {
            assert_eq!(number(text, name), Ok(expected), "{name}");
        }
    }

    #[test]
    fn missing_names_are_answered_with_the_files_names() {
        for (text, name, expected) in [
            (
                "qwen3.5:\n  on:\n    2: 2.73\n    3: 3.39\n",
                "qwen3.5/no/2",
                "it has no number `qwen3.5/no/2`; did you mean `qwen3.5/on/2`?",
            ),
            (
                "qwen3.5:\n  on:\n    2: 2.73\n    3: 3.39\n",
                "dsv4/on/3",
                "it has no number `dsv4/on/3`; its numbers are `qwen3.5/on/2` and `qwen3.5/on/3`",
            ),
            ("", "a", "it has no number `a`; its numbers are none"),
            ("{", "a", "EOF while parsing an object at line 1 column 1"),
            ("a: [1, 2\n", "a", "unclosed bracket '[' at line 1, column 4"),
        ] {
            assert_eq!(number(text, name), Err(expected.to_owned()));
        }
    }
}
