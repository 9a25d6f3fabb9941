//! `runner published`: lists the built-in published results with the verdicts of their audits.

use std::process::ExitCode;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::failure::Failure;
use super::print::{finish, json};
use audit::claim::Document;
use audit::figures::shown;
use audit::text::verdict;
use audit::{Report, published};

/// List the built-in published results with their audit verdicts
///
/// These are figures from public pages, as data. `runner compare RUN published:NAME` compares a run
/// with one, and `runner audit published:NAME` shows all findings about it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner published                                   all of them\n  \
        runner published lmdeploy-0.9.2                    names that contain this text\n  \
        runner published '*/h800/*/sharegpt'               with * for any text\n  \
        runner compare runs/latest published:lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt")]
pub struct Args {
    /// Results to list: a name, a part of a name, or a pattern with * for any text
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    /// Output format
    #[arg(long, env = "RUNNER_PUBLISHED_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    Text,
    /// JSON that follows `runner schema audit`
    Json,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let pattern = args.pattern.as_deref().unwrap_or_default();
    let pattern = pattern.strip_prefix(published::PREFIX).unwrap_or(pattern);
    let claims = published::find(pattern).map_err(Failure::input)?;
    // Audit each result together with all others of its page, then show only the requested ones.
    let mut report = audit::documents(&[Document {
        file: published::PREFIX.to_owned(),
        claims: published::all(),
        quotes: Vec::new(),
    }]);
    report.keep(|result| claims.iter().any(|claim| claim.source == result.claim.source));
    finish(&match args.format {
        Format::Text => table(&report),
        Format::Json => json(&report)?,
    })
}

fn table(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["name", "req/s", "output tok/s", "TTFT ms", "TPOT ms", "audit"]);
    for column in 1..=4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for result in &report.results {
        let claim = &result.claim;
        let figure = |name: &str| claim.value(name).map(shown).unwrap_or_default();
        let name = claim.source.file.strip_prefix(published::PREFIX).unwrap_or(&claim.source.file);
        table.add_row([
            name.to_owned(),
            figure("throughput.requests-per-s"),
            figure("throughput.output-tokens-per-s"),
            figure("ttft.mean"),
            figure("tpot.mean"),
            verdict(result),
        ]);
    }
    let mut sources: Vec<&str> =
        report.results.iter().filter_map(|result| result.claim.source.url.as_deref()).collect();
    sources.sort_unstable();
    sources.dedup();
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let sources: String = sources.iter().map(|url| format!("  {url}\n")).collect();
    format!("{}\n\nMeans, as published. From:\n{sources}", lines.join("\n"))
}
