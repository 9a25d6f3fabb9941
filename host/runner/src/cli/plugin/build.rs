//! `runner plugin build`: a project's component.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use toolchain::Target;

use super::{Form, facts};
use crate::author::build::{Built, Talk, build, wrap};
use crate::author::project::Project;
use crate::cli::failure::{Exit, Failure};

/// Compile a plugin's project to DIR/target/plugin/NAME.wasm
///
/// The language is found out: a crate that makes a `cdylib` is Rust, other projects have a runner-plugin.toml.
/// Where a compiler is missing, the message says what to install. What compilers say goes to stderr.
/// Of a core module that another tool made with bindings of the interface, a component is made.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin build                                    the project in this folder\n  \
        runner plugin build my-engine --json\n  \
        runner plugin build my-engine --target wasm32-wasip2   a Rust component that imports WASI\n  \
        runner plugin build engine.core.wasm                   a module that another tool made\n\n\
        RUNNER_WASM_TOOLCHAIN=rustup|distribution says which Rust compiles; by default the first\n\
        that can.")]
pub struct Args {
    /// The project's folder, or a core module
    #[arg(value_name = "DIR|MODULE", default_value = ".")]
    from: PathBuf,
    /// Where the component of a module goes; by default beside it, to NAME.component.wasm
    #[arg(long, value_name = "FILE", env = "RUNNER_PLUGIN_OUTPUT")]
    output: Option<PathBuf>,
    /// What a project in Rust is compiled for
    #[arg(
        long,
        value_enum,
        env = "RUNNER_PLUGIN_TARGET",
        default_value = "wasm32-unknown-unknown"
    )]
    target: Targets,
    #[command(flatten)]
    form: Form,
}

/// What Rust is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Targets {
    /// A module without any system: imports are exactly those of the plugin interface
    #[value(name = "wasm32-unknown-unknown")]
    Unknown,
    /// With WASI 0.2, of which the sandbox gives nothing but what is empty
    #[value(name = "wasm32-wasip2")]
    Wasip2,
}

/// Runs the subcommand.
///
/// # Errors
/// Where the folder is no project, a compiler is missing or fails, or what it made is no component.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    if args.from.is_file() {
        let built = wrap(&args.from, args.output.as_deref())?;
        args.form.print(&built, words)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.output.is_some() {
        let said = "--output is for a module; a project's component goes to DIR/target/plugin";
        return Err(Failure::new(Exit::CommandLine, said));
    }
    let project = Project::open(&args.from)?;
    let target = match args.target {
        Targets::Unknown => Target::Unknown,
        Targets::Wasip2 => Target::Wasip2,
    };
    let built = build(&project, target, &shell)?;
    args.form.print(&built, words)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a compiler. Its words go to stderr: stdout carries the result.
fn shell(command: &mut Command, talk: Talk) -> std::io::Result<ExitStatus> {
    command.stdin(Stdio::null());
    match talk {
        Talk::Always => command.stdout(std::io::stderr()).status(),
        Talk::OnFailure => {
            let output = command.output()?;
            if !output.status.success() {
                let mut stderr = std::io::stderr().lock();
                let _ = stderr.write_all(&output.stdout);
                let _ = stderr.write_all(&output.stderr);
            }
            Ok(output.status)
        }
    }
}

fn words(built: &Built) -> String {
    let imports = match built.imports.is_empty() {
        true => "nothing".to_owned(),
        false => {
            let imports: Vec<&str> = built.imports.iter().map(String::as_str).collect();
            imports.join(", ")
        }
    };
    format!(
        "{}\n  size     {}\n  sha256   {}\n  imports  {imports}\n",
        built.path.display(),
        facts::size(built.size_bytes),
        built.sha256,
    )
}
