//! One question of a probe and its answer, on a connection of its own.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::shape;
use crate::authenticate::http_request;
use crate::decode::failures::fit;
use crate::decode::inbox::seen_head;
use crate::preflight::PreflightError;
use crate::resolve::Alone;
use load::question;
use load::transport::{Connect, Head};
use model::clock::{Clock, date};
use model::frame::{Framer, Frames};
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{Dialect, Fold, Framing, Meaning, Reason, Refusal, Request};
use runs::probe::{Outcome, Shape};

/// The most requests that a server is sent.
const MOST_REQUESTS: u32 = 16;
/// Longest time for which an answer is waited for, whatever the run's timeout: a user waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks a server, and counts.
pub(super) struct Asker<'c, C> {
    pub(super) connect: &'c C,
    pub(super) clock: Clock,
    pub(super) requests: u32,
}

/// The reason why there is no reply.
#[derive(Debug)]
pub(super) enum Silence {
    Unreachable(String),
    Unanswered(String),
    Enough,
}

impl Silence {
    /// The fault of a target that was asked its first question.
    pub(super) fn fault(self, target: String) -> PreflightError {
        match self {
            Silence::Unreachable(cause) => PreflightError::Unreachable { target, cause },
            Silence::Unanswered(cause) => PreflightError::NoAnswer { target, cause },
            Silence::Enough => PreflightError::NoAnswer { target, cause: self.message() },
        }
    }

    /// The same for people.
    pub(super) fn message(self) -> String {
        match self {
            Silence::Unreachable(cause) => format!("no connection: {cause}"),
            Silence::Unanswered(cause) => format!("no HTTP answer: {cause}"),
            Silence::Enough => {
                format!("not sent: the server already got {MOST_REQUESTS} requests")
            }
        }
    }
}

/// A reply, or the failure in its place.
pub(super) struct ProbeReply {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) shape: Option<Shape>,
}

impl ProbeReply {
    pub(super) fn plain(outcome: Outcome, status: Option<u16>, message: Option<String>) -> Self {
        ProbeReply { outcome, status, message, shape: None }
    }
}

impl<C: Connect> Asker<'_, C> {
    pub(super) async fn ask(
        &mut self,
        alone: &Alone,
        request: Request,
    ) -> Result<(Head, Vec<u8>), Silence> {
        if self.requests >= MOST_REQUESTS {
            return Err(Silence::Enough);
        }
        self.requests += 1;
        let Alone { target, secrets, timeouts, .. } = alone;
        let hidden = |cause: String| fit(&secrets.redact(&cause));
        let path = target.path(&request.path);
        let version = self.connect.version();
        let request = http_request(target, version, (secrets, &[]), &path, request)
            .map_err(|cause| Silence::Unanswered(hidden(cause)))?;
        let opened = question::open(self.connect, 0, self.clock, timeouts.connect).await;
        let mut connection = opened.map_err(|cause| Silence::Unreachable(hidden(cause)))?;
        let limit = PATIENCE.min(timeouts.request.into());
        let ready = request.ready(date);
        let answer = question::answer_within(&mut connection, ready, limit).await;
        let late = || format!("no whole answer within {}", model::duration::format(limit));
        answer.unwrap_or_else(|| Err(late())).map_err(|cause| Silence::Unanswered(hidden(cause)))
    }

    pub(super) async fn generate(
        &mut self,
        alone: &Alone,
        dialect: &mut Dialect,
        request: Request,
    ) -> Result<ProbeReply, PluginError> {
        let (head, body) = match self.ask(alone, request).await {
            Ok(reply) => reply,
            Err(silence) => {
                return Ok(ProbeReply::plain(Outcome::Broken, None, Some(silence.message())));
            }
        };
        let body = alone.secrets.redact_bytes(&body);
        let status = Some(head.status);
        if !(200..300).contains(&head.status) {
            return refused(dialect, head.status, &body);
        }
        let broken =
            |message: String| Ok(ProbeReply::plain(Outcome::Broken, status, Some(fit(&message))));
        if is_page(&head.headers) {
            return broken("a web page, not an engine's API".to_owned());
        }
        let streamed = dialect.framing(true)?;
        let is_document =
            is_of(&head.headers, b"application/json") && matches!(streamed, Framing::EventStream);
        let framing = if is_document { dialect.framing(false)? } else { streamed };
        let frames = match cut(framing, &body) {
            Ok(frames) => frames,
            Err(oversized) => return broken(oversized),
        };
        let meanings = match read(dialect, &head, !is_document, &frames) {
            Ok(meanings) => meanings,
            Err(error) if error.is_misbehaviour() => return Err(error),
            Err(error) => return broken(error.to_string()),
        };
        let failure = meanings.iter().find_map(|(_, meaning)| match meaning {
            Meaning::Failure(refusal) => Some(refusal),
            _ => None,
        });
        if let Some(refusal) = failure {
            let outcome = match refusal.reason {
                Reason::UnknownModel => Outcome::UnknownModel,
                Reason::Unauthorised => Outcome::NeedsKey,
                _ => Outcome::Fails,
            };
            return Ok(ProbeReply::plain(outcome, status, Some(fit(&refusal.message))));
        }
        let is_answer = |(_, meaning): &(usize, Meaning)| {
            matches!(meaning, Meaning::Text(_) | Meaning::Reasoning(_) | Meaning::ToolCall(_))
        };
        if !meanings.iter().any(is_answer) {
            return broken("the reply holds no answer that the backend can read".to_owned());
        }
        let shape = shape(!is_document, &frames, &meanings);
        Ok(ProbeReply { shape: Some(shape), ..ProbeReply::plain(Outcome::Answers, status, None) })
    }
}

pub(super) fn refused(
    dialect: &mut Dialect,
    status: u16,
    body: &[u8],
) -> Result<ProbeReply, PluginError> {
    let Refusal { reason, message } = dialect.explain(status, body)?;
    let message = fit(&format!("HTTP {status}: {message}"));
    Ok(ProbeReply::plain(outcome(status, reason), Some(status), Some(message)))
}

/// Returns the meaning of a status, with the reason that the server's words give.
pub(super) fn outcome(status: u16, reason: Reason) -> Outcome {
    match (status, reason) {
        (200..300, _) => Outcome::Answers,
        (401 | 403, _) => Outcome::NeedsKey,
        (400..500, Reason::UnknownModel) => Outcome::UnknownModel,
        (404 | 405, _) => Outcome::NoRoute,
        (400..500, _) => Outcome::Refuses,
        _ => Outcome::Fails,
    }
}

pub(super) fn is_page(headers: &HeaderMap) -> bool {
    is_of(headers, b"text/html")
}

fn is_of(headers: &HeaderMap, kind: &[u8]) -> bool {
    let value = headers.get(CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(kind))
}

fn cut(framing: Framing, body: &[u8]) -> Result<Frames, String> {
    let mut frames = Frames::default();
    let mut framer = Framer::new(framing.into());
    framer.push(Nanos::ZERO, body, &mut frames).map_err(|oversized| oversized.to_string())?;
    framer.finish(Nanos::ZERO, &mut frames);
    Ok(frames)
}

fn read(
    dialect: &mut Dialect,
    head: &Head,
    streaming: bool,
    frames: &Frames,
) -> Result<Vec<(usize, Meaning)>, PluginError> {
    let begun = dialect.begin(&seen_head(head.status, &head.headers, streaming))?;
    dialect.decode(&mut Fold::new(begun), &mut frames.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_map_to_outcomes() {
        for (status, reason, expected) in [
            (200, Reason::Other, Outcome::Answers),
            (401, Reason::Unauthorised, Outcome::NeedsKey),
            (403, Reason::Other, Outcome::NeedsKey),
            (404, Reason::Invalid, Outcome::NoRoute),
            (405, Reason::Invalid, Outcome::NoRoute),
            (404, Reason::UnknownModel, Outcome::UnknownModel),
            (400, Reason::UnknownModel, Outcome::UnknownModel),
            (400, Reason::Invalid, Outcome::Refuses),
            (429, Reason::Overloaded, Outcome::Refuses),
            (500, Reason::Internal, Outcome::Fails),
            (503, Reason::Unavailable, Outcome::Fails),
        ] {
            assert_eq!(outcome(status, reason), expected, "{status} {reason:?}");
        }
    }
}
