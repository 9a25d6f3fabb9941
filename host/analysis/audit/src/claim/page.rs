//! A text with blocks in it: a page in Markdown, a log, or a block by itself. The text around a
//! block describes it: headings, the launch command, the `Namespace(…)` line, the profile.
//!
//! Some tools lose line breaks when pages are pasted. So a heading ends where something else
//! begins, not only at the end of its line.

use std::collections::BTreeMap;

use super::block::{self, Span};
use super::quote::{self, Quote};
use super::seek::{Ahead, Lines, did, find, shortened};
use super::{Claim, ReadError, Source, in_order, too_many};

mod namespace;

/// Text between two fences of three backticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence<'a> {
    /// The byte of its opening.
    pub start: usize,
    /// The byte after its closing.
    pub end: usize,
    /// The text after the opening fence: `bash`, `yaml`.
    pub info: &'a str,
    pub text: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    pub at: usize,
    pub level: usize,
    pub text: String,
    /// The index of the heading that it is under.
    outer: Option<usize>,
}

pub(super) struct Page<'a> {
    pub text: &'a str,
    pub spans: Vec<Span>,
    pub fences: Vec<Fence<'a>>,
    pub headings: Vec<Heading>,
}

/// Characters of a model's or a machine's name that are kept: each result repeats them.
const LONGEST: usize = 200;

/// The most headings, and the most fenced parts, of a page.
const MOST_PARTS: usize = 100_000;

/// The expectation in place of a page that is too large.
pub(super) const TOO_LARGE: &str = "expected a page for people to read; split it";

/// Every block of a text, and the text's other statements about them.
pub(super) fn read(file: &str, text: &str) -> Result<(Vec<Claim>, Vec<Quote>), Vec<ReadError>> {
    let fences = fences(text);
    let headings = headings(text, &fences);
    if fences.len().max(headings.len()) > MOST_PARTS {
        let what = format!("it has more than {MOST_PARTS} headings or fenced parts");
        return Err(vec![ReadError::of_file(file, what, TOO_LARGE)]);
    }
    let page = Page { text, spans: block::spans(text), fences, headings };
    if page.spans.len() > super::MOST_RESULTS {
        return Err(vec![too_many(file)]);
    }
    let facts = Facts::new(&page);
    let mut lines = Lines::new(text);
    let read_one = |(index, span): (usize, &Span)| {
        let (line, column) = lines.place(span.start);
        // The text before a block begins after the previous block.
        let begin = index.checked_sub(1).map_or(0, |previous| page.spans[previous].end);
        let before = &text[begin..span.start];
        did(before.len());
        let source = Source {
            file: file.to_owned(),
            line: Some(line),
            column: Some(column),
            headings: page.above(span.start).into_iter().map(|it| it.text.clone()).collect(),
            caption: caption(before),
            ..Source::default()
        };
        let mut claim = block::read(text, *span, source)?;
        fill(&mut claim, &page, &facts, *span, before);
        Ok(vec![claim])
    };
    let claims = in_order(file, page.spans.iter().enumerate().map(read_one))?;
    let quotes = quote::read(file, &page).map_err(|error| vec![error])?;
    Ok((claims, quotes))
}

impl Page<'_> {
    /// The headings above a place, the outermost first.
    pub(super) fn above(&self, at: usize) -> Vec<&Heading> {
        let after = self.headings.partition_point(|heading| {
            did(1);
            heading.at < at
        });
        let mut path: Vec<&Heading> = Vec::new();
        let mut next = after.checked_sub(1);
        while let Some(heading) = next.map(|index| &self.headings[index]) {
            path.push(heading);
            next = heading.outer;
        }
        path.reverse();
        path
    }

    /// The first words under the heading of that name, up to the next heading.
    pub(super) fn section(&self, name: &str) -> Option<String> {
        self.headings.iter().enumerate().find_map(|(index, heading)| {
            if heading.text.eq_ignore_ascii_case(name) {
                let next = self.headings.get(index + 1).map_or(self.text.len(), |next| next.at);
                let section = self.text.get(heading.at..next)?;
                did(section.len());
                let line = section.lines().skip(1).find(|line| !line.trim().is_empty())?;
                let words = line.trim().trim_start_matches("- ");
                return Some(shortened(words, LONGEST));
            }
            // Without line breaks, the words that stand under it follow it.
            let rest = heading.text.strip_prefix(name)?.strip_prefix(' ')?;
            (rest.len() < 80).then(|| rest.to_owned())
        })
    }
}

/// The fenced parts; of too many, one more than there may be.
fn fences(text: &str) -> Vec<Fence<'_>> {
    let marks = text.match_indices("```").map(|(at, _)| at);
    let marks: Vec<usize> = marks.take(2 * (MOST_PARTS + 1)).collect();
    (marks.chunks_exact(2))
        .map(|pair| {
            let (start, close) = (pair[0], pair[1]);
            let inner = &text[start + 3..close];
            let info = inner.len() - inner.trim_start_matches(|c: char| !c.is_whitespace()).len();
            Fence { start, end: close + 3, info: &inner[..info], text: inner[info..].trim() }
        })
        .collect()
}

/// Texts that end a heading whose line continues.
const ENDS: [&str; 9] = [" ```", " #", " - ", " | ", " ??? ", " ???+", " !!! ", " ![", " 1. "];

/// The place of the beginning of another heading among [`ENDS`].
const ANOTHER: usize = 1;

/// The headings outside of fenced parts; of too many, one more than there may be.
fn headings(text: &str, fences: &[Fence<'_>]) -> Vec<Heading> {
    let mut found: Vec<Heading> = Vec::new();
    let mut fences = fences.iter().peekable();
    let mut marks = Ahead::new(text, "#");
    let mut breaks = Ahead::new(text, "\n");
    let mut ends = ENDS.map(|end| Ahead::new(text, end));
    let mut at = 0;
    while let Some(next) = marks.from(at).filter(|_| found.len() <= MOST_PARTS) {
        while fences.next_if(|fence| fence.end <= next).is_some() {}
        if let Some(fence) = fences.peek().filter(|fence| fence.start <= next) {
            at = fence.end;
            continue;
        }
        let level = text[next..].len() - text[next..].trim_start_matches('#').len();
        did(level);
        at = next + level;
        let begins = text[..next].chars().next_back().is_none_or(char::is_whitespace);
        if !begins || level > 6 || !text[at..].starts_with(' ') {
            continue;
        }
        let line = breaks.from(at).unwrap_or(text.len());
        let within = |end: &mut Ahead<'_>| end.from(at).filter(|end| *end < line);
        let own_line = next == 0 || text[..next].ends_with('\n');
        let whole = own_line && line - at < 120 && within(&mut ends[ANOTHER]).is_none();
        let end =
            if whole { line } else { ends.iter_mut().filter_map(within).min().unwrap_or(line) };
        let words: String = text[at..end].trim_start().chars().take(80).collect();
        did(words.len());
        let outer = outer(&found, level);
        found.push(Heading { at: next, level, text: words.trim_end().to_owned(), outer });
    }
    found
}

/// The index of the heading that one of this level is under, if it comes next.
fn outer(found: &[Heading], level: usize) -> Option<usize> {
    let mut above = found.len().checked_sub(1);
    while let Some(index) = above.filter(|index| found[*index].level >= level) {
        did(1);
        above = found[index].outer;
    }
    above
}

/// Engines as pages name them.
const ENGINES: [(&str, &str); 5] = [
    ("lmdeploy", "LMDeploy"),
    ("vllm", "vLLM"),
    ("sglang", "SGLang"),
    ("tensorrt-llm", "TensorRT-LLM"),
    ("mindie", "MindIE"),
];

/// The number of characters of a launch command that are kept: each result under it repeats it.
const LONGEST_COMMAND: usize = 4096;

/// No version and no setting of a profile is longer.
const LONGEST_WORD: usize = 100;

/// Facts that a page states once, for all of its blocks.
struct Facts<'a> {
    model: Option<String>,
    hardware: Option<String>,
    /// The fenced commands that start an engine, in order.
    launches: Vec<Fence<'a>>,
    /// The settings of profiles, by their names in lower case.
    profiles: BTreeMap<String, Settings<'a>>,
    versions: [Option<String>; ENGINES.len()],
}

impl<'a> Facts<'a> {
    fn new(page: &Page<'a>) -> Self {
        let mut profiles = BTreeMap::new();
        for fence in page.fences.iter().filter(|fence| fence.info == "yaml") {
            if let Some(heading) = page.above(fence.start).last() {
                let settings = profiles.entry(heading.text.to_ascii_lowercase());
                settings.or_insert_with(|| settings_of(fence));
            }
        }
        Facts {
            model: page.section("Model"),
            hardware: page.section("Hardware"),
            launches: page.fences.iter().copied().filter(launches).collect(),
            profiles,
            versions: ENGINES.map(|(_, label)| version(page.text, label)),
        }
    }
}

/// Adds the text around a block; `before` is the text between it and the previous block.
fn fill(claim: &mut Claim, page: &Page<'_>, facts: &Facts<'_>, span: Span, before: &str) {
    claim.model.clone_from(&facts.model);
    claim.about.hardware.clone_from(&facts.hardware);
    claim.about.launch_command = launch_command(page, facts, span);
    profile(claim, facts, before);
    if let Some(flags) = namespace::flags(before) {
        namespace::fill(claim, &flags);
    }
    engine(claim, facts);
}

/// The title of a folded part: `??? info "Optimized benchmark result"`.
fn caption(before: &str) -> Option<String> {
    let at = before.rfind("??? ")?;
    let (_, quoted) = before[at..].split_once('"')?;
    let (title, _) = quoted.split_once('"')?;
    (title.len() < 80).then(|| title.to_owned())
}

/// True if a fence is a command that starts an engine.
fn launches(fence: &Fence<'_>) -> bool {
    let words = ["serve", "launch_server", "api_server", "docker run", "mpirun"];
    let shell = matches!(fence.info, "shell" | "bash" | "sh" | "console" | "{shell}");
    did(fence.text.len());
    shell && (fence.text.starts_with("--") || words.iter().any(|word| fence.text.contains(word)))
}

/// The last command above the block that starts an engine, under one of its headings.
fn launch_command(page: &Page<'_>, facts: &Facts<'_>, span: Span) -> Option<String> {
    let path = page.above(span.start);
    let above = facts.launches.partition_point(|fence| fence.end <= span.start);
    let fence = facts.launches.get(above.checked_sub(1)?)?;
    let own = page.above(fence.start);
    let above = own.len() <= path.len() && own.iter().zip(&path).all(|(one, other)| one == other);
    above.then(|| shortened(fence.text, LONGEST_COMMAND))
}

/// The settings of a profile that are of use here, as written.
type Settings<'a> = BTreeMap<&'static str, &'a str>;

const SETTINGS: [&str; 6] = [
    "dataset_name:",
    "dataset_input_tokens:",
    "dataset_output_tokens:",
    "dataset_seed:",
    "request_rate:",
    "total_requests:",
];

fn settings_of<'a>(fence: &Fence<'a>) -> Settings<'a> {
    did(fence.text.len());
    let words = fence.text.split_whitespace();
    (words.clone().zip(words.skip(1)))
        .filter(|(_, value)| value.len() <= LONGEST_WORD)
        .filter_map(|(name, value)| Some((*SETTINGS.iter().find(|known| **known == name)?, value)))
        .collect()
}

/// The settings of the profile: its name is above the block, its settings elsewhere on the page.
fn profile(claim: &mut Claim, facts: &Facts<'_>, before: &str) {
    let named = before.rfind("Profile: `").and_then(|at| {
        let name = &before[at + "Profile: `".len()..];
        name.split_once('`').map(|(name, _)| name.to_owned())
    });
    let last = claim.source.headings.last();
    let headed = last.and_then(|heading| heading.strip_suffix(" Profile"));
    let Some(name) = named.or(headed.map(str::to_owned)) else { return };
    let settings = facts.profiles.get(&name.to_ascii_lowercase());
    claim.scenario = Some(name);
    for (setting, value) in settings.into_iter().flatten() {
        let count = value.parse::<u64>().ok();
        let own = &mut claim.asked;
        match *setting {
            "dataset_name:" => own.dataset = Some(value.to_lowercase()),
            "dataset_input_tokens:" => own.input_tokens = count,
            "dataset_output_tokens:" => own.output_tokens = count,
            "dataset_seed:" => own.seed = count,
            "request_rate:" => own.request_rate = value.parse().ok(),
            "total_requests:" => own.requests = count,
            _ => {}
        }
    }
}

/// The engine comes from the innermost heading that names one, else from the tool's own `backend`;
/// its version follows its name somewhere on the page.
fn engine(claim: &mut Claim, facts: &Facts<'_>) {
    let headed = claim.source.headings.iter().rev().find_map(|heading| {
        let first = heading.split_whitespace().next()?;
        ENGINES.iter().position(|(_, label)| first.eq_ignore_ascii_case(label))
    });
    let backend = (claim.about.notes.get("backend"))
        .and_then(|backend| ENGINES.iter().position(|(name, _)| backend.starts_with(name)));
    let Some(index) = headed.or(backend) else { return };
    claim.about.engine = Some(ENGINES[index].0.to_owned());
    claim.about.engine_version.clone_from(&facts.versions[index]);
}

/// Finds the text after `vLLM v`, if it is a version.
fn version(text: &str, label: &str) -> Option<String> {
    let named = format!("{label} v");
    let mut rest = text;
    while let Some(at) = find(rest, &named) {
        rest = &rest[at + named.len()..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
        did(end);
        let version = rest[..end].trim_end_matches('.');
        if version.len() <= LONGEST_WORD && version.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(version.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests;
