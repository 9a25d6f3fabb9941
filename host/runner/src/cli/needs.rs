//! Resources that every command that loads plugins needs, checked before anything begins: some
//! threads and some file descriptors. Without them, later parts would panic.

use std::fmt::Display;
use std::io;
use std::str::FromStr;
use std::sync::mpsc;

use super::failure::{Exit, Failure};
use result::limit::{self, LimitError};

/// Threads for loading, compiling and signals; a run starts its own.
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

/// The limits that a repeated flag states, or the mistakes in each.
pub(super) fn limits<T>(flag: &str, texts: &[String]) -> Result<Vec<T>, Failure>
where
    T: FromStr<Err = LimitError>,
{
    limit::all(texts.iter().map(String::as_str)).map_err(|errors| refused(flag, errors))
}

pub(super) fn refused<E: Display>(flag: &str, errors: Vec<E>) -> Failure {
    let errors = errors.iter().map(|error| format!("{flag}: {error}"));
    Failure::several(Exit::CommandLine, errors)
}
