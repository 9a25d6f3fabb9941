//! Plugins that misbehave: each causes a documented error, and the run ends as it should.
//!
//! `loading` covers files that are no plugin, `bombs` files that are too large, `backend`,
//! `dataset` and `scorer` single calls, `wasi` the imports from WASI. `determinism`
//! covers the same output for the same input, `replies` the kept parts of replies, `pins` and
//! `kept` whose code is run, `runs` whole runs of the built binary, `matrix` the misdeeds of each
//! kind of plugin in whole runs. The guests themselves are in `tests/guests/`.

mod backend;
mod bombs;
mod dataset;
mod determinism;
pub mod fixture;
mod kept;
mod loading;
mod matrix;
mod pins;
mod replies;
mod runs;
mod scorer;
mod wasi;
