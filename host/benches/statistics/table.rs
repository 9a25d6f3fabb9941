//! Tables in Markdown, and the guide's page that holds them.

/// A table with what its columns mean.
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What the table shows.
    pub about: String,
    /// The heads of the columns.
    pub heads: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// What follows the table: which cells miss their target, and why.
    pub remarks: String,
}

impl Section {
    /// As it stands on the page.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = self.heads.iter().map(|_| "---".to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let remarks = match self.remarks.is_empty() {
            true => String::new(),
            false => format!("\n{}\n", self.remarks),
        };
        format!(
            "## {}\n\n{}\n\n{}{}{rows}{remarks}",
            self.title,
            self.about,
            line(&self.heads),
            line(&rule)
        )
    }
}

/// The cells that miss a target, in words, and why they do; `None` of no cells.
pub fn misses(target: &str, cells: &[String], why: &str) -> Option<String> {
    (!cells.is_empty()).then(|| format!("{target}: {}. {why}", cells.join("; ")))
}

/// The remarks of a table, in paragraphs.
pub fn remarks(parts: impl IntoIterator<Item = Option<String>>) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "Every cell meets its target.".to_owned(),
        false => parts.join("\n\n"),
    }
}

/// A share of runs, in percent.
pub fn percent(part: usize, of: usize) -> String {
    match of {
        0 => "–".to_owned(),
        of => format!("{:.1} %", 100.0 * part as f64 / of as f64),
    }
}

/// The page.
pub fn page(runs: u64, sections: &[Section]) -> String {
    let tables: Vec<String> = sections.iter().map(Section::markdown).collect();
    format!(
        "# How often the statistics are right

Every number on this page is measured: `cargo bench --bench statistics -- --bless` draws {runs} runs of each case, and a
fifth as many comparisons, from a simulated engine, whose truth is known, and summarises and compares them as it does
real runs. The engine answers up to 32 requests in a batch; a step takes 10 ms, 0.2 ms for each request of the batch and
0.02 ms for each prompt token that it reads, and varies by 5 %. Prompts have 500 tokens on average and answers 100, and
both vary much, unless a case says otherwise. Of {runs} runs, a share of 95 % is known within ± {:.1} %.

[How sure a figure is](../uncertainty.md) explains what these figures mean for a run of yours.

{}",
        196.0 * (0.95 * 0.05 / runs as f64).sqrt(),
        tables.join("\n")
    )
}
