//! The second step of a run: is every target there, does it let us in, and which model does it
//! serve? Turns a resolved scenario into a plan.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use load::transport::dial::DialError;
use load::transport::{Connect, Dial};
use model::clock::Clock;
use model::target::listed;
use model::timings::{Stage, Timings};
use plugins::sandbox::LogBook;
use plugins::scorer::Scorer;
use scenario::plan::Plan;
use tokenizer::Tokenizer;

use crate::lease::log_in;
use crate::local::Local;
use crate::parts::Parts;
use crate::preflight::{Needs, PreflightError, TargetAccess, probe, wait_ready};
use crate::probe::engines;
use crate::resolve::{ResolvedRun, Source};

/// A run whose plan is complete, and whose targets have answered.
pub struct CheckedRun {
    pub plan: Plan,
    pub parts: Parts,
    pub scorers: Vec<Scorer>,
    /// The tokenizer that counts tokens on this side.
    pub tokenizer: Arc<Tokenizer>,
    pub(crate) source: Box<Source>,
    pub log: LogBook,
    pub timings: Arc<Timings>,
}

/// A message that a user may want to see while targets are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A target does not serve yet.
    Waiting { target: String, waited: Duration, seen: String },
    /// A target serves, but something about it is odd.
    Remark(String),
    /// A consequence of a target's answer, as a whole message.
    Text(String),
}

/// The reason why targets could not be checked, or did not pass.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error("cannot start a runtime: {0}")]
    Runtime(io::Error),
}

impl ResolvedRun {
    /// Prepares connections to the targets: addresses, and trusted certificates.
    pub fn dial(&self) -> Result<Dial, DialError> {
        let wiring = &self.draft.connection;
        let (targets, places) = (&self.parts.targets, self.parts.places());
        Dial::new(targets, places.others(), wiring.http, &wiring.trust, wiring.timestamps)
    }

    /// Takes the targets without a question; gives the run back if its scenario names no model.
    pub fn unchecked(self) -> Result<CheckedRun, Box<ResolvedRun>> {
        match self.draft.target.model().map(str::to_owned) {
            Some(model) => Ok(self.with_model(model)),
            None => Err(Box::new(self)),
        }
    }

    /// Asks every target for its models, which settles the model's name. Waits for targets that do
    /// not serve yet, if the scenario has a limit for it.
    ///
    /// Must run on a `LocalSet`, where HTTP/2 keeps its connections.
    pub async fn check<C: Connect>(
        self,
        connect: &C,
        mut note: impl FnMut(Note),
    ) -> Result<CheckedRun, PreflightError> {
        let mut dialect = self.parts.backend.open()?;
        let draft = &self.draft;
        let mut model = draft.target.model().map(str::to_owned);
        let mut root = None;
        let mut context_tokens = None;
        let mut engine: Option<(String, Option<String>)> = None;
        for (number, target) in (0..).zip(&self.parts.targets) {
            let access = TargetAccess {
                connect,
                clock: Clock::start(),
                timeouts: &draft.timeouts,
                number,
                target,
                secrets: &self.parts.secrets,
            };
            if let Some(limit) = draft.control.wait_ready {
                let waits = |waited, seen: &str| {
                    let (target, seen) = (target.to_string(), seen.to_owned());
                    note(Note::Waiting { target, waited, seen });
                };
                wait_ready(&access, &mut dialect, limit, waits).await?;
            }
            log_in(&access, &mut dialect).await?;
            let wanted = Needs {
                model: model.as_deref(),
                adapters: &draft.request.adapters,
                is_named: draft.about.engine_version.is_some(),
            };
            let found = probe(&access, &mut dialect, wanted).await?;
            found.remark.map(Note::Remark).into_iter().for_each(&mut note);
            root = root.or(found.root);
            context_tokens = [context_tokens, found.context_tokens].into_iter().flatten().min();
            let backend = &draft.backend.name;
            if let Some((name, _)) = &found.engine
                && let Some(fits) = engines::fitting(name, backend)
            {
                note(Note::Remark(format!(
                    "{target} is {name}, which does not have the routes of the backend `{backend}`: use --backend {fits}"
                )));
            }
            match (&engine, found.engine) {
                (Some(first), Some(other)) if *first != other => {
                    let label = |(name, version): &(String, Option<String>)| match version {
                        Some(version) => format!("{name} {version}"),
                        None => name.clone(),
                    };
                    note(Note::Remark(format!(
                        "{target} runs {}, and the first target {}",
                        label(&other),
                        label(first)
                    )));
                }
                (Some(_), _) => {}
                (None, found) => engine = found,
            }
            model = Some(found.model);
        }
        self.timings.reach(Stage::TargetProbed);
        drop(dialect);
        let Some(model) = model else {
            return Err(PreflightError::NoModel {
                target: listed(&self.parts.targets),
                served: "has no list of models that this backend can read".to_owned(),
            });
        };
        // The server's names for its model; any of them may name a tokenizer.
        let names = [model.clone()].into_iter().chain(root).collect();
        let (mut resolved, remarks) = self.counting_for(names)?;
        remarks.into_iter().map(Note::Text).for_each(note);
        if let Some((name, version)) = &engine {
            resolved.draft.about.complete(name, version.as_deref());
        }
        resolved.draft.target.context_tokens = context_tokens;
        Ok(resolved.with_model(model))
    }

    /// [`ResolvedRun::check`], on a runtime of its own: blocks until every target has answered.
    pub fn check_now<C: Connect>(
        self,
        connect: &C,
        note: impl FnMut(Note),
    ) -> Result<CheckedRun, CheckError> {
        let local = Local::new().map_err(CheckError::Runtime)?;
        Ok(local.run(self.check(connect, note))?)
    }

    pub(crate) fn with_model(mut self, model: String) -> CheckedRun {
        self.draft.target.model = model;
        CheckedRun {
            plan: self.draft,
            parts: self.parts,
            scorers: self.scorers,
            tokenizer: self.tokenizer,
            source: self.source,
            log: self.log,
            timings: self.timings,
        }
    }
}
