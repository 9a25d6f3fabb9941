//! The layout of a manual page: name, synopsis, description, commands, arguments, options with their
//! groups, notes, exit status, environment, examples, and where to read on.

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{bold, roman};

use super::below::{self, Below, Example, Note};
use super::pieces::{Page, folded, narrowed};
use crate::cli::help::GROUPS;

/// The section of user commands.
const SECTION: &str = "1";

/// The pages of the guide that explain commands. The others are explained by their own pages.
const GUIDE: &[(&str, &[&str])] = &[
    ("runner", &["start", "scenarios", "load", "reports"]),
    ("run", &["load", "backends", "datasets", "scenarios"]),
    ("plan", &["load", "datasets"]),
    ("probe", &["start", "backends"]),
    ("sweep", &["searching"]),
    ("search", &["searching"]),
    ("lab", &["labs", "lab-keys"]),
    ("fleet", &["fleets"]),
    ("demo", &["start"]),
    ("report", &["reports", "results"]),
    ("compare", &["comparing", "uncertainty"]),
    ("explain", &["comparing", "auditing"]),
    ("agreement", &["scorers"]),
    ("score", &["scorers"]),
    ("judge", &["scorers"]),
    ("audit", &["auditing"]),
    ("published", &["auditing"]),
    ("verify", &["verify"]),
    ("plugin", &["plugins"]),
    ("mock", &["mock", "verify"]),
    ("scenario", &["scenarios", "scenario-keys"]),
    ("schema", &["results"]),
    ("fetch", &["datasets"]),
    ("completions", &["start"]),
];

/// The command line with all that pages tell of it: names of commands, usages, variables.
pub(super) fn built(program: Command) -> Command {
    let mut program = without_help_command(program);
    program.build();
    prepared(program)
}

/// A command without `help`, which has no page, and so with those below it.
fn without_help_command(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help_command)
}

fn prepared(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    command.override_usage(usage).mut_args(with_variable).mut_subcommands(prepared)
}

/// A flag with its variable in its help, as `--help` has it, but never with the variable's value.
fn with_variable(arg: Arg) -> Arg {
    let Some(variable) = arg.get_env().map(std::ffi::OsStr::to_os_string) else {
        return arg;
    };
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    arg.hide_env(true).long_help(format!("{help}\n\n[env: {}]", variable.to_string_lossy()))
}

/// The name of a command's page: `runner-plugin-new`.
fn name(command: &Command) -> String {
    let words = command.get_bin_name().unwrap_or(command.get_name());
    words.replace(' ', "-")
}

/// The file of a command's page.
pub(super) fn file(command: &Command) -> String {
    format!("{}.{SECTION}", name(command))
}

/// The page of a command of the program.
pub(super) fn page(program: &Command, command: &Command, date: &str) -> String {
    let mut page = Page::default();
    let title = name(command).to_uppercase();
    let source = format!("runner {}", program.get_version().unwrap_or_default());
    page.request("TH", &[&title, SECTION, date, &source, "User Commands"]);
    // Names and commands are not to be divided, nor lines stretched.
    page.request("nh", &[]);
    page.request("ad", &["l"]);
    page.section("name");
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    page.line(vec![roman(format!("{} - {about}", name(command)))]);
    page.rendered(&section(|to| Man::new(command.clone()).render_synopsis_section(to)));
    page.section("description");
    let long = command.get_long_about().map(ToString::to_string);
    for (place, paragraph) in long.unwrap_or(about).split("\n\n").enumerate() {
        let paragraph = paragraph.trim_end();
        // The first stands without a full stop in help.
        if place == 0 && !paragraph.ends_with(':') {
            page.paragraph(&sentence(paragraph));
        } else {
            page.paragraph(paragraph);
        }
    }
    commands(&mut page, program, command);
    flags(&mut page, command);
    let below = command.get_after_long_help().or_else(|| command.get_after_help());
    let below = below.map(|text| below::read(&text.to_string()));
    let below = below.unwrap_or_default();
    notes(&mut page, &below.notes);
    codes(&mut page, program, command, &below);
    environment(&mut page, command);
    let mut parts = below.examples;
    if command.get_name() == "run" {
        parts = measuring(program);
    }
    examples(&mut page, &parts);
    see_also(&mut page, program, command);
    page.finish()
}

/// The page that `clap_mangen` writes of a command.
fn section(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The commands below a command; those of the program in their groups.
fn commands(page: &mut Page, program: &Command, command: &Command) {
    if !command.has_subcommands() {
        return;
    }
    page.section("commands");
    if command.get_name() != program.get_name() {
        command.get_subcommands().for_each(|below| listed(page, below));
        return;
    }
    for (group, names) in GROUPS {
        page.part(group);
        let of_group = names.iter().filter_map(|name| command.find_subcommand(name));
        of_group.for_each(|below| listed(page, below));
    }
}

fn listed(page: &mut Page, command: &Command) {
    let about = command.get_about().map(ToString::to_string);
    page.request("TP", &[]);
    page.line(vec![bold(name(command)), roman(format!("({SECTION})"))]);
    page.line(vec![roman(about.unwrap_or_default())]);
}

/// The arguments and the flags, these below the headings that help has.
fn flags(page: &mut Page, command: &Command) {
    let without = |is_hidden: fn(&Arg) -> bool| {
        command.clone().mut_args(|arg| {
            let hidden = arg.is_hide_set() || is_hidden(&arg);
            arg.hide(hidden)
        })
    };
    if command.get_positionals().any(|arg| !arg.is_hide_set()) {
        let arguments = without(|arg| !arg.is_positional());
        page.section("arguments");
        parts(page, arguments);
    }
    let flags = without(Arg::is_positional);
    if flags.get_arguments().any(|arg| !arg.is_hide_set()) {
        page.section("options");
        parts(page, flags);
    }
}

/// Adds what is shown of a command's arguments, each heading as a part of the section.
fn parts(page: &mut Page, command: Command) {
    let headings: Vec<String> = (command.get_arguments())
        .filter_map(|arg| arg.get_help_heading().map(str::to_owned))
        .collect();
    let rendered = section(|to| Man::new(command).render_options_section(to));
    let lines = rendered.lines().filter_map(|line| {
        let Some(title) = line.strip_prefix(".SH ") else {
            return Some(line.to_owned());
        };
        let title = title.trim_matches('"');
        let heading = headings.iter().find(|own| own.to_uppercase() == title);
        heading.map(|heading| format!(".SS \"{heading}\""))
    });
    page.rendered(&lines.map(|line| line + "\n").collect::<String>());
}

fn notes(page: &mut Page, notes: &[Note]) {
    if !notes.is_empty() {
        page.section("notes");
    }
    for note in notes {
        match note {
            Note::Text(text) => page.paragraph(text),
            Note::Entries(heading, entries) => {
                page.paragraph(heading);
                for (term, text) in entries {
                    page.entry(term, text);
                }
            }
            Note::Lines(heading, lines) => {
                if !heading.is_empty() {
                    page.paragraph(heading);
                }
                let lines = lines.iter().map(|line| line.strip_prefix("  ").unwrap_or(line));
                let lines: Vec<&str> = lines.skip_while(|line| line.is_empty()).collect();
                page.verbatim(narrowed(&lines).iter().map(String::as_str));
            }
        }
    }
}

/// The exit codes. What a command does not say is said of the program.
fn codes(page: &mut Page, program: &Command, command: &Command, below: &Below) {
    page.section("exit status");
    let program = program.get_after_long_help().map(ToString::to_string);
    let of_program = below::read(&program.unwrap_or_default()).codes;
    let codes = match (&below.codes_in_words, command.get_name()) {
        (Some(words), _) => {
            page.line(vec![roman(sentence(words))]);
            return;
        }
        // What the program does without a command's name is what this one does.
        (None, "run") => &of_program,
        (None, _) => &below.codes,
    };
    for (code, meaning) in codes {
        page.entry(code, &sentence(meaning));
    }
    if codes.is_empty() {
        page.line(vec![
            roman("0 if it succeeds. The other codes are those of "),
            bold("runner"),
            roman(format!("({SECTION}).")),
        ]);
    } else if !codes.iter().any(|(code, _)| code == "1") {
        page.paragraph(
            "Every command exits with 1 on a bug, and with 2 if the command line is wrong.",
        );
    }
}

fn environment(page: &mut Page, command: &Command) {
    let flag = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .find_map(|arg| Some((arg.get_env()?.to_string_lossy().into_owned(), arg.get_long()?)));
    let Some((variable, flag)) = flag else {
        return;
    };
    page.section("environment");
    page.line(vec![
        roman("Each option has a variable, which stands in brackets below it: "),
        bold(variable),
        roman(" is "),
        bold(format!("--{flag}")),
        roman(
            ". What the command line says counts more than a variable. The variable of an option without a value turns it on, unless it is empty, 0, f, false, n, no or off.",
        ),
    ]);
}

/// The program's examples of what is short for `runner run`.
fn measuring(program: &Command) -> Vec<(String, Vec<Example>)> {
    let below = program.get_after_long_help().map(ToString::to_string);
    let mut parts = below::read(&below.unwrap_or_default()).examples;
    for (_, examples) in &mut parts {
        examples.retain(|example| example.command.starts_with("runner --"));
    }
    parts
}

fn examples(page: &mut Page, parts: &[(String, Vec<Example>)]) {
    if !parts.is_empty() {
        page.section("examples");
    }
    for (heading, examples) in parts {
        if !heading.is_empty() {
            page.part(heading);
        }
        // Commands that follow one another without a purpose are one block.
        let mut block: Vec<String> = Vec::new();
        for Example { command, purpose } in examples {
            if let Some(purpose) = purpose {
                if !block.is_empty() {
                    page.verbatim(std::mem::take(&mut block).iter().map(String::as_str));
                }
                let end = if purpose.ends_with('?') { "" } else { ":" };
                page.paragraph(&format!("{}{end}", capital(purpose)));
                page.verbatim(folded(command).iter().map(String::as_str));
            } else {
                block.extend(folded(command));
            }
        }
        if !block.is_empty() {
            page.verbatim(block.iter().map(String::as_str));
        }
    }
}

/// Pages of related commands and of the guide.
fn see_also(page: &mut Page, program: &Command, command: &Command) {
    page.section("see also");
    let own = name(command);
    let words: Vec<&str> = own.split('-').collect();
    let mut related: Vec<String> = Vec::new();
    if words.len() > 1 {
        related.push(name(program));
    }
    // The command above, and those beside it.
    let top = words.get(1).copied().unwrap_or_default();
    if let Some(above) = program.find_subcommand(top) {
        related.push(name(above));
        related.extend(above.get_subcommands().map(name));
    }
    if words.len() == 2 {
        let beside = GROUPS.iter().find(|(_, names)| names.contains(&top));
        let beside = beside.map_or(&[][..], |(_, names)| names);
        let beside = beside.iter().filter_map(|other| program.find_subcommand(other));
        related.extend(beside.map(name));
    }
    related.retain(|other| *other != own);
    let mut seen = std::collections::BTreeSet::new();
    related.retain(|other| seen.insert(other.clone()));
    let mut line = Vec::new();
    for (place, other) in related.iter().enumerate() {
        line.push(bold(other));
        let comma = if place + 1 < related.len() { ", " } else { "" };
        line.push(roman(format!("({SECTION}){comma}")));
    }
    if !line.is_empty() {
        page.line(line);
    }
    let about = if top.is_empty() { "runner" } else { top };
    let pages = GUIDE.iter().find(|(command, _)| *command == about);
    page.begin();
    page.line(vec![
        roman("The user guide is a part of the program: "),
        bold("runner guide"),
        roman(" lists its pages."),
    ]);
    if let Some((_, pages)) = pages {
        let pages: Vec<String> = pages.iter().map(|page| format!("runner guide {page}")).collect();
        page.verbatim(pages.iter().map(String::as_str));
    }
}

/// Words that begin a line, with a capital letter.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The same, with a full stop.
fn sentence(words: &str) -> String {
    format!("{}.", capital(words.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::guide::pages::PAGES;

    #[test]
    fn commands_and_pages_of_the_guide_are_there() {
        let program = Cli::command();
        for (command, pages) in GUIDE.iter().copied() {
            let is_there = command == "runner" || program.find_subcommand(command).is_some();
            assert!(is_there, "{command}");
            for page in pages {
                assert!(PAGES.iter().any(|known| known.name == *page), "{command}: {page}");
            }
        }
    }
}
