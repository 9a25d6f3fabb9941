//! The identification of a server. A handful of questions find its engine, its models, the routes
//! that answer, and the shape of one tiny reply of each. The shipped backends write the requests
//! and read the replies.
//!
//! [`engines`] holds the knowledge of engines, [`request`] the requests, [`ask`] one question and
//! its answer, [`shape`] the shape of a reply, and [`verdict`] the conclusion. The document and its
//! text are `report`'s.
//!
//! **Keys.** A run sends the key of the backend that its user named. Here no backend is named, and
//! the server must not choose one by its claims. Without a name it gets the key that the user
//! names, or `OPENAI_API_KEY`. A backend's own variable is read in three cases: the user names the
//! backend, the host is the service's own, or the server is on this machine.

mod ask;
pub(crate) mod engines;
pub mod record;
pub(crate) mod request;
mod shape;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use hyper::header::SERVER;
use serde_json::Value;

use crate::Faults;
use crate::decode::failures::fit;
use crate::preflight::PreflightError;
use crate::resolve::{Alone, Source};
use ask::{Asker, ProbeReply};
use engines::{CLUES, Engine, MOST_TRIES, TRIES, Try};
use load::transport::dial::DialError;
use load::transport::{Connect, Dial};
use model::access::Access;
use model::clock::Clock;
use model::target::Target;
use plugins::backend::{self, Dialect};
use request::{command, get, plugin, resolved, sample, settings};
use runs::probe::{Control, Model, Outcome, Probe, Route};

pub use verdict::ProbeError;

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
    /// Remarks for the user, one line each.
    pub remarks: Vec<String>,
}

impl Prober {
    /// Prepares to ask the first target of a scenario, with the backend that the user names, or
    /// with the fitting ones.
    pub fn new(source: Source, named: Option<&str>) -> Result<Self, Faults> {
        let service = service(&source).filter(|_| named.is_none());
        let own = named.or(service);
        let first = resolved(&source, own.unwrap_or(GENERIC), None, own.is_some())?;
        Ok(Prober { source, named: named.map(str::to_owned), first })
    }

    /// Prepares connections.
    pub fn dial(&self) -> Result<Dial, DialError> {
        let wiring = &self.first.wiring;
        let target = std::slice::from_ref(&self.first.target);
        Dial::new(target, &[], wiring.http, &wiring.trust, wiring.timestamps)
    }

    /// Asks, on a runtime of its own. The suggested command repeats these arguments of the user.
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

    /// Asks for the models as most engines list them: the first question, which shows whether there
    /// is a server.
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

    /// Asks questions that generate nothing: readiness, models, metrics. Returns the answer about
    /// the models.
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
}

/// The backends that are tried with some engine, as `--backend` takes them, whether or not they
/// ship.
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
