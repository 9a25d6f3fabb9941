//! The plugin author's guide, followed to the letter with the built binary. Blocks marked as tested
//! are run, and blocks that are files are written, in the order of the page. The results that a
//! reader would see are compared. And the workflow that comes with a project: its steps, run on a
//! project that was just made.
//!
//! The parts in Python, JavaScript and C are followed if the language's compiler is available: on
//! the PATH, named by `COMPONENTIZE_PY`, `COMPONENTIZE_QJS` or `CLANG`, or where
//! `cargo xtask test languages` installs it. Otherwise they are left out.

#[path = "../plugins/guide/blocks.rs"]
mod blocks;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{Block, blocks};
use runner::guide::Page;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::lacking;
use crate::support::languages::{C, JAVASCRIPT, Other, PYTHON};
use crate::support::port;
use crate::support::process::{PROJECTS, inherit, light_projects, run, runner};

/// The first of the ports that the guide's engines listen on; all of them begin so.
const PORTS: &str = "730";

const OTHERS: [Other; 3] = [PYTHON, JAVASCRIPT, C];

/// True if a block of the guide is in this language.
fn is_in(language: &Other, block: &Block) -> bool {
    let word = format!(" {}", language.word);
    block.info.contains(" tested") && block.info.ends_with(&word)
        || block.path().is_some_and(|path| path.contains(language.suffix))
}

/// A reader with a folder of their own.
struct Reader {
    folder: TempDir,
    /// The compilers of the other languages, where there are any.
    others: [Option<PathBuf>; OTHERS.len()],
}

impl Reader {
    fn new() -> Self {
        let others = OTHERS.map(|other| other.compiler());
        let folder = tempfile::tempdir().unwrap();
        light_projects(folder.path());
        Reader { folder, others }
    }

    /// True if the parts in a language are followed.
    fn follows(&self, word: &str) -> bool {
        let mut all = OTHERS.iter().zip(&self.others);
        all.any(|(other, found)| other.word == word && found.is_some())
    }

    fn follow(&self, page: Page) {
        let mut followed = 0;
        for block in blocks(page.text()) {
            let mut all = OTHERS.iter().zip(&self.others);
            if all.any(|(other, found)| is_in(other, &block) && found.is_none()) {
                continue;
            }
            if let Some(path) = block.path() {
                let path = self.folder.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &block.text).unwrap();
            } else if block.language() == "sh" && block.info.contains(" tested") {
                self.run(&block);
                followed += 1;
            }
        }
        assert!(followed > 2, "the page has nothing to follow");
    }

    /// Runs a block as a reader would, but on free ports, and not before the engine listens.
    #[track_caller]
    fn run(&self, block: &Block) {
        let mut script = block.text.clone();
        for digit in 0..10 {
            let port = format!("{PORTS}{digit}");
            if script.contains(&port) {
                let free = port::free().to_string();
                let listening = format!(
                    "timeout 60 bash -c 'until (exec 3<>/dev/tcp/127.0.0.1/{free}) 2>/dev/null; do sleep 0.1; done'"
                );
                script = script.replace(&port, &free).replace("sleep 1\n", &(listening + "\n"));
            }
        }
        self.sh(self.folder.path(), &script, &[]);
    }

    /// Runs a script to its end; its background processes end with it.
    #[track_caller]
    fn sh(&self, folder: &Path, script: &str, variables: &[(&str, &Path)]) {
        let script = format!("trap '[ -z \"$!\" ] || kill $! 2>/dev/null || :' EXIT\n{script}");
        let mut command = Command::new("sh");
        inherit(&mut command, &runner());
        // The compiler of components depends on this machine.
        let toolchain = std::env::var_os("RUNNER_WASM_TOOLCHAIN");
        command.envs(toolchain.map(|value| ("RUNNER_WASM_TOOLCHAIN", value)));
        let own = Path::new(env!("CARGO_BIN_EXE_runner")).parent().unwrap();
        for (other, found) in OTHERS.iter().zip(&self.others) {
            command.envs(found.as_ref().map(|path| (other.variable, path)));
        }
        let mut search = vec![own.to_owned()];
        let given = std::env::var_os("PATH").unwrap_or_default();
        search.extend(std::env::split_paths(&given));
        let search: OsString = std::env::join_paths(search).unwrap();
        let ended = command
            .args(["-e", "-c", &script])
            .current_dir(folder)
            .env("PATH", search)
            .env("CARGO_TARGET_DIR", PROJECTS)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(
            ended.status.success(),
            "{script}\n{}\n{}",
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr)
        );
    }

    /// A file of JSON that the guide had written.
    fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
    }
}

/// 40 answers of 16 tokens, by the server's own count.
fn assert_measured(result: &Value) {
    let counts = &result["requests"];
    assert_eq!((&counts["total"], &counts["successful"]), (&40.into(), &40.into()), "{result:#}");
    let output = &result["tokens"]["output"];
    assert_eq!(output["total"], 40 * 16, "{result:#}");
    assert_eq!(output["exchanges-by-source"]["usage"], 40, "{result:#}");
    assert_eq!(result["tokens"]["input"]["exchanges-by-source"]["usage"], 40, "{result:#}");
    assert_ne!(result["verdict"], "invalid", "{result:#}");
}

#[test]
fn a_backend_for_an_engine_that_nobody_knows() {
    let reader = Reader::new();
    reader.follow(Page::Backend);
    assert_measured(&reader.json("lantern.json"));
    let failing = reader.json("lantern-failing.json");
    assert_eq!(failing["requests"]["successful"], 30, "{failing:#}");
    assert_eq!(failing["requests"]["failed"], 10, "{failing:#}");
    let explained = reader.folder.path().join("lantern/cases/full-queue/explained.json");
    let explained = std::fs::read_to_string(explained).unwrap();
    assert!(explained.contains("the queue is full"), "{explained}");
    for (word, result) in
        [("python", "lantern-py.json"), ("javascript", "lantern-js.json"), ("c", "lantern-c.json")]
    {
        if reader.follows(word) {
            assert_measured(&reader.json(result));
        }
    }
}

#[test]
fn a_dataset_and_a_scorer_that_judges_its_answers() {
    let reader = Reader::new();
    reader.follow(Page::Dataset);
    assert_eq!(reader.json("sums.json")["requests"]["successful"], 20);
    reader.follow(Page::Scorer);
    let result = reader.json("numeric.json");
    assert_eq!(result["requests"]["successful"], 20, "{result:#}");
    let correct = &result["scores"]["correct"];
    assert_eq!(correct["count"], 20, "{result:#}");
    // Five of the first 20 sums of seed 7 are 9. All answers have a number, so both measures agree.
    assert_eq!(correct["mean"], 0.25, "{result:#}");
    assert_eq!(result["run-scores"]["correct-of-numbers"], 0.25, "{result:#}");
}

/// The `run` steps of the workflow, by name.
fn steps() -> BTreeMap<String, String> {
    let mut steps = BTreeMap::new();
    let (mut name, mut within) = (String::new(), false);
    for line in Page::Workflow.text().lines() {
        if let Some(title) = line.strip_prefix("      - name: ") {
            (name, within) = (title.to_owned(), false);
        } else if line == "        run: |" {
            within = true;
        } else if let (true, Some(script)) = (within, line.strip_prefix("          ")) {
            let text: &mut String = steps.entry(name.clone()).or_default();
            text.push_str(script);
            text.push('\n');
        } else {
            within = false;
        }
    }
    steps
}

#[test]
fn the_workflow_tests_a_project_as_it_comes() {
    let reader = Reader::new();
    let new = ["plugin", "new", "scorer", "as-it-comes"];
    run(runner().args(new).current_dir(reader.folder.path())).with_code(0);
    let project = reader.folder.path().join("as-it-comes");
    let written = project.join(".github/workflows/plugin.yml");
    assert_eq!(std::fs::read_to_string(written).unwrap(), Page::Workflow.text());
    let steps = steps();
    let names: Vec<&str> = steps.keys().map(String::as_str).collect();
    assert_eq!(names, ["Build", "Check", "Get the runner", "Prepare the compiler", "Test"]);

    let temporary = reader.folder.path().join("temporary");
    let added = reader.folder.path().join("path");
    std::fs::create_dir(&temporary).unwrap();
    std::fs::write(&added, "").unwrap();
    let binary = env!("CARGO_BIN_EXE_runner");
    let url = PathBuf::from(format!("file://{binary}"));
    let digest = Command::new("sha256sum").arg(binary).output().unwrap().stdout;
    let digest = String::from_utf8(digest).unwrap();
    let digest = PathBuf::from(digest.split(' ').next().unwrap());
    let variables = [
        ("RUNNER_URL", url.as_path()),
        ("RUNNER_SHA256", &digest),
        ("RUNNER_TEMP", &temporary),
        ("GITHUB_PATH", &added),
    ];
    if lacking::has("curl", &lacking::CURL) {
        reader.sh(&project, &steps["Get the runner"], &variables);
        let added = std::fs::read_to_string(&added).unwrap();
        assert!(Path::new(added.trim()).join("runner").is_file());
    }
    for step in ["Build", "Check", "Test"] {
        reader.sh(&project, &steps[step], &[]);
    }
    let report = std::fs::read_to_string(project.join("target/plugin/junit.xml")).unwrap();
    assert!(report.contains("<testcase"), "{report}");
}
