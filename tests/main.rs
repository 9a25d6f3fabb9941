//! End-to-end tests: real components, real HTTP, whole runs. One binary, so that the sandbox is
//! linked once. The places of the tests:
//!
//! - `authoring`: from `runner plugin new` to a component that is accepted.
//! - `whole_runs`: runs on virtual time against the mock engine in memory, with exact numbers.
//! - `invariants`: the promises of `ARCHITECTURE.md`, each with a test.
//! - `hostile_guests`: plugins that misbehave, from `tests/guests/`.
//! - `guide`: the plugin author's guide, followed to the letter.
//! - `live`: the view that people and Prometheus have of a run while it goes on.
//! - `command_line`: the built binary: wrong input, exit codes, help, reports.
//! - `packages`: wheels, images and the like, installed where nothing of the program was before.
//! - `plugin_cases`: `runner plugin test`, over our plugins and over some that fail quietly.
//! - `sockets`: resets, refusals, servers that come and go, TLS, on real processes.
//! - `browser`: pages of results in a real browser: drawn, stepped through, printed.
//! - `faults`: the fault matrix, on real processes: engine, network, disk, clock, signals, limits.
//! - `labs`: labs, searches and sweeps, on real processes.
//! - `fleets`: several processes that make one run.
//! - `devices`: power and energy of devices over a run, on real processes.
//! - `ci`: the step for GitHub Actions and the template for GitLab, in a user's repository.
//! - `python`: the module for Python, by its own tests, and its types.
//! - `recording`: traffic that `runner record` passes on, and its recording.
//! - `verify`: clients judged against known truth: our own, and eleven that are wrong.
//! - `endings`: interrupts, kills, full disks and dead servers, on real processes.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
mod authoring;
mod browser;
mod ci;
mod command_line;
mod contract;
mod devices;
mod endings;
mod faults;
mod fleets;
mod guide;
mod hostile_guests;
mod invariants;
mod labs;
mod live;
mod packages;
mod plugin_cases;
mod python;
mod recording;
mod sockets;
mod support;
mod verify;
mod whole_runs;
