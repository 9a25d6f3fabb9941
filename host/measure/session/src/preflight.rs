//! Before the run: does the target respond, is it an engine, does it accept us, and does it serve
//! the model? Never measured.

use std::time::Duration;

use hyper::header::{CONTENT_TYPE, SERVER};

use crate::Faults;
use crate::authenticate::http_request;
use crate::decode::failures::fit;
use crate::lease::NoLease;
use crate::probe::{engines, get};
use load::question;
use load::transport::{Connect, Connection, Head};
use model::access::Access;
use model::clock::{Clock, date};
use model::connection::Timeouts;
use model::target::{Secrets, Target};
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{Control, Dialect, Request};

/// The most model names listed in a message.
const MOST_NAMES: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    #[error(
        "cannot reach {target}: {cause}; is the engine running, and is this its address (--base-url, or --host and --port)?"
    )]
    Unreachable { target: String, cause: String },
    #[error(
        "{target} is not ready after {limit}; its last response: {seen}; is the engine running, and does its model take longer to load (--ready-check-timeout-sec)?"
    )]
    NotReady { target: String, limit: String, seen: String },
    /// The other side does not speak HTTP, or hangs.
    #[error(
        "{target} accepted the connection but gave no HTTP answer: {cause}; is this the engine's port?"
    )]
    NoAnswer { target: String, cause: String },
    #[error(
        "{target} answered {path} with a web page (HTTP {status}, text/html), not with an engine's API; is this the right port?"
    )]
    WebPage { target: String, path: String, status: u16 },
    #[error("{target} refuses the request (HTTP {status}: {message}); {advice}")]
    Unauthorized { target: String, status: u16, message: String, advice: String },
    #[error(transparent)]
    Lease(#[from] NoLease),
    #[error("{target} does not serve the model `{model}`; it serves {served}")]
    UnknownModel { target: String, model: String, served: String },
    #[error("cannot choose a model: {target} {served}; name one with --model")]
    NoModel { target: String, served: String },
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("the run does not resolve with the tokenizer that was found for the model")]
    Faults(Faults),
}

impl From<Faults> for PreflightError {
    fn from(faults: Faults) -> Self {
        PreflightError::Faults(faults)
    }
}

pub struct TargetAccess<'a, C> {
    pub connect: &'a C,
    pub clock: Clock,
    pub timeouts: &'a Timeouts,
    pub number: u32,
    pub target: &'a Target,
    pub secrets: &'a Secrets,
}

impl<C: Connect> TargetAccess<'_, C> {
    pub(crate) async fn open(&self) -> Result<Connection<C::Io>, String> {
        let limit = self.timeouts.connect;
        question::open(self.connect, self.number, self.clock, limit).await
    }

    /// Asks a question of the backend.
    pub(crate) async fn ask(
        &self,
        connection: &mut Connection<C::Io>,
        question: Request,
    ) -> Result<(Head, Vec<u8>), String> {
        let TargetAccess { connect, target, secrets, .. } = *self;
        let path = target.path(&question.path);
        let request = http_request(target, connect.version(), (secrets, &[]), &path, question)?;
        question::answer(connection, request.ready(date)).await
    }
}

#[derive(Default)]
pub struct ModelFacts {
    pub model: String,
    /// The model that the server states as the origin of its own: a name on a hub, or a folder.
    pub root: Option<String>,
    /// The most tokens of a prompt and its answer, as the server states it.
    pub context_tokens: Option<u32>,
    /// The engine that the server names, and its version.
    pub engine: Option<(String, Option<String>)>,
    pub remark: Option<String>,
}

/// The model and adapters of a run.
#[derive(Clone, Copy)]
pub struct Needs<'a> {
    /// The model, if the scenario names one.
    pub model: Option<&'a str>,
    pub adapters: &'a [String],
    /// True if the scenario names the engine's version, so that the server is not asked for it.
    pub is_named: bool,
}

/// Asks a target for its models, on a `LocalSet`. Engines list `adapters` as models; a requested
/// adapter is not taken for the model.
pub async fn probe<C: Connect>(
    access: &TargetAccess<'_, C>,
    dialect: &mut Dialect,
    Needs { model, adapters, is_named }: Needs<'_>,
) -> Result<ModelFacts, PreflightError> {
    let TargetAccess { target, secrets, .. } = *access;
    let opened = access.open().await;
    let mut connection = opened
        .map_err(|cause| PreflightError::Unreachable { target: target.to_string(), cause })?;
    let no_model = |served: String| PreflightError::NoModel { target: target.to_string(), served };
    let Some(question) = dialect.control(Control::ListModels)? else {
        return match model {
            Some(model) => Ok(plain(model)),
            None => Err(no_model("has no list of models that this backend can read".to_owned())),
        };
    };
    let path = question.path.clone();
    let no_answer = |cause: String| PreflightError::NoAnswer { target: target.to_string(), cause };
    let (head, body) = access.ask(&mut connection, question).await.map_err(no_answer)?;
    let status = head.status;
    let kind = head.headers.get(CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return Err(PreflightError::WebPage { target: target.to_string(), path, status });
    }
    if status == 401 || status == 403 {
        let message = fit(&explained(dialect, secrets, status, &body)?);
        return Err(PreflightError::Unauthorized {
            target: target.to_string(),
            status,
            message,
            advice: advice(secrets),
        });
    }
    let served = if (200..300).contains(&status) {
        let read = dialect.read_models(&secrets.redact_bytes(&body));
        read.map_err(|error| format!("answered {path} with an unexpected reply ({error})"))
    } else {
        let message = fit(&explained(dialect, secrets, status, &body)?);
        Err(format!("does not list its models (HTTP {status}: {message})"))
    };
    let served = match (served, model) {
        (Ok(served), _) => served,
        (Err(why), Some(model)) => {
            return Ok(ModelFacts { remark: Some(format!("{target} {why}")), ..plain(model) });
        }
        (Err(why), None) => return Err(no_model(why)),
    };
    let engine = engine(access, &mut connection, (&head, &body), is_named).await;
    let names: Vec<String> = served.iter().map(|served| served.name.clone()).collect();
    let missing = adapters.iter().filter(|adapter| !names.contains(adapter));
    let missing: Vec<String> = missing.cloned().collect();
    let remark = (!names.is_empty() && !missing.is_empty())
        .then(|| format!("{target} does not list the adapters {}", list(&missing)));
    let found = |model: &str| {
        let own = served.iter().find(|served| served.name == model);
        ModelFacts {
            model: model.to_owned(),
            root: own.and_then(|served| served.root.clone()),
            context_tokens: own.and_then(|served| served.context_tokens),
            engine: engine.clone(),
            remark: remark.clone(),
        }
    };
    let models: Vec<&String> = (names.iter()).filter(|name| !adapters.contains(name)).collect();
    match model {
        Some(model) if names.is_empty() || names.iter().any(|name| name == model) => {
            Ok(found(model))
        }
        Some(model) => Err(PreflightError::UnknownModel {
            target: target.to_string(),
            model: model.to_owned(),
            served: list(&names),
        }),
        None => match models.as_slice() {
            [only] => Ok(found(only)),
            [] if names.is_empty() => Err(no_model("lists no model".to_owned())),
            _ => Err(no_model(format!("serves {}", list(&names)))),
        },
    }
}

/// The engine that a list of models names, and the version that its own route states, if unknown.
async fn engine<C: Connect>(
    access: &TargetAccess<'_, C>,
    connection: &mut Connection<C::Io>,
    (head, models): (&Head, &[u8]),
    is_named: bool,
) -> Option<(String, Option<String>)> {
    let header = head.headers.get(SERVER).and_then(|value| value.to_str().ok());
    let (engine, clues) = engines::named(models, header)?;
    for clue in clues.into_iter().filter(|_| !is_named) {
        let Ok((head, body)) = access.ask(connection, get(clue.path)).await else { break };
        let answer = serde_json::from_slice(&body).ok();
        let answer = answer.filter(|_| (200..300).contains(&head.status));
        if let Some(version) = answer.and_then(|answer| clue.read(&answer)) {
            let version = version.map(|version| fit(&access.secrets.redact(&version)));
            return Some((engine.name().to_owned(), version));
        }
    }
    Some((engine.name().to_owned(), None))
}

/// The backend's explanation of an error reply, without the key, which a server may repeat.
pub(crate) fn explained(
    dialect: &mut Dialect,
    secrets: &Secrets,
    status: u16,
    body: &[u8],
) -> Result<String, PluginError> {
    let refusal = dialect.explain(status, &secrets.redact_bytes(body))?;
    Ok(refusal.message)
}

/// Gives advice about the key if a server refuses a request.
pub(crate) fn advice(secrets: &Secrets) -> String {
    let variables = &secrets.variables;
    let from = variables.first().map_or("its variable", String::as_str);
    match &secrets.access {
        Access::Bearer(_) => format!("it does not accept the API key from {from}"),
        Access::Header { name, .. } => {
            format!(
                "it does not accept the API key from {from}, which is sent in the header `{name}`"
            )
        }
        Access::Sigv4(with) => format!(
            "it does not accept the signature for the service `{}` with the key from {from}; may this key use the service, and is this machine's clock right?",
            with.service
        ),
        Access::Hmac(_) => format!(
            "it does not accept the signature with the key from {from}; is the key right, and this machine's clock?"
        ),
        Access::Token(_) => format!(
            "it does not accept the token of the login with the key from {from}, or not the key; is the key right?"
        ),
        Access::Open if variables.is_empty() => {
            "the backend sends no API key; a gateway's own header can be given with --header"
                .to_owned()
        }
        Access::Open => format!(
            "no API key was given: put it into the environment variable {}, or into one named with --api-key-env",
            variables.join(" or ")
        ),
    }
}

fn plain(model: &str) -> ModelFacts {
    ModelFacts { model: model.to_owned(), ..ModelFacts::default() }
}

pub(crate) fn list(names: &[String]) -> String {
    let first: Vec<String> =
        names.iter().take(MOST_NAMES).map(|name| format!("`{}`", fit(name))).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let further = if more > 0 { format!(" and {more} more") } else { String::new() };
    first.join(", ") + &further
}

/// The pause between two questions.
const AGAIN: Duration = Duration::from_secs(1);

/// Waits until a target is ready, up to a time limit, on a `LocalSet`. Before each further try,
/// `waits` gets the time waited so far and the last response.
pub async fn wait_ready<C: Connect>(
    access: &TargetAccess<'_, C>,
    dialect: &mut Dialect,
    limit: Nanos,
    mut waits: impl FnMut(Duration, &str),
) -> Result<(), PreflightError> {
    let begun = access.clock.now();
    loop {
        let Err(seen) = ask(access, dialect).await? else { return Ok(()) };
        let waited = access.clock.now().since(begun);
        if waited >= limit {
            return Err(PreflightError::NotReady {
                target: access.target.to_string(),
                limit: model::duration::format(limit.into()),
                seen,
            });
        }
        waits(waited.into(), &seen);
        tokio::time::sleep(AGAIN.min(limit.since(waited).into())).await;
    }
}

/// Asks once; the inner error is the sign that the server is not ready.
async fn ask<C: Connect>(
    access: &TargetAccess<'_, C>,
    dialect: &mut Dialect,
) -> Result<Result<(), String>, PluginError> {
    let mut connection = match access.open().await {
        Ok(connection) => connection,
        Err(cause) => return Ok(Err(cause)),
    };
    let question = match dialect.control(Control::Health)? {
        None => dialect.control(Control::ListModels)?,
        health => health,
    };
    // An engine without a readiness request counts as ready as soon as it listens.
    let Some(question) = question else { return Ok(Ok(())) };
    Ok(match access.ask(&mut connection, question).await {
        Err(cause) => Err(cause),
        // A server that refuses the key is ready; the next question finds the fault of the key.
        Ok((head, _)) if matches!(head.status, 200..300 | 401 | 403) => Ok(()),
        Ok((head, body)) => {
            let message = explained(dialect, access.secrets, head.status, &body)?;
            Err(format!("HTTP {}: {message}", head.status))
        }
    })
}
