//! What plugins are written with.

pub mod random;
