//! `runner guide`: the user guide.

use std::fmt::Write;
use std::process::ExitCode;

use crate::cli::failure::Failure;
use crate::cli::print::finish;
use crate::guide::pages::{PAGES, Page, page};

/// Print the user guide, a page at a time
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner guide                 list the pages\n  \
        runner guide load | less     how to choose the load\n  \
        runner guide --find slo      the lines that hold a word, with their pages\n  \
        runner guide scenario-keys   every key of a scenario")]
pub struct Args {
    /// The page to print; without it, the list of pages
    #[arg(value_name = "PAGE")]
    page: Option<String>,
    /// Print the lines that hold these words, in any case, below the page and the section
    #[arg(long, value_name = "WORDS", env = "RUNNER_GUIDE_FIND")]
    find: Option<String>,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let chosen = args.page.as_deref().map(page).transpose().map_err(Failure::command_line)?;
    let text = match (chosen, &args.find) {
        (Some(page), None) => page.text().to_owned(),
        (None, None) => list(),
        (chosen, Some(words)) => {
            let pages: Vec<&Page> =
                PAGES.iter().filter(|it| chosen.is_none_or(|page| page == *it)).collect();
            found(&pages, words)?
        }
    };
    finish(&text)
}

fn found(pages: &[&Page], words: &str) -> Result<String, Failure> {
    let sought = words.to_lowercase();
    let mut text = String::new();
    for page in pages {
        let (mut section, mut shown, mut is_code) = ("", None, false);
        for line in page.text().lines() {
            is_code ^= line.starts_with("```");
            if line.starts_with('#') && !is_code {
                section = line.trim_start_matches('#').trim();
            }
            if sought.is_empty() || !line.to_lowercase().contains(&sought) {
                continue;
            }
            if shown != Some(section) {
                shown = Some(section);
                let _ = writeln!(text, "{}: {section}", page.name);
            }
            let _ = writeln!(text, "    {}", line.trim());
        }
    }
    if text.is_empty() {
        Err(Failure::command_line(format!("--find: no page of the guide has `{words}`")))
    } else {
        Ok(text)
    }
}

fn list() -> String {
    let mut text = String::from(
        "The user guide. `runner guide PAGE` prints a page, `runner guide --find WORDS` the lines that hold words:\n\n",
    );
    for page in PAGES {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<14} {}", page.name, page.about);
    }
    text
}
