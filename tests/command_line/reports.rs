//! A result is the same wherever it is rendered: by the run, from its folder, as text or JSON.

use std::path::{Path, PathBuf};

use crate::support::lacking;
use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::{copy_files, json_file, random, run_folder};

fn a_run(folder: &Path, flags: &str) -> (Exit, PathBuf) {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let flags = format!("--num-prompts 5 --random-output-len 4 {flags}");
    let ended = run(&mut random(&mock.url, folder, &flags)).with_code(0);
    (ended, run_folder(folder))
}

fn report(run_folder: &Path, format: &str) -> String {
    let ended = run(runner().arg("report").arg(run_folder).args(["--format", format])).with_code(0);
    assert_eq!(ended.stderr, "");
    ended.stdout
}

#[test]
fn a_report_equals_the_output_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (ended, run_folder) = a_run(folder.path(), "");
    assert!(ended.stdout.starts_with("============ Serving Benchmark Result"));
    assert!(ended.stdout.ends_with(&format!("{:=^50}\n", "")));
    assert_eq!(report(&run_folder, "text"), ended.stdout);
    let summary = std::fs::read_to_string(run_folder.join("summary.json")).unwrap();
    assert_eq!(report(&run_folder, "json"), summary);
    let table = report(&run_folder, "csv");
    assert_eq!(table.lines().count(), 1 + 1 + 5, "header, warmup, requests");
    // A plugin's log, progress and findings appear in none of them; where the records are, and how
    // to see more, is printed separately.
    let lines = ended.stderr.lines().filter(|line| !line.starts_with("note: read as"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2, "{ended:#?}");
    assert!(lines[0].starts_with("records: runs/"), "{ended:#?}");
    let (_, more) = lines[1].split_once("runner ").unwrap();
    let whole = run(runner().args(words(more)).current_dir(folder.path())).with_code(0);
    let whole = whole.stdout;
    assert!(whole.lines().count() > ended.stdout.lines().count(), "{whole}");
}

/// The slices of an existing run equal the slices of a run that had them from the beginning, in
/// every format. They hold every request once.
#[test]
fn a_report_has_the_requested_time_slices() {
    let folder = tempfile::tempdir().unwrap();
    let (_, run_folder) = a_run(folder.path(), "--request-rate 20");
    assert!(!report(&run_folder, "json").contains("time-slices"));
    let sliced = |format: &str| {
        let mut command = runner();
        let flags = ["--slice", "100ms", "--format", format];
        command.arg("report").arg(&run_folder).args(flags);
        run(&mut command).with_code(0).stdout
    };
    let json: serde_json::Value = serde_json::from_str(&sliced("json")).unwrap();
    let slices = json["time-slices"]["slices"].as_array().unwrap();
    let sum = |key: &str| slices.iter().map(|own| own[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!([sum("due"), sum("sent"), sum("successful"), sum("failed")], [5, 5, 5, 0]);
    assert_eq!(sum("output-tokens"), json["tokens"]["output"]["total"].as_u64().unwrap());
    let table = sliced("csv");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + slices.len());
    assert!(lines[0].starts_with("from-s,to-s,due,sent,"), "{table}");
    assert!(sliced("text").contains("Time Slices"));
    assert!(sliced("html").contains("By time slice"));

    let plan = run_folder.join("plan.json");
    let mut edited = json_file(&plan);
    edited["time-slice"] = 100_000_000_u64.into();
    std::fs::write(&plan, edited.to_string()).unwrap();
    let again: serde_json::Value = serde_json::from_str(&report(&run_folder, "json")).unwrap();
    assert_eq!(again["time-slices"], json["time-slices"]);
    let table = report(&run_folder, "csv");
    assert_eq!(table.lines().count(), 1 + 1 + 5, "of requests, as ever");
}

/// Every format in every style depends only on the contents of the folder.
#[test]
fn redrawing_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (_, run_folder) = a_run(folder.path(), "--max-concurrency 2 --goodput ttft:1000");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for line in [
        "text",
        "text --style vllm",
        "text --style sglang",
        "text --style lmdeploy",
        "markdown",
        "markdown --style lmdeploy",
        "json",
        "json --style vllm",
        "json --style vllm --detailed",
        "jsonl",
        "jsonl --style sglang",
        "jsonl --style sglang --detailed",
        "csv",
    ] {
        let drawn = |flags: &str, run_folder: &Path| {
            let mut command = runner();
            command.arg("report").arg(run_folder).arg("--format");
            command.args(words(line)).args(words(flags)).current_dir(&elsewhere);
            let ended = run(&mut command).with_code(0);
            assert_eq!(ended.stderr, "", "{line}");
            ended.stdout
        };
        let first = drawn("", &run_folder);
        assert!(first.ends_with('\n') && first.len() > 200, "{line}: {first}");
        assert_eq!(drawn("", &run_folder), first, "{line}");
        // The folder above contains only this run.
        assert_eq!(drawn("--output file", run_folder.parent().unwrap()), "", "{line}");
        let written = std::fs::read_to_string(elsewhere.join("file")).unwrap();
        assert_eq!(written, first, "{line}");
    }
    let left: Vec<_> = std::fs::read_dir(&elsewhere).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_report_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (_, run_folder) = a_run(folder.path(), "");
    let other = folder.path().join("other");
    std::fs::write(folder.path().join("page.md"), "before").unwrap();
    copy_files(&run_folder, &other);
    // It is read after the report of the first run has begun.
    std::fs::write(other.join("assessment.json"), "nonsense").unwrap();
    let mut command = runner();
    command.arg("report").arg(&run_folder).arg(&other);
    command.args(["--output", "page.md"]).current_dir(folder.path());
    run(&mut command).with_stderr(3, "assessment.json");
    let kept = std::fs::read_to_string(folder.path().join("page.md")).unwrap();
    assert_eq!(kept, "before");
    let parts = std::fs::read_dir(folder.path()).unwrap();
    let part = |file: std::io::Result<std::fs::DirEntry>| {
        file.unwrap().path().extension().is_some_and(|ext| ext == "part")
    };
    assert!(!parts.into_iter().any(part));

    for (flags, words) in [
        ("--output nowhere/page.md", "cannot write `nowhere/page.md`"),
        ("--output other", "cannot write `other`"),
        ("--output page.md/x", "give a writable file"),
    ] {
        let mut command = runner();
        command.arg("report").arg(&run_folder);
        command.args(crate::support::process::words(flags)).current_dir(folder.path());
        run(&mut command).with_stderr(3, words);
    }

    let mut command = runner();
    command.arg("report").args([&run_folder, &run_folder.join(".")]);
    let ended = run(command.args(["--format", "csv"])).with_code(0);
    assert_eq!(ended.stdout.lines().count(), 1 + 1 + 5, "one run, named twice");
    std::fs::remove_dir_all(&other).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(run_folder.join("plan.json"), other.join("plan.json")).unwrap();
    std::fs::copy(run_folder.join("records.jsonl.zst"), other.join("records.jsonl.zst")).unwrap();
    run(runner().arg("report").args([&run_folder, &other]).args(["--format", "csv"]))
        .with_stderr(2, "give one RUN at a time");
}

#[test]
fn json_is_all_that_goes_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.jsonl");
    std::fs::write(&all, "{}\n").unwrap();
    let (ended, run_folder) = a_run(folder.path(), "--json --output-file all.jsonl");
    let summary = std::fs::read_to_string(run_folder.join("summary.json")).unwrap();
    assert_eq!(ended.stdout, summary);
    let lines = std::fs::read_to_string(all).unwrap();
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let lines: Vec<_> = lines.lines().map(value).collect();
    assert_eq!(lines, [value("{}"), value(&summary)], "appended, a line a run");
}

#[test]
fn problems_are_drawn_in_colour_only_where_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wrong.toml"), "nam = 1\n").unwrap();
    let Some(coloured) = on_a_terminal(folder.path(), "wrong.toml", "TERM=xterm") else { return };
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    let plain = on_a_terminal(folder.path(), "wrong.toml", "NO_COLOR=1").unwrap();
    assert!(plain.contains("unknown key"), "{plain:?}");
    assert!(!plain.contains("\u{1b}["), "{plain:?}");
}

#[test]
fn the_progress_line_is_for_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "20ms"]);
    let line = format!(
        "--backend vllm --dataset-name random --num-prompts 20 --concurrency 4 --random-output-len 20 --base-url {}",
        mock.url
    );
    if let Some(seen) = on_a_terminal(folder.path(), &line, "TERM=xterm") {
        for part in ["/20 done", " in flight", "TTFT ", "preparing"] {
            assert!(seen.contains(part), "{part}: {seen:?}");
        }
        assert!(seen.contains("Successful requests:                     20"), "{seen:?}");
    }
    let ended = run(runner().args(words(&line)).current_dir(folder.path())).with_code(0);
    assert!(!ended.stderr.contains("in flight"), "{ended:#?}");
}

/// Returns the output of a command line on a terminal; nothing if util-linux's `script` is missing.
fn on_a_terminal(folder: &Path, line: &str, variable: &str) -> Option<String> {
    if !lacking::has_terminals() {
        return None;
    }
    let mut command = crate::support::process::runner_behind(
        "stty_line=\"stty cols 120 rows 40; exec env $VARIABLE '$1' $LINE\"; exec script -qec \"$stty_line\" /dev/null",
    );
    command.env("LINE", line).env("VARIABLE", variable).current_dir(folder);
    Some(run(&mut command).stdout)
}
