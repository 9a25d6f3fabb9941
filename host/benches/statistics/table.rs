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
    /// Why cells miss their target; empty if the table has no target.
    pub why: String,
}

/// What stands before and after a cell that misses its target.
const MARK: [&str; 2] = ["**", "** ✗"];

/// A cell, marked if it misses its target.
pub fn cell(text: String, misses: bool) -> String {
    match misses {
        true => format!("{}{text}{}", MARK[0], MARK[1]),
        false => text,
    }
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

    /// How many cells miss their target, and why.
    fn remarks(&self) -> String {
        let cells = self.rows.iter().flatten();
        let missed = cells.filter(|cell| cell.ends_with(MARK[1])).count();
        match (missed, self.why.is_empty()) {
            (_, true) => String::new(),
            (0, false) => "\nEvery cell meets its target.\n".to_owned(),
            (1, false) => format!("\nOne cell, marked ✗, misses its target. {}\n", self.why),
            (_, false) => format!(
                "\n{missed} cells, marked ✗, miss their target. {}\n",
                self.why
            ),
        }
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

Every number on this page is measured: `cargo bench -p report --bench statistics -- --bless` draws {runs} runs of each
case, and a fifth as many comparisons, from a simulated engine, whose truth is known, and summarises and compares them as
it does real runs. Of {runs} runs, a share of 95 % is known within ± {:.1} %, and one of 1 % within ± {:.1} %. Cells marked
✗ miss the target that stands above their table.

**The engines.** The usual engine answers up to 32 requests in a batch; a step takes 10 ms, 0.2 ms for each request of the
batch and 0.02 ms for each prompt token that it reads, and varies by 5 %. *Free slots* stands for an engine that has room
for every request that comes: 1,024 slots, 8 ms, 0.01 ms for each request, 0.01 ms for each prompt token and 5 ns for each
token in the KV cache. *256 slots* stands for 10 ms, 0.05 ms and 0.01 ms. *Steps that grow with the context* take 0.5 µs
more for each token in the KV cache.

**The workloads.** Prompts have 500 tokens on average and answers 100, and both vary much, unless a case says otherwise.
*ShareGPT* stands for lognormal lengths of 220 and 190 tokens, with standard deviations of the logarithm of 1.2 and 1.0;
*reasoning* for answers of 1,500 tokens on average; *1k/1k* for 1,000 tokens each, all the same; *5 % prompts of 12k* for
chats of which one in twenty has such a prompt; *prefix templates* for chats behind one of twenty prefixes of 2,000 tokens
on average, which the engine reads once. Requests of open loops come by chance; *in bursts of shape 0.25* means gaps of a
gamma distribution that vary twice as much.

[How sure a figure is](../uncertainty.md) explains what these figures mean for a run of yours.

{}",
        196.0 * (0.95 * 0.05 / runs as f64).sqrt(),
        196.0 * (0.01 * 0.99 / runs as f64).sqrt(),
        tables.join("\n")
    )
}
