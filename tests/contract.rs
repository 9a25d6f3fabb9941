//! The promise of the contract: it only grows, and components built for an older version run.

mod growth;
mod versions;
