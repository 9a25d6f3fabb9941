//! `runner plugin new`: a project from a template.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::Form;
use crate::author::name::Name;
use crate::author::{Language, project, template};
use crate::cli::failure::Failure;
use model::plugin::Kind;

/// Write a plugin's project, which builds and passes its first case as it stands
///
/// The project holds all that it takes beside a compiler: the plugin interface, for Rust also the SDK, a first
/// case, a README.md with the next steps, and a workflow that tests it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin new backend my-engine                    an engine's dialect, in Rust\n  \
        runner plugin new scorer rouge --lang python           a judge of answers, in Python\n  \
        runner plugin new dataset my-prompts --path ./prompts  into a folder of another name\n\n\
        Kinds: a backend writes an engine's requests and reads its replies, a dataset makes\n\
        what is asked, a scorer judges answers after the run.")]
pub struct Args {
    /// What it is to be
    #[arg(value_name = "KIND", value_enum)]
    kind: Kinds,
    /// Its name: lower-case words with `-` between them
    #[arg(value_name = "NAME")]
    name: Name,
    /// In which language
    #[arg(long, value_enum, env = "RUNNER_PLUGIN_LANG", default_value = "rust")]
    lang: Language,
    /// The project's folder [default: NAME]
    #[arg(long, value_name = "DIR", env = "RUNNER_PLUGIN_PROJECT")]
    path: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// The kinds of plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kinds {
    /// Writes requests and reads replies
    Backend,
    /// Makes samples
    Dataset,
    /// Judges answers
    Scorer,
}

/// What was made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Made {
    name: String,
    kind: Kind,
    language: Language,
    folder: PathBuf,
    files: Vec<String>,
}

/// Runs the subcommand.
///
/// # Errors
/// Where there is something in the folder already, or no such template.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let kind = match args.kind {
        Kinds::Backend => Kind::Backend,
        Kinds::Dataset => Kind::Dataset,
        Kinds::Scorer => Kind::Scorer,
    };
    let files = template::project(kind, &args.name, args.lang)?;
    let folder = args.path.clone();
    let folder = folder.unwrap_or_else(|| PathBuf::from(args.name.kebab()));
    project::write(&folder, &files)?;
    let made = Made {
        name: args.name.kebab().to_owned(),
        kind,
        language: args.lang,
        folder,
        files: files.into_keys().collect(),
    };
    args.form.print(&made, words)?;
    Ok(ExitCode::SUCCESS)
}

fn words(made: &Made) -> String {
    // What an author never opens is named by its folder.
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
         README.md says how it goes on.\n",
        made.folder.display(),
        made.kind.name(),
        made.language.name(),
        shown.join("\n  "),
        made.folder.display(),
        made.name,
    )
}
