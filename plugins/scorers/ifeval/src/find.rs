//! Searches for words and patterns as Python's `re` does. Callers choose the words that an
//! instruction wants.
//!
//! A word without characters that have a meaning in patterns is compared character by character,
//! with Unicode's cases. Other words are patterns, which `regex-lite` reads: their classes and
//! cases cover only ASCII.

use judging::python;
use regex_lite::{Regex, RegexBuilder};

const LONGEST: usize = 1000;
/// The most bytes of a compiled pattern, which also bounds the time per byte of an answer.
const LARGEST: usize = 64 * 1024;

pub enum Word {
    Literal(Vec<char>),
    /// A pattern, and the same between two `\b`.
    Pattern(Regex, Regex),
}

impl Word {
    pub fn new(text: &str) -> Result<Self, String> {
        if text.chars().count() > LONGEST {
            return Err(format!(
                "`{}…` has more than {LONGEST} characters",
                &text.chars().take(20).collect::<String>()
            ));
        }
        if is_plain(text) {
            return Ok(Word::Literal(text.chars().collect()));
        }
        Ok(Word::Pattern(pattern(text, true)?, pattern(&format!(r"\b{text}\b"), true)?))
    }

    /// True if `re.search` finds it, in any case.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Word::Literal(word) => {
                occurrences(word, &text.chars().collect::<Vec<_>>()).next().is_some()
            }
            Word::Pattern(pattern, _) => pattern.is_match(text),
        }
    }

    /// True if `re.search` finds it between two `\b`, in any case.
    pub fn is_a_word_of(&self, text: &str) -> bool {
        match self {
            Word::Literal(word) => {
                let text: Vec<char> = text.chars().collect();
                occurrences(word, &text)
                    .any(|at| is_boundary(&text, at) && is_boundary(&text, at + word.len()))
            }
            Word::Pattern(_, bounded) => bounded.is_match(text),
        }
    }

    /// The number of matches `re.findall` finds, in any case.
    pub fn count(&self, text: &str) -> usize {
        match self {
            Word::Literal(word) => {
                let text: Vec<char> = text.chars().collect();
                let mut free = 0;
                let found = occurrences(word, &text).filter(|at| {
                    let counts = *at >= free;
                    if counts {
                        // An empty word matches at every place.
                        free = at + word.len().max(1);
                    }
                    counts
                });
                found.count()
            }
            Word::Pattern(pattern, _) => pattern.find_iter(text).count(),
        }
    }
}

/// True if a text has no characters that mean something in a pattern.
fn is_plain(text: &str) -> bool {
    !text.contains(['.', '^', '$', '*', '+', '?', '{', '}', '[', ']', '\\', '|', '(', ')'])
}

fn pattern(text: &str, any_case: bool) -> Result<Regex, String> {
    (RegexBuilder::new(text).case_insensitive(any_case))
        .size_limit(LARGEST)
        .build()
        .map_err(|error| format!("`{text}` is no pattern that regex-lite reads: {error}"))
}

/// The place where a word begins in a text, without regard to case.
fn occurrences(word: &[char], text: &[char]) -> impl Iterator<Item = usize> {
    let places = 0..(text.len() + 1).saturating_sub(word.len());
    places.filter(move |at| {
        let here = &text[*at..*at + word.len()];
        here.iter().zip(word).all(|(one, other)| same(*one, *other))
    })
}

/// True if two characters are one in different cases.
fn same(one: char, other: char) -> bool {
    one == other
        || one.to_lowercase().eq(other.to_lowercase())
        || one.to_uppercase().eq(other.to_uppercase())
}

/// True if `\b` matches before the character of this number.
fn is_boundary(text: &[char], at: usize) -> bool {
    let is_word = |at: Option<usize>| {
        at.and_then(|at| text.get(at)).is_some_and(|character| python::is_word(*character))
    };
    is_word(at.checked_sub(1)) != is_word(Some(at))
}

/// Counts the matches of `\w+`.
pub fn words(text: &str) -> usize {
    text.split(|character| !python::is_word(character)).filter(|word| !word.is_empty()).count()
}

/// The word that begins a section, before its number.
pub enum Splitter {
    Literal(String),
    /// A pattern, with the number after it.
    Pattern(Regex),
}

impl Splitter {
    pub fn new(text: &str) -> Result<Self, String> {
        if is_plain(text) {
            return Ok(Splitter::Literal(text.to_owned()));
        }
        pattern(&format!(r"\s?{text}\s?\d+\s?"), false).map(Splitter::Pattern)
    }

    /// Counts the matches of `\s?SPLITTER\s?\d+\s?`.
    pub fn sections(&self, text: &str) -> usize {
        match self {
            Splitter::Literal(splitter) => sections(text, splitter),
            Splitter::Pattern(pattern) => pattern.find_iter(text).count(),
        }
    }
}

fn sections(text: &str, splitter: &str) -> usize {
    let mut rest = text;
    let mut count = 0;
    while let Some(at) = rest.find(splitter) {
        let after = &rest[at + splitter.len()..];
        let number = match after.chars().next() {
            Some(space) if python::is_space(space) => &after[space.len_utf8()..],
            _ => after,
        };
        if number.starts_with(python::is_digit) {
            count += 1;
            rest = number.trim_start_matches(python::is_digit);
        } else {
            // A splitter is not empty.
            let next = rest[at..].chars().next().map_or(1, char::len_utf8);
            rest = &rest[at + next..];
        }
    }
    count
}

/// The number of lines that are points of a list: matches of `^\s*\*[^\*].*$` and of `^\s*-.*$`.
pub fn points(text: &str) -> usize {
    let text: Vec<char> = text.chars().collect();
    points_with(&text, |rest| matches!(rest, ['*', next, ..] if *next != '*').then_some(2))
        + points_with(&text, |rest| rest.starts_with(&['-']).then_some(1))
}

/// The number of matches that begin at a line's start and go on to the end of a line. White space
/// of any number of lines may precede the part that `begins` takes.
fn points_with(text: &[char], begins: impl Fn(&[char]) -> Option<usize>) -> usize {
    let mut count = 0;
    let mut at = 0;
    while at < text.len() {
        let is_start = at == 0 || text[at - 1] == '\n';
        if !is_start {
            at += 1;
            continue;
        }
        let spaces = text[at..].iter().take_while(|c| python::is_space(**c));
        let mark = at + spaces.count();
        match begins(&text[mark..]) {
            Some(length) => {
                let line = text[mark + length..].iter().take_while(|c| **c != '\n');
                count += 1;
                at = mark + length + line.count();
            }
            // The lines of white space before it lead to the same place.
            None => at = mark + 1,
        }
    }
    count
}

/// Counts the matches of `\[.*?\]`.
pub fn placeholders(text: &str) -> usize {
    let mut rest = text;
    let mut count = 0;
    while let Some(at) = rest.find('[') {
        let inner = &rest[at + 1..];
        let line = &inner[..inner.find('\n').unwrap_or(inner.len())];
        match line.find(']') {
            Some(end) => {
                count += 1;
                rest = &inner[end + 1..];
            }
            None => rest = &inner[line.len()..],
        }
    }
    count
}

/// The number of matches of `\*[^\n\*]*\*` and of `\*\*[^\n\*]*\*\*` hold more than white space.
pub fn highlights(text: &str) -> usize {
    highlights_between(text, "*") + highlights_between(text, "**")
}

fn highlights_between(text: &str, mark: &str) -> usize {
    let mut rest = text;
    let mut count = 0;
    while let Some(at) = rest.find(mark) {
        let inner = &rest[at + mark.len()..];
        let end = inner.find(['\n', '*']).unwrap_or(inner.len());
        if inner[end..].starts_with(mark) {
            count += usize::from(!python::strip(&inner[..end]).is_empty());
            rest = &inner[end + mark.len()..];
        } else {
            rest = &rest[at + 1..];
        }
    }
    count
}

/// True if a match of `<<[^\n]+>>`, up to a line's last `>>`, holds more than space and brackets.
pub fn has_title(text: &str) -> bool {
    text.split('\n').any(|line| {
        let (Some(opens), Some(closes)) = (line.find("<<"), line.rfind(">>")) else { return false };
        let title = line.get(opens + 2..closes).unwrap_or_default();
        let bare = title.trim_start_matches('<').trim_end_matches('>');
        !python::strip(bare).is_empty()
    })
}

/// True if there is a postscript: the marker, in which spaces may stand, then anything.
pub fn has_postscript(text: &str, marker: &str) -> Result<bool, String> {
    let text = text.to_lowercase();
    let parts: &[&str] = match marker {
        "P.P.S" => &["p.", "p.", "s"],
        "P.S." => &["p.", "s."],
        other => return Ok(Word::new(&other.to_lowercase())?.is_in_this_case(&text)),
    };
    Ok(text.match_indices(parts[0]).any(|(at, _)| {
        let mut rest = &text[at..];
        for (index, part) in parts.iter().enumerate() {
            if index > 0 && rest.starts_with(python::is_space) {
                rest = rest.split_at(rest.chars().next().map_or(0, char::len_utf8)).1;
            }
            match rest.strip_prefix(part) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        true
    }))
}

impl Word {
    /// True if `re.search` finds it as it is written.
    fn is_in_this_case(&self, text: &str) -> bool {
        match self {
            Word::Literal(word) => text.contains(&word.iter().collect::<String>()),
            Word::Pattern(_, _) => self.is_in(text),
        }
    }
}
