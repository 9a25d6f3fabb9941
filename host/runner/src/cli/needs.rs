//! Resources that every command that loads plugins needs, checked before anything begins: some
//! threads and some file descriptors. Without them, later parts would panic.

use std::io;
use std::sync::mpsc;

use super::failure::Failure;

/// Threads that loading, compiling and listening for signals start; a run starts its own, and
/// reports if it cannot.
const THREADS: usize = 16;
/// File descriptors that the same and a few connections open.
const DESCRIPTORS: usize = 16;

pub(super) fn check() -> Result<(), Failure> {
    descriptors().map_err(|cause| {
        Failure::input(format!(
            "cannot open {DESCRIPTORS} files: {cause}; allow more file descriptors (ulimit -n)"
        ))
    })?;
    threads().map_err(|cause| {
        Failure::input(format!(
            "cannot start {THREADS} threads: {cause}; allow more processes (ulimit -u, or the container's limit on PIDs) or more memory (ulimit -v)"
        ))
    })
}

fn descriptors() -> io::Result<()> {
    // A pipe needs no file, and a container may have no /dev.
    (0..DESCRIPTORS / 2).map(|_| io::pipe()).collect::<io::Result<Vec<_>>>()?;
    Ok(())
}

/// Starts all of them at once; each waits until the others have started.
fn threads() -> io::Result<()> {
    let mut started = Vec::new();
    let mut refused = Ok(());
    for _ in 0..THREADS {
        let (hold, held) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().spawn(move || {
            let _ = held.recv();
        });
        match thread {
            Ok(thread) => started.push((hold, thread)),
            Err(cause) => {
                refused = Err(cause);
                break;
            }
        }
    }
    for (hold, thread) in started {
        drop(hold);
        let _ = thread.join();
    }
    refused
}
