//! Code shared by the tests: a browser, made-up runs, the mock engine in memory, a raw server, an authority, plans, run folders, the built binary.

pub mod authority;
pub mod browser;
pub mod made_up;
pub mod memory;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod sharegpt;
pub mod trial;
