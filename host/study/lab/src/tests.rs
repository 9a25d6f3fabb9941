//! Tests of the whole crate. Lab files and what they expand to, or what is wrong with them, are
//! folders in `cases`; `BLESS=1` writes the expectations anew.

mod cases;
mod pages;
mod reference;
mod resume;
#[path = "../../../benches/labs/simulated.rs"]
mod simulated;
mod statistics;
mod strategies;
mod world;
