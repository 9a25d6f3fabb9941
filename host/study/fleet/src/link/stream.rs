//! A connection in two halves: frames in, frames out, with the instants of both.

use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::wire::{Bound, Decoder, Frame, Message};

/// The number of bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Reads frames. Dropping a call of [`Self::next`] loses nothing.
pub(super) struct Reader<R> {
    half: R,
    decoder: Decoder,
    chunk: Vec<u8>,
    clock: Clock,
    at: Nanos,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(half: R, bound: Bound, clock: Clock) -> Self {
        Reader { half, decoder: Decoder::new(bound), chunk: vec![0; CHUNK], clock, at: clock.now() }
    }

    pub(super) fn widen(&mut self, bound: Bound) {
        self.decoder.widen(bound);
    }

    /// The next frame, and the time when its last bytes were read; or the reason why there is none.
    pub(super) async fn next(&mut self) -> Result<(Frame, Nanos), String> {
        loop {
            if let Some(frame) = self.decoder.next().map_err(|error| error.to_string())? {
                return Ok((frame, self.at));
            }
            match self.half.read(&mut self.chunk).await {
                Ok(0) => return Err("the connection was closed".to_owned()),
                Ok(read) => {
                    self.at = self.clock.now();
                    self.decoder.feed(&self.chunk[..read]);
                }
                Err(error) => {
                    return Err(match (crate::identity::meaning(&error), error.kind()) {
                        (Some(meaning), _) => meaning.to_owned(),
                        // A killed process sends nothing, and the library's message is for its own
                        // users.
                        (None, std::io::ErrorKind::UnexpectedEof) => "the connection ended without notice, as when a process is killed or its machine goes down".to_owned(),
                        (None, _) => error.to_string(),
                    });
                }
            }
        }
    }
}

/// Writes frames until there can be no more messages, and closes. Bytes of records wait
/// for all messages, so that an answer about a clock is not held up.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut half: W,
    mut messages: mpsc::Receiver<Frame>,
    mut bulk: mpsc::Receiver<Frame>,
    clock: Clock,
    bound: Bound,
    patience: Duration,
) -> Result<(), String> {
    loop {
        let frame = tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => message,
                None => break,
            },
            Some(frame) = bulk.recv() => frame,
        };
        let bytes = stamped(frame, clock.now()).encode(bound).map_err(|error| error.to_string())?;
        let sent = timeout(patience, async {
            half.write_all(&bytes).await?;
            half.flush().await
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("it took no message for {} s", patience.as_secs())),
        }
    }
    // The other side may be gone already.
    let _ = timeout(patience, half.shutdown()).await;
    Ok(())
}

/// Questions and answers about a clock say when they were written.
fn stamped(mut frame: Frame, now: Nanos) -> Frame {
    if let Message::Ping { sent, .. } | Message::Pong { sent, .. } = &mut frame.message {
        *sent = now;
    }
    frame
}
