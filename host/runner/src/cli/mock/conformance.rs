//! `runner mock --conformance`: serves the cases that clients are verified with, each below a base
//! path of its own, beside its log and its expectations.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use super::super::verify::files;
use super::{Failure, interrupted, say, system, unheard};
use mock::{Engine, Mounts, Page, Script};
use reader::ScenarioError;
use verify::expected::Expected;
use verify::{Case, Log};

pub fn exec(name: &str, address: SocketAddr, given: &str) -> Result<ExitCode, Failure> {
    let cases = files::chosen(files::cases(None)?, &[name.to_owned()])?;
    let scripts = cases.iter().map(|case| {
        let script = Script::parse(&case.name, &case.script())?;
        Ok((case.name.clone(), script))
    });
    let scripts: Vec<_> = scripts.collect::<Result<_, ScenarioError>>()?;
    let by_name: BTreeMap<String, Case> =
        (cases.into_iter()).map(|case| (case.name.clone(), case)).collect();
    let by_name = Arc::new(by_name);
    let _ = load::thread_group::allow(u64::MAX);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(system)?.block_on(async {
        let known = Arc::clone(&by_name);
        let pages =
            move |engine: Option<(&str, &Engine)>, page: &str| known_page(&known, engine, page);
        let mounts = Mounts::new(scripts, Box::new(pages))?;
        let listener = mock::listen(address).map_err(unheard(given))?;
        let at = listener.local_addr().map_err(system)?;
        let bases: String = by_name.keys().map(|name| format!("  http://{at}/{name}\n")).collect();
        let interrupted = interrupted();
        say(&format!("listening on http://{at}\n{bases}")).map_err(system)?;
        mock::serve_mounts(listener, mounts, interrupted).await;
        Ok(ExitCode::SUCCESS)
    })
}

fn known_page(
    cases: &BTreeMap<String, Case>,
    engine: Option<(&str, &Engine)>,
    page: &str,
) -> Option<Page> {
    let text = match engine {
        None if page.is_empty() => {
            let all: Vec<Expected> = (cases.values()).map(|case| expected(case, "", 0)).collect();
            serde_json::to_string_pretty(&all).ok()?
        }
        Some((name, engine)) => {
            let (page, query) = page.split_once('?').unwrap_or((page, ""));
            if page != "expected" {
                return None;
            }
            let before = query.strip_prefix("warm-up=");
            let before = before.map_or(Some(0), |number| number.parse().ok())?;
            let expected = expected(cases.get(name)?, &mock::log(engine), before);
            serde_json::to_string_pretty(&expected).ok()?
        }
        _ => return None,
    };
    Some(Page { content_type: "application/json", text: text + "\n" })
}

/// The expectations of a case by a log without its first requests. A token of a text is a word
/// here, as by the tokenizer that comes with the cases.
fn expected(case: &Case, log: &str, warm_up: usize) -> Expected {
    let log = Log::read(log).unwrap_or_default();
    Expected::new(case, &log, warm_up, &|text| Some(text.split_whitespace().count() as u64))
}
