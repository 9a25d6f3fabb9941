//! What the tests share: the mock engine in memory, plans, run folders, the built binary.

pub mod memory;
pub mod process;
pub mod sharegpt;
pub mod trial;
