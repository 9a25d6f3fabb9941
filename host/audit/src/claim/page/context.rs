//! Adds the text around a block to its claim.

use super::super::Claim;
use super::super::block::Span;
use super::{Fence, Page, namespace};

/// Engines as pages name them.
const ENGINES: [(&str, &str); 5] = [
    ("lmdeploy", "LMDeploy"),
    ("vllm", "vLLM"),
    ("sglang", "SGLang"),
    ("tensorrt-llm", "TensorRT-LLM"),
    ("mindie", "MindIE"),
];

/// Fills in what the page states about a block; `before` is the text between it and the previous block.
pub(super) fn fill(claim: &mut Claim, page: &Page<'_>, span: Span, before: &str) {
    claim.model = page.section("Model");
    claim.about.hardware = page.section("Hardware");
    claim.about.launch_command = launch_command(page, span).map(str::to_owned);
    profile(claim, page, before);
    if let Some(flags) = namespace::flags(before) {
        namespace::fill(claim, &flags);
    }
    engine(claim, page);
}

/// The title of a folded part: `??? info "Optimized benchmark result"`.
pub(super) fn caption(before: &str) -> Option<String> {
    let at = before.rfind("??? ")?;
    let (_, quoted) = before[at..].split_once('"')?;
    let (title, _) = quoted.split_once('"')?;
    (title.len() < 80).then(|| title.to_owned())
}

/// The last fenced command above the block, under one of its headings.
fn launch_command<'a>(page: &Page<'a>, span: Span) -> Option<&'a str> {
    let path = page.above(span.start);
    let starts = |fence: &&Fence<'_>| {
        let words = [
            "serve",
            "launch_server",
            "api_server",
            "docker run",
            "mpirun",
        ];
        let shell = matches!(fence.info, "shell" | "bash" | "sh" | "console" | "{shell}");
        shell
            && (fence.text.starts_with("--") || words.iter().any(|word| fence.text.contains(word)))
    };
    let fence = page
        .fences
        .iter()
        .rev()
        .filter(|fence| fence.end <= span.start)
        .find(starts)?;
    let own = page.above(fence.start);
    let above = own.len() <= path.len() && own.iter().zip(&path).all(|(one, other)| one == other);
    above.then_some(fence.text)
}

/// The settings of the profile: its name is above the block, its settings are elsewhere on the page.
fn profile(claim: &mut Claim, page: &Page<'_>, before: &str) {
    let named = before.rfind("Profile: `").and_then(|at| {
        let name = &before[at + "Profile: `".len()..];
        name.split_once('`').map(|(name, _)| name.to_owned())
    });
    let last = claim.source.headings.last();
    let headed = last.and_then(|heading| heading.strip_suffix(" Profile"));
    let Some(name) = named.or(headed.map(str::to_owned)) else {
        return;
    };
    let settings = page.fences.iter().find(|fence| {
        let heading = page
            .above(fence.start)
            .last()
            .map(|heading| heading.text.clone());
        fence.info == "yaml" && heading.is_some_and(|heading| heading.eq_ignore_ascii_case(&name))
    });
    claim.scenario = Some(name);
    let Some(settings) = settings else { return };
    let words: Vec<&str> = settings.text.split_whitespace().collect();
    for pair in words.windows(2) {
        let count = pair[1].parse::<u64>().ok();
        let asked = &mut claim.asked;
        match pair[0] {
            "dataset_name:" => asked.dataset = Some(pair[1].to_lowercase()),
            "dataset_input_tokens:" => asked.input_tokens = count,
            "dataset_output_tokens:" => asked.output_tokens = count,
            "dataset_seed:" => asked.seed = count,
            "request_rate:" => asked.request_rate = pair[1].parse().ok(),
            "total_requests:" => asked.requests = count,
            _ => {}
        }
    }
}

/// The engine comes from the innermost heading that names one, else from the tool's own `backend`; its
/// version follows its name somewhere on the page.
fn engine(claim: &mut Claim, page: &Page<'_>) {
    let headed = claim.source.headings.iter().rev().find_map(|heading| {
        let first = heading.split_whitespace().next()?;
        ENGINES
            .iter()
            .find(|(_, label)| first.eq_ignore_ascii_case(label))
    });
    let backend = claim.about.notes.get("backend");
    let backend =
        backend.and_then(|backend| ENGINES.iter().find(|(name, _)| backend.starts_with(name)));
    let Some((name, label)) = headed.or(backend) else {
        return;
    };
    claim.about.engine = Some((*name).to_owned());
    claim.about.engine_version = version(page.text, label);
}

/// What follows `vLLM v` if that is a version.
fn version(text: &str, label: &str) -> Option<String> {
    text.match_indices(label).find_map(|(at, _)| {
        let rest = text[at + label.len()..].strip_prefix(" v")?;
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
            .unwrap_or(rest.len());
        let version = rest[..end].trim_end_matches('.');
        version
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| version.to_owned())
    })
}
