//! Lines for the person who runs the benchmark. They go to the run's log, never to a result; the host keeps
//! a bounded number of them. In native unit tests they go to stderr.

pub use crate::bindings::host::log::Level;

/// Writes one line.
pub fn write(level: Level, message: &str) {
    if cfg!(target_arch = "wasm32") {
        crate::bindings::host::log::write(level, message);
    } else {
        eprintln!("{level:?}: {message}");
    }
}

/// Writes a line for the plugin's author.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Writes a line worth knowing.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Writes that something may be wrong.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Writes that something is wrong.
pub fn error(message: &str) {
    write(Level::Error, message);
}
