//! The outlook on a run ([`runs::outlook`]) as text and as charts.

mod charts;
mod text;

pub use charts::charts;
pub use text::text;

#[cfg(test)]
mod tests;
