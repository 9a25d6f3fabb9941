//! Before the run: is the target there, is it an engine, does it let us in, and does it serve
//! the model? Asked once, with the backend's own harmless request, and never measured.

use std::time::Duration;

use hyper::header::CONTENT_TYPE;

use crate::clock::Clock;
use crate::decode::failed;
use crate::drive::Timeouts;
use crate::exchange::{FailureClass, Outcome};
use crate::plugin::PluginError;
use crate::plugin::backend::{Control, Dialect};
use crate::prepare::http_request;
use crate::target::{Secrets, Target};
use crate::transport::{Connect, Connection};

/// Most bytes read of the answer.
const ANSWER_BYTES: usize = 4 << 20;
/// How long the answer may take at most: it needs no model.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Most model names told in a message.
const NAMES_TOLD: usize = 8;

/// Why the run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// No connection.
    #[error(
        "cannot reach {target}: {cause}; is the engine running, and is this its address (--base-url, or --host and --port)?"
    )]
    Unreachable {
        /// The target.
        target: String,
        /// What was seen.
        cause: String,
    },
    /// The other side does not speak HTTP, or hangs.
    #[error(
        "{target} took the connection but gave no HTTP answer: {cause}; is it the engine's port?"
    )]
    NoAnswer {
        /// The target.
        target: String,
        /// What was seen.
        cause: String,
    },
    /// A web page.
    #[error(
        "{target} answered {path} with a web page (HTTP {status}, text/html), not with an engine's API; is it the right port?"
    )]
    WebPage {
        /// The target.
        target: String,
        /// What was asked for.
        path: String,
        /// The status.
        status: u16,
    },
    /// No entry.
    #[error("{target} refuses the request (HTTP {status}: {said}); {advice}")]
    Unauthorized {
        /// The target.
        target: String,
        /// The status.
        status: u16,
        /// What the server said.
        said: String,
        /// What to do about the key.
        advice: String,
    },
    /// It does not serve the model.
    #[error("{target} does not serve the model `{model}`; it serves {served}")]
    UnknownModel {
        /// The target.
        target: String,
        /// The model asked for.
        model: String,
        /// What it serves.
        served: String,
    },
    /// Nobody said which model.
    #[error("which model? {target} {served}; name one with --model")]
    NoModel {
        /// The target.
        target: String,
        /// What it serves, or that it does not say.
        served: String,
    },
    /// The backend failed.
    #[error(transparent)]
    Plugin(#[from] PluginError),
}

/// What was found.
pub struct Found {
    /// The model to ask for.
    pub model: String,
    /// Something to tell the user, if anything is odd.
    pub remark: Option<String>,
}

/// Asks a target what it serves. `number` is its place among the run's targets.
///
/// Must run on a `LocalSet`, where HTTP/2 keeps its connections.
///
/// # Errors
/// Where it is certain that the run would fail.
pub async fn probe<C: Connect>(
    connect: &C,
    clock: Clock,
    timeouts: &Timeouts,
    (number, target): (u32, &Target),
    secrets: &Secrets,
    dialect: &mut Dialect,
    model: Option<&str>,
) -> Result<Found, PreflightError> {
    let limit = Duration::from(timeouts.connect);
    let opened = tokio::time::timeout(limit, Connection::open(connect, number, clock)).await;
    let unreachable = |cause: String| PreflightError::Unreachable {
        target: target.to_string(),
        cause,
    };
    let mut connection = match opened {
        Ok(Ok(connection)) => connection,
        Ok(Err(cause)) => return Err(unreachable(cause)),
        Err(_) => {
            return Err(unreachable(format!(
                "no connection within {}",
                crate::duration::format(limit)
            )));
        }
    };
    let no_model = |served: String| PreflightError::NoModel {
        target: target.to_string(),
        served,
    };
    let Some(question) = dialect.control(Control::ListModels)? else {
        return match model {
            Some(model) => Ok(plain(model)),
            None => Err(no_model("cannot be asked".to_owned())),
        };
    };
    let path = question.path.clone();
    let no_answer = |cause: String| PreflightError::NoAnswer {
        target: target.to_string(),
        cause,
    };
    let below = target.path(&path);
    let request =
        http_request(target, connect.version(), secrets, &below, question).map_err(no_answer)?;
    let answer = connection.ask(request, ANSWER_BYTES);
    let (head, body) = match tokio::time::timeout(ANSWER_WITHIN, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(cause)) => return Err(no_answer(cause)),
        Err(_) => return Err(no_answer("nothing came for 30s".to_owned())),
    };
    let status = head.status;
    let kind = head.headers.get(CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return Err(PreflightError::WebPage {
            target: target.to_string(),
            path,
            status,
        });
    }
    if status == 401 || status == 403 {
        let said = short(&explained(dialect, secrets, status, &body)?);
        return Err(PreflightError::Unauthorized {
            target: target.to_string(),
            status,
            said,
            advice: match secrets.api_key {
                Some(_) => "the API key in the variable OPENAI_API_KEY, or in the one named by --api-key-env, is not accepted".to_owned(),
                None => "no API key was given: put it into the variable OPENAI_API_KEY, or into one named by --api-key-env".to_owned(),
            },
        });
    }
    let served = if (200..300).contains(&status) {
        dialect.read_models(&body)
    } else {
        let said = short(&explained(dialect, secrets, status, &body)?);
        let remark = format!("{target} does not list its models (HTTP {status}: {said})");
        return match model {
            Some(model) => Ok(Found {
                model: model.to_owned(),
                remark: Some(remark),
            }),
            None => Err(no_model(format!(
                "does not list its models (HTTP {status}: {said})"
            ))),
        };
    };
    match (served, model) {
        (Ok(names), Some(model)) if names.iter().any(|name| name == model) => Ok(plain(model)),
        (Ok(names), Some(model)) if names.is_empty() => Ok(plain(model)),
        (Ok(names), Some(model)) => Err(PreflightError::UnknownModel {
            target: target.to_string(),
            model: model.to_owned(),
            served: list(&names),
        }),
        (Ok(names), None) => match names.as_slice() {
            [only] => Ok(plain(only)),
            [] => Err(no_model("lists no model".to_owned())),
            _ => Err(no_model(format!("serves {}", list(&names)))),
        },
        (Err(error), Some(model)) => Ok(Found {
            model: model.to_owned(),
            remark: Some(format!(
                "{target} answered {path} with something else: {error}"
            )),
        }),
        (Err(error), None) => Err(no_model(format!(
            "answered {path} with something else ({error})"
        ))),
    }
}

/// The backend's words for an error reply; a server may repeat the key, which is no plugin's business.
fn explained(
    dialect: &mut Dialect,
    secrets: &Secrets,
    status: u16,
    body: &[u8],
) -> Result<String, PluginError> {
    let refusal = dialect.explain(status, &secrets.redact_bytes(body))?;
    Ok(refusal.message)
}

fn plain(model: &str) -> Found {
    Found {
        model: model.to_owned(),
        remark: None,
    }
}

fn list(names: &[String]) -> String {
    let told: Vec<String> = names
        .iter()
        .take(NAMES_TOLD)
        .map(|name| format!("`{}`", short(name)))
        .collect();
    let more = names.len().saturating_sub(NAMES_TOLD);
    match more {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

fn short(text: &str) -> String {
    match failed(FailureClass::HttpStatus, text) {
        Outcome::Failed { message, .. } => message,
        Outcome::Ok => String::new(),
    }
}
