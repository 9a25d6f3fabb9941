//! The promise of the contract: it only grows, and components built for an older version run. And
//! the reference of it for authors.

mod growth;
mod reference;
mod versions;
