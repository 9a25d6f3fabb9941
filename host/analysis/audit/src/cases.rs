//! Files as the real tools wrote them, or pages as published, in `tests/audit`: each folder has
//! one, together with its expected audit. `BLESS=1` rewrites the expectation.

use std::path::{Path, PathBuf};

use super::*;
use crate::claim;

/// The audit as text, or the errors of the file.
fn transcript(input: &Path) -> String {
    let content = std::fs::read(input).unwrap();
    let name = input.file_name().unwrap().to_str().unwrap();
    match claim::read(name, &content) {
        Ok(document) => text::text(&documents(&[document])),
        Err(errors) => errors.iter().map(|error| format!("error: {error}\n")).collect(),
    }
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/audit");
    let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn input(folder: &Path) -> PathBuf {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_input = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "input");
    entries.into_iter().find(is_input).unwrap()
}

#[test]
fn each_audit_equals_its_expected_text() {
    let mut wrong = String::new();
    let folders = folders();
    assert!(folders.len() > 25, "{} cases", folders.len());
    for folder in folders {
        let now = transcript(&input(&folder));
        let kept = folder.join("expected.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&kept, &now).unwrap();
        }
        if std::fs::read_to_string(&kept).unwrap_or_default() != now {
            wrong += &format!("{} differs; BLESS=1 writes it anew. Now:\n{now}\n", kept.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Files that real tools wrote about a sound engine: none of them is invalid. The only doubts come
/// from the mock's own text (its tokens differ from its counts) or from a tool's way of counting.
#[test]
fn real_files_of_sound_runs_are_not_called_invalid() {
    for name in [
        "vllm-json",
        "vllm-detailed",
        "vllm-appended",
        "vllm-log",
        "vllm-one-token",
        "sglang-details",
        "sglang-twice",
        "sglang-block",
        "guidellm",
        "guidellm-0.3",
        "aiperf",
        "aiperf-whole",
        "genai-perf",
        "llm-d-yaml",
        "inference-perf-published",
        "inference-perf-stage",
        "inference-perf-requests",
        "evalscope",
        "evalscope-chunks-of-4",
        "evalscope-percentiles",
        "genai-bench",
        "endpoints",
        "endpoints-legacy-window",
        "llm-d",
        "lmdeploy-csv",
        "lmdeploy-page",
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/audit").join(name);
        let content = std::fs::read(input(&folder)).unwrap();
        let report = documents(&[claim::read(name, &content).unwrap()]);
        for result in &report.results {
            for finding in &result.findings {
                let known = finding.id == Id::RetokenizedDiffers;
                assert!(known || finding.severity == Severity::Note, "{name}: {finding:?}");
            }
        }
    }
}

#[test]
fn the_json_is_as_its_schema_says() {
    let schema = schemars::schema_for!(Report);
    let validator = jsonschema::validator_for(schema.as_value()).unwrap();
    for folder in folders() {
        let content = std::fs::read(input(&folder)).unwrap();
        if let Ok(document) = claim::read("input", &content) {
            let shown = serde_json::to_value(documents(&[document])).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&shown).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{}", folder.display());
        }
    }
}
