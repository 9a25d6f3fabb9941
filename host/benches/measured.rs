//! Benches that count right answers: their arguments, their tables and the guide's page of them.

use std::process::ExitCode;

use statistics::beta::binomial;

pub struct Benchmark {
    /// The file of the guide's page.
    pub page: &'static str,
    /// Title and text above the tables.
    pub head: fn() -> String,
    pub parts: &'static [Part],
}

/// A part: its name, its default number of runs per case, and its tables for a number of runs.
pub type Part = (&'static str, u64, fn(u64) -> Vec<Section>);

/// A table with explanations of its columns.
pub struct Section {
    pub title: String,
    /// The subject of the table.
    pub about: String,
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// The reason why cells miss their target; empty if the table has no target.
    pub why: String,
}

/// Marks before and after a cell that misses its target.
const MARK: [&str; 2] = ["**", "** ✗"];

/// The rule by which cells are marked.
pub const RULE: &str = "A cell marked ✗ misses the target that stands above its table by more than the number of runs \
    explains: if the target were just met, as bad a share or a worse one would come out in fewer than one of twenty \
    such tables (an exact binomial test, one-sided, at 5 %)";

/// A share lower or higher than this by chance is no miss.
const LEVEL: f64 = 0.05;

/// A cell, marked if it misses its target.
pub fn cell(text: String, misses: bool) -> String {
    if misses { format!("{}{text}{}", MARK[0], MARK[1]) } else { text }
}

pub fn percent(part: usize, of: usize) -> String {
    match of {
        0 => "–".to_owned(),
        of => format!("{:.1} %", 100.0 * part as f64 / of as f64),
    }
}

/// True if `part` of `of` runs is less than the share `least`, beyond chance.
pub fn falls_short(part: usize, of: usize, least: f64) -> bool {
    (part as f64) < least * of as f64 && binomial(of as f64, least, part as f64) < LEVEL
}

/// True if `part` of `of` runs is more than the share `most`, beyond chance.
pub fn exceeds(part: usize, of: usize, most: f64) -> bool {
    part as f64 > most * of as f64 && 1.0 - binomial(of as f64, most, part as f64 - 1.0) < LEVEL
}

impl Section {
    /// As it stands on the page.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = self.heads.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "## {}\n\n{}\n\n{}{}{rows}{}",
            self.title,
            self.about,
            line(&self.heads),
            line(&rule),
            self.remarks()
        )
    }

    /// Returns the number of cells that miss their target, and the reasons.
    fn remarks(&self) -> String {
        let cells = self.rows.iter().flatten();
        let missed = cells.filter(|cell| cell.ends_with(MARK[1])).count();
        match (missed, self.why.is_empty()) {
            (_, true) => String::new(),
            (0, false) => "\nEvery cell meets its target.\n".to_owned(),
            (1, false) => format!("\nOne cell, marked ✗, misses its target. {}\n", self.why),
            (_, false) => format!("\n{missed} cells, marked ✗, miss their target. {}\n", self.why),
        }
    }
}

/// Draws the parts that the arguments name, or all, and prints their tables. With `--bless`, they
/// replace the tables of the same titles on the page, or make it anew if all were drawn.
pub fn run(bench: &Benchmark) -> ExitCode {
    match exec(bench) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn exec(bench: &Benchmark) -> Result<(), String> {
    let (mut wanted, mut runs, mut bless) = (Vec::new(), None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            // What `cargo test` does with benches: see that they start.
            "--test" => return Ok(()),
            "--bless" => bless = true,
            "--runs" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                let number = number.filter(|number| *number > 0);
                runs = Some(number.ok_or("--runs needs a number above 0")?);
            }
            part if bench.parts.iter().any(|(name, ..)| *name == part) => {
                wanted.push(part.to_owned());
            }
            other => {
                let names: Vec<&str> = bench.parts.iter().map(|(name, ..)| *name).collect();
                return Err(format!(
                    "`{other}` is no part; there are {}, and the flags --runs N and --bless",
                    names.join(", ")
                ));
            }
        }
    }
    let mut drawn = Vec::new();
    for (name, usual, sections) in bench.parts {
        if wanted.is_empty() || wanted.iter().any(|part| part == name) {
            for section in sections(runs.unwrap_or(*usual)) {
                let text = section.markdown();
                println!("{text}");
                drawn.push(text);
            }
        }
    }
    if bless {
        let error = |error| format!("{}: {error}", bench.page);
        let tables = if wanted.is_empty() {
            drawn
        } else {
            replaced(&std::fs::read_to_string(bench.page).map_err(error)?, drawn)
        };
        let page = format!("{}\n\n{}", (bench.head)(), tables.join("\n"));
        std::fs::write(bench.page, page).map_err(error)?;
    }
    Ok(())
}

/// The tables of a page, with the drawn tables in place of the tables of the same titles. A table
/// with a new title follows the table that was drawn before it.
fn replaced(page: &str, drawn: Vec<String>) -> Vec<String> {
    let tables = page.split("\n## ").skip(1);
    let mut tables: Vec<String> = tables.map(|table| format!("## {table}")).collect();
    let mut next = tables.len();
    for table in drawn {
        let title = |table: &str| table.lines().next().map(str::to_owned);
        match tables.iter().position(|own| title(own) == title(&table)) {
            Some(place) => {
                tables[place] = table;
                next = place + 1;
            }
            None => {
                tables.insert(next, table);
                next += 1;
            }
        }
    }
    tables
}
