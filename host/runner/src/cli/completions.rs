//! `runner completions`: prints the script that connects a shell with the program, and answers the
//! shell when it asks for a word's possible values.
//!
//! A script asks the program itself at each press of the key: the possible words depend on the
//! plugins, runs and files that are there. The scripts are `clap_complete`'s. [`offers`] lists the
//! values of an argument, [`places`] finds files and folders, and [`line`] reads the words before.
//! An answer reads names alone: it runs no plugin, asks no server, writes nothing and reports no
//! error. Where anything fails, nothing is offered.

mod offers;
mod places;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;

use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::failure::Failure;
use super::print::finish;

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

/// The index of the word under the cursor, as bash and zsh give it.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// The words of a line, the program's first, and the place of the word that the shell asks about.
#[derive(Debug)]
struct Line {
    words: Vec<OsString>,
    at: usize,
}

impl Line {
    /// The line that a shell passes on after `--`.
    fn from_shell(arguments: &[OsString]) -> Self {
        let begin = arguments.iter().position(|word| word == "--");
        let words = begin.and_then(|begin| arguments.get(begin + 1..));
        let words = words.unwrap_or_default().to_vec();
        let index = std::env::var(INDEX).ok().and_then(|at| at.parse().ok());
        // The other shells leave out the text behind the cursor.
        Line::new(words, index)
    }

    fn new(words: Vec<OsString>, index: Option<usize>) -> Self {
        let at = index.unwrap_or(words.len().saturating_sub(1));
        Line { words, at }
    }

    fn first(&self) -> Option<&str> {
        self.words.get(1).filter(|_| self.at > 1)?.to_str()
    }

    /// The word under the cursor; zsh leaves it out where it is empty.
    fn current(&self) -> &OsStr {
        self.words.get(self.at).map_or(OsStr::new(""), |word| word)
    }

    /// The value that the line gives a flag, else its variable's.
    fn value(&self, flag: &str, variable: &str) -> Option<OsString> {
        let given = self.words.iter().enumerate().rev().find_map(|(at, word)| {
            if at == self.at {
                return None;
            }
            if word == flag {
                return self.words.get(at + 1).filter(|_| at + 1 != self.at).cloned();
            }
            let rest = word.to_str()?.strip_prefix(flag)?.strip_prefix('=')?;
            Some(OsString::from(rest))
        });
        given.or_else(|| std::env::var_os(variable)).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_last_complete_value_of_a_flag() {
        let backend = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let value = Line::new(words, None).value("--backend", "NO_SUCH_VARIABLE");
            value.map(|value| value.to_string_lossy().into_owned())
        };
        for (line, value) in [
            ("runner --backend vllm --endpoint /", Some("vllm")),
            ("runner --backend=vllm --backend sglang -", Some("sglang")),
            ("runner --backend=vllm x", Some("vllm")),
            ("runner --backend vl", None),
            ("runner --backend=vl", None),
            ("runner --backend= -", None),
            ("runner --backends=x -", None),
        ] {
            assert_eq!(backend(line).as_deref(), value, "{line}");
        }
    }
}
