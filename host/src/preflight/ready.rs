//! Waiting for a server that is still loading its model.

use std::time::Duration;

use super::{PreflightError, explained};
use crate::clock::Clock;
use crate::drive::Timeouts;
use crate::plugin::PluginError;
use crate::plugin::backend::{Control, Dialect};
use crate::prepare::http_request;
use crate::question;
use crate::target::{Secrets, Target};
use crate::transport::Connect;
use crate::units::Nanos;

/// How long between two questions.
const AGAIN: Duration = Duration::from_secs(1);

/// Asks a target whether it serves until it does, for so long at most. `waits` is told before each further
/// try how long it has been, and what was seen.
///
/// Must run on a `LocalSet`, where HTTP/2 keeps its connections.
///
/// # Errors
/// Where it does not come to serve in time, or the backend fails.
pub async fn wait_ready<C: Connect>(
    connect: &C,
    clock: Clock,
    timeouts: &Timeouts,
    (number, target): (u32, &Target),
    secrets: &Secrets,
    dialect: &mut Dialect,
    limit: Nanos,
    mut waits: impl FnMut(Duration, &str),
) -> Result<(), PreflightError> {
    let begun = clock.now();
    loop {
        let asked = ask(connect, clock, timeouts, (number, target), secrets, dialect).await?;
        let Err(seen) = asked else { return Ok(()) };
        let waited = clock.now().since(begun);
        if waited >= limit {
            return Err(PreflightError::NotReady {
                target: target.to_string(),
                limit: crate::duration::format(limit.into()),
                seen,
            });
        }
        waits(waited.into(), &seen);
        tokio::time::sleep(AGAIN.min(limit.since(waited).into())).await;
    }
}

/// Asks once; the inner error is what was seen instead of a server that serves.
async fn ask<C: Connect>(
    connect: &C,
    clock: Clock,
    timeouts: &Timeouts,
    (number, target): (u32, &Target),
    secrets: &Secrets,
    dialect: &mut Dialect,
) -> Result<Result<(), String>, PluginError> {
    let mut connection = match question::open(connect, number, clock, timeouts.connect).await {
        Ok(connection) => connection,
        Err(cause) => return Ok(Err(cause)),
    };
    let question = match dialect.control(Control::Health)? {
        None => dialect.control(Control::ListModels)?,
        health => health,
    };
    // An engine that cannot be asked serves as soon as it listens, as far as anyone knows.
    let Some(question) = question else {
        return Ok(Ok(()));
    };
    let below = target.path(&question.path);
    let answered = match http_request(target, connect.version(), secrets, &below, question) {
        Ok(request) => question::answer(&mut connection, request).await,
        Err(cause) => Err(cause),
    };
    Ok(match answered {
        Err(cause) => Err(cause),
        // Who does not let us in is there; the next question finds out what is wrong with the key.
        Ok((head, _)) if matches!(head.status, 200..300 | 401 | 403) => Ok(()),
        Ok((head, body)) => {
            let said = explained(dialect, secrets, head.status, &body)?;
            Err(format!("HTTP {}: {said}", head.status))
        }
    })
}
