//! Drawn.
