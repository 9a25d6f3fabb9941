//! Completion of command lines, in real shells and as the program answers them: from a folder with
//! runs, plugins and files of its own.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::lacking;
use crate::support::process::{Mock, only_run, run, runner};
use crate::support::results::random;

/// A user's folder, with the program in its path and nothing of the machine's settings.
struct Home {
    folder: TempDir,
    /// Its runs, the newest first.
    runs: Vec<String>,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for place in ["bin", "functions", "mine/backends", "other"] {
            std::fs::create_dir_all(at(place)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_runner"), at("bin/runner")).unwrap();
        // Nobody loads it.
        std::fs::write(at("mine/backends/own-engine.wasm"), "no component").unwrap();
        std::fs::write(at("chat.toml"), "").unwrap();
        std::fs::write(at("two words.toml"), "").unwrap();
        let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
        let measured = || {
            let flags = "--num-prompts 3 --random-output-len 2";
            run(&mut random(&mock.url, folder.path(), flags)).with_code(0);
        };
        measured();
        let first = only_run(&at("runs")).unwrap();
        let name = first.file_name().unwrap().to_str().unwrap().to_owned();
        // As if it had begun a year before, so that both have a name of their own.
        let (_, title) = name.split_once('-').unwrap();
        let old = format!("20250101-{title}");
        std::fs::rename(first, at("runs").join(&old)).unwrap();
        measured();
        let names = std::fs::read_dir(at("runs")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(names[1..], [old]);
        // One that was moved.
        let moved = at("elsewhere/20260303-000000-moved");
        std::fs::create_dir_all(&moved).unwrap();
        let plan = at("runs").join(&names[0]).join("plan.json");
        std::fs::copy(plan, moved.join("plan.json")).unwrap();
        // A sweep's folder, which holds no run by itself.
        std::fs::create_dir_all(at("runs/20240101-000000-chat-sweep")).unwrap();
        std::fs::write(at("runs/20240101-000000-chat-sweep/sweep.json"), "{}").unwrap();
        Home { runs: names.iter().map(|name| format!("runs/{name}")).collect(), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program that knows this folder alone.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/bin:/bin", self.path().join("bin").display());
        let variables = [("PATH", path.as_str()), ("TERM", "dumb"), ("LC_ALL", "C.UTF-8")];
        command.env_clear().envs(variables).env("HOME", self.path());
        command.current_dir(self.path());
        command.stdin(std::process::Stdio::null());
        command
    }

    /// The program's offers for the last of these words.
    fn offered(&self, line: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
        let mut command = self.command(env!("CARGO_BIN_EXE_runner"));
        command.env("RUNNER_COMPLETE", "bash").envs(variables.iter().copied());
        command.env("_CLAP_COMPLETE_INDEX", line.len().to_string());
        command.args(["--", "runner"]).args(line);
        let ended = run(&mut command).with_code(0);
        assert_eq!(ended.stderr, "", "{line:?}");
        ended.stdout.lines().map(str::to_owned).collect()
    }

    /// Every file below it, but for the caches of the runs that were measured.
    fn files(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                found.insert(path);
            }
        }
        found
    }
}

/// Text typed in a shell, with the key that completes, and the words that the line has then.
struct Case {
    typed: String,
    words: Vec<String>,
}

/// The cases that hold in every shell: with one word that fits.
fn cases(home: &Home) -> Vec<Case> {
    let newest = home.runs[0].as_str();
    // So much of it as no other name has.
    let begun = newest.split_at("runs/20260102".len()).0;
    let of = |typed: &str, words: &[&str]| Case {
        typed: format!("{typed}\t"),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    vec![
        of("comple", &["completions"]),
        of("--backend vllm-c", &["--backend", "vllm-chat"]),
        of("run --dataset-name prefix_r", &["run", "--dataset-name", "prefix_repetition"]),
        of("chat.toml --num-pr", &["chat.toml", "--num-prompts"]),
        of("plan scenarios/q", &["plan", "scenarios/quickstart.toml"]),
        of("scenarios/q", &["scenarios/quickstart.toml"]),
        of(
            "compare a --fail-if requests.success-",
            &["compare", "a", "--fail-if", "requests.success-share"],
        ),
        of("guide coming", &["guide", "coming-from"]),
        of("schema excha", &["schema", "exchange"]),
        of("report x --style sg", &["report", "x", "--style", "sglang"]),
        of(&format!("report {begun}"), &["report", newest]),
        of("sweep --resume runs/20240", &["sweep", "--resume", "runs/20240101-000000-chat-sweep"]),
    ]
}

fn shown(output: &str) -> Vec<Vec<String>> {
    let lines = output.lines().filter_map(|line| line.split_once("shown:"));
    let words = |(_, line): (&str, &str)| line.trim().split('|').map(str::to_owned).collect();
    lines.map(words).collect()
}

#[track_caller]
fn same(shown: &[Vec<String>], cases: &[Case], output: &str) {
    for (words, case) in shown.iter().zip(cases) {
        assert_eq!(*words, case.words, "{:?}\n{output}", case.typed);
    }
    assert_eq!(shown.len(), cases.len(), "{output}");
}

/// Folders of runs come from strangers: their names are no commands, within quotes and without.
#[test]
fn bash_completes_words_and_runs_no_name() {
    let home = Home::new();
    for name in ["q$(touch owned)x", "q'; touch owned; 'x", "q`touch owned`x", "two words"] {
        let folder = home.path().join("runs").join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("plan.json"), "{}").unwrap();
    }
    // A command that prints its words, and is completed as the program is.
    let settings = "source <(runner completions bash)\nset +o history\n\
                    show() { local IFS='|'; echo \"shown:$*\"; }\n\
                    complete -o nospace -o bashdefault -o nosort -F _clap_complete_runner show\n";
    std::fs::write(home.path().join("settings"), settings).unwrap();
    let mut cases = cases(&home);
    let of = |typed: &str, words: &[&str]| Case {
        typed: typed.to_owned(),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    // Escape and a star insert all that is offered.
    cases.push(of(
        "score \x1b*",
        &[
            &["score"][..],
            &[&*home.runs[0], &*home.runs[1]][..],
            &["bin/", "elsewhere/", "functions/", "mine/", "other/"][..],
        ]
        .concat(),
    ));
    cases.push(of("nothing-like-it-\t", &["nothing-like-it-"]));
    let mut typed = cases.iter().fold(String::new(), |mut typed, case| {
        let _ = writeln!(typed, "show {}", case.typed);
        typed
    });
    for hostile in ["report runs/q\x1b*", "report \"runs/q\t\"", "report 'runs/q\t'"] {
        let _ = writeln!(typed, ": {hostile}");
    }
    std::fs::write(home.path().join("typed"), typed).unwrap();
    let mut bash = home.command("bash");
    bash.args(["--noprofile", "--rcfile", "settings", "-i"]);
    bash.stdin(std::fs::File::open(home.path().join("typed")).unwrap());
    let ended = run(&mut bash).with_code(0);
    let output = format!("{}\n{}", ended.stdout, ended.stderr);
    same(&shown(&ended.stdout), &cases, &output);
    assert!(!home.path().join("owned").exists(), "{output}");
}

/// In a file of zsh's path of functions, as packages install it, and read by the user's settings.
#[test]
fn zsh_completes_words() {
    if !lacking::has("zsh", &lacking::ZSH) {
        return;
    }
    let home = Home::new();
    let script = run(runner().args(["completions", "zsh"])).with_code(0).stdout;
    std::fs::write(home.path().join("functions/_runner"), script).unwrap();
    for (ready, function) in [
        ("fpath=($HOME/functions $fpath); autoload -Uz compinit; compinit -u -D", "_runner"),
        (
            "autoload -Uz compinit; compinit -u -D; source <(runner completions zsh)",
            "_clap_dynamic_completer_runner",
        ),
    ] {
        let cases = cases(&home);
        // A shell in a terminal of its own, that another one types in.
        let mut driver = format!(
            "zmodload zsh/zpty\nzpty shell zsh -f -i\n\
             zpty -w shell \"PROMPT=; {ready}; show() {{ local IFS='|'; print -r -- \\\"shown:\\$*\\\" }}; \
             compdef {function} show; print rea''dy\"\nzpty -r shell read '*ready*'\n",
            ready = ready.replace('$', "\\$"),
        );
        for case in &cases {
            let typed = case.typed.replace('\'', "\\'").replace('\t', "\\t");
            let _ = writeln!(
                driver,
                "zpty -w -n shell $'show {typed}\\n'\nzpty -r shell read $'*shown:*\\n'\nprint -r -- \"shown:${{read##*shown:}}\""
            );
        }
        driver += "zpty -d shell\n";
        std::fs::write(home.path().join("driver"), driver).unwrap();
        let ended = run(home.command("zsh").args(["-f", "driver"])).with_code(0);
        let output = format!("{ready}\n{}\n{}", ended.stdout, ended.stderr);
        same(&shown(&ended.stdout), &cases, &output);
    }
}

#[test]
fn fish_offers_values() {
    if !lacking::has("fish", &lacking::FISH) {
        return;
    }
    let home = Home::new();
    let cases = cases(&home);
    let mut script = "runner completions fish | source\n".to_owned();
    for case in &cases {
        // It offers without closing quotes.
        let typed = case.typed.trim_end().replace('\'', "");
        let _ = writeln!(
            script,
            "echo \"shown:\"(complete -C 'runner {typed}' | cut -f1 | string join '|')"
        );
    }
    let ended = run(home.command("fish").args(["--no-config", "-c", &script])).with_code(0);
    let shown = shown(&ended.stdout);
    for (offered, case) in shown.iter().zip(&cases) {
        let last = case.words.last().unwrap();
        assert_eq!(offered, std::slice::from_ref(last), "{:?}\n{ended:?}", case.typed);
    }
    assert_eq!(shown.len(), cases.len(), "{ended:?}");
}

#[test]
fn every_shell_has_a_script_that_asks_the_program_in_the_path() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = run(runner().args(["completions", shell])).with_code(0);
        assert_eq!(ended.stderr, "");
        assert!(ended.stdout.contains("RUNNER_COMPLETE"), "{shell}");
        // Not the path of the binary that printed it.
        assert!(!ended.stdout.contains("/runner "), "{shell}: {}", ended.stdout);
        // The variable alone prints it too.
        let same = run(runner().env("RUNNER_COMPLETE", shell)).with_code(0);
        assert!(ended.stdout.trim().starts_with(same.stdout.trim()), "{shell}");
    }
}

#[test]
fn completions_offer_existing_names() {
    let home = Home::new();
    let [new, old] = [&*home.runs[0], &*home.runs[1]];
    let elsewhere = "elsewhere/20260303-000000-moved";
    let none: &[(&str, &str)] = &[];
    // The line, the variables, some of the offered words, and words that are not offered.
    for (line, variables, offered, others) in [
        ("", none, vec!["run", "compare", "scenarios/lmdeploy", "chat.toml"], vec!["--backend"]),
        ("--", none, vec!["--backend", "--version"], vec!["run"]),
        (
            "chat.toml ",
            none,
            vec!["scenarios/lmdeploy", "chat.toml"],
            vec!["run", "compare", "--backend"],
        ),
        ("chat.toml --", none, vec!["--backend", "--threshold"], vec!["--version"]),
        // A word that only looks like a command.
        ("--model search --bac", none, vec!["--backend"], vec![]),
        ("run --percentile-m", none, vec!["--percentile-metrics"], vec![]),
        ("report ", none, vec![new, old], vec!["--format"]),
        ("report ", &[("RUNNER_OUTPUT_DIR", "elsewhere")], vec![elsewhere], vec![new]),
        ("report elsewhere/", none, vec![elsewhere], vec![new]),
        ("run --output-dir elsewhere --baseline ", none, vec![elsewhere], vec![new]),
        ("compare ", none, vec![new, old, "published:", "chat.toml"], vec![]),
        ("compare runs/x,", none, vec![], vec!["published:"]),
        ("search --resume ", none, vec![], vec![new, "runs/20240101-000000-chat-sweep"]),
        ("--backend o", none, vec!["openai", "openai-chat", "ollama"], vec!["own-engine"]),
        ("--backend o", &[("RUNNER_PLUGIN_PATH", "mine")], vec!["own-engine"], vec![]),
        ("--plugin-path other:mine --backend o", none, vec!["own-engine"], vec![]),
        (
            "--plugin-path=mine --plugin ",
            none,
            vec!["backends/own-engine.wasm", "backends/vllm.wasm"],
            vec![],
        ),
        ("plugin info v", none, vec!["vllm", "verdict"], vec![]),
        ("score x --scorer exact", none, vec!["exact-match"], vec![]),
        (
            "--backend sglang --endpoint ",
            none,
            vec!["/generate", "/v1/chat/completions"],
            vec!["/api/chat"],
        ),
        ("--endpoint ", &[("RUNNER_BACKEND", "ollama")], vec!["/api/chat"], vec!["/generate"]),
        (
            "--backend=tgi --set backend.config.route=",
            none,
            vec!["backend.config.route=generate"],
            vec!["backend.config.route=completions"],
        ),
        (
            "--set ",
            none,
            vec!["load.rate=", "about.notes.", "goodput.ttft=", "backend.config."],
            vec!["load.stages[].rate="],
        ),
        (
            "--set backend.plugin=",
            none,
            vec!["backend.plugin=backends/vllm.wasm"],
            vec!["backend.plugin=datasets/random.wasm"],
        ),
        ("scenario keys load", none, vec!["load", "load.rate"], vec!["about"]),
        ("sweep --latency ttft.", none, vec!["ttft.p99", "ttft.mean"], vec![]),
        ("--threshold ", none, vec!["ttft.", "verdict", "requests.success-share"], vec![]),
        ("compare a --metric ttft.p99,tpot.m", none, vec!["ttft.p99,tpot.mean"], vec![]),
        ("search --preset ml", none, vec!["mlperf-server:llama2-70b"], vec![]),
        ("--preset ", none, vec!["mlperf-accuracy"], vec!["agentx"]),
        ("--engine s", none, vec!["sglang"], vec![]),
        (
            "published lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sh",
            none,
            vec!["lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt"],
            vec![],
        ),
        ("lab ", none, vec!["scenarios/labs/gpustack.toml"], vec![]),
        ("verify ", none, vec!["runner"], vec!["--list"]),
        ("verify runner --case ", none, vec!["stream-role"], vec![]),
        ("mock --conformance ", none, vec!["fault-pause"], vec![]),
        ("fleet merge ", none, vec![new, old], vec![]),
        // No values are known, and so the flags are offered.
        ("probe ", none, vec!["--format"], vec![]),
        ("--seed ", none, vec![], vec!["run", "--backend"]),
    ] {
        let line: Vec<&str> = line.split(' ').collect();
        let all = home.offered(&line, variables);
        for value in offered {
            assert!(all.iter().any(|one| one == value), "{line:?}: {value}: {all:?}");
        }
        for value in others {
            assert!(!all.iter().any(|one| one == value), "{line:?}: {value}: {all:?}");
        }
    }
    let runs = home.offered(&["report", "runs/"], none);
    assert_eq!(runs, [new, old, "runs/20240101-000000-chat-sweep/"]);
}

/// A tokenizer that is in the hub's cache, by its name.
#[test]
fn tokenizers_of_the_cache_are_offered() {
    let home = Home::new();
    let model = home.path().join("hub/models--ORG--tiny");
    std::fs::create_dir_all(model.join("snapshots/c0ffee")).unwrap();
    std::fs::create_dir_all(model.join("refs")).unwrap();
    std::fs::write(model.join("refs/main"), "c0ffee").unwrap();
    let tokenizer = model.join("snapshots/c0ffee/tokenizer.json");
    let cache = home.path().join("hub");
    let offered = || {
        let variables = [("HF_HUB_CACHE", cache.to_str().unwrap())];
        home.offered(&["--tokenizer", "OR"], &variables)
    };
    assert_eq!(offered(), Vec::<String>::new());
    std::fs::write(tokenizer, "{}").unwrap();
    assert_eq!(offered(), ["ORG/tiny"]);
}

#[test]
fn completion_writes_nothing_and_reports_no_failure() {
    let home = Home::new();
    let before = home.files();
    for line in [
        &["--backend", ""][..],
        &["report", ""],
        &["compare", "published:"],
        &["--plugin", ""],
        &["--tokenizer", ""],
        &["--set", "dataset.config."],
    ] {
        home.offered(line, &[]);
    }
    assert_eq!(home.files(), before);
    // A folder that does not exist, and a file.
    for (line, variables) in [
        (&["report", ""][..], ("RUNNER_OUTPUT_DIR", "chat.toml")),
        (&["report", "chat.toml/"], ("RUNNER_OUTPUT_DIR", "none")),
        (&["--plugin", "ow"], ("RUNNER_PLUGIN_PATH", "chat.toml:none")),
        (&["compare", "published:none"], ("HF_HUB_CACHE", "chat.toml")),
        (&["run", "none", "none", "--none"], ("RUNNER_SEED", "no number")),
    ] {
        home.offered(line, &[variables]);
    }
    // A shell that asks in a way of its own.
    for (shell, index, words) in [
        ("no-such-shell", "1", &["--", "runner", ""][..]),
        ("bash", "7", &["--", "runner", ""]),
        ("bash", "no number", &["--", "runner", ""]),
        ("zsh", "-1", &["--", "runner", "--backend", "v"]),
        ("bash", "1", &["--", "runner"]),
        ("fish", "", &["--"]),
    ] {
        let mut command = home.command(env!("CARGO_BIN_EXE_runner"));
        command.env("RUNNER_COMPLETE", shell);
        command.env("_CLAP_COMPLETE_INDEX", index).args(words);
        let ended = run(&mut command).with_code(0);
        assert_eq!(ended.stderr, "", "{shell} {words:?}");
    }
    // A variable that says no leaves the program as it is.
    for off in ["", "0"] {
        let ended = run(runner().env("RUNNER_COMPLETE", off).arg("--version")).with_code(0);
        assert!(ended.stdout.starts_with("runner "), "{off:?}: {ended:?}");
    }
}
