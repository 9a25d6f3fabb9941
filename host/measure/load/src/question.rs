//! Questions to a server beside the measured requests, on connections of their own.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::transport::{ByteStream, Connect, Connection, Head, Request};
use model::clock::Clock;
use model::units::Nanos;

/// Most bytes read of an answer.
pub const ANSWER_BYTES: usize = 4 << 20;
/// The timeout for an answer: it needs no model.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub struct Question {
    /// Index of the target among the run's targets.
    pub target: u32,
    pub request: Request,
    pub answer: oneshot::Sender<Result<(Head, Vec<u8>), String>>,
}

impl Question {
    /// Asks, on a connection that is opened for it within this time.
    pub async fn put<C: Connect>(self, connect: &C, clock: Clock, limit: Nanos) {
        let reply = async {
            let mut connection = open(connect, self.target, clock, limit).await?;
            answer(&mut connection, self.request).await
        };
        // If nothing waits any more, nothing needs the answer.
        let _ = self.answer.send(reply.await);
    }
}

pub async fn open<C: Connect>(
    connect: &C,
    target: u32,
    clock: Clock,
    limit: Nanos,
) -> Result<Connection<C::Io>, String> {
    let limit = Duration::from(limit);
    match tokio::time::timeout(limit, Connection::open(connect, target, clock, None)).await {
        Ok(opened) => opened,
        Err(_) => Err(format!("no connection within {}", model::duration::format(limit))),
    }
}

pub async fn answer<Io: ByteStream>(
    connection: &mut Connection<Io>,
    request: Request,
) -> Result<(Head, Vec<u8>), String> {
    match answer_within(connection, request, ANSWER_WITHIN).await {
        Some(answer) => answer,
        None => Err(format!("nothing arrived for {}", model::duration::format(ANSWER_WITHIN))),
    }
}

/// The same of an answer that may need a model. `None` if it is not complete within this time.
pub async fn answer_within<Io: ByteStream>(
    connection: &mut Connection<Io>,
    request: Request,
    limit: Duration,
) -> Option<Result<(Head, Vec<u8>), String>> {
    tokio::time::timeout(limit, connection.ask(request, ANSWER_BYTES)).await.ok()
}
