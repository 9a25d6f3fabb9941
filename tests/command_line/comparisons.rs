//! Comparisons from the command line: repeats, sides, refusals, conditions.

use std::path::Path;

use serde_json::Value;

use super::transcript;
use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::{follows, run_folders};

const RUN: &str = "run --backend vllm --dataset-name random --num-prompts 30 --random-output-len 4 --max-concurrency 30 --request-rate 200";

/// Measures three times. It must not matter how busy this machine is: verdicts are ignored, and the
/// compared values are far apart.
fn repeated(folder: &Path, mock: &Mock, flags: &str) -> Exit {
    let mut command = runner();
    command.args(words(RUN)).args(words(flags));
    command.args(["--repeat", "3", "--same-requests", "--seed", "3", "--base-url", &mock.url]);
    run(command.current_dir(folder)).with_code(0)
}

fn compare(folder: &Path, line: &str) -> Exit {
    run(runner().arg("compare").args(words(line)).current_dir(folder))
}

/// Compares two sides, whatever their verdicts, with a condition.
fn on_condition(folder: &Path, sides: [&str; 2], condition: &str) -> Exit {
    let condition = ["--allow", "verdict", "--fail-if", condition];
    run(runner().arg("compare").args(sides).args(condition).current_dir(folder))
}

#[test]
fn repeats_take_turns_and_tell_their_spread() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let text = format!(
            "name = '{name}'\n[backend]\nplugin = 'backends/vllm.wasm'\n[dataset]\nplugin = 'datasets/random.wasm'\n[dataset.config]\noutput-len = 4\n[load]\nrequests = 5\narrival = 'inf'"
        );
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    let mut command = runner();
    command.args(words("run a.toml b.toml --repeat 2 --same-requests --base-url")).arg(&mock.url);
    let ended = run(command.current_dir(folder.path())).with_code(0);
    let turns: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(turns, ["== a, 1 of 2 ==", "== b, 1 of 2 ==", "== a, 2 of 2 ==", "== b, 2 of 2 =="]);
    assert!(ended.stderr.contains("--cache flush"), "{ended:#?}");
    assert_eq!(ended.stdout.matches("Serving Benchmark Result").count(), 4);
    for name in ["a", "b"] {
        let table = ended.stdout.split(&format!("== 2 runs of {name} ==")).nth(1);
        let table = table.unwrap_or_else(|| panic!("{ended:#?}"));
        assert!(table.contains("ttft.mean (ms)") && table.contains("Variation"), "{ended:#?}");
    }
    // Each records the run that it repeats, so the four runs form two sides.
    let found = compare(folder.path(), "runs --allow verdict --format json").with_code(0).json();
    let sides = found["sides"].as_array().unwrap();
    let of = |side: &Value| (side["scenario"].clone(), side["sources"].as_array().unwrap().len());
    assert_eq!(sides.iter().map(of).collect::<Vec<_>>(), [("a".into(), 2), ("b".into(), 2)]);
    assert_eq!(found["pairs"][0]["method"]["by"], "runs");
    let each =
        compare(folder.path(), "runs --each --allow verdict --format json").with_code(0).json();
    assert_eq!(each["sides"].as_array().unwrap().len(), 4);
    follows("comparison", &found);
}

/// The engine sees the lengths of the prompts.
#[test]
fn repeats_send_the_same_requests_or_new_ones() {
    for (flag, has_new) in [(" --same-requests", false), ("", true)] {
        let folder = tempfile::tempdir().unwrap();
        let mock = Mock::logging(&["--ttft", "2ms", "--itl", "1ms"]);
        let line = "run --backend vllm --dataset-name random --num-prompts 7 --warmup-requests 0 --random-input-len 400 --random-range-ratio 0.9 --random-output-len 3 --request-rate inf --seed 5 --repeat 3 --json";
        let mut command = runner();
        command.args(words(&format!("{line}{flag} --base-url"))).arg(&mock.url);
        let ended = run(command.current_dir(folder.path())).with_code(0);
        assert_eq!(ended.stderr.contains("repeats send the same prompts"), !has_new, "{ended:#?}");
        let lengths: Vec<_> = mock.end().iter().filter_map(|seen| seen.prompt_tokens).collect();
        assert_eq!(lengths.len(), 3 * 7);
        let mut repeats: Vec<_> = lengths.chunks(7).map(<[_]>::to_vec).collect();
        repeats.iter_mut().for_each(|lengths| lengths.sort_unstable());
        assert_eq!(repeats[0] == repeats[1], !has_new, "{repeats:?}");
        assert_eq!(repeats[1] == repeats[2], !has_new, "{repeats:?}");
        let table = &ended.stdout[ended.stdout.rfind("\n{\n").unwrap_or_default()..];
        let table: Value = serde_json::from_str(table).unwrap();
        assert_eq!(table["new-requests"] == true, has_new, "{table}");
        // They stay one side.
        let found = compare(folder.path(), "runs --allow verdict");
        assert!(found.stderr.contains("are repeats and form one side"), "{found:#?}");
        // Repeats with new requests are no side of a comparison.
        let [a, b, c] = run_folders(folder.path()).try_into().unwrap();
        let sides = format!("{},{} {} --allow verdict", a.display(), b.display(), c.display());
        let found = compare(folder.path(), &sides).with_code(if has_new { 3 } else { 0 });
        let hint = "measure them with --same-requests";
        assert_eq!(found.stderr.contains(hint), has_new, "{found:#?}");
    }
    let alone = run(runner().args(words("run --base-url http://127.0.0.1:1 --same-requests")));
    assert!(alone.with_code(2).stderr.contains("add --repeat N or --until"));
}

/// A list with commas is a side, even if its runs are repeats of runs in another list.
#[test]
fn listed_runs_are_the_sides_that_the_user_makes_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    repeated(folder.path(), &mock, "");
    let names: Vec<String> = (run_folders(folder.path()).iter())
        .map(|run| format!("runs/{}", run.file_name().unwrap().to_string_lossy()))
        .collect();
    let [first, second, third] = names.as_slice() else { panic!("{names:?}") };
    let line = format!("{first},{second} {third} --allow verdict --format json");
    let found = compare(folder.path(), &line).with_code(0).json();
    let sides = found["sides"].as_array().unwrap().iter();
    let many: Vec<usize> = sides.map(|side| side["sources"].as_array().unwrap().len()).collect();
    assert_eq!(many, [2, 1]);
    compare(folder.path(), &format!("{first},nowhere {third}"))
        .with_stderr(3, "`nowhere` is no folder");
}

#[test]
fn repeats_stop_once_a_figure_is_sure_enough() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms", "--spread", "0.05"]);
    let run_until = |until: &str, flags: &str, code: i32| {
        let mut command = runner();
        command.args(words(RUN)).args(words(flags));
        command.args(["--seed", "3", "--base-url", &mock.url, "--until", until]);
        run(command.current_dir(folder.path())).with_code(code)
    };
    // However busy this machine is: it takes no more than three runs to be this sure.
    let ended = run_until("ttft.p90 \u{b1}100s", "--repeat 5", 0);
    let turns = ended.stderr.matches(" of at most 5 ==").count();
    assert_eq!(turns, 3, "{ended:#?}");
    assert!(
        ended.stderr.contains("second run shows the number of runs; at least 3, at most 5"),
        "{ended:#?}"
    );
    assert!(ended.stderr.contains("within the bound (ttft.p90 \u{b1}100000 ms)"), "{ended:#?}");
    assert!(ended.stdout.contains("Stopped: ttft.p90 is "), "{ended:#?}");
    let most = run_until("ttft.mean +-0.000001%", "--repeat 3 --json", 0);
    let last = most.stdout.rfind("\n{\n").unwrap_or_default();
    let found: Value = serde_json::from_str(&most.stdout[last..]).unwrap();
    assert_eq!(found["stopped"]["because"], "most", "{most:#?}");
    follows("repeats", &found);
    let few = run_until("ttft.mean +-5%", "--repeat 2", 2);
    assert!(few.stderr.contains("--until takes at least 3 runs"), "{few:#?}");
    let none = run_until("cached-input-tokens.mean +-5%", "--repeat 5", 3);
    assert!(none.stderr.contains("has no cached-input-tokens.mean"), "{none:#?}");
}

#[test]
fn refusals_and_conditions_have_their_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let fast = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    let slow = Mock::start(&["--ttft", "205ms", "--itl", "1ms"]);
    repeated(folder.path(), &fast, "");
    compare(folder.path(), "runs").with_stderr(2, "are repeats and form one side");
    repeated(folder.path(), &slow, "--output-dir slow");
    let failing = on_condition(folder.path(), ["runs", "slow"], "ttft.mean +50ms").with_code(6);
    assert!(failing.stderr.starts_with("error: ttft.mean +50ms of B: +"), "{failing:#?}");
    assert!(failing.stdout.contains("FAILS") && failing.stdout.contains("! worse"), "{failing:#?}");
    let better = on_condition(folder.path(), ["slow", "runs"], "ttft.mean +50ms").with_code(0);
    assert!(better.stdout.contains("+ better") && better.stdout.contains("passes"), "{better:#?}");
    // A condition that cannot be checked does not pass.
    on_condition(folder.path(), ["runs", "slow"], "queue-wait.mean +5%").with_code(2);
    on_condition(folder.path(), ["runs", "slow"], "cached-input-tokens.mean +5%").with_code(2);
    on_condition(folder.path(), ["runs", "slow"], "tls.mean +5%")
        .with_stderr(3, "neither side has it");

    let mut other = runner();
    other.args(words(RUN)).args(["--seed", "7", "--output-dir", "other", "--base-url", &fast.url]);
    run(other.current_dir(folder.path())).with_code(0);
    let refused = compare(folder.path(), "runs other")
        .with_stderr(3, "not comparable: load.seed (prompts): 3 in A, 7 in B")
        .with_stderr(3, "--allow prompts");
    assert_eq!(refused.stdout, "");
    compare(folder.path(), "runs other --allow prompts,verdict")
        .with_stdout(0, "COMPARED ALTHOUGH THESE DIFFER");
    compare(folder.path(), "runs other --force --format markdown")
        .with_stdout(0, "### B against A");
    assert_eq!(run_folders(folder.path()).len(), 3);
}

#[test]
fn results_of_others_are_sides_too() {
    let folder = tempfile::tempdir().unwrap();
    let both = "published:lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt published:lmdeploy-0.9.2/h800/Qwen3-8B-FP8/random-1k-1k";
    compare(folder.path(), both).with_stderr(3, "not comparable: ");
    compare(folder.path(), &format!("{both} --force")).with_stdout(0, "published without samples");
    compare(folder.path(), "published:gpustack published:lmdeploy")
        .with_stderr(3, "name one of them");
    compare(folder.path(), "nowhere.json published:lmdeploy").with_stderr(3, "nowhere.json");
    for (name, line) in
        [("wrong-condition", "a b --fail-if ttft.p99"), ("wrong-figure", "a b --metric tttf.p99")]
    {
        transcript(name, &compare(folder.path(), line).with_code(2).stderr);
    }
}

/// One run per side does not show the variation among runs. That is assumed, stated, or taken from
/// repeats.
#[test]
fn the_variation_from_run_to_run_is_assumed_or_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    repeated(folder.path(), &mock, "");
    let two = &run_folders(folder.path())[..2];
    let compared = |flags: &[&str]| {
        let each = ["--each", "--allow", "verdict"];
        run(runner().arg("compare").args(two).args(each).args(flags).current_dir(folder.path()))
    };
    let condition = ["--fail-if", "requests.failed +5%"];
    let ended = compared(&condition).with_code(0);
    // Other tests may use this machine at the same time.
    let share = if ended.stdout.contains("times in doubt") { 20 } else { 2 };
    let assumed = format!("assumed to be {share} % of the engine's pace");
    assert!(ended.stdout.contains(&assumed), "{ended:#?}");
    let warning = "warning: --fail-if judges one run per side";
    assert!(ended.stderr.contains(warning), "{ended:#?}");
    let ended = compared(&[&condition[..], &["--run-variation", "1%"]].concat())
        .with_stdout(0, "assumed to be 1 % of the engine's pace");
    assert!(!ended.stderr.contains(warning), "{ended:#?}");
    let ended = compared(&["--run-variation", "runs", "--same-within", "100%"]).with_code(0);
    for words in ["taken from 3 repeats of random", " in runs", "≡ same"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    for (flags, code, words) in [
        (["--run-variation", "nowhere"], 2, "expected a share from 0% to 100%"),
        (["--run-variation", "1"], 2, "expected a share from 0% to 100%"),
        (["--same-within", "2"], 2, "expected a share from 0% to 100%, such as 2%"),
    ] {
        let ended = compared(&flags).with_code(code);
        assert!(ended.stderr.contains(words), "{flags:?}: {ended:#?}");
    }
    compared(&["--run-variation", two[0].to_str().unwrap()]).with_stderr(3, "at least two repeats");
    let other = Mock::start(&["--ttft", "6ms", "--itl", "1ms"]);
    repeated(folder.path(), &other, "--output-dir runs/other");
    compared(&["--run-variation", "runs"]).with_stderr(3, "are not repeats of one scenario");
}
