//! Plugins that misbehave: each ends as a documented error attributed to the plugin, and the run goes on or
//! ends as it should.
//!
//! `loading` is about files that are no plugin, `bombs` about those that are too much, `backend`, `dataset` and
//! `scorer` about single calls, `wasi` about what WASI gives, `determinism` about the same output for the same
//! input, `pins` and `kept` about whose code is run, `runs` about whole runs of the built binary. The guests
//! themselves are in `tests/guests/`.

mod backend;
mod bombs;
mod dataset;
mod determinism;
pub mod fixture;
mod kept;
mod loading;
mod pins;
mod runs;
mod scorer;
mod wasi;
