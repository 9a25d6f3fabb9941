//! `runner completions`: prints the script that connects a shell with the program, and answers the
//! shell when it asks for a word's possible values.
//!
//! A script asks the program itself at each press of the key: the possible words depend on the
//! plugins, runs and files that are there. The scripts are `clap_complete`'s. [`offers`] lists the
//! values of an argument, [`places`] finds files and folders, and [`line`] reads the words before.
//! An answer reads names alone: it runs no plugin, asks no server, writes nothing and reports no
//! error. Where anything fails, nothing is offered.

mod line;
mod offers;
mod places;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;

use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::failure::Failure;
use super::print::finish;
use line::Line;

/// Names the shell that asks. It is this program's own, because others use `COMPLETE` too.
const VARIABLE: &str = "RUNNER_COMPLETE";

const PROGRAM: &str = "runner";

/// Print the script that completes command lines in a shell
///
/// The script asks the `runner` in PATH for the possible words. These are commands and flags with
/// their descriptions, plugins, scenarios and their keys, runs (the newest first), figures,
/// published results, and files.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        source <(runner completions bash)            in this shell, or in ~/.bashrc for all\n  \
        source <(runner completions zsh)             the same in ~/.zshrc, below compinit\n  \
        runner completions fish > ~/.config/fish/completions/runner.fish")]
pub struct Args {
    /// Shell to print the script for
    shell: Shell,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&shell).ok_or(std::io::Error::from(ErrorKind::Unsupported));
    let mut script = Vec::new();
    shell
        .and_then(|shell| {
            shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        })
        .map_err(Failure::cannot("write the script"))?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Zsh {
        // A file in zsh's path of functions becomes the function's body: the first call also
        // completes.
        script +=
            "[[ \"$funcstack[1]\" = \"_runner\" ]] && _clap_dynamic_completer_runner \"$@\"\n";
    }
    finish(&script)
}

/// True if a shell started this process to ask for a word's possible values.
pub fn is_completing() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|shell| !shell.is_empty() && shell != "0")
}

/// Answers the shell. It shows no mistakes: the user is in the middle of a line.
pub fn answer() -> ExitCode {
    panic::set_hook(Box::new(|_| {}));
    let words: Vec<OsString> = std::env::args_os().collect();
    let here = std::env::current_dir().ok();
    let answered = AssertUnwindSafe(|| {
        let line = Arc::new(Line::from_shell(&words));
        let shell = CompleteEnv::with_factory(|| offers::command(&line))
            .var(VARIABLE)
            .bin(PROGRAM)
            .completer(PROGRAM);
        // Neither a shell's wrong question nor a pipe that it closed concerns anybody.
        let _ = shell.try_complete(words.clone(), here.as_deref());
    });
    let _ = panic::catch_unwind(answered);
    ExitCode::SUCCESS
}
