//! The promises of `ARCHITECTURE.md`, each with a test, by their numbers there:
//!
//! - `boundaries`: the reach of plugins (1), and the code before plugin code (2, 6).
//! - `keys`: each key of a scenario changes the plan where its declaration says.
//! - `load`: due times and latencies (3, 4, 5), the same requests whatever the workers (7), slices
//!   (14).
//! - `results`: absent is not zero (8), percentiles (9), schemas (13).
//!
//! `hostile_guests` shows the cost of misbehaving plugins (10).

mod boundaries;
mod keys;
mod load;
mod numbers;
mod results;
