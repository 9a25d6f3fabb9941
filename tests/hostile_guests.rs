//! Plugins that misbehave: each ends as a documented error attributed to the plugin, and the run goes on or
//! ends as it should.
//!
//! `loading` is about files that are no plugin, `backend`, `dataset` and `scorer` about single calls, `runs`
//! about whole runs of the built binary. The guests themselves are in `tests/guests/`.

mod backend;
mod dataset;
pub mod fixture;
mod loading;
mod runs;
mod scorer;
