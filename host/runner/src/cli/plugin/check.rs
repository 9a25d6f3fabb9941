//! `runner plugin check`: loads a component, and lists its needs.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::facts::{self, Description, row};
use super::{Folders, Form, Sandbox, meant, raised_by};
use crate::author::fresh;
use crate::cli::artifacts::Artifacts;
use crate::cli::failure::Failure;
use crate::cli::print::columns;
use model::plugin::Limits;
use plugins::PluginError;
use plugins::examine::{self, AtRest, Moment};
use plugins::imports::Import;
use plugins::load::{self, Plugin};

/// Check whether a component loads, and show its imports and resource use
///
/// The component is compiled from scratch and instantiated; the times are measured on this machine.
/// `runner plugin test` and runs then find it compiled.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin check target/plugin/my-engine.wasm\n  \
        runner plugin check backends/vllm.wasm          one that ships with the runner\n  \
        runner plugin check stranger.wasm --json        includes the full JSON Schema\n\n\
        Exit codes: 0 the component loads, 4 it does not load")]
pub struct Args {
    /// A component file, or the name of a plugin that ships with the runner
    #[arg(value_name = "FILE")]
    plugin: String,
    #[command(flatten)]
    folders: Folders,
    #[command(flatten)]
    sandbox: Sandbox,
    #[command(flatten)]
    artifacts: Artifacts,
    #[command(flatten)]
    form: Form,
}

/// The facts found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Facts {
    plugin: String,
    origin: String,
    size_bytes: u64,
    sha256: String,
    /// The difference between its project's sources and the sources of its build.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<String>,
    /// Absent if the file is not a component.
    #[serde(skip_serializing_if = "Option::is_none")]
    imports: Option<Vec<Import>>,
    loads: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    loaded: Option<LoadedFacts>,
    limits: Limits,
}

/// Facts about a component that loads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct LoadedFacts {
    #[serde(flatten)]
    description: Description,
    /// Linear memory of an instance after `describe`.
    memory_at_rest_bytes: u64,
    measured: Times,
}

/// Times measured on this machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Times {
    compile_seconds: f64,
    /// Median of several instantiations.
    instantiate_seconds: f64,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let (plugin, search) = (meant(&args.plugin)?, args.folders.search());
    let outside = examine::outside(&plugin, &search)?;
    args.artifacts.apply();
    let looked = load::load_anew(&plugin, &search, &args.sandbox.limits()?).and_then(look);
    let (loaded, failed) = match looked {
        Ok(loaded) => (Some(loaded), None),
        Err(error) => (None, Some(error)),
    };
    let project = fresh::project_of(Path::new(&plugin));
    let stale = project.and_then(|project| {
        let change = fresh::stale(&project)?;
        Some(format!("{change}; {}", fresh::remedy(&project)))
    });
    let facts = Facts {
        stale,
        plugin,
        origin: outside.origin,
        size_bytes: outside.size,
        sha256: outside.digest,
        imports: outside.imports,
        loads: failed.is_none(),
        error: failed.as_ref().map(ToString::to_string),
        loaded,
        limits: Limits::default(),
    };
    let shown = args.form.print(&facts, text)?;
    failed.map_or(Ok(shown), |error| Err(raised_by(error)))
}

fn look(plugin: Plugin) -> Result<LoadedFacts, PluginError> {
    let mut instances: Vec<Duration> = Vec::new();
    let mut started = Instant::now();
    let AtRest { info, memory_bytes } = examine::at_rest(&plugin, &mut |moment| match moment {
        Moment::Before => started = Instant::now(),
        Moment::After => instances.push(started.elapsed()),
    })?;
    instances.sort();
    let median = instances.get(instances.len() / 2).copied();
    Ok(LoadedFacts {
        description: Description::new(&plugin, info)?,
        memory_at_rest_bytes: memory_bytes,
        measured: Times {
            compile_seconds: plugin.loading.compiled_in.unwrap_or_default().as_secs_f64(),
            instantiate_seconds: median.unwrap_or_default().as_secs_f64(),
        },
    })
}

fn text(facts: &Facts) -> String {
    let mut text = match &facts.loaded {
        Some(loaded) => loaded.description.headline(),
        None => format!("{} does not load\n\n", facts.plugin),
    };
    let mut rows = vec![
        row("file", facts.origin.clone()),
        row("size", facts::size(facts.size_bytes)),
        row("sha256", facts.sha256.clone()),
    ];
    rows.extend(facts.stale.iter().map(|stale| row("sources", format!("STALE: {stale}"))));
    if let Some(loaded) = &facts.loaded {
        let measured =
            |seconds: f64| format!("{} (measured)", facts::time(Duration::from_secs_f64(seconds)));
        rows.extend([
            loaded.description.contract(),
            row("compile time", measured(loaded.measured.compile_seconds)),
            row("instance time", measured(loaded.measured.instantiate_seconds)),
            row("memory at rest", facts::size(loaded.memory_at_rest_bytes)),
        ]);
        rows.extend(loaded.description.server());
    }
    text += &columns(&rows);
    if let Some(imports) = &facts.imports {
        let imports: Vec<[String; 3]> = (imports.iter())
            .map(|import| {
                let word = if import.allowed { "allowed" } else { "REFUSED" };
                [word.to_owned(), import.name.clone(), import.why.to_owned()]
            })
            .collect();
        text += "\nimports\n";
        text += &if imports.is_empty() { "  none\n".to_owned() } else { columns(&imports) };
    }
    if let Some(loaded) = &facts.loaded {
        text += "\nconfiguration\n";
        text += &match loaded.description.config_keys.as_slice() {
            [] => "  none\n".to_owned(),
            keys => facts::keys(keys),
        };
    }
    text + &format!(
        "\nlimits (defaults; [sandbox] in a scenario changes them)\n{}",
        limits(&facts.limits)
    )
}

fn limits(limits: &Limits) -> String {
    let limits = serde_json::to_value(limits).unwrap_or_default();
    let rows: Vec<[String; 2]> = (limits.as_object().into_iter().flatten())
        .map(|(name, value)| {
            let number = value.as_u64().unwrap_or_default();
            let (name, value) = match (name.strip_suffix("-bytes"), name.strip_suffix("-ms")) {
                (Some(name), _) => (name, facts::size(number)),
                (_, Some(name)) => (name, facts::time(Duration::from_millis(number))),
                _ => (name.as_str(), value.to_string()),
            };
            row(name, value)
        })
        .collect();
    columns(&rows)
}
