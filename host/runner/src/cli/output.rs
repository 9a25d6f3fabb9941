//! Results of runs on stdout and in files: the flags for their places and forms, and the printing.
//! Figures and their layout belong to `report`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::agreement::agreed;
use super::failure::Failure;
use super::print::{json, tell, write_stdout};
use model::clean;
use report::compatible::{self, Compatible, Keep, Tool};
use report::text;
use result::summary::Summary;
use runs::folder::RunFolder;

/// The folder for results, by the same name in every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Result")]
pub struct Within {
    /// Folder in which each result gets a folder of its own
    #[arg(long, alias = "result-dir", value_name = "FOLDER", env = "RUNNER_OUTPUT_DIR")]
    #[arg(default_value = "runs")]
    pub(super) output_dir: PathBuf,
}

/// The place where results go.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Result")]
pub struct Output {
    #[command(flatten)]
    pub(super) within: Within,
    /// Write the result as `vllm bench serve --save-result` does too, to this file in the output
    /// folder
    #[arg(long, value_name = "FILE", env = "RUNNER_RESULT_FILENAME")]
    result_filename: Option<PathBuf>,
    /// Write the figures, the text and the error of each request to that file too, as `vllm bench
    /// serve --save-detailed` does
    #[arg(long, env = "RUNNER_SAVE_DETAILED")]
    save_detailed: bool,
    /// Append to that file, a line for each run, instead of replacing it
    #[arg(long, env = "RUNNER_APPEND_RESULT")]
    append_result: bool,
    /// Append each summary to this file, one line of JSON each
    #[arg(long, value_name = "FILE", env = "RUNNER_OUTPUT_FILE")]
    output_file: Option<PathBuf>,
    /// Compare the answers with this run's, and print the agreement (runner agreement)
    #[arg(long, value_name = "RUN", env = "RUNNER_BASELINE")]
    baseline: Option<PathBuf>,
    /// A repeat of the baseline, to show how much answers differ without any change; repeatable
    #[arg(long, value_name = "RUN", env = "RUNNER_FLOOR", value_delimiter = ',')]
    #[arg(requires = "baseline")]
    floor: Vec<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON")]
    pub(super) json: bool,
    /// Print every figure and the reasons of each finding, instead of one screen
    #[arg(long, env = "RUNNER_DETAILS")]
    details: bool,
    /// Exit with 0 even if the measurement is invalid or more than half of the requests failed
    ///
    /// Without it such a run exits with 7. A run in which no request was answered exits with 5 in
    /// any case, and no threshold holds for an invalid run.
    #[arg(long, env = "RUNNER_ALLOW_INVALID", hide_env_values = true)]
    allow_invalid: bool,
    /// Exit with 7 if the measurement is invalid: the default, and stronger than --allow-invalid
    /// and its variable
    #[arg(long, env = "RUNNER_STRICT")]
    strict: bool,
}

impl Output {
    /// True if an invalid measurement counts as a success.
    pub(super) fn allows_invalid(&self) -> bool {
        self.allow_invalid && !self.strict
    }

    fn write_result(&self, folder: &RunFolder) -> Result<(), Failure> {
        let Some(name) = &self.result_filename else { return Ok(()) };
        let path = self.within.output_dir.join(name);
        let keep = if self.save_detailed { Keep::All } else { Keep::Times };
        let line = vllm_result(folder, keep)?;
        let opened = File::options()
            .write(true)
            .create(true)
            .append(self.append_result)
            .truncate(!self.append_result)
            .open(&path);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        let advice = format!(
            "; give a writable file with --result-filename. The result is in {}",
            folder.path().display()
        );
        written.map_err(Failure::write(&path, &advice))
    }

    /// Opens the file of summaries, and checks the runs to compare with, before any measurement.
    pub(super) fn lines(&self) -> Result<Option<File>, Failure> {
        for run in self.baseline.iter().chain(&self.floor) {
            RunFolder::at(run).plan()?;
        }
        let Some(path) = &self.output_file else { return Ok(None) };
        let opened = File::options().append(true).create(true).open(path);
        opened.map(Some).map_err(|cause| {
            Failure::input(format!(
                "cannot append to `{}`: {cause}; give a writable file with --output-file",
                path.display()
            ))
        })
    }
}

/// A run's result as `vllm bench serve --save-result` writes it, in one line.
fn vllm_result(run: &RunFolder, keep: Keep) -> Result<String, Failure> {
    let line = seen_by(run, Tool::Vllm, keep, compatible::vllm::json)?;
    Ok(clean::json(&line).into_owned() + "\n")
}

/// A run as another tool would have reported it.
pub(super) fn seen_by(
    run: &RunFolder,
    tool: Tool,
    keep: Keep,
    draw: fn(&Compatible<'_>) -> String,
) -> Result<String, Failure> {
    let (reported, facts) = (run.reported()?, run.facts()?);
    let seen = Compatible::read(tool, &reported, &facts, keep, || run.read())?;
    Ok(draw(&seen))
}

pub(super) fn print(
    summary: &Summary,
    output: &Output,
    lines: Option<File>,
    folder: &RunFolder,
) -> Result<(), Failure> {
    let shown = if output.json {
        json(summary)?
    } else if output.details {
        text::text(summary)
    } else {
        text::short(summary)
    };
    write_stdout(&shown)?;
    let path = folder.path().display();
    tell(format_args!("records: {path}"));
    if !output.json && !output.details {
        tell(format_args!(
            "every figure, and advice on each finding: runner report {path} --details"
        ));
    }
    if let Some(baseline) = &output.baseline {
        let agreed = agreed(folder.path(), baseline, &output.floor, None)?;
        folder.write_agreement(&agreed)?;
        if !output.json {
            write_stdout(&report::agreed::text(&agreed))?;
        }
    }
    output.write_result(folder)?;
    if let Some(mut lines) = lines {
        let line = serde_json::to_string(summary).map_err(Failure::cannot("write JSON"))?;
        writeln!(lines, "{line}").map_err(|cause| {
            Failure::input(format!(
                "cannot append to the --output-file: {cause}; the summary is in {}",
                folder.path().display()
            ))
        })?;
    }
    Ok(())
}
