//! What the tests share: the mock engine in memory, a server of bytes, plans, run folders, the built binary.

pub mod memory;
pub mod process;
pub mod raw;
pub mod sharegpt;
pub mod trial;
