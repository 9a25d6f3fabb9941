//! `runner schema`: prints the JSON Schemas of the files that runs, sweeps, searches and labs
//! write.

use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::print::finish;

/// Print the JSON Schema of a result file
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// File or output: summary is summary.json, exchange a line of records.jsonl.zst,
    /// lab-event a line of a lab's journal.jsonl
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(names()))]
    name: String,
}

fn names() -> impl Iterator<Item = &'static str> {
    shipped::names_below("schemas/").filter_map(|name| name.strip_suffix(".schema.json"))
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let text = shipped::text(&format!("schemas/{}.schema.json", args.name))
        .ok_or_else(|| Failure::new(Exit::Bug, format!("no schema `{}`", args.name)))?;
    finish(text)
}
