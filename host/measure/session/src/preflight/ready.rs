//! Waiting for a server that is still loading its model.

use std::time::Duration;

use super::{PreflightError, TargetAccess, explained};
use load::transport::Connect;
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{Control, Dialect};

/// The pause between two questions.
const AGAIN: Duration = Duration::from_secs(1);

/// Waits until a target is ready, up to a time limit. Before each further try, `waits` gets the
/// time waited so far and the last response.
///
/// Must run on a `LocalSet`, where HTTP/2 keeps its connections.
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
