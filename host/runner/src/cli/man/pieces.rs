//! Pieces of a manual page: sections, paragraphs, entries, commands as they are typed. Text is
//! escaped by `roff`, and what is not ASCII is written by its number, which every formatter reads.

use clap_mangen::roff::{Inline, Roff, bold, roman};

/// Columns of a command as it is typed: with its indentation it fits a terminal of 80.
const WIDTH: usize = 66;

/// The beginning of a list of values, as `clap_mangen` has it: far to the right, with gaps.
const VALUES: &str = ".RS 14";

/// A page under way.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// The page.
    pub(super) fn finish(self) -> String {
        let preamble = Roff::new().render();
        let ascii = |text: &str| -> String {
            let escaped = |c: char| match c.is_ascii() {
                true => c.to_string(),
                false => format!("\\[u{:04X}]", u32::from(c)),
            };
            text.chars().map(escaped).collect()
        };
        preamble + &ascii(&self.text)
    }

    /// Adds a request with its arguments; one that is empty or has spaces is quoted.
    pub(super) fn request(&mut self, name: &str, arguments: &[&str]) {
        self.text += &format!(".{name}");
        for argument in arguments {
            let argument = argument.replace('"', "\\(dq");
            self.text += &match argument.is_empty() || argument.contains(' ') {
                true => format!(" \"{argument}\""),
                false => format!(" {argument}"),
            };
        }
        self.text.push('\n');
    }

    /// Begins a section.
    pub(super) fn section(&mut self, title: &str) {
        self.request("SH", &[&title.to_uppercase()]);
    }

    /// Begins a part of a section.
    pub(super) fn part(&mut self, title: &str) {
        self.request("SS", &[title]);
    }

    /// Adds a line of text.
    pub(super) fn line(&mut self, inlines: Vec<Inline>) {
        let mut line = Roff::new();
        line.text(inlines);
        let rendered = line.render();
        let preamble = Roff::new().render();
        self.text += rendered.strip_prefix(&preamble).unwrap_or(&rendered);
    }

    /// Begins a paragraph; a section begins with one by itself.
    pub(super) fn begin(&mut self) {
        let last = self.text.lines().next_back().unwrap_or_default();
        if !last.starts_with(".SH") && !last.starts_with(".SS") {
            self.request("PP", &[]);
        }
    }

    /// Adds a paragraph of plain text.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.begin();
        self.line(vec![roman(text)]);
    }

    /// Adds an entry: a term, and below it what it is.
    pub(super) fn entry(&mut self, term: &str, text: &str) {
        self.request("TP", &[]);
        self.line(vec![bold(term)]);
        self.line(vec![roman(text)]);
    }

    /// Adds lines as they are, indented.
    pub(super) fn verbatim<'l>(&mut self, lines: impl IntoIterator<Item = &'l str>) {
        self.begin();
        self.request("RS", &["4"]);
        self.request("nf", &[]);
        for line in lines {
            self.line(vec![roman(line)]);
        }
        self.request("fi", &[]);
        self.request("RE", &[]);
    }

    /// Adds what `clap_mangen` rendered, as it belongs here: its own sections of flags are parts of
    /// one, and a paragraph within a flag's help keeps the indentation.
    pub(super) fn rendered(&mut self, rendered: &str) {
        let preamble = Roff::new().render();
        let rendered = rendered.strip_prefix(&preamble).unwrap_or(rendered);
        let mut lines = rendered.lines().peekable();
        while let Some(line) = lines.next() {
            let is_gap = |line: &str| line.is_empty() || line == ".br";
            if is_gap(line) {
                let mut is_paragraph = line.is_empty();
                while let Some(gap) = lines.next_if(|line| is_gap(line)) {
                    is_paragraph |= gap.is_empty();
                }
                self.request(if is_paragraph { "IP" } else { "br" }, &[]);
            } else if line == VALUES {
                self.text += ".RS 7\n.PD 0\n";
            } else if line == ".RE" {
                self.text += ".PD\n.RE\n";
            } else {
                self.text += line.trim_end();
                self.text.push('\n');
            }
        }
    }
}

/// A command in lines that fit, each but the last with a backslash at its end. What is in quotes
/// stays together, and so do a flag and its value.
pub(super) fn folded(command: &str) -> Vec<String> {
    let mut units: Vec<String> = Vec::new();
    for word in words(command) {
        match units.last_mut() {
            Some(flag)
                if flag.starts_with('-') && !flag.contains(' ') && !word.starts_with('-') =>
            {
                *flag += &format!(" {word}");
            }
            _ => units.push(word),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for unit in units {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + unit.len() <= WIDTH => *line += &format!(" {unit}"),
            Some(line) => {
                line.push_str(" \\");
                lines.push(format!("    {unit}"));
            }
            None => lines.push(unit),
        }
    }
    lines
}

/// Lines with a layout, so that they fit: if any does not, the comments behind code stand above it.
/// Other lines that do not fit are commands.
pub(super) fn narrowed(lines: &[&str]) -> Vec<String> {
    if lines.iter().all(|line| line.len() <= WIDTH) {
        return lines.iter().map(|line| (*line).to_owned()).collect();
    }
    let mut narrow: Vec<String> = Vec::new();
    // The place of the code that the next comments belong to.
    let mut code_at = 0;
    for line in lines {
        let comment = line.find("  # ").or_else(|| line.starts_with("# ").then_some(0));
        match comment {
            Some(at) => {
                let (code, comment) = line.split_at(at);
                let (code, comment) = (code.trim_end(), comment.trim().to_owned());
                if code.is_empty() {
                    narrow.insert(code_at, comment);
                } else {
                    narrow.push(comment);
                    narrow.push(code.to_owned());
                }
                code_at = narrow.len().saturating_sub(1);
            }
            None => {
                narrow.extend(match line.len() > WIDTH {
                    true => folded(line),
                    false => vec![(*line).to_owned()],
                });
                code_at = narrow.len().saturating_sub(1);
            }
        }
    }
    narrow
}

/// The words of a command, with their quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (None, ' ') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        if quote.is_some() || c != ' ' {
            words.last_mut().expect("it begins with one").push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_folded_between_its_words() {
        let command = "runner search --slo 'chat: ttft.p99<1s;  tpot.p99<50ms' --slo \"batch: e2e.p95<60s\" --start 4";
        assert_eq!(
            folded(command),
            [
                "runner search --slo 'chat: ttft.p99<1s;  tpot.p99<50ms' \\",
                "    --slo \"batch: e2e.p95<60s\" --start 4"
            ]
        );
        assert_eq!(folded("runner demo"), ["runner demo"]);
    }

    #[test]
    fn comments_stand_above_code_where_lines_do_not_fit() {
        let long = "# or none of these, which is what happens if it is left out altogether";
        let framing = format!("framing = 1  {long}");
        let lines = ["[[route]]", framing.as_str(), "             # or 2", "", "path = 2"];
        assert_eq!(narrowed(&lines), ["[[route]]", long, "# or 2", "framing = 1", "", "path = 2"]);
        let short = ["framing = 1  # or 2"];
        assert_eq!(narrowed(&short), short);
    }

    #[test]
    fn text_is_escaped_and_arguments_are_quoted() {
        let mut page = Page::default();
        page.request("TH", &["RUNNER", "1", "", "runner 0.1.0"]);
        page.line(vec![roman(".5 is a \\ of ± it's")]);
        let text = page.finish();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [".TH RUNNER 1 \"\" \"runner 0.1.0\"", "\\&.5 is a \\\\ of \\[u00B1] it\\*(Aqs"]
        );
    }
}
