//! The question that shows whether an engine answers: one request, like a run's.

use std::ops::Deref;

use launch::Check;
use model::exchange::Phase;
use runs::environment::Environment;
use session::check::CheckError;
use session::preflight::PreflightError;
use session::{Ending, Record, Source, Threads, resolve};
use tokio::runtime::Runtime;

use crate::error::Error;
use crate::now;

/// The runtime to ask engines on. When dropped, it does not wait for a question that a server
/// leaves without an answer.
pub(crate) struct Questions(Option<Runtime>);

impl Questions {
    /// A runtime of one thread. Fails if the system gives none.
    pub(crate) fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| Questions(Some(runtime))).map_err(Error::Runtime)
    }
}

impl Deref for Questions {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Asks an engine one real question. An engine that does not answer yet may do so later.
pub(crate) async fn ask(question: Source, environment: Environment) -> Check {
    let answer = tokio::task::spawn_blocking(move || answered(&question, environment));
    match answer.await {
        Ok(Ok(())) => Check::Ready,
        Ok(Err(why)) => Check::NotYet(why),
        Err(_) => Check::Never("the question could not be asked".to_owned()),
    }
}

/// Checks that one request is answered: checked and measured like a run, in a folder that is
/// removed.
fn answered(question: &Source, environment: Environment) -> Result<(), String> {
    let resolved = resolve(question).map_err(|faults| faults.to_string())?;
    let connect = resolved.dial().map_err(|error| error.to_string())?;
    let checked = resolved.check_now(&connect.afresh(), |_| {});
    let checked = checked.map_err(|error| match error {
        CheckError::Preflight(PreflightError::Faults(faults)) => faults.to_string(),
        other => other.to_string(),
    })?;
    let place = tempfile::tempdir().map_err(|cause| cause.to_string())?;
    let record =
        Record { output: place.path().to_owned(), started: now(), environment, repeat: None };
    let run = checked.begin(record, Threads).map_err(|error| error.to_string())?;
    let ending = Ending { at: now().to_string(), interrupted: false };
    let measured = run.load_now(&connect).finish(&ending).map_err(|error| error.to_string())?;
    let all = measured.folder.read().map_err(|error| error.to_string())?;
    let mut measures = all.flatten().filter(|exchange| exchange.phase == Phase::Measure);
    match measures.next() {
        Some(exchange) if exchange.is_ok() => Ok(()),
        Some(exchange) => Err(format!("its answer was {}", exchange.outcome.class().name())),
        None => Err("it did not answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_runtime_abandons_a_question() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answer, answered) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || answered.recv());
        drop(Questions(Some(runtime)));
        // A runtime that is dropped as usual waits for the answer, which comes afterwards.
        drop(answer);
    }
}
