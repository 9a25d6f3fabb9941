//! What ships inside the runner: the first-party components and the scenarios,
//! each under the relative name that it has in the repository.
//!
//! This crate owns the bytes. It leaves loading and reading them to others.

#![forbid(unsafe_code)]

pub mod kit;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The component of that name, such as `backends/sglang.wasm`.
pub fn plugin(name: &str) -> Option<&'static [u8]> {
    PLUGINS
        .iter()
        .find_map(|(known, bytes)| (*known == name).then_some(*bytes))
}

/// The names of all shipped components.
pub fn plugins() -> impl Iterator<Item = &'static str> {
    PLUGINS.iter().map(|(name, _)| *name)
}

/// The scenario of that name, such as `scenarios/quickstart.toml`.
pub fn scenario(name: &str) -> Option<&'static str> {
    SCENARIOS
        .iter()
        .find_map(|(known, text)| (*known == name).then_some(*text))
}

/// The names of all shipped scenarios.
pub fn scenarios() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}
