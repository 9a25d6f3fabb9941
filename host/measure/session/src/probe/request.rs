//! Requests of a probe, and the command that it ends with.

use serde_json::Value;

use crate::Faults;
use crate::resolve::{Alone, Source, alone};
use plugins::backend::{Prompt, Request, Sample, Settings};
use reader::Located;
use runs::probe::{Probe, Route};

/// The prompt of the generating routes.
const PROMPT: &str = "Count from one to ten.";
/// The number of output tokens that they are asked for.
const TOKENS: u32 = 8;
/// The variable that most clients keep a key in.
const USUAL_KEY: &str = "OPENAI_API_KEY";

pub(crate) fn get(path: &str) -> Request {
    let (method, path) = ("GET".to_owned(), path.to_owned());
    Request { method, path, headers: Vec::new(), body: Vec::new() }
}

/// The component of a backend that `--backend` takes.
pub(super) fn plugin(backend: &str) -> String {
    format!("backends/{backend}.wasm")
}

/// A backend on one of its routes. Unless it is the target's own, no variable is read but those
/// that any backend's requests would carry.
pub(super) fn resolved(
    source: &Source,
    backend: &str,
    route: Option<&str>,
    is_own: bool,
) -> Result<Alone, Faults> {
    let mut source = source.clone();
    let scenario = &mut source.scenario;
    scenario.backend.plugin = Some(Located::flag("--backend", plugin(backend)));
    if let Some(route) = route {
        let route = Located::flag("--backend", Value::from(route));
        scenario.backend.config.set("route", route);
    }
    if !is_own && scenario.target.api_key_env.is_none() {
        source.variables = source.variables.only(&[USUAL_KEY]);
    }
    alone(&source)
}

/// Returns the sample that the generating routes are asked.
pub(super) fn sample() -> Sample {
    let prompt = Prompt::Text(PROMPT.to_owned());
    Sample { output_tokens: Some(TOKENS), ..Sample::bare("probe", prompt) }
}

/// Returns the settings: as few as can be, and with the server's own defaults.
pub(super) fn settings(model: &str) -> Settings {
    Settings { output_tokens: Some(TOKENS), ..Settings::bare(model, true) }
}

/// The words of a command that benchmarks a route, with the user's arguments about the target.
pub(super) fn command(probe: &Probe, best: &Route, repeated: &[String]) -> Vec<String> {
    let context = (probe.models.iter())
        .find(|model| Some(&model.name) == probe.model.as_ref())
        .and_then(|model| model.context_tokens)
        .unwrap_or(u32::MAX);
    let (input, output) = (512.min(context / 2), 128.min(context / 4));
    let mut words: Vec<String> =
        ["runner", "--backend", &best.backend, "--base-url", &probe.url].map(str::to_owned).into();
    if let Some(model) = &probe.model {
        words.extend(["--model".to_owned(), model.clone()]);
    }
    if let Some(route) = &best.route {
        words.extend(["--set".to_owned(), format!("backend.config.route={route}")]);
    }
    words.extend(repeated.iter().cloned());
    let load = format!(
        "--dataset-name random --random-input-len {input} --random-output-len {output} --num-prompts 100 --concurrency 8"
    );
    words.extend(load.split(' ').map(str::to_owned));
    words
}
