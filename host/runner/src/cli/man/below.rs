//! The text below the flags in a command's help, by its parts: examples, exit codes and the rest.
//!
//! A part begins with its heading and a colon: `Examples:`, with a command and its purpose on each
//! line, `Exit codes: 0 done, 2 command line`. What has no such heading is a note.

/// The parts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Below {
    /// Examples, below what is said of all of them.
    pub examples: Vec<(String, Vec<Example>)>,
    /// Meaning of each exit code.
    pub codes: Vec<(String, String)>,
    /// Exit codes in words, where they are no list.
    pub codes_in_words: Option<String>,
    pub notes: Vec<Note>,
}

/// A command, and its purpose where that is said.
#[derive(Debug, PartialEq)]
pub(super) struct Example {
    pub command: String,
    pub purpose: Option<String>,
}

/// Something else.
#[derive(Debug, PartialEq)]
pub(super) enum Note {
    Text(String),
    /// Names with what each means.
    Entries(String, Vec<(String, String)>),
    /// Lines that have a layout.
    Lines(String, Vec<String>),
}

/// Reads the text.
pub(super) fn read(text: &str) -> Below {
    let mut below = Below::default();
    let mut paragraphs = text.split("\n\n").peekable();
    while let Some(paragraph) = paragraphs.next() {
        // A part goes on below an empty line where that is indented too.
        let mut lines: Vec<&str> = paragraph.lines().collect();
        while let Some(more) = paragraphs.next_if(|more| more.starts_with("  ")) {
            lines.push("");
            lines.extend(more.lines());
        }
        let Some((first, rest)) = lines.split_first() else {
            continue;
        };
        let words = || joined(&lines);
        if let Some(codes) = words().strip_prefix("Exit codes:") {
            match codes_of(codes) {
                list if list.is_empty() => {
                    below.codes_in_words = Some(codes.trim().to_owned());
                }
                list => below.codes = list,
            }
        } else if first.starts_with("  ") {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            below.notes.push(Note::Lines(String::new(), lines));
        } else if !first.ends_with([':', ',']) || !rest.iter().any(|line| line.starts_with("  ")) {
            below.notes.push(Note::Text(words()));
        } else if rest.iter().any(|line| line.starts_with("  runner ")) {
            let all_are = first.trim_end_matches(':');
            let heading = match all_are {
                "Example" | "Examples" => "",
                heading => heading,
            };
            below.examples.push((heading.to_owned(), examples(rest)));
        } else {
            below.notes.push(entries(first, rest));
        }
    }
    below
}

fn joined(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ").trim().to_owned()
}

/// Codes with their meanings, from a list with commas. Empty if it is none.
fn codes_of(text: &str) -> Vec<(String, String)> {
    let mut codes: Vec<(String, String)> = Vec::new();
    for part in text.trim().split(", ") {
        let (code, meaning) = part.split_once(' ').unwrap_or((part, ""));
        match (code.parse::<u8>(), codes.last_mut()) {
            (Ok(_), _) => codes.push((code.to_owned(), meaning.to_owned())),
            (Err(_), Some((_, last))) => *last += &format!(", {part}"),
            (Err(_), None) => return Vec::new(),
        }
    }
    codes
}

/// Commands, each with its purpose behind two spaces or more. One that ends with a backslash goes on
/// in the next line.
fn examples(lines: &[&str]) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut begun = String::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let line = line.trim();
        if let Some(part) = line.strip_suffix('\\') {
            begun += part.trim_end();
            begun.push(' ');
            continue;
        }
        let line = std::mem::take(&mut begun) + line;
        let (command, purpose) = divided(&line);
        examples.push(Example { command: command.to_owned(), purpose: purpose.map(str::to_owned) });
    }
    examples
}

/// The text before the last gap of two spaces or more, and the text behind it.
fn divided(line: &str) -> (&str, Option<&str>) {
    match line.trim_end().rsplit_once("  ") {
        Some((before, behind)) if !before.is_empty() => (before.trim_end(), Some(behind.trim())),
        _ => (line.trim_end(), None),
    }
}

fn entries(heading: &str, lines: &[&str]) -> Note {
    let divided = lines.iter().map(|line| divided(line.trim()));
    let entries: Option<Vec<(String, String)>> =
        divided.map(|(name, text)| Some((name.to_owned(), text?.to_owned()))).collect();
    match entries {
        Some(entries) => Note::Entries(heading.to_owned(), entries),
        None => {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Note::Lines(heading.to_owned(), lines)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_by_their_headings() {
        let read = read(
            "Examples:\n  runner a --b 'c d' \\\n         --e   what it does\n  runner f\n\n\
             Names:\n  one  the first\n  two  the second\n\n\
             A layout:\n\n  [[route]]\n  path = 1   # a\n\n\
             A note\nin two lines.\n\n\
             Exit codes: 0 done, 3 wrong, or not there, 7 invalid (0 if allowed),\n  130 interrupted",
        );
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let example = |command: &str, purpose: Option<&str>| Example {
            command: command.to_owned(),
            purpose: purpose.map(str::to_owned),
        };
        let examples = vec![
            example("runner a --b 'c d' --e", Some("what it does")),
            example("runner f", None),
        ];
        assert_eq!(read.examples, [(String::new(), examples)]);
        assert_eq!(
            read.codes,
            [
                pair("0", "done"),
                pair("3", "wrong, or not there"),
                pair("7", "invalid (0 if allowed)"),
                pair("130", "interrupted"),
            ]
        );
        let lines = ["", "  [[route]]", "  path = 1   # a"].map(str::to_owned);
        assert_eq!(
            read.notes,
            [
                Note::Entries(
                    "Names:".to_owned(),
                    vec![pair("one", "the first"), pair("two", "the second")]
                ),
                Note::Lines("A layout:".to_owned(), lines.to_vec()),
                Note::Text("A note in two lines.".to_owned()),
            ]
        );
    }

    #[test]
    fn codes_may_be_in_words() {
        let read = read("Exit codes: as of `runner run`; 5 also where an agent is missing");
        assert_eq!(read.codes, []);
        assert_eq!(
            read.codes_in_words.as_deref(),
            Some("as of `runner run`; 5 also where an agent is missing")
        );
    }
}
