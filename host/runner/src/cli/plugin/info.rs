//! `runner plugin info`: the configuration keys of a plugin.

use std::process::ExitCode;

use serde::Serialize;

use super::facts::{self, Description, row};
use super::{Folders, Form, Sandbox, meant};
use crate::author::keys::example;
use crate::cli::artifacts::Artifacts;
use crate::cli::failure::Failure;
use crate::cli::print::columns;
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
    sha256: String,
    #[serde(flatten)]
    description: Description,
    example: String,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let plugin = args.sandbox.load(&meant(&args.plugin)?, &args.folders.search())?;
    let description = Description::new(&plugin, examine::describe(&plugin)?)?;
    let example = example(plugin.kind, &plugin.name, &description.config_keys);
    let (kind, sha256) = (plugin.kind, plugin.digest);
    let plate = Plate { plugin: plugin.name, sha256, description, example };
    args.form.print(&plate, |plate| text(plate, kind))
}

fn text(plate: &Plate, kind: Kind) -> String {
    let Plate { description, sha256, .. } = plate;
    let table = match kind {
        Kind::Scorer => "scorers",
        Kind::Backend | Kind::Dataset => kind.name(),
    };
    let keys = match description.config_keys.as_slice() {
        [] => "It has no configuration keys.\n".to_owned(),
        keys => format!("Keys of [{table}.config]:\n{}", facts::keys(keys)),
    };
    let example: String = (plate.example.lines())
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("  {line}\n"),
        })
        .collect();
    let mut rows = vec![description.contract(), row("sha256", sha256.clone())];
    rows.extend(description.server());
    let (headline, rows) = (description.headline(), columns(&rows));
    format!("{headline}{rows}\n{keys}\nIn a scenario, with all defaults:\n{example}")
}
