//! The text block that LMDeploy, SGLang, vLLM and GPUStack print, anywhere in a text, with or
//! without its line breaks: some tools lose them when pages are pasted.
//!
//! `page` reads the text around it.

use super::seek::{did, find, shortened};
use super::{Claim, ReadError, Source, Tool, number};

/// The place where a block lies in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Its first byte: the first byte of the rule before its title.
    pub start: usize,
    /// The first byte of its lines.
    pub body: usize,
    /// The byte after its last line.
    pub end: usize,
}

/// The words in the title of every tool's block.
const TITLE: &str = "Serving Benchmark Result";

/// The longest block, in bytes: a whole one has a twentieth of it.
const LONGEST_BLOCK: usize = 1 << 16;

/// The way a line of the block is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    /// A figure, by our name, with the factor from their unit to ours.
    Figure(&'static str, f64),
    /// A count: no digit of it was rounded off.
    Count(&'static str),
    /// The backend, that is, the engine.
    Backend,
    Rate,
    /// The cap on requests in flight.
    Cap,
    /// Label, and not taken.
    Passed,
}

/// Every line except the lines of latencies, by its label in lower case.
const LINES: [(&str, Line); 25] = [
    ("backend", Line::Backend),
    ("traffic request rate", Line::Rate),
    ("request rate configured (rps)", Line::Rate),
    ("max request concurrency", Line::Cap),
    ("maximum request concurrency", Line::Cap),
    ("arrival", Line::Passed),
    ("successful requests", Line::Count("requests.successful")),
    ("failed requests", Line::Count("requests.failed")),
    ("benchmark duration (s)", Line::Figure("throughput.duration-s", 1.0)),
    ("total input tokens", Line::Count("tokens.input")),
    ("total input text tokens", Line::Passed),
    ("total input vision tokens", Line::Passed),
    ("total generated tokens", Line::Count("tokens.output")),
    ("total generated tokens (retokenized)", Line::Count("tokens.output-retokenized")),
    ("request throughput (req/s)", Line::Figure("throughput.requests-per-s", 1.0)),
    ("input token throughput (tok/s)", Line::Figure("throughput.input-tokens-per-s", 1.0)),
    ("output token throughput (tok/s)", Line::Figure("throughput.output-tokens-per-s", 1.0)),
    ("total token throughput (tok/s)", Line::Figure("throughput.total-tokens-per-s", 1.0)),
    (
        "peak output token throughput (tok/s)",
        Line::Figure("throughput.peak-output-tokens-per-s", 1.0),
    ),
    ("peak concurrent requests", Line::Count("concurrency.peak")),
    ("concurrency", Line::Figure("concurrency.mean", 1.0)),
    ("accept length", Line::Passed),
    ("slos (ms)", Line::Passed),
    ("request goodput (req/s)", Line::Figure("goodput.requests-per-s", 1.0)),
    ("slo attainment (%)", Line::Figure("goodput.slo-attainment", 0.01)),
];

/// The latencies, by the end of their labels, with the factor to milliseconds.
const LATENCIES: [(&str, &str, f64); 9] = [
    ("e2e latency (ms)", "e2e", 1.0),
    ("e2el (ms)", "e2e", 1.0),
    ("latency(s)", "e2e", 1000.0),
    ("latency (s)", "e2e", 1000.0),
    ("latency(ms)", "e2e", 1.0),
    ("latency (ms)", "e2e", 1.0),
    ("ttft (ms)", "ttft", 1.0),
    ("tpot (ms)", "tpot", 1.0),
    ("itl (ms)", "itl", 1.0),
];

/// Every block in a text, in order.
pub(super) fn spans(text: &str) -> Vec<Span> {
    // A rule between two titles belongs to the first.
    let mut least = 0;
    let titles: Vec<(usize, usize)> = (text.match_indices(TITLE))
        .filter_map(|(at, _)| {
            let before = text[..at].trim_end_matches(' ');
            let start = before.trim_end_matches('=').len();
            let after = text[at + TITLE.len()..].trim_start_matches(' ');
            let rule = after.len() - after.trim_start_matches('=').len();
            let ruled = before.len() - start >= 3 && rule >= 3;
            let body = text.len() - after.len() + rule;
            let start = start.max(least);
            ruled.then(|| {
                least = body;
                (start, body)
            })
        })
        .collect();
    let ends = titles.iter().skip(1).map(|(start, _)| *start);
    (titles.iter().zip(ends.chain([text.len()])))
        .map(|(&(start, body), next)| {
            let lines = &text[body..next];
            let lines = &lines[..lines.floor_char_boundary(LONGEST_BLOCK)];
            let closed = find(lines, "==========").unwrap_or(lines.len());
            let fenced = find(lines, "```").unwrap_or(lines.len());
            let end = body + closed.min(fenced);
            Span { start, body, end }
        })
        .collect()
}

/// Reads a block; `source` is its place.
pub(super) fn read(text: &str, span: Span, source: Source) -> Result<Claim, Vec<ReadError>> {
    let claim = Claim::new(Tool::Unknown, source);
    let mut block = Block { claim, labels: Vec::new(), errors: Vec::new() };
    pairs(&text[span.body..span.end]).iter().for_each(|pair| block.take(pair));
    block.finish()
}

/// No label that is known has more words.
const LONGEST_LABEL: usize = 8;

/// A label and the value after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair<'a> {
    label: String,
    value: Vec<&'a str>,
}

/// The lines of a block. A value ends at the next known label, so line breaks do not matter.
fn pairs(block: &str) -> Vec<Pair<'_>> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for word in unruled(block) {
        let Some(last) = word.strip_suffix(':') else {
            words.push(word);
            continue;
        };
        words.push(last);
        // The first word since the last label is its value; further words belong to a value of
        // several words, or to the label.
        let least = usize::from(!pairs.is_empty()).min(words.len() - 1);
        let wordy = pairs.last().is_some_and(|pair| is_wordy(&pair.label));
        let furthest = if wordy { words.len() - 1 } else { least };
        let nearest = least.max((furthest + 1).saturating_sub(LONGEST_LABEL));
        let cut = (nearest..=furthest)
            .find(|cut| known(&joined(&words[*cut..])).is_some())
            .unwrap_or(least);
        if let Some(pair) = pairs.last_mut() {
            pair.value = words[..cut].to_vec();
        }
        pairs.push(Pair { label: joined(&words[cut..]), value: Vec::new() });
        words.clear();
    }
    if let Some(pair) = pairs.last_mut() {
        pair.value = words;
    }
    pairs
}

/// The words of a block without its rules (`-----Time to First Token-----`).
fn unruled(block: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = block;
    while let Some(at) = find(rest, "---") {
        words.extend(rest[..at].split_whitespace());
        let title = rest[at..].trim_start_matches('-');
        did(rest.len() - at - title.len());
        // A rule without a title, or one whose second half was lost, ends with its line.
        let end = find(title, "---").filter(|end| !title[..*end].contains('\n'));
        rest = end.map_or(title, |end| title[end..].trim_start_matches('-'));
    }
    words.extend(rest.split_whitespace());
    words
}

fn joined(words: &[&str]) -> String {
    did(words.iter().map(|word| word.len() + 1).sum());
    words.join(" ").to_lowercase()
}

/// Labels whose value may be of several words: `not set`, `ttft:60 tpot:9`.
fn is_wordy(label: &str) -> bool {
    matches!(known(label), Some(Label::Line(Line::Backend | Line::Rate | Line::Cap | Line::Passed)))
}

enum Label {
    Line(Line),
    Latency(&'static str, String, f64),
    /// A latency that has no name here, such as the client's queue.
    Other,
}

fn known(label: &str) -> Option<Label> {
    if let Some((_, line)) = LINES.iter().find(|(known, _)| *known == label) {
        return Some(Label::Line(*line));
    }
    if label.ends_with("slo attainment (%)") {
        return Some(Label::Line(Line::Passed));
    }
    let (statistic, rest) = label.split_once(' ')?;
    let statistic = super::statistic(statistic)?;
    match LATENCIES.iter().find(|(name, ..)| *name == rest) {
        Some((_, metric, factor)) => Some(Label::Latency(metric, statistic, *factor)),
        None => rest.ends_with("(ms)").then_some(Label::Other),
    }
}

struct Block {
    claim: Claim,
    labels: Vec<String>,
    errors: Vec<ReadError>,
}

impl Block {
    fn take(&mut self, pair: &Pair<'_>) {
        self.labels.push(pair.label.clone());
        let value = pair.value.join(" ");
        match known(&pair.label) {
            None | Some(Label::Other | Label::Line(Line::Passed)) => {}
            Some(Label::Latency(metric, statistic, factor)) => {
                self.figure(&format!("{metric}.{statistic}"), pair, factor, false);
            }
            Some(Label::Line(line)) => match line {
                Line::Figure(name, factor) => self.figure(name, pair, factor, false),
                Line::Count(name) => self.figure(name, pair, 1.0, true),
                Line::Backend => {
                    let engine = (!value.is_empty()).then_some(value);
                    self.claim.about.notes.extend(engine.map(|it| ("backend".into(), it)));
                }
                Line::Rate => self.claim.asked.request_rate = value.parse().ok(),
                Line::Cap => self.claim.asked.max_concurrency = value.parse().ok(),
                Line::Passed => {}
            },
        }
    }

    fn figure(&mut self, name: &str, pair: &Pair<'_>, factor: f64, count: bool) {
        let Some(value) = pair.value.first() else { return };
        match number::read(value) {
            Ok(Some(stated)) => {
                let rounding = if count { 0.0 } else { stated.rounding * factor };
                // A figure in both milliseconds and seconds is known from the finer of both.
                let known = self.claim.figures.get(name);
                if known.is_none_or(|known| rounding < known.rounding) {
                    self.claim.state(name, stated.value * factor, rounding);
                }
            }
            Ok(None) => {}
            Err(()) => {
                let label = shortened(&pair.label, 60);
                self.errors.push(ReadError {
                    file: self.claim.source.file.clone(),
                    place: Some(format!("{}, `{label}`", self.place())),
                    what: format!("`{}` is not a number", shortened(&pair.value.join(" "), 60)),
                    expected: "expected a number, or `N/A` if it was not measured".into(),
                });
            }
        }
    }

    fn place(&self) -> String {
        format!("the block at line {}", self.claim.source.line.unwrap_or(1))
    }

    fn finish(mut self) -> Result<Claim, Vec<ReadError>> {
        if self.errors.is_empty() && !self.claim.figures.contains_key("requests.successful") {
            self.errors.push(ReadError {
                file: self.claim.source.file.clone(),
                place: Some(self.place()),
                what: format!(
                    "it does not state how many requests were successful ({} of its lines were recognised)",
                    self.claim.figures.len()
                ),
                expected: "expected a line `Successful requests:`; is the block cut off?".into(),
            });
        }
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        self.claim.tool = self.tool();
        self.claim.definitions = super::definitions(self.claim.tool);
        if self.claim.asked.request_rate.is_none() && self.claim.tool == Tool::Vllm {
            // The block names a rate only if the run had one.
            self.claim.asked.request_rate = Some(f64::INFINITY);
        }
        Ok(self.claim)
    }

    /// The tool of the block: each tool has lines that the others lack.
    fn tool(&self) -> Tool {
        let has = |label: &str| self.labels.iter().any(|known| known == label);
        if has("arrival") {
            Tool::Runner
        } else if has("mean latency(s)") || has("mean latency (s)") {
            Tool::Gpustack
        } else if has("traffic request rate")
            && (has("max request concurrency") || has("concurrency"))
        {
            Tool::Sglang
        } else if has("traffic request rate") {
            Tool::Lmdeploy
        } else if has("total token throughput (tok/s)") {
            Tool::Vllm
        } else {
            Tool::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SGLANG: &str = "noise\n============ Serving Benchmark Result ============\n\
        Backend:                                 sglang    \n\
        Traffic request rate:                    20.0      \n\
        Max request concurrency:                 not set   \n\
        Successful requests:                     12        \n\
        Benchmark duration (s):                  0.73      \n\
        Concurrency:                             2.27      \n\
        ---------------------Goodput----------------------\n\
        SLOs (ms):                               ttft:60 tpot:9 e2el:180\n\
        Request goodput (req/s):                 16.37     \n\
        TTFT SLO attainment (%):                 50.00     \n\
        ---------------Time to First Token----------------\n\
        Mean TTFT (ms):                          52.40     \n\
        P99.9 TTFT (ms):                         N/A       \n\
        Mean E2E Latency (ms):                   138.66    \n\
        ==================================================\nmore: 3";

    fn claims(text: &str) -> Vec<Result<Claim, Vec<ReadError>>> {
        let read_one = |span| read(text, span, Source::default());
        spans(text).into_iter().map(read_one).collect()
    }

    #[test]
    fn lines_are_found_with_and_without_their_breaks() {
        let one_line = SGLANG.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [SGLANG, &one_line] {
            let claim = claims(text).remove(0).unwrap();
            assert_eq!(claim.tool, Tool::Sglang);
            assert_eq!(claim.asked.request_rate, Some(20.0));
            assert_eq!(claim.asked.max_concurrency, None);
            let figures: Vec<(&str, f64)> =
                claim.figures.iter().map(|(name, stated)| (name.as_str(), stated.value)).collect();
            assert_eq!(
                figures,
                [
                    ("concurrency.mean", 2.27),
                    ("e2e.mean", 138.66),
                    ("goodput.requests-per-s", 16.37),
                    ("requests.successful", 12.0),
                    ("throughput.duration-s", 0.73),
                    ("ttft.mean", 52.4),
                ]
            );
        }
    }

    #[test]
    fn seconds_become_milliseconds_with_their_rounding() {
        let text =
            "=== Serving Benchmark Result === Successful requests: 3 Mean Latency(s): 24.11 ===";
        let claim = claims(text).remove(0).unwrap();
        assert_eq!(claim.tool, Tool::Gpustack);
        let e2e = claim.stated("e2e.mean").unwrap();
        assert!((e2e.value - 24110.0).abs() < 1e-9 && (e2e.rounding - 5.0).abs() < 1e-9);
    }

    #[test]
    fn reports_the_line_of_a_value_without_a_number() {
        let text = "\n=== Serving Benchmark Result ===\nSuccessful requests: many\nMean TTFT (ms): soon\n===";
        let errors = claims(text).remove(0).unwrap_err();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].to_string().contains("`successful requests`: `many` is not a number"));
    }

    #[test]
    fn our_own_block_is_read_too() {
        let text = include_str!("../../../../show/report/src/cases/mixed/text.txt");
        let claim = claims(text).remove(0).unwrap();
        assert_eq!(claim.tool, Tool::Runner);
        let line_value = |label: &str| {
            let line = text.lines().find(|line| line.starts_with(label)).unwrap();
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        for (name, label) in [
            ("requests.successful", "Successful requests:"),
            ("requests.failed", "Failed requests:"),
            ("tokens.output", "Total generated tokens:"),
            ("ttft.mean", "Mean TTFT (ms):"),
            ("tpot.p99", "P99 TPOT (ms):"),
            ("e2e.mean", "Mean E2E Latency (ms):"),
        ] {
            assert_eq!(claim.value(name), line_value(label), "{name}");
        }
    }

    #[test]
    fn ignores_unknown_lines_with_a_known_ending() {
        let text = "=== Serving Benchmark Result ===\nSuccessful requests: 3\nMeasured Concurrency: 9\n===";
        assert_eq!(claims(text).remove(0).unwrap().value("concurrency.mean"), None);
    }
}
