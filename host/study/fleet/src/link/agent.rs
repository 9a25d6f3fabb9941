//! An agent as its caller sees it: join, prepare, be ready, run, finish.

use std::path::Path;
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use ring::rand::SecureRandom;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Timing;
use super::driver::{Command, Driver, View};
use crate::identity::{self, TOKENS_DIFFER};
use crate::place::Place;
use crate::rendezvous::Agent as State;
use crate::token::Token;
use crate::wire::{Hello, Interrupt, PROTOCOL, Welcome};

#[derive(Clone, Debug)]
pub struct Join {
    /// This process's place, and the coordinator's address.
    pub place: Place,
    pub token: Token,
    pub version: String,
    /// This machine's name.
    pub host: String,
    pub clock: Clock,
    /// The time to wait for a coordinator that starts later.
    pub patience: Duration,
    pub timing: Timing,
}

/// An agent takes no part, or no part any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("the coordinator at {0} was not accepted: {TOKENS_DIFFER}")]
    Tokens(String),
    #[error("no coordinator answered at {address} within {after} s: {why}")]
    Unreachable { address: String, after: u64, why: String },
    #[error("the coordinator refused:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
    #[error("the run was stopped before it began: {}", .0.why)]
    Interrupted(Interrupt),
    #[error("the coordinator has been gone for {after} s: {why}")]
    Lost { after: u64, why: String },
    #[error("this machine cannot take part: {0}")]
    Unable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// By this agent's clock.
    pub at: Nanos,
    /// Distance from the coordinator's instant, at most.
    pub bound: Nanos,
}

pub struct Agent;

impl Agent {
    /// Connects, and waits to be welcome. Fails if there is no coordinator, or it refuses.
    pub async fn join(join: Join) -> Result<Member, JoinError> {
        let unable = |error: &dyn std::fmt::Display| JoinError::Unable(error.to_string());
        let identity = identity::client(&join.token).map_err(|error| unable(&error))?;
        let mut instance = [0; 8];
        ring::rand::SystemRandom::new()
            .fill(&mut instance)
            .map_err(|_| unable(&"the system gives no random numbers"))?;
        let instance = u64::from_be_bytes(instance);
        let hello = Hello {
            protocol: PROTOCOL,
            version: join.version,
            rank: join.place.rank,
            size: join.place.size,
            host: join.host,
            instance,
        };
        // The owner's own wishes, a few in a run; of figures only the last ones are held.
        let (commands, requests) = mpsc::unbounded_channel();
        let (view, seen) = watch::channel(View::default());
        let (live, figures) = watch::channel(None);
        let driver = Driver {
            host: join.place.host,
            port: join.place.port,
            identity,
            hello,
            clock: join.clock,
            timing: join.timing,
            patience: join.patience,
            state: State::default(),
            records: None,
            last_contact: join.clock.now(),
            commands: commands.clone(),
            requests,
            view,
            figures,
        };
        let mut task = JoinSet::new();
        task.spawn(driver.run());
        let mut member = Member { welcome: None, commands, seen, live, _task: task };
        member.welcome = member.until(|view| view.welcome.is_some()).await?.welcome;
        Ok(member)
    }
}

/// An agent that belongs to a fleet.
pub struct Member {
    welcome: Option<Welcome>,
    commands: mpsc::UnboundedSender<Command>,
    seen: watch::Receiver<View>,
    live: watch::Sender<Option<Value>>,
    /// The task that keeps the connection; it ends with its owner.
    _task: JoinSet<()>,
}

/// Sends figures of an agent's part of the run.
#[derive(Clone, Debug)]
pub struct Reporter(watch::Sender<Option<Value>>);

impl Reporter {
    /// Sends figures of the run so far, at most [`crate::wire::FIGURES`] bytes of JSON. Only the
    /// last figures are sent, when there is time; figures before the ending are sent before it.
    pub fn tell(&self, figures: Value) {
        self.0.send_replace(Some(figures));
    }
}

impl Member {
    /// The index of this agent's slice, and the number of slices.
    pub fn slice(&self) -> (u32, u32) {
        let slice = |welcome: &Welcome| (welcome.index, welcome.of);
        self.welcome.as_ref().map_or((0, 1), slice)
    }

    /// The time when the run began, as rank 0 gave it.
    pub fn began(&self) -> &str {
        self.welcome.as_ref().map_or("", |welcome| &welcome.began)
    }

    /// The run of a study, as rank 0 gave it.
    pub fn order(&self) -> Option<&str> {
        self.welcome.as_ref()?.order.as_deref()
    }

    /// Reports the plan: its digest, and the facts to record of this machine.
    pub fn prepared(&self, plan: &str, facts: Value) {
        self.command(Command::Prepared(plan.to_owned(), facts));
    }

    /// Reports why this process cannot take part. The coordinator starts nothing, and tells all.
    pub async fn decline(mut self, reasons: Vec<String>) -> JoinError {
        self.command(Command::Decline(reasons));
        // Any reply is the end.
        self.refused().await
    }

    /// Waits until there is no hope of a run; returns the reason.
    pub async fn refused(&mut self) -> JoinError {
        self.until(|_| false).await.err().unwrap_or(JoinError::Refused(Vec::new()))
    }

    /// Reports that connections are open, and waits for the start. Fails if there will be no run.
    pub async fn ready(&mut self) -> Result<Start, JoinError> {
        self.command(Command::Ready);
        let view = self.until(|view| view.start.is_some() || view.interrupt.is_some()).await?;
        match (view.start, view.interrupt) {
            (Some((at, bound)), _) => Ok(Start { at, bound }),
            (None, Some(interrupt)) => Err(JoinError::Interrupted(interrupt)),
            (None, None) => Err(JoinError::Refused(Vec::new())),
        }
    }

    /// Returns a reporter for figures of the run so far.
    pub fn reporter(&self) -> Reporter {
        Reporter(self.live.clone())
    }

    /// Sets the file to which the recorder writes, or will write, and sends it as it grows.
    pub fn records(&self, path: &Path) {
        self.command(Command::Records(path.to_owned()));
    }

    /// Waits for the next interrupt beyond the first `known`. A coordinator that is gone for good
    /// counts as the first, if there was none. No second one follows then, and the replies under
    /// way are read to their end.
    pub async fn interrupted(&mut self, known: u32) -> Interrupt {
        let beyond =
            |view: &View| view.interrupt.as_ref().is_some_and(|interrupt| interrupt.times > known);
        match self.until(beyond).await {
            Ok(View { interrupt: Some(interrupt), .. }) => interrupt,
            Ok(_) => std::future::pending().await,
            Err(error) if known == 0 => Interrupt { times: 1, why: error.to_string() },
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops the whole run, because somebody stopped this process.
    pub fn interrupt(&self, why: &str) {
        self.command(Command::Interrupt(why.to_owned()));
    }

    /// Reports the end of this part of the run, and waits until the coordinator has the ending and
    /// all records. The file of records must be complete. Fails if the coordinator is gone, or the
    /// records cannot be read; they are still on this machine's disk.
    pub async fn finish(mut self, ending: Value) -> Result<(), JoinError> {
        self.command(Command::Finish(ending));
        self.until(|view| view.released).await.map(drop)
    }

    fn command(&self, command: Command) {
        // If the driver has ended, the next call that waits says why.
        let _ = self.commands.send(command);
    }

    /// Waits until a condition holds, or the driver has failed.
    async fn until(&mut self, so: impl Fn(&View) -> bool) -> Result<View, JoinError> {
        let enough = |view: &View| so(view) || view.failure.is_some();
        // An error means that the driver has ended; its last view still holds.
        let seen = self.seen.wait_for(enough).await.map(|view| view.clone());
        let view = seen.unwrap_or_else(|_| self.seen.borrow().clone());
        match (so(&view), view.failure.clone()) {
            (true, _) => Ok(view),
            (false, Some(failure)) => Err(failure),
            (false, None) => Err(JoinError::Unable("its connection's task ended".to_owned())),
        }
    }
}
