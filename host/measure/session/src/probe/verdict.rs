//! The verdict for a user: which model to ask for, and why a server cannot be benchmarked as it is.

use super::Prober;
use crate::Faults;
use crate::preflight::{PreflightError, advice, list};
use crate::resolve::Alone;
use plugins::PluginError;
use runs::probe::{Control, Outcome, Probe, Route};

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

impl Prober {
    /// The model to ask for: that which the user names, else the first that is listed.
    pub(super) fn model(
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
    pub(super) fn judged(&self, probe: &Probe) -> Option<ProbeError> {
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
