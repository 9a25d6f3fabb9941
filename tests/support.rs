//! Code shared by the tests: a browser, a hub, missing programs, libraries, made-up runs, the mock
//! engine in memory, a raw server, an authority, plans, run folders, the built binary.

pub mod authority;
pub mod browser;
#[path = "../host/measure/hub/src/tests/server.rs"]
pub mod hub;
pub mod lacking;
pub mod languages;
pub mod library;
pub mod made_up;
pub mod memory;
pub mod port;
pub mod process;
pub mod proxy;
pub mod pypi;
pub mod raw;
pub mod results;
pub mod server;
pub mod sharegpt;
pub mod trial;
