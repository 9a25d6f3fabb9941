//! Adds the text around a block to its claim.

use std::collections::BTreeMap;

use super::super::Claim;
use super::super::block::Span;
use super::super::seek::{did, find, shortened};
use super::{Fence, Page, namespace};

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
pub(super) struct Facts<'a> {
    model: Option<String>,
    hardware: Option<String>,
    /// The fenced commands that start an engine, in order.
    launches: Vec<Fence<'a>>,
    /// The settings of profiles, by their names in lower case.
    profiles: BTreeMap<String, Settings<'a>>,
    /// The versions of [`ENGINES`].
    versions: [Option<String>; ENGINES.len()],
}

impl<'a> Facts<'a> {
    pub(super) fn new(page: &Page<'a>) -> Self {
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
pub(super) fn fill(
    claim: &mut Claim,
    page: &Page<'_>,
    facts: &Facts<'_>,
    span: Span,
    before: &str,
) {
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
pub(super) fn caption(before: &str) -> Option<String> {
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

/// The names of these settings.
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

/// The settings of the profile: its name is above the block, its settings are elsewhere on the
/// page.
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
