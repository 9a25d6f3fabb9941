//! Published results that ship inside the runner: figures of public pages, each with its source, as
//! claims that comparisons and the audit accept like any other.
//!
//! A name consists of engine and version, hardware, model and scenario, such as
//! `lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt`; if a page has several of the same, also of how the
//! engine was started.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::claim::{Claim, Settings, Source, Tool, stated};
use model::about::About;
use model::{glob, nearest};

/// The prefix of a name in places that accept a file as well.
pub const PREFIX: &str = "published:";

const PAGES: [&str; 3] = [
    include_str!("../published/lmdeploy-0.9.2-h800.json"),
    include_str!("../published/vllm-0.10.1-h800.json"),
    include_str!("../published/gpustack-qwen3.5-9b-h100.json"),
];

/// A page as its file has it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Page {
    #[expect(dead_code, reason = "for those who read the file")]
    title: String,
    url: String,
    tool: String,
    hardware: String,
    results: Vec<Entry>,
}

/// A result in a page's file. Figures keep the page's digits, which show how they were rounded;
/// end-to-end latency under `e2e-s` is in seconds.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Entry {
    name: String,
    headings: Vec<String>,
    engine: String,
    engine_version: String,
    model: String,
    tensor_parallel: u32,
    engine_args: Option<String>,
    scenario: String,
    dataset: Option<String>,
    requests: Option<u64>,
    request_rate: Option<String>,
    max_concurrency: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    seed: Option<u64>,
    figures: BTreeMap<String, String>,
}

/// Every published result, page by page, in the order of the page.
///
/// # Panics
/// If a shipped file is malformed; a test reads all of them.
pub fn all() -> Vec<Claim> {
    static ALL: OnceLock<Vec<Claim>> = OnceLock::new();
    ALL.get_or_init(|| {
        let pages =
            PAGES.iter().map(|page| serde_json::from_str(page).expect("a test has read it"));
        pages.flat_map(claims).collect()
    })
    .clone()
}

/// The published results whose name equals or matches the pattern: `*` matches any characters, and
/// without one a part of a name is enough. An empty pattern matches all. Errors: a message that
/// there is none, with the most similar name.
pub fn find(pattern: &str) -> Result<Vec<Claim>, String> {
    let all = all();
    let name = |claim: &Claim| claim.source.file[PREFIX.len()..].to_owned();
    if let Some(one) = all.iter().find(|claim| name(claim) == pattern) {
        return Ok(vec![one.clone()]);
    }
    let found: Vec<Claim> =
        all.iter().filter(|claim| fits(&name(claim), pattern)).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let names: Vec<String> = all.iter().map(name).collect();
    let near = nearest(pattern, names.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(format!("no published result is called `{pattern}`{near} (`runner published` lists them)"))
}

/// True if a name matches a pattern, ignoring case.
fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.to_lowercase(), pattern.to_lowercase());
    if pattern.contains('*') { glob::fits(&pattern, &name) } else { name.contains(&pattern) }
}

fn claims(page: Page) -> Vec<Claim> {
    let tool = if page.tool == "gpustack" { Tool::Gpustack } else { Tool::Lmdeploy };
    let one = |result: Entry| {
        let source = Source {
            file: format!("{PREFIX}{}", result.name),
            headings: result.headings,
            url: Some(page.url.clone()),
            ..Source::default()
        };
        let mut claim = Claim::new(tool, source);
        let notes = [("tensor-parallel".to_owned(), result.tensor_parallel.to_string())];
        claim.about = About {
            engine: Some(result.engine),
            engine_version: Some(result.engine_version),
            hardware: Some(page.hardware.clone()),
            launch_command: result.engine_args,
            notes: notes.into(),
        };
        claim.model = Some(result.model);
        claim.scenario = Some(result.scenario);
        claim.asked = Settings {
            requests: result.requests,
            request_rate: result.request_rate.and_then(|rate| rate.parse().ok()),
            max_concurrency: result.max_concurrency,
            input_tokens: result.input_tokens,
            output_tokens: result.output_tokens,
            dataset: result.dataset,
            seed: result.seed,
            ..Settings::default()
        };
        for (name, digits) in result.figures {
            let Some(mut figure) = stated(&digits) else { continue };
            if ["requests.", "tokens.", "concurrency."].iter().any(|kind| name.starts_with(kind)) {
                figure.rounding = 0.0;
            }
            let (name, factor) = match name.strip_prefix("e2e-s.") {
                Some(statistic) => (format!("e2e.{statistic}"), 1e3),
                None => (name, 1.0),
            };
            claim.state(name, figure.value * factor, figure.rounding * factor);
        }
        claim
    };
    page.results.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate as audit;
    use result::figure::Figure;
    use result::finding::Verdict;

    #[test]
    fn all_sixty_four_are_there_by_names_of_their_own() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|claim| claim.source.file.as_str()).collect();
        assert_eq!((all.len(), names.len()), (64, 64));
        for claim in &all {
            assert!(claim.figures.len() > 12, "{}", claim.source.file);
            for name in claim.figures.keys() {
                assert!(name.parse::<Figure>().is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn names_are_found_whole_in_part_and_by_stars() {
        let count = |pattern: &str| find(pattern).map(|claims| claims.len());
        assert_eq!(count("lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt"), Ok(1));
        assert_eq!(count("lmdeploy-0.9.2"), Ok(16));
        assert_eq!(count("*/h800/*/sharegpt"), Ok(10));
        assert_eq!(count(""), Ok(64));
        let error = find("lmdeploy-0.9.2/h800/Qwen3-8B-FP8/shargpt").unwrap_err();
        let near = "did you mean `lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt`?";
        assert!(error.contains(near), "{error}");
    }

    #[test]
    fn audits_of_published_results_are_as_known() {
        let audited = audit::claims(&all());
        let count = |from: usize, to: usize, verdict: Verdict| {
            audited[from..to].iter().filter(|result| result.verdict == verdict).count()
        };
        let found: Vec<(&str, Vec<&str>)> = (audited.iter())
            .map(|result| {
                let names = result.findings.iter().map(|finding| finding.id.name()).collect();
                (result.claim.source.file.as_str(), names)
            })
            .collect();
        // LMDeploy's method passes the arithmetic; gpt-oss gives fewer tokens than were counted.
        for (name, ids) in &found[..40] {
            let retokenized = ids.contains(&"retokenized-differs");
            assert_eq!(retokenized, name.contains("gpt-oss"), "{name}: {ids:?}");
            let is_known = |id: &&str| matches!(*id, "retokenized-differs" | "tokens-per-gap");
            assert!(ids.iter().all(is_known), "{name}: {ids:?}");
        }
        let counts = (count(0, 40, Verdict::Valid), count(0, 40, Verdict::Invalid));
        assert_eq!(counts, (33, 0), "{found:#?}");
        // None of GPUStack's is clean.
        assert_eq!(count(40, 64, Verdict::Valid), 0, "{found:#?}");
        assert_eq!(count(40, 64, Verdict::Invalid), 23, "{found:#?}");
    }
}
