//! The layout of help: commands in groups, the most used flags in `-h`, and everything in `--help`.
//!
//! A page of `-h` fits a screen: it has no environment variables, and only the flags of a run that
//! most runs need. Text that clap cannot express is added here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Args, Command};

use super::GROUPS;
use super::failure::Failure;
use super::flags::Flags;
use super::words::is_flag;
use model::nearest;

/// The flags of a scenario that `-h` shows, with a line for each; `--help` says more of them.
const USUAL: [(&str, &str); 17] = [
    ("backend", "Backend plugin, such as vllm, sglang or openai-chat"),
    ("set", "Set any key of the scenario, such as load.requests=50; repeatable"),
    ("base-url", "Base URL of the engine, such as http://127.0.0.1:8000"),
    ("model", "Model name [default: the only one the server lists]"),
    ("tokenizer", "The model's tokenizer: file, folder, or name on the hub"),
    ("output-tokens", "Output tokens to ask for"),
    ("dataset_name", "Dataset plugin, such as random or sharegpt"),
    ("dataset_path", "The dataset's input file"),
    ("random_input_len", "Input tokens per request (random dataset)"),
    ("random_output_len", "Output tokens per request (random dataset)"),
    ("num-prompts", "Number of requests to measure [default: 1000]"),
    ("duration", "Time to measure, such as 60s, instead of a number"),
    ("request-rate", "Requests per second; `inf` sends all at once"),
    ("concurrency", "Users in a closed loop"),
    ("max-concurrency", "Maximum number of requests in flight"),
    ("goodput", "SLOs that a good request meets, such as ttft:200"),
    ("threshold", "Exit with 6 unless this holds: 'ttft.p99 <= 200ms'"),
];

/// The flags that `runner -h` shows beside the commands.
#[rustfmt::skip]
const FIRST: [&str; 9] = [
    "backend", "base-url", "model", "tokenizer", "dataset_name", "dataset_path", "num-prompts",
    "request-rate", "threshold",
];

/// Flags of single commands, or of many, that `-h` leaves out.
#[rustfmt::skip]
const RARE: [&str; 32] = [
    "cache_dir", "no_plugin_cache", "plugin_path", "result_filename", "append_result",
    "save_detailed", "output_file", "floor", "strict", "metrics_listen", "progress_every",
    "no_progress", "price_per_million", "least", "most", "width", "alpha", "requests_each",
    "requests_in_all", "loads", "no_confirm", "throughput", "latency", "at_most", "export_format",
    "fleet_grace", "allow_invalid", "tls_cert", "tls_key", "reasoning_field", "role_chunk",
    "incremental",
];

pub fn laid_out(command: Command) -> Command {
    let groups = groups(&command);
    let command = command
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}",
        )
        .before_help(groups)
        .mut_args(|arg| {
            if FIRST.contains(&arg.get_id().as_str()) {
                arg.help_heading(None)
            } else {
                arg.hide_short_help(true)
            }
        })
        .mut_subcommands(|command| command.hide(true));
    let of_runs = Flags::augment_args(Command::new("run"));
    let of_runs = of_runs.get_arguments().map(|arg| arg.get_id().to_string());
    shortened(command, &of_runs.collect())
}

/// A command with the flags of `-h` and the variables of `--help`, and likewise its subcommands.
fn shortened(command: Command, of_runs: &BTreeSet<String>) -> Command {
    let name = command.get_name().to_owned();
    let arg = |arg: Arg| {
        let id = arg.get_id().as_str().to_owned();
        let arg = variable_in_long_help(arg);
        if RARE.contains(&id.as_str()) {
            return arg.hide_short_help(true);
        }
        // The mock engine's own flags have the names of flags of runs.
        if name == "mock" || !of_runs.contains(&id) {
            return arg;
        }
        let is_many = ["run", "plan", "show"].contains(&name.as_str());
        let usual = USUAL.iter().find(|(usual, _)| *usual == id);
        match usual {
            Some((_, line)) if is_many || FIRST.contains(&id.as_str()) => arg.help(*line),
            _ => arg.hide_short_help(true),
        }
    };
    examples_in_short_help(command).mut_args(arg).mut_subcommands(|below| shortened(below, of_runs))
}

/// A command whose `-h` ends with the first paragraph below the flags in `--help`.
fn examples_in_short_help(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let Some((text, None)) = text.map(|text| (text, command.get_after_long_help())) else {
        return command;
    };
    let first = text.split("\n\n").next().unwrap_or_default().to_owned();
    command.after_help(first).after_long_help(text)
}

/// A flag whose variable stands in `--help` only.
pub(super) fn variable_in_long_help(arg: Arg) -> Arg {
    let Some(variable) = arg.get_env().map(|name| name.to_string_lossy().into_owned()) else {
        return arg;
    };
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let value = if arg.is_hide_env_values_set() {
        String::new()
    } else {
        let value = std::env::var_os(&variable).unwrap_or_default();
        format!("={}", value.to_string_lossy())
    };
    arg.hide_env(true).long_help(format!("{help}\n\n[env: {variable}{value}]"))
}

fn groups(command: &Command) -> StyledStr {
    let mut text = String::new();
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for name in *names {
            let below = command.find_subcommand(name);
            let about = below.and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<11}{literal:#}  {about}");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    StyledStr::from(text)
}

/// Names in other tools for commands here.
const ELSEWHERE: [(&str, &str); 7] = [
    ("bench", "run"),
    ("benchmark", "run"),
    ("measure", "run"),
    ("check", "scenario check"),
    ("validate", "scenario check"),
    ("diff", "compare"),
    ("ls", "report"),
];

/// The first word of another tool's line, the words that may show the tool, and the advice.
#[rustfmt::skip]
const LINES: [(&str, &[&str], &str); 3] = [
    ("bench", &["serve"], "`bench serve` are words of vllm: leave them out, and the rest of the line works here"),
    ("benchmark", &["run", "--target", "--profile", "--rate-type", "--data"], "`benchmark` is guidellm's: leave it out; each of its flags that is not known here says what to write instead, and `runner guide coming-from` has them all"),
    ("profile", &["-m", "--model", "-u", "--url", "--endpoint-type"], "`profile` is AIPerf's: leave it out and write short flags in full (--model, --url); each flag that is not known here says what to write instead"),
];

/// The error of a first word that is a mistyped command, or another tool's word for one.
pub(super) fn command(line: &[OsString], cli: &clap::Command) -> Option<Failure> {
    let (first, rest) = line.split_first()?;
    let word = first.to_str()?;
    let is_word =
        !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    if word.is_empty() || !is_word || Path::new(first).exists() {
        return None;
    }
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let folder = format!("{word}/");
    let is_scenario = |known: &str| known == word || known.starts_with(&folder);
    if names.contains(&word) || word == "help" || shipped::scenarios().any(is_scenario) {
        return None;
    }
    let wrong = |instead: String| {
        Failure::command_line(format!("there is no command and no scenario `{word}`{instead}"))
    };
    if let Some(instead) = of_another_tool(word, rest) {
        return Some(wrong(format!(": {instead}")));
    }
    let theirs = ELSEWHERE.iter().map(|(theirs, _)| *theirs);
    let near = nearest(word, names.iter().copied().chain(theirs))?;
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == near);
    let meant = elsewhere.map_or(near, |(_, own)| own);
    Some(wrong(format!("; did you mean `runner {meant}`? `runner --help` lists the commands")))
}

fn of_another_tool(first: &str, rest: &[OsString]) -> Option<&'static str> {
    let (.., instead) = LINES.iter().find(|(begins, known, _)| {
        *begins == first && rest.iter().any(|word| known.iter().any(|known| is_flag(word, known)))
    })?;
    Some(instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        command(&words, &crate::cli::command()).map(|failure| failure.message())
    }

    #[test]
    fn distinguishes_mistyped_commands_from_scenarios() {
        for (line, part) in [
            ("comapre a b", "did you mean `runner compare`?"),
            ("mesure", "did you mean `runner run`?"),
            ("bench chat.toml", "did you mean `runner run`?"),
            ("bench serve --model m", "`bench serve` are words of vllm"),
            ("benchmark --target http://localhost:8000", "guidellm's"),
            ("benchmark run --profile=kind=sweep", "guidellm's"),
            ("profile -m m --url localhost:8000", "AIPerf's"),
        ] {
            let hint = hint(line).unwrap_or_default();
            assert!(hint.contains(part), "{line}: {hint}");
        }
        for line in ["compare a b", "scenarios", "lmdeploy", "help"] {
            assert_eq!(hint(line), None, "{line}");
        }
    }
}
