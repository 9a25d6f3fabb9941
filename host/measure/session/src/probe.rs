//! The identification of a server. A handful of questions find its engine, its models, the routes
//! that answer, and the shape of one tiny reply of each. The shipped backends write the requests
//! and read the replies; [`engines`] knows the engines, and [`ask`] asks one question.
//!
//! **Keys.** A run sends the key of the backend that its user named. Here no backend is named, and
//! the server must not choose one by its claims. Without a name it gets the key that the user
//! names, or `OPENAI_API_KEY`. A backend's own variable is read in three cases: the user names the
//! backend, the host is the service's own, or the server is on this machine.

mod ask;
pub(crate) mod engines;
pub mod record;

use std::collections::{BTreeMap, BTreeSet};

use hyper::header::SERVER;
use serde_json::Value;

use crate::Faults;
use crate::decode::failures::fit;
use crate::preflight::{PreflightError, advice, list};
use crate::resolve::{Alone, Source, alone};
use ask::{Asker, ProbeReply};
use engines::{CLUES, Engine, MOST_TRIES, TRIES, Try};
use load::transport::dial::DialError;
use load::transport::{Connect, Dial};
use model::access::Access;
use model::clock::Clock;
use model::frame::Frames;
use model::target::Target;
use plugins::PluginError;
use plugins::backend::{self, Dialect, Meaning, Prompt, Request, Sample, Settings};
use reader::Located;
use runs::probe::{Control, Model, Outcome, Probe, Route, Shape};

/// The path under which most engines list their models.
const MODELS: &str = "/v1/models";
/// The backend for engines without one of their own.
const GENERIC: &str = "openai";

pub struct Prober {
    source: Source,
    /// The backend that the user names.
    named: Option<String>,
    first: Alone,
}

pub struct Findings {
    pub probe: Probe,
    /// Reason why it cannot be benchmarked like this, if it cannot.
    pub failure: Option<ProbeError>,
    pub remarks: Vec<String>,
}

impl Prober {
    /// Prepares to ask a scenario's first target, with the named backend or the fitting ones.
    pub fn new(source: Source, named: Option<&str>) -> Result<Self, Faults> {
        let service = service(&source).filter(|_| named.is_none());
        let own = named.or(service);
        let first = resolved(&source, own.unwrap_or(GENERIC), None, own.is_some())?;
        Ok(Prober { source, named: named.map(str::to_owned), first })
    }

    pub fn dial(&self) -> Result<Dial, DialError> {
        let wiring = &self.first.wiring;
        let target = std::slice::from_ref(&self.first.target);
        Dial::new(target, &[], wiring.http, &wiring.trust, wiring.timestamps)
    }

    pub fn probe_now<C: Connect>(
        &self,
        connect: &C,
        repeated: &[String],
    ) -> Result<Findings, crate::CheckError> {
        let local = crate::local::Local::new().map_err(crate::CheckError::Runtime)?;
        Ok(local.run(self.probe(connect, repeated))?)
    }

    /// Asks. Must run on a `LocalSet`, where HTTP/2 keeps its connections.
    pub async fn probe<C: Connect>(
        &self,
        connect: &C,
        repeated: &[String],
    ) -> Result<Findings, PreflightError> {
        let mut asker = Asker { connect, clock: Clock::start(), requests: 0 };
        let target = &self.first.target;
        let mut probe = Probe { url: target.to_string(), ..Probe::default() };
        let listed = self.listed(&mut asker, &mut probe).await?;
        let mut remarks = self.first.remarks.clone();
        let failure = match self.look(&mut asker, &mut probe, &listed, &mut remarks).await {
            Ok(()) => self.judged(&probe),
            Err(error) => Some(error),
        };
        probe.requests = asker.requests;
        if let Some(best) = probe.routes.iter().find(|route| route.answers()) {
            probe.command = command(&probe, best, repeated);
        }
        Ok(Findings { probe, failure, remarks })
    }

    /// Asks for the models as most engines list them, which shows whether there is a server.
    async fn listed<C: Connect>(
        &self,
        asker: &mut Asker<'_, C>,
        probe: &mut Probe,
    ) -> Result<Listing, PreflightError> {
        let target = self.first.target.to_string();
        let mut dialect = self.first.backend.open()?;
        let question = dialect.control(backend::Control::ListModels)?;
        let question = question.unwrap_or_else(|| get(MODELS));
        let path = question.path.clone();
        let answer = asker.ask(&self.first, question).await;
        let (head, body) = answer.map_err(|silence| silence.fault(target.clone()))?;
        if ask::is_page(&head.headers) && (200..300).contains(&head.status) {
            return Err(PreflightError::WebPage { target, path, status: head.status });
        }
        let server = head.headers.get(SERVER).and_then(|value| value.to_str().ok());
        probe.server = server.map(|server| fit(&self.first.secrets.redact(server)));
        Ok(Listing { path, status: head.status, body })
    }

    /// Everything after the first question.
    async fn look<C: Connect>(
        &self,
        asker: &mut Asker<'_, C>,
        probe: &mut Probe,
        listed: &Listing,
        remarks: &mut Vec<String>,
    ) -> Result<(), ProbeError> {
        let (engine, is_own) = self.identify(asker, probe, listed).await;
        let tries = self.tries(engine);
        let Some((backend, route)) = tries.first() else { return Ok(()) };
        let is_own = is_own || self.named.is_some() || self.first.target.is_loopback();
        let own = resolved(&self.source, backend, route.as_deref(), is_own)?;
        let mut further = own.remarks.clone();
        further.retain(|remark| !remarks.contains(remark));
        remarks.extend(further);
        let mut dialect = own.backend.open()?;
        let listing = self.controls(asker, &own, &mut dialect, probe, listed).await?;
        let model = self.model(probe, &own, listing.as_ref())?;
        probe.model = Some(model.clone());
        for (backend, route) in tries {
            let one = resolved(&self.source, &backend, route.as_deref(), is_own)?;
            let mut dialect = one.backend.open()?;
            let call = dialect.encode(&sample(), &settings(&model), None)?;
            let request = call.into_request();
            let (method, path) = (request.method.clone(), request.path.clone());
            let ProbeReply { outcome, status, message: said, shape } =
                asker.generate(&one, &mut dialect, request).await?;
            probe.routes.push(Route { backend, route, method, path, outcome, status, said, shape });
        }
        Ok(())
    }

    /// Identifies the engine, and says if the address alone shows it.
    async fn identify<C: Connect>(
        &self,
        asker: &mut Asker<'_, C>,
        probe: &mut Probe,
        listed: &Listing,
    ) -> (Engine, bool) {
        let found = |engine: Engine, version: Option<String>, seen: String| runs::probe::Engine {
            name: engine.name().to_owned(),
            version: version.map(|version| fit(&self.first.secrets.redact(&version))),
            seen,
        };
        if let Some(engine) = engines::hosted(self.first.target.host()) {
            probe.engine = Some(found(engine, None, "by its address".to_owned()));
            return (engine, true);
        }
        let models: Option<Value> = serde_json::from_slice(&listed.body).ok();
        let models = models.filter(|_| (200..300).contains(&listed.status));
        let claimed = models.as_ref().and_then(engines::owner);
        let claimed = claimed.or_else(|| engines::server(probe.server.as_deref()?));
        let mut answers: BTreeMap<&str, Option<Value>> = BTreeMap::new();
        for clue in CLUES {
            if !claimed.map_or(clue.is_proof, |engine| clue.engine == engine) {
                continue;
            }
            if !answers.contains_key(clue.path) {
                let reply = asker.ask(&self.first, get(clue.path)).await.ok();
                let reply = reply.filter(|(head, _)| (200..300).contains(&head.status));
                let reply = reply.and_then(|(_, body)| serde_json::from_slice(&body).ok());
                answers.insert(clue.path, reply);
            }
            let answer = answers.get(clue.path).and_then(Option::as_ref);
            if let Some(version) = answer.and_then(|answer| clue.read(answer)) {
                let seen = format!("GET {}", clue.path);
                probe.engine = Some(found(clue.engine, version, seen));
                return (clue.engine, false);
            }
        }
        probe.engine = claimed.map(|engine| found(engine, None, format!("GET {}", listed.path)));
        (claimed.unwrap_or(Engine::Unknown), false)
    }

    /// Returns the backends and routes to try, the best first.
    fn tries(&self, engine: Engine) -> Vec<(String, Option<String>)> {
        let ships = |backend: &str| {
            let name = plugin(backend);
            self.source.shipped.iter().any(|(known, _)| *known == name)
        };
        let all: Vec<&Try> = match &self.named {
            // Of a backend that the user names, every route that is known with any engine.
            Some(named) => TRIES.iter().filter(|own| own.backend == named).collect(),
            None => TRIES.iter().filter(|own| own.engine == engine && ships(own.backend)).collect(),
        };
        let mut tries: Vec<(String, Option<String>)> = Vec::new();
        for Try { backend, route, .. } in all {
            let known = ((*backend).to_owned(), route.map(str::to_owned));
            if !tries.contains(&known) {
                tries.push(known);
            }
        }
        if tries.is_empty() {
            tries.push((self.named.clone().unwrap_or_else(|| GENERIC.to_owned()), None));
        }
        tries.truncate(MOST_TRIES);
        tries
    }

    /// Asks questions that generate nothing. Returns the answer about the models.
    async fn controls<C: Connect>(
        &self,
        asker: &mut Asker<'_, C>,
        own: &Alone,
        dialect: &mut Dialect,
        probe: &mut Probe,
        listed: &Listing,
    ) -> Result<Option<Control>, ProbeError> {
        use backend::Control::{Health, ListModels, Metrics};
        let mut listing = None;
        for kind in [Health, ListModels, Metrics] {
            let Some(question) = dialect.control(kind)? else { continue };
            let (method, path) = (question.method.clone(), question.path.clone());
            let is_known = kind == ListModels && path == listed.path && self.asks_like(own);
            let reply = match is_known {
                true => Ok((listed.status, listed.body.clone())),
                false => asker.ask(own, question).await.map(|(head, body)| (head.status, body)),
            };
            let seen = match reply {
                Err(silence) => ProbeReply::plain(Outcome::Broken, None, Some(silence.message())),
                Ok((status, body)) => {
                    let body = own.secrets.redact_bytes(&body);
                    if !(200..300).contains(&status) {
                        ask::refused(dialect, status, &body)?
                    } else if kind == ListModels {
                        read_models(dialect, status, &body, probe)
                    } else {
                        ProbeReply::plain(Outcome::Answers, Some(status), None)
                    }
                }
            };
            let ProbeReply { outcome, status, message: said, .. } = seen;
            let control = Control { method, path, outcome, status, said };
            if kind == ListModels {
                listing = Some(control.clone());
            }
            probe.controls.push(control);
        }
        Ok(listing)
    }

    /// True if the first question had the key that a backend's requests have.
    fn asks_like(&self, own: &Alone) -> bool {
        match (&own.secrets.access, &self.first.secrets.access) {
            (Access::Bearer(key), Access::Bearer(before)) => key == before,
            // Of others the header matters too, or the time.
            both => matches!(both, (Access::Open, Access::Open)),
        }
    }

    /// The model to ask for: that which the user names, else the first that is listed.
    fn model(
        &self,
        probe: &Probe,
        own: &Alone,
        listing: Option<&Control>,
    ) -> Result<String, ProbeError> {
        let target = own.target.to_string();
        let named = self.source.scenario.target.model.as_ref();
        let names: Vec<String> = probe.models.iter().map(|model| model.name.clone()).collect();
        let error = match (named, names.first()) {
            (Some(named), Some(_)) if !names.contains(&named.value) => {
                let (model, served) = (named.value.clone(), list(&names));
                PreflightError::UnknownModel { target, model, served }
            }
            (Some(named), _) => return Ok(named.value.clone()),
            (None, Some(first)) => return Ok(first.clone()),
            (None, None) => match listing {
                Some(Control {
                    outcome: Outcome::NeedsKey,
                    status: Some(status),
                    said: message,
                    ..
                }) => unauthorised(own, *status, message.as_deref()),
                _ => PreflightError::NoModel { target, served: "lists none".to_owned() },
            },
        };
        Err(error.into())
    }

    /// Returns why the server cannot be benchmarked as it is, if no route gave an answer.
    fn judged(&self, probe: &Probe) -> Option<ProbeError> {
        if probe.routes.iter().any(Route::answers) {
            return None;
        }
        let target = probe.url.clone();
        let first = |outcome: Outcome| probe.routes.iter().find(|route| route.outcome == outcome);
        if let Some(route) = first(Outcome::NeedsKey) {
            let status = route.status.unwrap_or_default();
            return Some(unauthorised(&self.first, status, route.said.as_deref()).into());
        }
        if first(Outcome::UnknownModel).is_some() {
            let names: Vec<String> = probe.models.iter().map(|model| model.name.clone()).collect();
            let model = probe.model.clone().unwrap_or_default();
            let unlisted = "models that it does not list".to_owned();
            let served = if names.is_empty() { unlisted } else { list(&names) };
            return Some(PreflightError::UnknownModel { target, model, served }.into());
        }
        let there = (probe.routes.iter()).find(|route| route.outcome != Outcome::NoRoute);
        Some(match there {
            Some(route) => ProbeError::NoAnswer {
                target,
                seen: format!("{}: {}", route.path, reason(route.said.as_deref())),
            },
            None => {
                let paths: Vec<_> = probe.routes.iter().map(|route| route.path.as_str()).collect();
                ProbeError::NoRoute { target, tried: paths.join(", ") }
            }
        })
    }
}

/// The backends that are tried with some engine, as `--backend` takes them; some may not ship.
pub fn backends() -> BTreeSet<&'static str> {
    TRIES.iter().map(|own| own.backend).collect()
}

/// The answer to the first question.
struct Listing {
    path: String,
    status: u16,
    body: Vec<u8>,
}

/// The backend of the service at the target's address, if one ships.
fn service(source: &Source) -> Option<&'static str> {
    let url = source.scenario.target.base_url.as_ref()?.value.first()?;
    let engine = engines::hosted(Target::parse(&url.value).ok()?.host())?;
    let own = TRIES.iter().find(|own| own.engine == engine)?;
    let name = plugin(own.backend);
    let ships = source.shipped.iter().any(|(known, _)| *known == name);
    ships.then_some(own.backend)
}

fn read_models(dialect: &mut Dialect, status: u16, body: &[u8], probe: &mut Probe) -> ProbeReply {
    let (outcome, message) = match dialect.read_models(body) {
        Ok(models) => {
            let models = models.into_iter().map(|model| Model {
                name: model.name,
                root: model.root,
                context_tokens: model.context_tokens,
            });
            probe.models = models.collect();
            (Outcome::Answers, None)
        }
        Err(error) => (Outcome::Broken, Some(fit(&error.to_string()))),
    };
    ProbeReply::plain(outcome, Some(status), message)
}

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
fn plugin(backend: &str) -> String {
    format!("backends/{backend}.wasm")
}

/// A backend on one of its routes. If it is not the target's own, only the usual key is read.
fn resolved(
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

fn sample() -> Sample {
    let prompt = Prompt::Text(PROMPT.to_owned());
    Sample { output_tokens: Some(TOKENS), ..Sample::bare("probe", prompt) }
}

/// Returns the settings: as few as can be, and with the server's own defaults.
fn settings(model: &str) -> Settings {
    Settings { output_tokens: Some(TOKENS), ..Settings::bare(model, true) }
}

/// The words of a command that benchmarks a route, with the user's arguments about the target.
fn command(probe: &Probe, best: &Route, repeated: &[String]) -> Vec<String> {
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

/// The reason why a server cannot be probed, or not be benchmarked as it is.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(
        "{target} has none of the generating routes that were tried ({tried}); name its backend with --backend, or add a path before them to the URL"
    )]
    NoRoute { target: String, tried: String },
    #[error("no generating route of {target} gives an answer: {seen}")]
    NoAnswer { target: String, seen: String },
}

impl From<Faults> for ProbeError {
    fn from(faults: Faults) -> Self {
        ProbeError::Preflight(faults.into())
    }
}

impl From<PluginError> for ProbeError {
    fn from(error: PluginError) -> Self {
        ProbeError::Preflight(error.into())
    }
}

fn reason(message: Option<&str>) -> &str {
    message.unwrap_or("no reason given")
}

fn unauthorised(own: &Alone, status: u16, message: Option<&str>) -> PreflightError {
    let message = reason(message);
    let prefix = format!("HTTP {status}: ");
    PreflightError::Unauthorized {
        target: own.target.to_string(),
        status,
        message: message.strip_prefix(&prefix).unwrap_or(message).to_owned(),
        advice: advice(&own.secrets),
    }
}

/// The shape of a reply whose frames meant this.
fn shape(streamed: bool, frames: &Frames, meanings: &[(usize, Meaning)]) -> Shape {
    let mut shape =
        Shape { streamed, frames: frames.len() as u64, end_marker: !streamed, ..Shape::default() };
    let mut text = String::new();
    let mut stated = Some(0_u64);
    let mut last = None;
    for (frame, meaning) in meanings {
        match meaning {
            Meaning::Text(piece) | Meaning::Reasoning(piece) | Meaning::ToolCall(piece) => {
                stated = stated.zip(piece.tokens).map(|(sum, tokens)| sum + u64::from(tokens));
                if piece.text.is_empty() {
                    continue;
                }
                let is_reasoning = matches!(meaning, Meaning::Reasoning(_));
                // A frame may hold several pieces.
                if last.replace(*frame) != Some(*frame) {
                    shape.opens_empty |= shape.chunks == 0 && *frame > 0;
                    shape.chunks += 1;
                    shape.reasoning_chunks += u64::from(is_reasoning);
                }
                if piece.choice == 0 && matches!(meaning, Meaning::Text(_)) {
                    text.push_str(&piece.text);
                }
            }
            Meaning::Usage(usage) => {
                shape.usage = Some((*usage).into());
            }
            Meaning::Finish(word) => shape.finish = Some(word.clone()),
            Meaning::End => shape.end_marker = true,
            _ => {}
        }
    }
    let stated = stated.filter(|_| streamed && shape.chunks > 0);
    shape.states_chunk_tokens = stated.is_some();
    let of_usage = shape.usage.and_then(|usage| usage.output_tokens).map(u64::from);
    shape.tokens = of_usage.or(stated).filter(|_| shape.chunks > 0);
    shape.tokens_per_chunk = shape.tokens.map(|tokens| tokens as f64 / shape.chunks as f64);
    shape.cumulative = streamed && is_cumulative(frames, &text);
    shape
}

/// True if some field of the frames holds all of the text so far, up to the whole text.
fn is_cumulative(frames: &Frames, text: &str) -> bool {
    let mut fields: BTreeMap<String, (String, u32)> = BTreeMap::new();
    for frame in frames.iter() {
        let Ok(value) = serde_json::from_slice::<Value>(frame.data) else { continue };
        let mut found = Vec::new();
        texts(&value, &mut String::new(), &mut found);
        for (path, now) in found {
            let (before, grown) = fields.entry(path).or_default();
            *grown = match now.strip_prefix(before.as_str()) {
                Some("") => *grown,
                Some(_) => *grown + 1,
                None => 0,
            };
            *before = now.to_owned();
        }
    }
    // Two frames that hold the text so far grow twice: from nothing to the first, and on to the
    // second.
    (fields.values()).any(|(last, grown)| *grown > 1 && last.trim() == text.trim())
}

fn texts<'v>(value: &'v Value, path: &mut String, found: &mut Vec<(String, &'v str)>) {
    let length = path.len();
    match value {
        Value::String(text) => found.push((path.clone(), text)),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                path.push_str(&format!("/{number}"));
                texts(item, path, found);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                path.push('/');
                path.push_str(name);
                texts(field, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;
    use plugins::backend::{self, Output};

    fn frames(data: &[&str]) -> Frames {
        let mut frames = Frames::default();
        for data in data {
            frames.push(Nanos::ZERO, None, data.as_bytes());
        }
        frames
    }

    fn piece(text: &str, tokens: Option<u32>) -> Output {
        Output { text: text.to_owned(), tokens, choice: 0 }
    }

    fn usage(output: u32) -> Meaning {
        Meaning::Usage(backend::Usage {
            input_tokens: Some(5),
            output_tokens: Some(output),
            ..backend::Usage::default()
        })
    }

    #[test]
    fn shape_of_a_chat_stream() {
        let frames = frames(&[
            r#"{"delta":{"role":"assistant","content":""}}"#,
            r#"{"delta":{"reasoning":"hm"}}"#,
            r#"{"delta":{"content":"one"}}"#,
            r#"{"delta":{"content":" two"}}"#,
            r#"{"usage":{}}"#,
            "[DONE]",
        ]);
        let meanings = [
            (0, Meaning::Opened),
            (1, Meaning::Reasoning(piece("hm", None))),
            (2, Meaning::Text(piece("one", None))),
            (3, Meaning::Text(piece(" two", None))),
            (3, Meaning::Finish("length".into())),
            (4, usage(6)),
            (5, Meaning::End),
        ];
        let shape = shape(true, &frames, &meanings);
        assert_eq!((shape.frames, shape.chunks, shape.reasoning_chunks), (6, 3, 1));
        assert_eq!((shape.tokens, shape.tokens_per_chunk), (Some(6), Some(2.0)));
        assert!(shape.opens_empty && shape.end_marker && !shape.cumulative);
        assert!(!shape.states_chunk_tokens);
        assert_eq!(shape.finish.as_deref(), Some("length"));
    }

    #[test]
    fn repeated_text_in_chunks_is_found() {
        let texts = ["a", "a b", "a b c"];
        let data = texts.map(|text| format!(r#"{{"text":"{text}","id":"{}"}}"#, "x"));
        let frames = frames(&data.each_ref().map(String::as_str));
        let meanings = [
            (0, Meaning::Text(piece("a", Some(1)))),
            (1, Meaning::Text(piece(" b", Some(1)))),
            (2, Meaning::Text(piece(" c", Some(1)))),
        ];
        let shape = shape(true, &frames, &meanings);
        assert!(shape.cumulative && shape.states_chunk_tokens && !shape.end_marker);
        assert_eq!((shape.tokens, shape.usage), (Some(3), None));
        assert!(!shape.opens_empty);
    }

    /// Pieces that happen to begin alike are not the text so far.
    #[test]
    fn similar_pieces_are_not_a_repetition() {
        let frames = frames(&[r#"{"text":"a"}"#, r#"{"text":"ab"}"#, r#"{"text":"abc"}"#]);
        let meanings = ["a", "ab", "abc"].map(|text| Meaning::Text(piece(text, None)));
        let meanings: Vec<_> = meanings.into_iter().enumerate().collect();
        assert!(!shape(true, &frames, &meanings).cumulative);
    }

    #[test]
    fn shape_of_a_document_and_of_an_empty_stream() {
        let one = frames(&[r#"{"text":"a b c"}"#]);
        let meanings = [(0, Meaning::Text(piece("a b c", None))), (0, usage(3))];
        let whole = shape(false, &one, &meanings);
        assert!(whole.end_marker && !whole.streamed && !whole.cumulative);
        assert_eq!((whole.chunks, whole.tokens_per_chunk), (1, Some(3.0)));

        let nothing = shape(true, &frames(&["[DONE]"]), &[(0, Meaning::End), (0, usage(4))]);
        assert_eq!((nothing.chunks, nothing.tokens, nothing.tokens_per_chunk), (0, None, None));
    }
}
