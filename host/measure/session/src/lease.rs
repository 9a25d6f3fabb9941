//! Leases: tokens that a server gives for the key, and values that a backend prepares, for a time.
//! A thread of its own renews each before it ends. If that fails, the lease before stays.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::decode::failures::fit;
use crate::local::Local;
use crate::parts::{Parts, RunError};
use crate::preflight::{TargetAccess, advice, explained};
use load::transport::{Connect, Head};
use model::access::Access;
use model::access::token::{IssuedToken, Token};
use model::client::Errands;
use model::clock::Clock;
use model::connection::Timeouts;
use model::target::{Secrets, Target};
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{self, Dialect};
use scenario::plan::Plan;

/// The part of a lifetime after which a lease is renewed.
const RENEWED_AT: f64 = 0.8;
/// The shortest and the longest pause between two renewals.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The pause before a token is renewed again because it was refused.
const REFUSED_AGAIN: Duration = Duration::from_secs(1);
const WAITING: usize = 64;

/// The values that a backend prepared, by the number of the target. Copies share them.
#[derive(Clone, Default)]
pub struct Prepared(Arc<RwLock<Values>>);

type Value = Option<Arc<[u8]>>;

#[derive(Default)]
struct Values {
    values: Vec<Value>,
    end: bool,
}

/// The reason why a server gave no lease.
#[derive(Debug, thiserror::Error)]
pub enum NoLease {
    #[error("cannot log in at {target}: {cause}{advice}")]
    Login { target: String, cause: String, advice: String },
    #[error(
        "cannot prepare the run at {target}: {cause}{advice}; every request of this backend needs the reply"
    )]
    Prepare { target: String, cause: String, advice: String },
    #[error(transparent)]
    Plugin(#[from] PluginError),
}

/// A target that did not take the token of a request, and the instant at which that was sent.
struct Refusal {
    target: u32,
    sent: Nanos,
}

pub struct Refusals(Sender<Refusal>);

pub(crate) struct Renewer {
    leases: Leases,
    refusals: Receiver<Refusal>,
}

struct Leases {
    dialect: Dialect,
    targets: Vec<Target>,
    timeouts: Timeouts,
    secrets: Secrets,
    prepared: Prepared,
    clock: Clock,
    leases: Vec<Lease>,
    errands: Errands,
}

struct Lease {
    target: u32,
    kind: LeaseKind,
    requested: Option<Instant>,
    /// The instant from which requests have it.
    since: Option<Instant>,
    renewal: Option<Instant>,
    /// The pause after a renewal that failed.
    pause: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaseKind {
    Token,
    Prepared,
}

impl Prepared {
    /// Returns the value for a target; absent if nothing was prepared.
    pub fn value(&self, target: u32) -> Value {
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        values.values.get(target as usize).cloned().flatten()
    }

    /// True if a value ends, so that requests are not written long before they are sent.
    pub(crate) fn ends(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).end
    }

    fn put(&self, target: u32, value: Vec<u8>, ends: bool) {
        let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let place = target as usize;
        let length = values.values.len().max(place + 1);
        values.values.resize(length, None);
        values.values[place] = Some(value.into());
        values.end |= ends;
    }
}

impl Refusals {
    /// Has the token of a target renewed, unless that was done since this request was sent.
    pub(crate) fn put(&self, target: u32, sent: Nanos) {
        // One more tells nothing new where the queue is full.
        let _ = self.0.try_send(Refusal { target, sent });
    }
}

/// Returns the renewer of a run's leases, if there are any, and the queue of refusals.
pub(crate) fn renewer(
    plan: &Plan,
    parts: &Parts,
    clock: Clock,
) -> Result<Option<(Renewer, Refusals)>, PluginError> {
    let mut dialect = parts.backend.open()?;
    let has_token = matches!(parts.secrets.access, Access::Token(_));
    let is_prepared = dialect.prepare()?.is_some();
    let kinds = [(has_token, LeaseKind::Token), (is_prepared, LeaseKind::Prepared)];
    let kinds = kinds.into_iter().filter_map(|(wanted, kind)| wanted.then_some(kind));
    let leases: Vec<Lease> = kinds
        .flat_map(|kind| (0..parts.targets.len() as u32).map(move |target| (target, kind)))
        .map(|(target, kind)| Lease {
            target,
            kind,
            requested: None,
            since: None,
            renewal: None,
            pause: PAUSES.1,
        })
        .collect();
    if leases.is_empty() {
        return Ok(None);
    }
    let (sender, refusals) = channel(WAITING);
    let leases = Leases {
        dialect,
        targets: parts.targets.clone(),
        timeouts: plan.timeouts,
        secrets: parts.secrets.clone(),
        prepared: parts.prepared.clone(),
        clock,
        leases,
        errands: Errands::default(),
    };
    Ok(Some((Renewer { leases, refusals }, Refusals(sender))))
}

impl Renewer {
    /// Asks for every lease, on the calling thread.
    pub(crate) fn begin_here<C: Connect>(mut self, connect: &C) -> Result<Self, RunError> {
        Local::new().map_err(RunError::Thread)?.run(self.begin(connect))?;
        Ok(self)
    }

    /// The same on a `LocalSet`. A token that is there is kept until it is to be renewed.
    pub(crate) async fn begin<C: Connect>(&mut self, connect: &C) -> Result<(), NoLease> {
        let leases = &mut self.leases;
        for place in 0..leases.leases.len() {
            if !leases.has(place) {
                leases.ask(connect, place).await?;
            }
        }
        Ok(())
    }

    /// Renews leases until all exchanges are over, on the calling thread.
    pub(crate) fn run_here<C: Connect>(self, connect: &C) -> Option<Errands> {
        match Local::new() {
            Ok(local) => local.run(self.run(connect)),
            Err(error) => {
                let error = Some(error.to_string());
                Some(Errands { done: 0, failed: 1, error })
            }
        }
    }

    /// The same on a `LocalSet`.
    pub(crate) async fn run<C: Connect>(self, connect: &C) -> Option<Errands> {
        let Renewer { mut leases, mut refusals } = self;
        loop {
            let due = leases.leases.iter().filter_map(|lease| lease.renewal).min();
            tokio::select! {
                biased;
                refusal = refusals.recv() => match refusal {
                    Some(refusal) => leases.refused(&refusal),
                    None => break,
                },
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => tokio::select! {
                    biased;
                    // Meanwhile refused requests had the old token.
                    () = async { while refusals.recv().await.is_some() {} } => break,
                    () = leases.renew(connect) => {}
                },
            }
        }
        let Errands { done, failed, .. } = leases.errands;
        (done + failed > 0).then_some(leases.errands)
    }
}

impl Leases {
    /// True if a lease is there and not due.
    fn has(&mut self, place: usize) -> bool {
        let lease = &mut self.leases[place];
        let Access::Token(with) = &self.secrets.access else { return false };
        let issued = with.issued.get(&self.targets[lease.target as usize].to_string());
        let issued = issued.filter(|it| it.renewal.is_none_or(|at| at > Instant::now()));
        let issued = issued.filter(|_| lease.kind == LeaseKind::Token);
        lease.renewal = issued.as_ref().and_then(|issued| issued.renewal);
        issued.is_some()
    }

    /// A token was refused, so it is due, unless it was renewed since.
    fn refused(&mut self, refusal: &Refusal) {
        let sent = self.clock.instant(refusal.sent);
        let mut tokens = self.leases.iter_mut().filter(|lease| lease.kind == LeaseKind::Token);
        if let Some(lease) = tokens.find(|lease| lease.target == refusal.target)
            && lease.since.is_none_or(|since| since < sent)
        {
            let now = Instant::now();
            let soonest = lease.requested.map_or(now, |last| now.max(last + REFUSED_AGAIN));
            lease.renewal = Some(lease.renewal.map_or(soonest, |due| due.min(soonest)));
        }
    }

    async fn renew<C: Connect>(&mut self, connect: &C) {
        for place in 0..self.leases.len() {
            let now = Instant::now();
            if self.leases[place].renewal.is_none_or(|due| due > now) {
                continue;
            }
            match self.ask(connect, place).await {
                Ok(()) => self.errands.done += 1,
                Err(error) => {
                    self.errands.failed += 1;
                    let error = fit(&self.secrets.redact(&error.to_string()));
                    self.errands.error.get_or_insert(error);
                    let lease = &mut self.leases[place];
                    lease.renewal = Some(Instant::now() + lease.pause);
                }
            }
        }
    }

    async fn ask<C: Connect>(&mut self, connect: &C, place: usize) -> Result<(), NoLease> {
        let lease = &mut self.leases[place];
        let now = Instant::now();
        lease.requested = Some(now);
        let access = TargetAccess {
            connect,
            clock: self.clock,
            timeouts: &self.timeouts,
            number: lease.target,
            target: &self.targets[lease.target as usize],
            secrets: &self.secrets,
        };
        let lifetime = match lease.kind {
            LeaseKind::Token => log_in(&access, &mut self.dialect).await?,
            LeaseKind::Prepared => prepare(&access, &mut self.dialect, &self.prepared).await?,
        };
        lease.since = Some(Instant::now());
        lease.renewal = lifetime.and_then(|lifetime| renewal(now, lifetime));
        lease.pause =
            lifetime.map_or(PAUSES.1, |lifetime| (lifetime / 20).clamp(PAUSES.0, PAUSES.1));
        Ok(())
    }
}

/// Returns the instant of renewal of a lease; absent if that is never.
fn renewal(requested: Instant, lifetime: Duration) -> Option<Instant> {
    requested.checked_add(lifetime.mul_f64(RENEWED_AT).max(PAUSES.0))
}

/// Logs in at a target that wants a token, on a `LocalSet`. Returns the lifetime of its token.
pub(crate) async fn log_in<C: Connect>(
    access: &TargetAccess<'_, C>,
    dialect: &mut Dialect,
) -> Result<Option<Duration>, NoLease> {
    let TargetAccess { target, secrets, .. } = *access;
    let Access::Token(with) = &secrets.access else { return Ok(None) };
    let fails = |(cause, advice)| NoLease::Login { target: target.to_string(), cause, advice };
    let begun = Instant::now();
    let login = backend::Request {
        method: with.login.method.clone(),
        path: with.login.path.clone(),
        headers: with.login.headers.clone(),
        body: with.login.body.clone(),
    };
    let without_token = Secrets { access: Access::Open, ..secrets.clone() };
    let body = reply(access, &without_token, login, dialect).await?.map_err(fails)?;
    let (token, lifetime) = token(with, &body).map_err(|cause| fails((cause, String::new())))?;
    secrets.issued.put(&token);
    let Some(fields) = with.fields(&token) else {
        let cause = "its token has characters that a header cannot contain".to_owned();
        return Err(fails((cause, String::new())));
    };
    let renewal = lifetime.and_then(|lifetime| renewal(begun, lifetime));
    with.issued.put(target.to_string(), IssuedToken { fields, renewal });
    Ok(lifetime)
}

/// Reads the token and its lifetime in the reply to a login.
fn token(with: &Token, body: &[u8]) -> Result<(String, Option<Duration>), String> {
    let body: Json = serde_json::from_slice(body)
        .map_err(|_| format!("the reply to `{}` is not JSON", with.login.path))?;
    let token = body.pointer(&with.pointer).and_then(Json::as_str);
    let token = token.filter(|token| !token.is_empty()).ok_or_else(|| {
        format!("the reply to `{}` has no token at `{}`", with.login.path, with.pointer)
    })?;
    let seconds = with.lifetime.as_deref().and_then(|pointer| body.pointer(pointer));
    let seconds = seconds.and_then(|seconds| match seconds {
        Json::String(text) => text.parse().ok(),
        seconds => seconds.as_f64(),
    });
    let lifetime = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok((token.to_owned(), lifetime))
}

/// Prepares at a target, if the backend needs that. Returns the lifetime of the value.
async fn prepare<C: Connect>(
    access: &TargetAccess<'_, C>,
    dialect: &mut Dialect,
    prepared: &Prepared,
) -> Result<Option<Duration>, NoLease> {
    let TargetAccess { target, secrets, .. } = *access;
    let Some(request) = dialect.prepare()? else { return Ok(None) };
    let fails = |(cause, advice)| NoLease::Prepare { target: target.to_string(), cause, advice };
    let body = reply(access, secrets, request, dialect).await?.map_err(fails)?;
    // The same value may come again, so only the user's secrets are removed.
    let body = secrets.of_user().redact_bytes(&body).into_owned();
    let backend::Prepared { value, lifetime } = dialect.read_prepared(&body)?;
    if let Ok(text) = str::from_utf8(&value) {
        secrets.issued.put(text);
        texts(&serde_json::from_str(text).unwrap_or_default(), &mut |text| {
            secrets.issued.put(text);
        });
    }
    prepared.put(access.number, value, lifetime.is_some());
    Ok(lifetime.map(Duration::from_nanos))
}

fn texts(value: &Json, with: &mut impl FnMut(&str)) {
    match value {
        Json::String(text) => with(text),
        Json::Array(values) => values.iter().for_each(|value| texts(value, with)),
        Json::Object(fields) => fields.values().for_each(|value| texts(value, with)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The body of a successful reply; else the reason for a failure, and advice about the key.
async fn reply<C: Connect>(
    access: &TargetAccess<'_, C>,
    with: &Secrets,
    request: backend::Request,
    dialect: &mut Dialect,
) -> Result<Result<Vec<u8>, (String, String)>, PluginError> {
    let secrets = access.secrets;
    let request_line = format!("{} {}", request.method, request.path);
    let access = TargetAccess { secrets: with, ..*access };
    let answered = match access.open().await {
        Ok(mut connection) => access.ask(&mut connection, request).await,
        Err(cause) => Err(cause),
    };
    let (cause, advice) = match answered {
        Ok((head, body)) if (200..300).contains(&head.status) => return Ok(Ok(body)),
        Ok((Head { status, .. }, body)) => {
            let message = fit(&explained(dialect, secrets, status, &body)?);
            let is_refused = matches!(status, 401 | 403);
            let advice = is_refused.then(|| format!("; {}", advice(secrets)));
            (format!("HTTP {status}: {message}"), advice.unwrap_or_default())
        }
        Err(cause) => (fit(&secrets.redact(&cause)), String::new()),
    };
    Ok(Err((format!("{request_line}: {cause}"), advice)))
}
