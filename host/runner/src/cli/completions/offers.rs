//! The values of arguments, as a shell offers them: by the flag, or by the value's name in help.
//!
//! A name that many arguments share (`RUN`, `FIGURE`) offers the same everywhere, so that a new
//! command has its values without a change here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, Args, Command, CommandFactory, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::{Line, places};
use crate::cli::flags::{backends, datasets};
use crate::cli::{Cli, run};
use crate::guide::pages::PAGES;
use audit::published;
use result::figure::WHOLE;
use result::metric::{CATALOGUE, Of, objective};
use scenario::Key;
use search::preset::PRESETS;

/// The values that match the typed text, on a line.
type Offer = fn(&str, &Line) -> Vec<CompletionCandidate>;

const STATISTICS: [&str; 8] = ["mean", "median", "p90", "p95", "p99", "min", "max", "std"];

/// Backends that belong to no engine.
const NO_ENGINES: [&str; 2] = ["openai", "template"];

pub(super) fn command(line: &Arc<Line>) -> Command {
    let whole = Cli::command();
    let is_short = (line.first()).is_some_and(|first| whole.find_subcommand(first).is_none());
    // After a scenario or a flag, the line is short for `runner run`, and no word is a command.
    let command = if is_short { run::Args::augment_args(Command::new("runner")) } else { whole };
    offered(command, line)
}

/// A command with the values of its arguments, and likewise its subcommands.
fn offered(command: Command, line: &Arc<Line>) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| match offer(&name, &arg) {
        Some(offer) => {
            let line = Arc::clone(line);
            arg.add(ArgValueCompleter::new(move |written: &OsStr| {
                let written = written.to_str();
                written.map_or_else(Vec::new, |written| plain(offer(written, &line)))
            }))
        }
        None => arg,
    });
    // More than a hundred flags would bury the values.
    let is_flag = line.current().as_encoded_bytes().starts_with(b"-");
    let has_words =
        command.has_subcommands() || command.get_positionals().any(|arg| has(&name, arg));
    let command = if has_words && !is_flag {
        command
            .mut_args(|arg| if arg.is_positional() { arg } else { arg.hide(true) })
            .disable_help_flag(true)
            .disable_version_flag(true)
    } else {
        command
    };
    command.mut_subcommands(|below| offered(below, line))
}

/// The values that need no quotes in any shell, as scripts do not quote. The shell has others.
fn plain(mut values: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._/:=,+@%".contains(byte);
    values.retain(|value| value.get_value().as_encoded_bytes().iter().all(is_plain));
    values
}

fn has(command: &str, arg: &Arg) -> bool {
    offer(command, arg).is_some()
        || arg.get_value_hint() != ValueHint::Unknown
        || !arg.get_possible_values().is_empty()
}

/// The values of an argument of a command, if they are not a fixed list that clap knows.
fn offer(command: &str, arg: &Arg) -> Option<Offer> {
    if !arg.get_possible_values().is_empty() {
        return None;
    }
    let named = arg.get_long().and_then(|flag| of_flag(command, flag));
    let value = arg.get_value_names().and_then(<[_]>::first);
    named.or_else(|| of_value(command, value?))
}

fn of_flag(command: &str, flag: &str) -> Option<Offer> {
    Some(match (flag, command) {
        ("backend", _) => backend_names,
        ("baseline" | "floor" | "run-variation", _) => runs,
        ("dataset-name", _) => dataset_names,
        ("device-metrics", _) => |written, _| matching(written, ["none", "nvml", "http://"]),
        ("endpoint", _) => endpoints,
        ("engine", _) => engines,
        ("goodput", _) => {
            |written, _| matching(written, objective::metrics().map(|name| format!("{name}:")))
        }
        ("plugin", _) => plugins,
        ("preset", "search" | "sweep") => |written, _| {
            described(written, PRESETS.iter().map(|preset| (preset.name, preset.about)))
        },
        ("preset", _) => |written, _| matching(written, [run::accuracy::NAME]),
        ("resume", "sweep") => |written, line| results(written, line, "sweep.json"),
        ("resume", "search") => |written, line| results(written, line, "search.json"),
        ("resume", "lab") => |written, line| results(written, line, "journal.jsonl"),
        ("fail-if" | "until", _) => figures,
        ("threshold", _) => thresholds,
        ("scorer", _) => scorers,
        ("set", _) => assignments,
        ("slo", _) => tiers,
        ("tokenizer", "verify") => |written, _| places::folders(written),
        ("tokenizer", _) => tokenizers,
        _ => return None,
    })
}

fn of_value(command: &str, value: &str) -> Option<Offer> {
    Some(match (value, command) {
        ("AGENT_FOLDER" | "FOLDER" | "FOLDERS", _) => |written, _| places::folders(written),
        ("CASE", _) => |written, _| matching(written, shipped::cases().map(|(name, _)| name)),
        ("CLIENT", _) => |written, _| {
            let names = shipped::clients().map(|(name, _)| name);
            with_files(matching(written, names), written, "toml")
        },
        ("FIGURE", _) => figures,
        ("FILE", "audit") => results_of_tools,
        ("FILE", "check") if command == "check" => scenarios,
        ("FILE" | "PATH", _) => |written, _| places::files(written),
        ("LAB", _) => |written, _| with_files(matching(written, shipped::labs()), written, "toml"),
        ("PAGE", "guide") => {
            |written, _| described(written, PAGES.iter().map(|page| (page.name, page.about)))
        }
        ("PATTERN", "published") => |written, _| matching(written, published_names()),
        ("PLUGIN", _) => plugin_names,
        ("PREFIX", "keys") => prefixes,
        ("RUN", _) => runs,
        ("SCENARIO", _) => scenarios,
        ("SIDE" | "A" | "B", _) => sides,
        _ => return None,
    })
}

fn matching<N: AsRef<str>>(
    written: &str,
    names: impl IntoIterator<Item = N>,
) -> Vec<CompletionCandidate> {
    let names = names.into_iter();
    let names = names.filter(|name| name.as_ref().starts_with(written));
    names.map(|name| CompletionCandidate::new(name.as_ref())).collect()
}

fn described<N: AsRef<str>, A: Into<StyledStr>>(
    written: &str,
    names: impl IntoIterator<Item = (N, A)>,
) -> Vec<CompletionCandidate> {
    let names = names.into_iter();
    let matching = names.filter(|(name, _)| name.as_ref().starts_with(written));
    matching
        .map(|(name, about)| CompletionCandidate::new(name.as_ref()).help(Some(about.into())))
        .collect()
}

/// Offers for the part of a word after a separator, with the text before it.
fn after(
    written: &str,
    separators: &[char],
    offer: impl Fn(&str) -> Vec<CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let cut = written.rfind(separators).map_or(0, |at| at + 1);
    let (before, part) = written.split_at(cut);
    prefixed(offer(part), before)
}

fn prefixed(offered: Vec<CompletionCandidate>, before: &str) -> Vec<CompletionCandidate> {
    offered.into_iter().map(|one| one.add_prefix(before)).collect()
}

fn with_files(
    mut names: Vec<CompletionCandidate>,
    written: &str,
    ending: &'static str,
) -> Vec<CompletionCandidate> {
    names.extend(places::files_of(written, ending));
    without_twice(names)
}

/// Removes duplicates, as where a scenario that ships is also a file.
fn without_twice(mut all: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let mut seen = std::collections::HashSet::new();
    all.retain(|one| {
        let name = one.get_value().to_string_lossy();
        seen.insert(name.trim_end_matches('/').to_owned())
    });
    all
}

fn plugin_folders(line: &Line) -> Vec<PathBuf> {
    let folders = line.value("--plugin-path", "RUNNER_PLUGIN_PATH");
    folders.map_or_else(Vec::new, |list| std::env::split_paths(&list).collect())
}

/// Plugins of a kind by their names: shipped plugins, and others that are found.
fn named(kind: &str, line: &Line) -> Vec<String> {
    let folders = [vec![PathBuf::from(".")], plugin_folders(line)].concat();
    let found = places::components(&folders);
    let of_kind = |file: &str| {
        let name = file.strip_prefix(kind)?.strip_prefix('/')?;
        Some(name.strip_suffix(".wasm")?.to_owned())
    };
    let ship = shipped::plugins().filter_map(of_kind);
    let mut names: Vec<String> = ship.collect();
    for name in found.iter().filter_map(|file| of_kind(file)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn backend_names(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    let aliases = backends::shipped_aliases().map(|alias| alias.name.to_owned());
    matching(written, named("backends", line).into_iter().chain(aliases))
}

fn dataset_names(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    let aliases = datasets::ALIASES.iter().map(|alias| alias.name.to_owned());
    matching(written, named("datasets", line).into_iter().chain(aliases))
}

/// Plugins as `--plugin` takes them: by name, or as a file.
fn plugins(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    let found = places::components(&plugin_folders(line));
    with_files(
        matching(written, shipped::plugins().map(str::to_owned).chain(found)),
        written,
        "wasm",
    )
}

/// Plugins as `runner plugin info` takes them: by a short name that means one, too.
fn plugin_names(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    let short = |file: &'static str| Some(file.split_once('/')?.1.trim_end_matches(".wasm"));
    let all: Vec<&str> = shipped::plugins().filter_map(short).collect();
    let is_one = |name: &&&str| all.iter().filter(|other| other == name).count() == 1;
    let mut offered = matching(written, all.iter().filter(is_one));
    if offered.is_empty() || written.contains('/') {
        offered.extend(plugins(written, line));
    }
    offered
}

fn scorers(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    let components = with_files(matching(written, named("scorers", line)), written, "wasm");
    with_files(components, written, "toml")
}

fn endpoints(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    // Parts that the user chooses are in capitals.
    let is_fixed = |path: &&str| !path.contains(|c: char| c.is_ascii_uppercase());
    let paths: BTreeSet<&str> = routes(line).map(|route| route.path).filter(is_fixed).collect();
    matching(written, paths)
}

/// The routes of the backend that the line names, or of all.
fn routes(line: &Line) -> impl Iterator<Item = &'static backends::Route> {
    let backend = backend(line);
    let is_own = move |plugin: &str| backend.as_deref().is_none_or(|own| own == plugin);
    backends::ROUTES.iter().filter(move |route| is_own(route.plugin))
}

fn backend(line: &Line) -> Option<String> {
    let name = line.value("--backend", "RUNNER_BACKEND")?;
    let name = name.into_string().ok()?;
    Some(backends::alias(&name).map_or(name, |alias| alias.plugin.to_owned()))
}

fn engines(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    let backends = shipped::plugins().filter_map(|file| file.strip_prefix("backends/"));
    let names = backends.map(|file| file.trim_end_matches(".wasm"));
    matching(written, names.filter(|name| !NO_ENGINES.contains(name)))
}

/// Scenarios that ship, folders of several, and files.
fn scenarios(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    let ship = shipped::scenarios();
    let folders = ship.filter_map(|file| Some(file.rsplit_once('/')?.0));
    let names = shipped::scenarios().chain(folders).filter(|name| name.contains('/'));
    let names: BTreeSet<&str> = names.collect();
    with_files(matching(written, names), written, "toml")
}

/// Keys of a scenario with `=`, followed by the key's possible values.
fn assignments(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    match written.split_once('=') {
        None => described(written, keys()),
        Some((key, value)) => prefixed(values(key, value, line), &format!("{key}=")),
    }
}

/// The keys with one-word values, with their documentation. Names of the user end with a dot.
fn keys() -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for key in scenario::keys() {
        let about = key.about.first().cloned().unwrap_or_default();
        let path = key.path.as_str();
        match path.rsplit_once('.') {
            _ if path.contains('[') => {}
            Some((table @ "goodput", _)) => {
                let metrics = objective::metrics();
                keys.extend(metrics.map(|metric| (format!("{table}.{metric}="), about.clone())));
            }
            Some((table, name)) if name.chars().all(|c| c.is_ascii_uppercase()) => {
                keys.push((format!("{table}."), about));
            }
            Some((_, "config")) => {
                keys.push((format!("{path}."), about));
            }
            _ => keys.push((format!("{path}="), about)),
        }
    }
    let about = "Route of the backend, as its configuration names it".to_owned();
    keys.push(("backend.config.route=".to_owned(), about));
    keys
}

fn values(key: &str, written: &str, line: &Line) -> Vec<CompletionCandidate> {
    match key {
        "backend.plugin" | "dataset.plugin" => {
            let kind = key.replace(".plugin", "s/");
            let all = plugins(written, line).into_iter();
            all.filter(|one| {
                let name = one.get_value().to_string_lossy();
                name.starts_with(&kind) || !shipped::has_plugin(&name)
            })
            .collect()
        }
        "backend.config.route" => {
            let names: BTreeSet<&str> = routes(line).filter_map(|route| route.route).collect();
            matching(written, names)
        }
        "about.engine" => engines(written, line),
        "tokenizer.path" => tokenizers(written, line),
        "connection.ca-cert" | "load.trace.file" => places::files(written),
        _ => match scenario::keys().iter().find(|known| known.path == key) {
            Some(key) if key.switch => matching(written, ["true", "false"]),
            Some(key) => described(written, key.words.iter().copied()),
            None => Vec::new(),
        },
    }
}

fn prefixes(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    let mut tables: Vec<&str> = scenario::keys().iter().map(Key::table).collect();
    tables.retain(|table| !table.is_empty());
    tables.dedup();
    let mut offered = matching(written, tables);
    if !written.is_empty() {
        offered.extend(matching(written, scenario::keys().iter().map(|key| &key.path)));
    }
    without_twice(offered)
}

/// Names on the hub of the tokenizers that are here, and files.
fn tokenizers(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    let mut offered = matching(written, places::tokenizers());
    offered.extend(places::files(written));
    without_twice(offered)
}

fn results(written: &str, line: &Line, file: &str) -> Vec<CompletionCandidate> {
    let folder = line.value("--output-dir", "RUNNER_OUTPUT_DIR");
    let home = folder.map_or_else(|| PathBuf::from("runs"), PathBuf::from);
    places::results(written, &home, file)
}

fn runs(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    results(written, line, "plan.json")
}

fn published_names() -> Vec<String> {
    let all = published::all().into_iter();
    let name = |file: &str| file.trim_start_matches(published::PREFIX).to_owned();
    all.map(|claim| name(&claim.source.file)).collect()
}

/// Published results by their full names; without typed text, only their prefix.
fn published_results(written: &str) -> Vec<CompletionCandidate> {
    match written.strip_prefix(published::PREFIX) {
        Some(name) => prefixed(matching(name, published_names()), published::PREFIX),
        None => described(written, [(published::PREFIX, "A published result (runner published)")]),
    }
}

/// Results of other tools: files and published results.
fn results_of_tools(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    let mut offered = published_results(written);
    offered.extend(places::files(written));
    offered
}

/// The sides of a comparison: runs, several with commas between them, and results of other tools.
fn sides(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    if written.starts_with(published::PREFIX) {
        return published_results(written);
    }
    let mut offered = after(written, &[','], |part| runs(part, line));
    if !written.contains(',') {
        // The folders to look in are there already.
        let files = places::files(written).into_iter();
        let is_folder =
            |one: &CompletionCandidate| one.get_value().as_encoded_bytes().ends_with(b"/");
        offered.extend(files.filter(|one| !is_folder(one)));
        offered.extend(published_results(written));
    }
    offered
}

/// Figures by their names: of the run as a whole, and metrics, whose statistics follow a dot.
fn figures(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    let whole = WHOLE.iter().map(|whole| (whole.name, whole.label));
    let mut offered = match written.split_once('.') {
        None => {
            let metrics = CATALOGUE.iter();
            let metrics = metrics.map(|metric| (format!("{}.", metric.name), metric.definition));
            let mut offered = described(written, metrics);
            offered.extend(described(written, [("score.", "A score, by its name")]));
            offered
        }
        Some((metric, statistic)) if CATALOGUE.iter().any(|known| known.name == metric) => {
            prefixed(matching(statistic, STATISTICS), &format!("{metric}."))
        }
        Some(_) => Vec::new(),
    };
    offered.extend(described(written, whole));
    offered
}

fn thresholds(written: &str, line: &Line) -> Vec<CompletionCandidate> {
    let mut offered = figures(written, line);
    offered.extend(described(written, [("verdict", "The verdict on the run")]));
    offered
}

/// Percentiles of requests' times, as `--slo` takes them: several in a tier, which may have a name.
fn tiers(written: &str, _: &Line) -> Vec<CompletionCandidate> {
    after(written, &[';', ':', ' '], |part| {
        let of_requests = |name: &&str| {
            let metric = CATALOGUE.iter().find(|metric| metric.name == *name);
            metric.is_some_and(|metric| metric.of != Of::Session)
        };
        let metrics = objective::metrics().filter(of_requests);
        match part.split_once('.') {
            None => matching(part, metrics.map(|name| format!("{name}."))),
            Some((metric, _)) => {
                let known = metrics.filter(|name| *name == metric);
                let percentiles = ["p50", "p90", "p95", "p99", "p99.9"];
                let all = known.flat_map(|name| percentiles.map(|p| format!("{name}.{p}")));
                matching(part, all)
            }
        }
    })
}
