//! A command that this program is built without: parses its arguments, and its error names the
//! build that has it. Stands in for the module of each such command.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::failure::Failure;

/// Not in this program, which is built without it
#[derive(Clone, Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

impl Args {
    #[allow(dead_code, reason = "called for commands that can be resumed")]
    pub fn resumes(&self) -> Option<&Path> {
        None
    }
}

pub fn exec(_: &Args) -> Result<ExitCode, Failure> {
    let name = module_path!().rsplit("::").next().unwrap_or_default();
    Err(Failure::not_built(&format!("`runner {name}`")))
}
