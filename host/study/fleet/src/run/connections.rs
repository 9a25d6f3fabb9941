//! The base of a fleet's connections: a runtime, and the version of the program that the processes
//! compare.

use std::env::consts::{ARCH, OS};
use std::fs::File;
use std::io;
use std::sync::OnceLock;

use model::hex;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::coordinator::{FleetError, unable};

/// A runtime on a thread of its own: a silent process counts as gone, whatever else it does.
pub(super) struct Connections {
    handle: Handle,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
}

impl Connections {
    pub(super) fn start() -> Result<Self, FleetError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(unable("start a runtime"))?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("fleet".to_owned())
            .spawn(move || runtime.block_on(stopped).ok())
            .map_err(unable("start a runtime"))?;
        Ok(Connections { handle, _stop: stop })
    }

    /// Waits for a future that needs these connections.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

/// This program: its version, the platform, and the beginning of the executable's digest, so that
/// two builds of one version differ. The file is read once, also for a study of many runs.
pub(super) fn version() -> Result<String, FleetError> {
    static VERSION: OnceLock<String> = OnceLock::new();
    if let Some(known) = VERSION.get() {
        return Ok(known.clone());
    }
    let digest = digest().map_err(unable("read this program's own file"))?;
    let version = format!("{} {OS}-{ARCH} {digest}", env!("CARGO_PKG_VERSION"));
    Ok(VERSION.get_or_init(|| version).clone())
}

fn digest() -> io::Result<String> {
    let mut digest = Sha256::new();
    io::copy(&mut File::open(std::env::current_exe()?)?, &mut digest)?;
    Ok(hex(&digest.finalize()[..6]))
}
