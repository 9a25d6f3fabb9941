//! The promises of `ARCHITECTURE.md`, each with a test, by their numbers there:
//!
//! - `boundaries`: what plugins may touch (1), and what runs before plugin code (2, 6).
//! - `keys`: each key of a scenario changes the plan where its declaration says.
//! - `load`: due times and latencies (3, 4, 5), the same requests whatever the workers (7), slices
//!   (14).
//! - `results`: absent is not zero (8), percentiles (9), schemas (13).
//!
//! `hostile_guests` shows what misbehaving plugins cost (10).

mod boundaries;
mod keys;
mod load;
mod numbers;
mod results;
