//! The outlook on a run ([`runs::outlook`]) as text, as a page and as charts.

mod charts;
mod page;
mod text;

pub use charts::charts;
pub use page::page;
pub use text::text;

#[cfg(test)]
mod tests;
