//! Tests of the whole crate. Lab files and their trials, or their mistakes, are folders in `cases`;
//! `BLESS=1` writes the expectations anew.

mod cases;
mod pages;
mod reference;
mod resume;
#[path = "../../../benches/labs/simulated.rs"]
mod simulated;
mod statistics;
mod strategies;
mod world;
