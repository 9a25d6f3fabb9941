//! `runner plugin new`: creates a project from a template.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::Form;
use crate::author::project::Name;
use crate::author::{Language, editor, project, template};
use crate::cli::failure::Failure;
use crate::cli::words::some_of;
use model::plugin::Kind;

/// Create a plugin project that builds and passes its first case unchanged
///
/// The project contains everything except a compiler: the plugin interface, the SDK (for Rust), a
/// first case, a README.md with the next steps, and a workflow that tests it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin new backend my-engine                    a backend for an engine, in Rust\n  \
        runner plugin new scorer rouge --lang python           a scorer of answers, in Python\n  \
        runner plugin new dataset my-prompts --path ./prompts  in another folder\n\n\
        Kinds: a backend writes the requests to an engine and reads its replies, a dataset\n\
        generates samples, a scorer scores answers after the run.")]
pub struct Args {
    /// Kind of plugin
    #[arg(value_name = "KIND", value_parser = some_of(&[Kind::Backend, Kind::Dataset, Kind::Scorer]))]
    kind: Kind,
    /// Name of the plugin: lower-case words joined by `-`
    #[arg(value_name = "NAME")]
    name: Name,
    /// Programming language
    #[arg(long, value_enum, env = "RUNNER_PLUGIN_LANG", default_value = "rust")]
    lang: Language,
    /// Project folder [default: NAME]
    #[arg(long, value_name = "DIR", env = "RUNNER_PLUGIN_PROJECT")]
    path: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct NewProject {
    name: String,
    kind: Kind,
    language: Language,
    folder: PathBuf,
    files: Vec<String>,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let files = template::project(args.kind, &args.name, args.lang)?;
    let folder = args.path.clone().unwrap_or_else(|| args.name.kebab().into());
    project::write(&folder, &files)?;
    editor::prepare(&project::Project::open(&folder)?, None)?;
    let made = NewProject {
        name: args.name.kebab().to_owned(),
        kind: args.kind,
        language: args.lang,
        folder,
        files: files.into_keys().collect(),
    };
    args.form.print(&made, text)
}

fn text(made: &NewProject) -> String {
    // Files that an author never opens are summed up by their folder.
    let mut shown: Vec<&str> = Vec::new();
    for file in &made.files {
        let name = match file.split_once('/') {
            Some((folder @ ("runner-plugin" | "wit" | ".github"), _)) => folder,
            _ => file,
        };
        if shown.last() != Some(&name) {
            shown.push(name);
        }
    }
    format!(
        "{}: a {} in {}\n  {}\n\nNext:\n  cd {}\n  runner plugin build\n  runner plugin check target/plugin/{}.wasm\n  runner plugin test\n\
         README.md describes the next steps.\n",
        made.folder.display(),
        made.kind.name(),
        made.language.name(),
        shown.join("\n  "),
        made.folder.display(),
        made.name,
    )
}
