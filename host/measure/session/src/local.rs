//! A runtime of the calling thread, for conversations with servers beside the measurement.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// A runtime and its `LocalSet`, where HTTP/2 keeps its connections.
pub(crate) struct Local(Runtime);

impl Local {
    /// # Errors
    /// If the system has no room for it.
    pub(crate) fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Local)
    }

    /// Runs a future to its end.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        LocalSet::new().block_on(&self.0, future)
    }
}
