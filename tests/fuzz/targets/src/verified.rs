//! Cases and profiles of clients that are verified.

use std::collections::BTreeMap;

use mock::Script;
use verify::expected::Expected;
use verify::profile::Values;
use verify::sources::Sources;
use verify::types::Asks;
use verify::{Case, Log, Profile, Run, judge};

use crate::scenarios::check_message;

/// A run of two requests: the first is answered, the second is refused.
const LOG: &str = concat!(
    r#"{"received":0,"status":200,"chunks":[{"at":5000000,"tokens":1,"bytes":9},"#,
    r#"{"at":9000000,"tokens":0,"bytes":9}],"ended":9000000,"end":"whole","#,
    r#""asked":"{\"prompt\":\"a b\"}","written":[{"text":"data: {\"choices\":[{\"text\":\"c\","#,
    r#"\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":1}}\n\n"},"#,
    r#"{"text":"data: [DONE]\n\n"}]}"#,
    "\n",
    r#"{"received":20000000,"status":503,"ended":21000000,"end":"refused","asked":"{}"}"#,
);

const CASE: &str = r#"
title = "a"
why = "b"
[asks]
requests = 2
concurrency = 1
input-len = 2
output-len = 1
[judges]
figures = ["ttft", "ttft.p99", "tpot", "itl", "e2e", "requests.successful", "requests.failed",
    "tokens.output", "tokens.input", "throughput.output", "throughput.requests", "duration"]
load = ["requests", "arrivals", "in-flight", "prompt-tokens", "prompts", "prefix", "retries", "seeds"]
"#;

const PROFILE: &str = r#"
name = "a"
title = "A"
command = ["a"]
source = [{ name = "stdout", reader = "text" }]
[figures]
ttft = { definition = "first-text", statistics = ["mean"], pattern = "([0-9]+)" }
"requests.successful" = { definition = "complete", pattern = "([0-9]+)" }
"#;

fn count(text: &str) -> Option<u64> {
    Some(text.split_whitespace().count() as u64)
}

fn log() -> Log {
    Log::read(LOG).expect("it is a log")
}

/// A case's text: mistakes have messages. A sound script is played or refused, a run is judged.
pub fn verify_case(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for part in ["load", "stream", "fault"] {
        let case = match Case::read(&format!("{part}-a.toml"), text) {
            Ok(case) => case,
            Err(error) => {
                assert!(!error.message.is_empty());
                continue;
            }
        };
        let script = case.script();
        match Script::parse("script.toml", &script) {
            Ok(script) => script.check().expect("a script that was read can be played"),
            Err(error) => check_message(&error, &script),
        }
        let expected = Expected::new(&case, &log(), 0, &count);
        serde_json::to_vec(&expected).expect("expectations are JSON");
        let profile = Profile::read("profile.toml", PROFILE).expect("it is a profile");
        judged(&case, &profile, b"7");
    }
}

/// A profile's text: mistakes have messages. A sound one is a client whose command has only
/// placeholders that have values or are named, and whose result, here the same text, is read and
/// judged.
pub fn verify_profile(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let profile = match Profile::read("profile.toml", text) {
        Ok(profile) => profile,
        Err(error) => {
            assert!(!error.message.is_empty());
            return;
        }
    };
    let case = Case::read("load-a.toml", CASE).expect("it is a case");
    for name in profile.figures.keys() {
        profile.meaning(name).expect("a figure that was read has a meaning");
    }
    if let Some(version) = &profile.version {
        version.find(text);
    }
    let asks: &Asks = &case.asks;
    if let Err(error) = profile.command_for(asks, &Values::new(asks, 1)) {
        assert!(!error.is_empty());
    }
    judged(&case, &profile, data);
}

/// Judges a client that left this result: each check has a text, the outcome is the worst check's.
fn judged(case: &Case, profile: &Profile, result: &[u8]) {
    let names = profile.sources.iter().map(|source| source.name.clone());
    let contents: BTreeMap<_, _> = names.map(|name| (name, Ok(result.to_vec()))).collect();
    let runs = [Run { log: log(), sources: Sources::read(profile, &contents) }];
    let (outcome, checks) = judge(case, profile, &runs, &count, 1);
    assert!(!outcome.label().is_empty());
    for check in &checks {
        assert!(!check.words.is_empty() && !check.figure.is_empty());
    }
    serde_json::to_vec(&checks).expect("checks are JSON");
}
