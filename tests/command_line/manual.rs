//! Manual pages, as packages install them: complete, the same bytes each time, and read without an
//! error.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use clap::CommandFactory;

use super::help::pages;
use crate::support::lacking;
use crate::support::process::{run, runner};

/// A date, as packagers give it.
const EPOCH: &str = "1795651200";

fn write(folder: &Path) {
    let ended = run(runner().args(["man", "--output"]).arg(folder).env("SOURCE_DATE_EPOCH", EPOCH))
        .with_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The flags that entries of help begin with: `      --seed <SEED>`, `  -h, --help`.
fn flags(help: &str) -> BTreeSet<&str> {
    let entries = help.lines().filter_map(|line| {
        let entry = line.trim_start();
        (entry.starts_with('-') && line.len() - entry.len() <= 6).then_some(entry)
    });
    let words = entries.flat_map(|entry| entry.split([' ', ',']).take(3));
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    words.filter(|word| word.starts_with("--")).filter(is_name).collect()
}

#[test]
fn every_command_has_a_page_with_all_that_help_says_of_flags() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut files = BTreeSet::new();
    for words in pages(&runner::cli::Cli::command()) {
        let name = [vec!["runner".to_owned()], words.clone()].concat().join("-");
        let file = format!("{name}.1");
        let page = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        files.insert(file);
        let page = page.replace("\\-", "-").replace("\\*(Aq", "'");
        let help = run(runner().args(&words).arg("--help")).with_code(0).stdout;
        let flags = flags(&help);
        assert!(flags.contains("--help"), "{name}: {flags:?}");
        for flag in flags {
            assert!(page.contains(&format!("\\fB{flag}\\fR")), "{name}: {flag}");
        }
        for line in help.lines().filter_map(|line| line.trim().strip_prefix("[env: ")) {
            let variable = line.split(['=', ']']).next().unwrap();
            assert!(page.contains(&format!("[env: {variable}]")), "{name}: {variable}");
        }
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            assert!(page.contains(&format!(".SH {section}\n")), "{name}: {section}");
        }
        if help.contains("\nExamples:\n") {
            assert!(page.contains("\nExamples:\n"), "{name}");
        }
        if !["runner", "runner-plugin-new"].contains(&name.as_str()) {
            continue;
        }
        // One page alone is the same.
        let mut command = runner();
        command.arg("man").args(&words).env("SOURCE_DATE_EPOCH", EPOCH);
        let printed = run(&mut command).with_code(0).stdout;
        assert_eq!(printed.replace("\\-", "-").replace("\\*(Aq", "'"), page, "{name}");
    }
    assert_eq!(names(folder.path()), files);
    let run = std::fs::read_to_string(folder.path().join("runner-run.1")).unwrap();
    assert!(run.contains(".TH RUNNER-RUN 1 2026-11-26 \"runner "), "{}", &run[..200]);
}

#[test]
fn pages_have_nothing_of_the_machine() {
    let page = |variables: &[(&str, &str)]| {
        run(runner().args(["man", "run"]).envs(variables.iter().copied())).with_code(0).stdout
    };
    let plain = page(&[]);
    assert!(plain.contains(".TH RUNNER-RUN 1 \"\" \"runner "), "{}", &plain[..200]);
    let variables = [
        ("RUNNER_MODEL", "a-model-of-mine"),
        ("RUNNER_OUTPUT_DIR", "/mine"),
        ("COLUMNS", "40"),
        ("LC_ALL", "C"),
        ("TZ", "Asia/Tokyo"),
    ];
    assert_eq!(page(&variables), plain);
}

#[test]
fn pages_are_read_without_an_error() {
    if !lacking::has("mandoc", &lacking::MANDOC) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let mut command = Command::new("mandoc");
    command.args(["-T", "lint", "-W", "error"]).args(names(folder.path()));
    assert_eq!(run(command.current_dir(&folder)).with_code(0).stdout, "");
}

#[test]
fn an_unknown_command_is_reported() {
    run(runner().args(["man", "serach"])).with_stderr(2, "did you mean `search`?");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let wrong = run(runner().args(["man", "--output"]).arg(file.join("man1")));
    wrong.with_stderr(3, "give a writable folder with --output");
    let wrong = run(runner().arg("man").env("SOURCE_DATE_EPOCH", "today")).with_code(2).stderr;
    assert!(wrong.contains("expected seconds since 1970, found `today`"), "{wrong}");
}
