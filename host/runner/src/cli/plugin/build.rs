//! `runner plugin build`: compiles a project to a component.

use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use toolchain::Target;

use super::{Form, facts};
use crate::author::build::{Component, ShowOutput, build, wrap};
use crate::author::project::Project;
use crate::cli::failure::Failure;
use crate::cli::print::tell;

/// Compile a plugin project to DIR/target/plugin/NAME.wasm
///
/// The language is detected: a crate that builds a `cdylib` is Rust, every other project has a
/// runner-plugin.toml. If a compiler is missing, the message says what to install. Compiler output
/// goes to stderr. A component in Python or JavaScript whose sources have not changed is kept: its
/// compiler would write another one. A core module that another tool built with bindings of the
/// plugin interface is turned into a component.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin build                                    the project in this folder\n  \
        runner plugin build my-engine --json\n  \
        runner plugin build my-engine --target wasm32-wasip2   a Rust component that imports WASI\n  \
        runner plugin build engine.core.wasm                   a core module from another tool\n\n\
        RUNNER_WASM_TOOLCHAIN=rustup|distribution selects the Rust toolchain; by default the\n\
        first one that can compile for WebAssembly.")]
pub struct Args {
    /// The project folder, or a core module
    #[arg(value_name = "DIR|MODULE", default_value = ".")]
    from: PathBuf,
    /// Output file for a module's component; by default NAME.component.wasm next to the module
    #[arg(long, value_name = "FILE", env = "RUNNER_PLUGIN_OUTPUT")]
    output: Option<PathBuf>,
    /// Compilation target of a Rust project
    #[arg(long, value_enum, env = "RUNNER_PLUGIN_TARGET")]
    #[arg(default_value = "wasm32-unknown-unknown")]
    target: Targets,
    #[command(flatten)]
    form: Form,
}

/// Compilation targets of a Rust project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Targets {
    /// No WASI: the component imports only the plugin interface
    #[value(name = "wasm32-unknown-unknown")]
    Unknown,
    /// WASI 0.2, which the sandbox provides only as empty stubs
    #[value(name = "wasm32-wasip2")]
    Wasip2,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    if args.from.is_file() {
        return args.form.print(&wrap(&args.from, args.output.as_deref())?, text);
    }
    if args.output.is_some() {
        let message =
            "--output is only for a module; a project's component goes to DIR/target/plugin";
        return Err(Failure::command_line(message));
    }
    let project = Project::open(&args.from)?;
    let target = match args.target {
        Targets::Unknown => Target::Unknown,
        Targets::Wasip2 => Target::Wasip2,
    };
    args.form.print(&build(&project, target, &shell)?, text)
}

/// Runs a compiler. Its output goes to stderr: stdout carries the result.
fn shell(command: &mut Command, talk: ShowOutput) -> std::io::Result<ExitStatus> {
    command.stdin(Stdio::null());
    match talk {
        ShowOutput::Always => command.stdout(std::io::stderr()).status(),
        ShowOutput::OnFailure => {
            let output = command.output()?;
            if !output.status.success() {
                for stream in [&output.stdout, &output.stderr] {
                    let output = String::from_utf8_lossy(stream);
                    if !output.trim().is_empty() {
                        tell(output.trim_end());
                    }
                }
            }
            Ok(output.status)
        }
    }
}

fn text(built: &Component) -> String {
    let imports: Vec<&str> = built.imports.iter().map(String::as_str).collect();
    let imports = if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") };
    let kept = match built.kept {
        true => "  kept     its sources have not changed; to build it again, remove it\n",
        false => "",
    };
    format!(
        "{}\n{kept}  size     {}\n  sha256   {}\n  imports  {imports}\n",
        built.path.display(),
        facts::size(built.size_bytes),
        built.sha256,
    )
}
