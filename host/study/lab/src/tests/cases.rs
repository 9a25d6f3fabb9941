//! Lab files: their trials, and their mistakes.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::world::{Fate, World};
use crate::keys::KEYS;
use crate::template::shown;
use crate::{Lab, Next, Results, Scenario, Start, Trial, next};

fn scenarios(names: &[&str]) -> Vec<Scenario> {
    let scenario = |name: &&str| Scenario {
        name: (*name).to_owned(),
        content: crate::digest([*name]),
        seconds: Some(60.0),
        load: None,
    };
    names.iter().map(scenario).collect()
}

/// The starts that a lab makes if no option helps.
fn starts(lab: &Lab, scenarios: &[Scenario]) -> Vec<Start> {
    let (lab, scenarios) = (lab.clone(), scenarios.to_vec());
    let truth = |_: &_, _: &_| Fate::Tokens(1000.0);
    let world = World { lab, scenarios, truth, varies: 0.0, drift: 0.0, seed: 1 };
    let (mut results, mut starts) = (Results::default(), Vec::new());
    while let Next::Run(batch) = next(&world.lab, &world.scenarios, &results) {
        for start in batch {
            world.events(&start).iter().for_each(|event| results.add(event));
            starts.push(start);
        }
    }
    starts
}

/// The trials of a lab if no option helps, in the order of their first run, and their runs.
fn expansion(lab: &Lab, scenarios: &[Scenario]) -> String {
    let mut out = String::new();
    let starts = starts(lab, scenarios);
    let mut seen = Vec::new();
    for start in &starts {
        if !seen.contains(&start.trial.id) {
            seen.push(start.trial.id.clone());
            trial(&mut out, lab, &start.trial);
        }
    }
    let runs: usize = starts.iter().map(|start| start.runs.len()).sum();
    let _ = writeln!(out, "If no option helps: {} starts, {runs} runs", starts.len());
    out
}

fn trial(out: &mut String, lab: &Lab, trial: &Trial) {
    let engine = &lab.engines[trial.engine];
    let model = match lab.models[trial.model].name.as_str() {
        "" => String::new(),
        name => format!("{name}, "),
    };
    let _ = writeln!(out, "{} {model}{}", trial.id, lab.label(trial));
    let command = trial.command(engine);
    let command = command.unwrap_or_else(|| vec![format!("at {}", engine.base_url)]);
    for word in command {
        let _ = writeln!(out, "    {word}");
    }
    let secret = |name: &str| Some(format!("<{name}>"));
    for (name, value) in trial.environment(engine, secret).unwrap() {
        let _ = writeln!(out, "    {name}={value}");
    }
    if trial.set.as_object().is_some_and(|set| !set.is_empty()) {
        let _ = writeln!(out, "    set {}", shown(&trial.set));
    }
}

#[test]
fn lab_files_expand_or_are_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() > 10);
    for folder in folders {
        let text = std::fs::read_to_string(folder.join("lab.toml")).unwrap();
        let (file, other, now) = match Lab::parse("lab.toml", &text) {
            Ok(lab) => {
                let scenarios = scenarios(&["chat", "long"][..lab.scenarios.len()]);
                ("trials.txt", "error.txt", expansion(&lab, &scenarios))
            }
            Err(error) => ("error.txt", "trials.txt", format!("{error}\n")),
        };
        assert!(!folder.join(other).exists(), "{} is now {file}: {now}", folder.display());
        super::pages::golden(folder.join(file), &now);
    }
}

fn shipped(name: &str) -> Lab {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/labs").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    Lab::parse(name, &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn shipped_labs_need_only_their_gpus() {
    let lab = shipped("gpustack.toml");
    let profiles = scenarios(&[
        "ShareGPT",
        "Throughput 1024/128",
        "Long context 32k/100",
        "Generation heavy 1k/2k",
    ]);
    let starts = starts(&lab, &profiles);
    let mut lines: Vec<String> =
        starts.iter().map(|start| start.trial.recorded(&lab.engines[start.trial.engine])).collect();
    lines.sort();
    lines.dedup();
    let vllm = "vllm serve Qwen/Qwen3.5-9B --host=127.0.0.1 --port=8000 --reasoning-parser=qwen3 --max-model-len=32768";
    // Two engines, and each further value of five options alone.
    assert_eq!(lines.len(), 2 + 1 + 1 + 1 + 5 + 3, "{lines:#?}");
    assert!(lines.contains(&vllm.to_owned()), "{lines:#?}");
    let speculative = "--speculative-config={\"method\":\"mtp\",\"num_speculative_tokens\":4}";
    assert!(lines.contains(&format!("{vllm} '{speculative}'")), "{lines:#?}");
    assert!(lines.contains(&format!("{vllm} --max-num-seqs=512")), "{lines:#?}");
    // The recommended trial is among the runs if each option helps.
    assert!(lab.set_for("sharegpt").is_some() && lab.set_for("throughput").is_none());

    let lab = shipped("lmdeploy.toml");
    let loads = scenarios(&["ShareGPT", "Random 1k/1k", "Long thinking 2k/6k", "Long input 6k/2k"]);
    let starts = self::starts(&lab, &loads);
    assert_eq!(starts.len(), 4 * 3);
    assert_eq!(starts.iter().map(|start| start.runs.len()).sum::<usize>(), 4 * 4 * 3);
    let last = starts.last().unwrap().trial.recorded(&lab.engines[0]);
    assert_eq!(
        last,
        "lmdeploy serve api_server Qwen/Qwen3-235B-A22B-FP8 --server-name 127.0.0.1 --server-port 23333 \
         --max-batch-size 1024 --tp 4"
    );
}

/// Every key that is read is in the table, and every key of the table is read.
#[test]
fn the_table_of_keys_is_complete() {
    let text = "zzzzzzzz = 1\n[objective]\nzzzzzzzz = 1\n[budget]\nzzzzzzzz = 1\n[cost]\nzzzzzzzz = 1\n\
                [[models]]\nzzzzzzzz = 1\n[[engines]]\nzzzzzzzz = 1\n";
    let error = Lab::parse("lab.toml", text).unwrap_err();
    let mut found = Vec::new();
    for problem in
        error.problems().iter().filter(|problem| problem.message() == "unknown key `zzzzzzzz`")
    {
        // The advice is the list of the table's keys.
        let advice = miette::Diagnostic::help(problem).unwrap().to_string();
        let (table, keys) = advice.strip_prefix("the keys ").unwrap().split_once(" are ").unwrap();
        let table = table.trim_start_matches("in [").trim_end_matches(']');
        let table = table.replace("at the top", "");
        let keys = keys.split('`').skip(1).step_by(2);
        found.extend(keys.map(|key| (table.clone(), key.to_owned())));
    }
    let mut known: Vec<(String, String)> =
        KEYS.iter().map(|key| (key.table.to_owned(), key.name.to_owned())).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn an_id_depends_only_on_the_command() {
    let text = |port: u16, name: &str, secret: &str, seqs: u32| {
        format!(
            "name = \"x\"\nstrategy = \"matrix\"\nscenarios = \"chat.toml\"\n[[models]]\nname = \"m\"\npath = \"p\"\n\
             [[engines]]\nname = \"{name}\"\nlaunch = [\"serve\", \"{{model.path}}\", \"{{port}}\"]\nport = {port}\n\
             env = {{ KEY = \"${{{secret}}}\" }}\n[engines.options]\nseqs = {seqs}\n"
        )
    };
    let id = |text: String| {
        let lab = Lab::parse("lab.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        lab.baseline(0, 0).unwrap().id
    };
    let first = id(text(8000, "a", "KEY", 1));
    assert_eq!(first, id(text(9000, "b", "KEY", 1)), "neither the port nor the name");
    assert_ne!(first, id(text(8000, "a", "OTHER", 1)), "another variable");
    assert_ne!(first, id(text(8000, "a", "KEY", 2)), "another option");
}

/// Texts of the cases, for mutations.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases");
    let folders = std::fs::read_dir(root).unwrap();
    let files = folders.map(|entry| entry.unwrap().path().join("lab.toml"));
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Mixed lines of lab files, letters exchanged, are read or refused, and a read lab expands.
    #[test]
    fn any_text_is_read_or_refused(
        lines in prop::collection::vec((0..1000_usize, 0..1000_usize), 1..30),
        exchanged in prop::option::of((0..2000_usize, any::<char>())),
    ) {
        let texts = texts();
        let line = |(text, line): &(usize, usize)| {
            let lines: Vec<&str> = texts[text % texts.len()].lines().collect();
            if lines.is_empty() { "" } else { lines[line % lines.len()] }.to_owned()
        };
        let head = "name = \"x\"\nstrategy = \"matrix\"\nscenarios = \"a\"\n".to_owned();
        let mut text: String = head + &lines.iter().map(line).collect::<Vec<_>>().join("\n");
        if let Some((at, new)) = exchanged {
            text = text.chars().enumerate().map(|(place, old)| if place == at { new } else { old }).collect();
        }
        match Lab::parse("lab.toml", &text) {
            Ok(lab) => drop(crate::next(&lab, &scenarios(&["a"]), &Results::default())),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn conditions_and_placeholders_stand_any_text(text in "[a-z{}$&|!()<>=' .0-9é-]{0,60}") {
        let _ = crate::condition::Condition::parse(&text);
        let filled = crate::template::filled(&text, |name| (name == "a").then(|| "{b}".to_owned()));
        // A filled-in text is not filled in again.
        let twice = crate::template::filled(&filled, |name| (name == "b").then(|| "c".to_owned()));
        if crate::template::names(&text) == ["a"] {
            prop_assert_eq!(twice, filled);
        }
        let _ = crate::template::variables(&text);
    }
}
