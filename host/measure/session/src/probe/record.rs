//! Records one reply for an author's case: asks a server with a backend's own request, and keeps
//! the bytes without secrets.

use hyper::header::CONTENT_TYPE;

use super::ask::{Asker, Silence, is_page};
use crate::lease::log_in;
use crate::preflight::{PreflightError, TargetAccess};
use crate::resolve::{Alone, Source, alone};
use crate::{CheckError, Faults};
use load::question::ANSWER_BYTES;
use load::transport::dial::DialError;
use load::transport::{Connect, Dial};
use model::clock::Clock;
use model::target::Target;
use plugins::PluginError;
use plugins::backend::{Control, Dialect, Request};

pub struct Recorder(Alone);

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
    /// True if the server repeated a secret, which was taken out.
    pub redacted: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("{target} does not say which models it serves: {why}; name one with --model")]
    NoModel { target: String, why: String },
    #[error("the reply has more than {} MiB; ask for less, with --output-tokens", ANSWER_BYTES >> 20)]
    TooLong,
}

impl Recorder {
    pub fn new(source: &Source) -> Result<Self, Faults> {
        alone(source).map(Recorder)
    }

    /// Returns remarks for the user: which secrets are sent to the target, for example.
    pub fn remarks(&self) -> &[String] {
        &self.0.remarks
    }

    pub fn target(&self) -> &Target {
        &self.0.target
    }

    pub fn open(&self) -> Result<Dialect, PluginError> {
        self.0.backend.open()
    }

    pub fn dial(&self) -> Result<Dial, DialError> {
        let wiring = &self.0.wiring;
        let target = std::slice::from_ref(&self.0.target);
        Dial::new(target, &[], wiring.http, &wiring.trust, wiring.timestamps)
    }

    pub fn model_now<C: Connect>(&self, connect: &C) -> Result<String, RecordError> {
        let none = |why: String| RecordError::NoModel { target: self.0.target.to_string(), why };
        let mut dialect = self.open()?;
        let Some(question) = dialect.control(Control::ListModels)? else {
            return Err(none("the backend does not know how to ask".to_owned()));
        };
        let recorded = self.ask_now(connect, question)?;
        if !(200..300).contains(&recorded.status) {
            return Err(none(format!("HTTP {}", recorded.status)));
        }
        let models = match dialect.read_models(&recorded.body) {
            Err(error) if !error.is_misbehaviour() => return Err(none(error.to_string())),
            models => models?,
        };
        let first = models.into_iter().next();
        let first = first.ok_or_else(|| none("its list is empty".to_owned()))?;
        Ok(first.name)
    }

    /// Sends a request, on a runtime of its own, and keeps the reply.
    pub fn ask_now<C: Connect>(&self, connect: &C, request: Request) -> Result<Reply, RecordError> {
        let local = crate::local::Local::new().map_err(CheckError::Runtime)?;
        let path = request.path.clone();
        let clock = Clock::start();
        let Alone { target, timeouts, secrets, .. } = &self.0;
        let access = TargetAccess { connect, clock, timeouts, number: 0, target, secrets };
        let mut dialect = self.open()?;
        let logged_in = local.run(log_in(&access, &mut dialect));
        logged_in.map_err(PreflightError::from).map_err(CheckError::from)?;
        let mut asker = Asker { connect, clock, requests: 0 };
        let answer = local.run(asker.ask(&self.0, request));
        let fault = |silence: Silence| CheckError::from(silence.fault(target.to_string()));
        let (head, body) = answer.map_err(fault)?;
        if is_page(&head.headers) {
            let (target, status) = (target.to_string(), head.status);
            return Err(CheckError::from(PreflightError::WebPage { target, path, status }).into());
        }
        if body.len() >= ANSWER_BYTES {
            return Err(RecordError::TooLong);
        }
        let content_type = head.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let clean = secrets.redact_bytes(&body);
        Ok(Reply {
            status: head.status,
            content_type: content_type.map(|value| secrets.redact(value)),
            redacted: clean != body,
            body: clean.into_owned(),
        })
    }
}
