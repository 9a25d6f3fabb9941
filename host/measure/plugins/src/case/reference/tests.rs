use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::super::format::{self, ASIDES};
use super::super::given::{REPLIES, expectations, inputs};
use super::super::reply::ending_of;
use super::super::report::Failure;
use super::*;
use crate::backend::{Reading, Reason, ServerMetric};
use model::frame::{Framing, LengthPrefix};

/// A name in backticks that is not a case's own file.
const OTHERS: [&str; 1] = ["tokenizer.json"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The page below a heading, to the next heading.
fn section(heading: &str) -> String {
    let page = page();
    let (_, rest) = page
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no heading `{heading}`"));
    let end = rest.find("\n#").unwrap_or(rest.len());
    rest[..end].to_owned()
}

fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// The words in backticks, outside of blocks.
fn spans(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| prose.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The cells of a section's table rows, without its head.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn set<'w>(words: impl IntoIterator<Item = &'w str>) -> BTreeSet<String> {
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn page_of_the_guide_is_generated() {
    let path = root().join("host/guide/src/reference/plugin-cases.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == page, "{} differs; BLESS=1 writes it anew", path.display());
}

#[test]
fn page_lists_all_files_of_cases() {
    let text = section("## Files");
    for kind in Kind::ALL {
        let listed = |role: &str| -> BTreeSet<String> {
            let rows = rows(&text).into_iter();
            let rows = rows.filter(|row| row[2] == role && [kind.name(), "all"].contains(&row[1]));
            rows.flat_map(|row| spans(row[0])).collect()
        };
        let mut input = set(inputs(kind).iter().copied());
        if kind == Kind::Backend {
            input.extend(set([
                "reply.STATUS.EXT",
                "reply.N.EXT",
                "reply.N.STATUS.EXT",
                "reply.sse",
            ]));
            // Messages of a WebSocket are no body, and have a row of their own.
            input.extend(REPLIES[1..].iter().map(|ending| match *ending {
                "ws" => "reply.ws".to_owned(),
                ending => format!(".{ending}"),
            }));
        }
        assert_eq!(listed("input"), input, "{}", kind.name());
        let expected = set(expectations(kind).iter().copied());
        assert_eq!(listed("expectation"), expected, "{}", kind.name());
    }
}

#[test]
fn every_file_on_the_page_is_read() {
    let is_file = |word: &str| {
        let ending = word.rsplit_once('.').map(|(_, ending)| ending);
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
        ["http", "json", "jsonl", "toml", "txt", "md", "sse", "lines", "grpc", "bin"]
            .iter()
            .any(|known| ending == Some(known))
            && !word.starts_with('.')
            && word.chars().all(is_name)
    };
    let is_reply = |word: &str| match word.split('.').collect::<Vec<_>>().as_slice() {
        ["reply", ending] => REPLIES.contains(ending),
        ["reply", status, _] => matches!(status.parse::<u16>(), Ok(1..=99 | 300..=599)),
        ["reply", number, status, _] => {
            matches!(number.parse::<u16>(), Ok(1..=99))
                && matches!(status.parse::<u16>(), Ok(200..=599))
        }
        _ => false,
    };
    let named: Vec<String> = spans(&page()).into_iter().filter(|word| is_file(word)).collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        let name = name.as_str();
        let is_read = Kind::ALL
            .into_iter()
            .any(|kind| inputs(kind).contains(&name) || expectations(kind).contains(&name));
        assert!(
            is_read || is_reply(name) || name == "README.md" || OTHERS.contains(&name),
            "no case has a `{name}`"
        );
    }
}

#[test]
fn reply_endings_match_framings() {
    let prefix = LengthPrefix { skip: 0, width: 4, adjust: 0, little_endian: true };
    let text = section("### Replies");
    let mut known = BTreeSet::new();
    for framing in [
        Framing::EventStream,
        Framing::Lines,
        Framing::Grpc,
        Framing::Whole,
        Framing::LengthPrefixed(prefix),
        Framing::Raw,
    ] {
        let (name, endings) = ending_of(framing);
        known.insert(name.to_owned());
        let rows = rows(&text);
        let row = rows.iter().find(|row| spans(row[0]).iter().any(|word| word == name));
        let row = row.unwrap_or_else(|| panic!("`{name}` is not in the table"));
        let endings: Vec<String> = endings.iter().map(|end| format!("reply.{end}")).collect();
        assert_eq!(spans(row[1]), endings, "{name}");
    }
    let listed = rows(&text).into_iter().flat_map(|row| spans(row[0]));
    assert_eq!(listed.collect::<BTreeSet<_>>(), known);
}

#[test]
fn page_lists_the_words_of_control_txt() {
    let text = section("### Control requests");
    let listed: Vec<String> = rows(&text).iter().flat_map(|row| spans(row[0])).collect();
    assert_eq!(listed, ASIDES.map(|(word, _)| word));
}

/// The words of an enum, or of the cases of a variant, of the contract.
fn contract(file: &str, item: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("wit").join(file)).unwrap();
    let (_, rest) = text.split_once(&format!("{item} {{")).unwrap();
    let body = rest.split('}').next().unwrap().lines().map(str::trim);
    let words = body.filter(|line| !line.is_empty() && !line.starts_with("///"));
    let name = |line: &str| line.split(['(', ',']).next().unwrap_or_default().to_owned();
    words.map(name).collect()
}

/// The words in backticks of the sentence that begins so.
fn listed(text: &str, beginning: &str) -> Vec<String> {
    let (_, rest) = text.split_once(beginning).unwrap();
    spans(rest.split("\n\n").next().unwrap())
}

#[test]
fn page_lists_every_reason_and_metric() {
    let reasons = [
        Reason::Overloaded,
        Reason::Unavailable,
        Reason::TooLong,
        Reason::UnknownModel,
        Reason::Unauthorised,
        Reason::Invalid,
        Reason::Internal,
        Reason::Other,
    ];
    assert_eq!(reasons.map(format::reason).to_vec(), contract("backend.wit", "enum reason"));
    let events = section("### `events.json`");
    assert_eq!(listed(&events, "The `reason` is one of"), contract("backend.wit", "enum reason"));
    let control = section("### Control requests");
    let metrics = listed(&control, "The metrics are");
    assert_eq!(metrics, contract("backend.wit", "enum server-metric"));
    let shown = format::readings(
        &[
            ServerMetric::FinishedRequests,
            ServerMetric::RunningRequests,
            ServerMetric::WaitingRequests,
            ServerMetric::InputTokens,
            ServerMetric::OutputTokens,
            ServerMetric::PrefixCacheQueries,
            ServerMetric::PrefixCacheHits,
            ServerMetric::KvCacheUsage,
            ServerMetric::Preemptions,
        ]
        .map(|metric| Reading { metric, value: 1.0 }),
    );
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let shown: Vec<&str> = shown.iter().filter_map(|one| one["metric"].as_str()).collect();
    assert_eq!(metrics, shown);
}

#[test]
fn page_lists_every_kind_of_error_and_failure() {
    let first = |text: &str| -> Vec<String> {
        let rows = rows(text);
        rows.iter().flat_map(|row| spans(row[0])).collect()
    };
    let errors = first(&section("## `error.txt`"));
    assert_eq!(errors, contract("types.wit", "variant error"));
    let schema = schema_for!(Failure).to_value();
    let failures = schema["oneOf"].as_array().unwrap().iter();
    let failures = failures.map(|one| one["properties"]["kind"]["const"].as_str().unwrap());
    let failures: Vec<&str> = failures.collect();
    assert_eq!(first(&section("## Output")), failures);
}

#[test]
fn examples_of_inputs_are_read_as_inputs() {
    fn all<T: DeserializeOwned>(heading: &str) -> usize {
        let text = section(heading);
        let blocks = blocks(&text, "json");
        for block in &blocks {
            if let Err(error) = serde_json::from_str::<T>(block) {
                panic!("{heading}: {error}\n{block}");
            }
        }
        blocks.len()
    }
    assert_eq!(all::<SampleFile>("### `sample.json`"), 3);
    assert_eq!(all::<HeadFile>("### `head.json`"), 1);
    assert_eq!(all::<SettingsFile>("### `settings.json`"), 1);
    assert_eq!(all::<Vec<ExchangeFile>>("### `exchanges.json`"), 1);
    let case = section("### `case.toml`");
    let blocks = blocks(&case, "toml");
    assert_eq!(blocks.len(), 1);
    toml::from_str::<DrawFile>(blocks[0]).unwrap_or_else(|error| panic!("{error}"));
}
