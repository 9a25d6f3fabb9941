//! Lines for the person who runs the benchmark. They go to the run's log, never to a result; the
//! host keeps a bounded number of them. In native unit tests they go to stderr.

pub use crate::bindings::host::log::Level;

/// Writes one line.
pub fn write(level: Level, message: &str) {
    if cfg!(target_arch = "wasm32") {
        crate::bindings::host::log::write(level, message);
    } else {
        eprintln!("{level:?}: {message}");
    }
}

/// Writes a debug line, for the plugin's author.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Writes an informational line.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Writes a warning.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Writes an error.
pub fn error(message: &str) {
    write(Level::Error, message);
}
