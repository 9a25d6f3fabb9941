//! `runner plugin info`: the configuration keys of a plugin.

use std::process::ExitCode;

use serde::Serialize;

use super::facts;
use super::facts::Server;
use super::options::{Folders, Form, Sandbox, meant};
use crate::author::keys::{Key, example, keys};
use crate::cli::artifacts::Artifacts;
use crate::cli::failure::Failure;
use model::plugin::Kind;
use plugins::examine;

/// Show the purpose and the configuration keys of a plugin
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin info vllm                      one that ships with the runner, by its short name\n  \
        runner plugin info ./my-engine.wasm          a component file\n  \
        runner plugin info sglang --json             with the JSON Schema of its configuration")]
pub struct Args {
    /// A component file, or the name of a plugin that ships with the runner
    #[arg(value_name = "PLUGIN")]
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

/// A plugin, as its users see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Plate {
    plugin: String,
    name: String,
    version: String,
    summary: String,
    kind: Kind,
    contract: String,
    sha256: String,
    /// Absent of other plugins than backends, and of a backend that needs a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
    config_keys: Vec<Key>,
    config_schema: serde_json::Value,
    example: String,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let plugin = args.sandbox.load(&meant(&args.plugin)?, &args.folders.search())?;
    let info = examine::describe(&plugin)?;
    let server = examine::server(&plugin)?.map(Server::new);
    let config_keys = keys(&info.config_schema);
    let plate = Plate {
        example: example(plugin.kind, &plugin.name, &config_keys),
        plugin: plugin.name,
        name: info.name,
        version: info.version,
        summary: info.summary,
        kind: plugin.kind,
        contract: plugin.contract.version().to_owned(),
        sha256: plugin.digest,
        server,
        config_keys,
        config_schema: info.config_schema,
    };
    args.form.print(&plate, text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(plate: &Plate) -> String {
    let kind = plate.kind.name();
    let table = match plate.kind {
        Kind::Scorer => "scorers".to_owned(),
        Kind::Backend | Kind::Dataset => kind.to_owned(),
    };
    let keys = if plate.config_keys.is_empty() {
        "It has no configuration keys.\n".to_owned()
    } else {
        format!("Keys of [{table}.config]:\n{}", facts::keys(&plate.config_keys))
    };
    let example: String = (plate.example.lines())
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("  {line}\n"),
        })
        .collect();
    let mut rows = vec![
        ["contract".to_owned(), format!("runner:plugin {}", plate.contract)],
        ["sha256".to_owned(), plate.sha256.clone()],
    ];
    rows.extend(plate.server.iter().flat_map(Server::rows));
    let rows = facts::columns(&rows);
    format!(
        "{} {}, a {kind}: {}\n\n{rows}\n{keys}\nIn a scenario, with all defaults:\n{example}",
        plate.name, plate.version, plate.summary
    )
}
