//! Tasks that cargo alone cannot do: building the plugins as components, and the commands that need
//! them. `cargo xtask help` lists the tasks; the modules do the work.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
#![forbid(unsafe_code)]

mod component;
mod dist;
mod documents;
mod examples;
#[cfg(test)]
mod floors;
mod freeze;
mod fuzz;
mod gate;
mod guest;
mod left_out;
mod links;
mod release;
mod site;
mod steps;
mod toolchain;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use component::GuestSet;

const HELP: &str = "\
cargo xtask COMMAND

  plugins     build every plugin to target/components/{backends,datasets,scorers}/NAME.wasm; with --shipping, without the
              tests' own plugins
  demo [ARG]  build the plugins of the demo and the runner, then run `runner demo ARG...`
  test [STEP..]  run all checks that a change must pass, or the named steps and the steps that they need: tools, format,
              features, weight, words, plugins, languages, deny, demo, build (clippy, and all tests compiled), whole (tests
              of the whole program), unit (all other tests), examples (in plugins/examples and plugins/scorers/code),
              documents (the commands of documents that are marked as tested), site
  dist        build the runner for release, with the plugins embedded, to target/dist/runner
  install     `dist`, then the program, its completions and man pages below ~/.local, or below --prefix DIR
  package K.. make packages, such as a wheel, in target/packages; `cargo xtask package --help` has options
  guide       build the site with mdBook, to target/guide: the user guide, and pages whose reports the runner draws
  fuzz [ARG]  feed every reader of hostile input with a fuzzer's inputs; `cargo xtask fuzz --help` has options
  release     raise the version, or check a tag before its release; `cargo xtask release --help` has the forms
  release-notes  print a version's section of the changelog
  freeze      keep the contract in wit/ in wit/frozen, and plugins for it in tests/versions, when a version of it is released
  help        print this text

RUNNER_WASM_TOOLCHAIN=rustup|distribution selects the toolchain for the plugins; the default is the first that works:
the active toolchain with its wasm32-unknown-unknown target, the same after `rustup target add`, or the
distribution's own Rust with its sources.

`test` skips the tests of missing tools (a browser, another language's tools, root's rights). It lists them at its end,
with the commands that install the tools. With RUNNER_LEAVE_OUT=NAME,NAME, any other missing tool is an error.
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".into());
    let rest: Vec<_> = arguments.collect();
    let root = root()?;
    match command.to_str() {
        Some("demo") => steps::demo(&root, &rest)?,
        Some("fuzz") => return fuzz::fuzz(&root, &rest),
        Some("release") => release::release(&root, &rest)?,
        Some("release-notes") => release::notes(&root, &rest)?,
        Some("test") => {
            let steps: Vec<String> =
                rest.iter().map(|step| step.to_string_lossy().into_owned()).collect();
            return match steps.as_slice() {
                [alone, step] if alone == "--alone" => gate::alone(&root, step),
                steps => gate::test(&root, steps),
            };
        }
        Some("package") => steps::package(&root, &rest)?,
        Some("install") => dist::install(&root, &rest)?,
        Some("plugins") if rest == ["--shipping"] => component::build(&root, GuestSet::Shipping)?,
        Some(command) if !rest.is_empty() => bail!("`{command}` takes no arguments"),
        Some("plugins") => component::build(&root, GuestSet::All)?,
        Some("guide") => site::guide(&root)?,
        Some("freeze") => freeze::keep(&root)?,
        Some("dist") => drop(dist::build(&root)?),
        Some("help" | "--help" | "-h") => print!("{HELP}"),
        _ => bail!("no command {command:?}; `cargo xtask help` lists them"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The repository's root: this crate is three folders below it.
fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .map(Path::to_owned)
        .context("xtask does not lie in host/build/xtask")
}
