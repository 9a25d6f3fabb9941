//! `runner plugin list`: lists the available plugins.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::{Folders, Form, shipped_alone};
use crate::cli::artifacts::Artifacts;
use crate::cli::failure::Failure;
use crate::cli::flags::{backends, datasets};
use crate::cli::print::{columns, tell};
use model::plugin::Kind;
use plugins::{PluginError, examine, load};

/// Digits of a digest to show: enough to tell components apart at a glance.
const SHORT: usize = 12;

/// List the shipped plugins and the plugins in given folders
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin list\n  \
        runner plugin list --plugin-path ./plugins:../more --json")]
pub struct Args {
    #[command(flatten)]
    folders: Folders,
    #[command(flatten)]
    artifacts: Artifacts,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Serialize)]
struct Listing {
    plugins: Vec<Entry>,
    /// Names that other tools have for shipped plugins.
    names: Vec<Name>,
    /// Files that are named like components but do not load.
    unusable: Vec<Unusable>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    plugin: String,
    kind: Kind,
    name: String,
    version: String,
    summary: String,
    sha256: String,
}

/// A name that another tool has for a shipped plugin with a configuration.
#[derive(Debug, Serialize)]
struct Name {
    name: &'static str,
    flag: &'static str,
    plugin: String,
    /// The keys of the plugin's configuration that it sets, as TOML.
    config: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Unusable {
    plugin: String,
    error: String,
}

/// A file that is not a plugin is reported, but is not a failure.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let mut names: Vec<String> = shipped::plugins().map(str::to_owned).collect();
    for folder in &args.folders.search().folders {
        names.extend(components(folder)?);
    }
    let mut listing =
        Listing { plugins: Vec::new(), names: names_of_others(), unusable: Vec::new() };
    for (plugin, entry) in entries(names) {
        match entry {
            Ok(entry) => listing.plugins.push(entry),
            Err(error) => {
                let error = error.to_string();
                if !args.form.json {
                    tell(format_args!("note: {error}"));
                }
                listing.unusable.push(Unusable { plugin, error });
            }
        }
    }
    let order = [Kind::Backend, Kind::Dataset, Kind::Scorer];
    let place = |entry: &Entry| order.iter().position(|kind| *kind == entry.kind);
    listing.plugins.sort_by_key(place);
    args.form.print(&listing, text)
}

/// The description of each plugin, in the order of the names. Each is compiled on its own thread.
fn entries(names: Vec<String>) -> Vec<(String, Result<Entry, PluginError>)> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (names.into_iter())
            .map(|name| {
                let plugin = name.clone();
                (name, scope.spawn(move || entry(&plugin)))
            })
            .collect();
        let joined = threads.into_iter().map(|(name, thread)| {
            let entry = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (name, entry)
        });
        joined.collect()
    })
}

fn entry(name: &str) -> Result<Entry, PluginError> {
    let plugin = load::load(name, &shipped_alone())?;
    let info = examine::describe(&plugin)?;
    Ok(Entry {
        plugin: plugin.name,
        kind: plugin.kind,
        name: info.name,
        version: info.version,
        summary: info.summary,
        sha256: plugin.digest,
    })
}

/// The names that `--backend` and `--dataset-name` take besides plugin names.
fn names_of_others() -> Vec<Name> {
    let backends = backends::shipped_aliases().map(|alias| Name {
        name: alias.name,
        flag: "--backend",
        plugin: backends::file(alias.plugin),
        config: (alias.route.iter()).map(|route| format!("route = \"{route}\"")).collect(),
    });
    let datasets = datasets::ALIASES.iter().map(|alias| Name {
        name: alias.name,
        flag: "--dataset-name",
        plugin: datasets::file(alias.plugin),
        config: (alias.config.iter()).map(|(key, value)| format!("{key} = {value}")).collect(),
    });
    backends.chain(datasets).collect()
}

/// The files of a folder that are named like components, in order.
fn components(folder: &Path) -> Result<Vec<String>, Failure> {
    let unreadable = Failure::read("the folder ", folder);
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(&unreadable)? {
        let path = entry.map_err(&unreadable)?.path();
        if path.extension().is_some_and(|own| own == "wasm") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found.iter().map(|path| path.display().to_string()).collect())
}

fn text(listing: &Listing) -> String {
    let mut text = String::new();
    for kinds in listing.plugins.chunk_by(|a, b| a.kind == b.kind) {
        let rows: Vec<[String; 5]> = (kinds.iter())
            .map(|entry| {
                [
                    entry.name.clone(),
                    entry.version.clone(),
                    entry.sha256[..SHORT].to_owned(),
                    entry.plugin.clone(),
                    entry.summary.lines().next().unwrap_or_default().to_owned(),
                ]
            })
            .collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text += &format!("{}\n{}", kinds[0].kind.folder(), columns(&rows));
    }
    if listing.plugins.is_empty() {
        text += "No plugins: this runner was built without any, and no folder contains one.\n";
        return text;
    }
    let rows: Vec<[String; 4]> = (listing.names.iter())
        .map(|name| {
            [
                name.flag.to_owned(),
                name.name.to_owned(),
                name.plugin.clone(),
                name.config.join(", "),
            ]
        })
        .collect();
    text += &format!(
        "\nnames that vllm bench serve and SGLang's client have for them\n{}",
        columns(&rows)
    );
    text
}
