//! A runtime of the calling thread, for conversations with servers beside the measurement.

use std::io;
use std::time::Duration;

use load::question::{answer_within, open};
use load::transport::{Dial, Head, Request};
use model::clock::Clock;
use model::connection::{Timestamps, Trust, Version};
use model::target::Target;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// A runtime and its `LocalSet`, where HTTP/2 keeps its connections.
pub(crate) struct Local(Runtime);

impl Local {
    pub(crate) fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Local)
    }

    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        LocalSet::new().block_on(&self.0, future)
    }
}

/// Reads pages of a target, each over a connection of its own. Reads the certificates once.
pub(crate) struct Line {
    dial: Dial,
    local: Local,
}

impl Line {
    pub(crate) fn open(target: &Target, version: Version, trust: &Trust) -> Result<Self, String> {
        let targets = std::slice::from_ref(target);
        let dial = Dial::new(targets, &[], version, trust, Timestamps::User);
        let dial = dial.map_err(|error| error.to_string())?;
        Ok(Line { dial, local: Local::new().map_err(|error| error.to_string())? })
    }

    /// Reads a page within this time, once the connection is there within the same time.
    pub(crate) fn page(
        &self,
        clock: Clock,
        request: Request,
        within: Duration,
    ) -> Result<(Head, Vec<u8>), String> {
        self.local.run(async {
            let mut connection = open(&self.dial, 0, clock, within.into()).await?;
            let answer = answer_within(&mut connection, request, within).await;
            let limit = model::duration::format(within);
            answer.unwrap_or_else(|| Err(format!("no page came within {limit}")))
        })
    }
}
