//! What the program prints about itself: help, version, completions, schemas, variables.

use clap::CommandFactory;

use super::transcript;
use crate::support::process::{run, runner};

/// Every command but the first, by its words, with what clap knows of it.
fn commands(cli: &clap::Command) -> Vec<(Vec<String>, clap::Command)> {
    let mut found = Vec::new();
    for command in cli.get_subcommands() {
        let word = command.get_name().to_owned();
        found.push((vec![word.clone()], command.clone()));
        for (words, nested) in commands(command) {
            found.push(([vec![word.clone()], words].concat(), nested));
        }
    }
    found
}

#[test]
fn help_of_every_subcommand() {
    let mut pages = vec![vec![]];
    let cli = runner::cli::Cli::command();
    pages.extend(commands(&cli).into_iter().map(|(words, _)| words));
    for page in pages {
        let name = ["help", &page.join("-")].join("-");
        let ended = run(runner().args(&page).arg("--help")).with_code(0);
        assert_eq!(ended.stderr, "");
        transcript(name.trim_end_matches('-'), &ended.stdout);
    }
}

#[test]
fn every_flag_has_a_variable() {
    let cli = runner::cli::Cli::command();
    let nested = commands(&cli).into_iter().map(|(_, command)| command);
    for command in nested.chain([cli.clone()]) {
        for flag in command.get_arguments().filter(|arg| !arg.is_positional()) {
            let id = flag.get_id().as_str();
            // Flags of other tools are hidden: they have no name here, and so no variable.
            if ["help", "version"].contains(&id) || flag.is_hide_set() {
                continue;
            }
            let variable = flag.get_env().map(|name| name.to_string_lossy());
            let starts = variable
                .as_ref()
                .is_some_and(|name| name.starts_with("RUNNER_"));
            assert!(starts, "`{}` of `{}`: {variable:?}", id, command.get_name());
        }
    }
}

#[test]
fn version() {
    let ended = run(runner().arg("--version")).with_code(0);
    assert_eq!(
        ended.stdout,
        concat!("runner ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn completions_know_the_flags() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = run(runner().args(["completions", shell])).with_code(0);
        assert!(ended.stdout.contains("dataset-name"), "{shell}");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn schemas_are_json() {
    let names = report::schema::NAMES.into_iter().chain(lab::schema::NAMES);
    for name in names {
        let ended = run(runner().args(["schema", name])).with_code(0);
        let schema: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(schema["$schema"].is_string(), "{name}");
    }
}

#[test]
fn the_guide_lists_its_pages_and_prints_each() {
    let list = run(runner().arg("guide")).with_code(0).stdout;
    for page in runner::guide::pages::PAGES {
        assert!(list.contains(page.name), "{}: {list}", page.name);
        let printed = run(runner().args(["guide", page.name])).with_code(0).stdout;
        assert!(printed.starts_with("# "), "{}: {printed}", page.name);
    }
    let wrong = run(runner().args(["guide", "loads"])).with_code(2).stderr;
    assert!(wrong.contains("did you mean `load`?"), "{wrong}");
}
