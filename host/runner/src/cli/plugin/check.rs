//! `runner plugin check`: loads a component, and lists its needs.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::facts;
use super::facts::Server;
use super::options::{Folders, Form, Sandbox, meant, raised_by};
use crate::author::fresh;
use crate::author::keys::{Key, keys};
use crate::cli::failure::Failure;
use model::plugin::{Kind, Limits};
use plugins::PluginError;
use plugins::examine::{self, AtRest, Moment};
use plugins::imports::Import;
use plugins::load::{self, Plugin};

/// Check whether a component loads, and show its imports and resource use
///
/// The component is compiled from scratch and instantiated; the times are measured on this machine.
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
    name: String,
    version: String,
    summary: String,
    kind: Kind,
    contract: String,
    /// Absent of other plugins than backends, and of a backend that needs a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
    config_keys: Vec<Key>,
    config_schema: Value,
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
    // The cache of compiled plugins is not used, so that the time of compiling is measured.
    let looked = load::load_within(&plugin, &search, &args.sandbox.limits()?).and_then(look);
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
    args.form.print(&facts, text)?;
    failed.map_or(Ok(ExitCode::SUCCESS), |error| Err(raised_by(error)))
}

fn look(plugin: Plugin) -> Result<LoadedFacts, PluginError> {
    let mut instances: Vec<Duration> = Vec::new();
    let mut started = Instant::now();
    let AtRest { info, memory_bytes } = examine::at_rest(&plugin, &mut |moment| match moment {
        Moment::Before => started = Instant::now(),
        Moment::After => instances.push(started.elapsed()),
    })?;
    let server = examine::server(&plugin)?.map(Server::new);
    instances.sort();
    let median = instances.get(instances.len() / 2).copied();
    Ok(LoadedFacts {
        name: info.name,
        version: info.version,
        summary: info.summary,
        kind: plugin.kind,
        contract: plugin.contract.version().to_owned(),
        server,
        config_keys: keys(&info.config_schema),
        config_schema: info.config_schema,
        memory_at_rest_bytes: memory_bytes,
        measured: Times {
            compile_seconds: plugin.loading.compiled_in.unwrap_or_default().as_secs_f64(),
            instantiate_seconds: median.unwrap_or_default().as_secs_f64(),
        },
    })
}

fn text(facts: &Facts) -> String {
    let mut text = match &facts.loaded {
        Some(loaded) => format!(
            "{} {}, a {}: {}\n\n",
            loaded.name,
            loaded.version,
            loaded.kind.name(),
            loaded.summary
        ),
        None => format!("{} does not load\n\n", facts.plugin),
    };
    let mut rows = vec![
        ["file".to_owned(), facts.origin.clone()],
        ["size".to_owned(), facts::size(facts.size_bytes)],
        ["sha256".to_owned(), facts.sha256.clone()],
    ];
    if let Some(stale) = &facts.stale {
        rows.push(["sources".to_owned(), format!("STALE: {stale}")]);
    }
    if let Some(loaded) = &facts.loaded {
        let time = |seconds: f64| facts::time(Duration::from_secs_f64(seconds));
        let measured = &loaded.measured;
        rows.extend([
            ["contract".to_owned(), format!("runner:plugin {}", loaded.contract)],
            ["compile time".to_owned(), format!("{} (measured)", time(measured.compile_seconds))],
            [
                "instance time".to_owned(),
                format!("{} (measured)", time(measured.instantiate_seconds)),
            ],
            ["memory at rest".to_owned(), facts::size(loaded.memory_at_rest_bytes)],
        ]);
        rows.extend(loaded.server.iter().flat_map(Server::rows));
    }
    text += &facts::columns(&rows);
    if let Some(imports) = &facts.imports {
        let imports: Vec<[String; 3]> = (imports.iter())
            .map(|import| {
                let word = if import.allowed { "allowed" } else { "REFUSED" };
                [word.to_owned(), import.name.clone(), import.why.to_owned()]
            })
            .collect();
        text += "\nimports\n";
        text += &if imports.is_empty() { "  none\n".to_owned() } else { facts::columns(&imports) };
    }
    if let Some(loaded) = &facts.loaded {
        text += "\nconfiguration\n";
        text += &if loaded.config_keys.is_empty() {
            "  none\n".to_owned()
        } else {
            facts::keys(&loaded.config_keys)
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
            [name.to_owned(), value]
        })
        .collect();
    facts::columns(&rows)
}
