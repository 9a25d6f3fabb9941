//! The promise of the contract: it only grows, and what was built for an older version runs.

mod growth;
mod versions;
