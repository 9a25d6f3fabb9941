//! Files that ship inside the runner: the first-party components, the scenarios and the lab files,
//! each under the relative name that it has in the repository. Texts are compressed: the guides,
//! the schemas, and the files that `runner plugin new` writes.
//!
//! This crate owns the bytes. It leaves loading and reading them to others.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

/// A component that ships: its name, and the function that unpacks its bytes.
pub type Plugin = (&'static str, fn() -> Vec<u8>);

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// True if a component of that name ships, such as `backends/sglang.wasm`.
pub fn has_plugin(name: &str) -> bool {
    PLUGINS.iter().any(|(known, _)| *known == name)
}

/// The component of that name, such as `backends/sglang.wasm`.
pub fn plugin(name: &str) -> Option<Vec<u8>> {
    let (_, unpack) = PLUGINS.iter().find(|(known, _)| *known == name)?;
    Some(unpack())
}

#[allow(dead_code, reason = "a program without plugins unpacks none")]
fn unpacked(packed: &[u8], size: usize) -> Vec<u8> {
    static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
        zstd::bulk::decompress(SHARED.0, SHARED.1).expect("the build script compressed it")
    });
    zstd::bulk::Decompressor::with_dictionary(&DICTIONARY)
        .and_then(|mut decompressor| decompressor.decompress(packed, size))
        .expect("the build script compressed it")
}

/// The text of that name: a page of the user guide (`guide/start.md`) or of the plugin guide
/// (`plugins/guide/backend.md`), a schema (`schemas/summary.schema.json`), a case to verify clients
/// with (`conformance/stream-role.toml`), or a text that [`texts_below`] returns.
pub fn text(name: &str) -> Option<&'static str> {
    (ALL_TEXTS.iter()).find_map(|(known, text)| (*known == name).then_some(*text))
}

/// The texts whose names begin with `folder`, each with the rest of its name. `template/` has the
/// templates of plugin projects, `wit/` the contract, `sdk/` the Rust SDK, whose lock file is
/// `sdk.lock`.
pub fn texts_below(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    (ALL_TEXTS.iter()).filter_map(move |(name, text)| Some((name.strip_prefix(folder)?, *text)))
}

/// The cases that ship to verify clients with, by name, each with its text.
pub fn cases() -> impl Iterator<Item = (&'static str, &'static str)> {
    files("conformance/")
}

/// The profiles of clients that ship, by name, each with its text. Profiles of older versions, in a
/// folder below, are found by name, `older/NAME`, but not listed.
pub fn clients() -> impl Iterator<Item = (&'static str, &'static str)> {
    files("conformance/clients/")
}

/// The names of [`texts_below`], for which no text is unpacked: every start lists the schemas.
pub fn names_below(folder: &str) -> impl Iterator<Item = &'static str> {
    TEXTS.iter().filter_map(move |(name, _)| name.strip_prefix(folder))
}

fn files(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    texts_below(folder).filter_map(|(name, text)| {
        let name = name.strip_suffix(".toml")?;
        (!name.contains('/')).then_some((name, text))
    })
}

static ALL_TEXTS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    static WHOLE: LazyLock<String> = LazyLock::new(|| {
        let size = TEXTS.iter().map(|(_, length)| length).sum();
        let bytes = zstd::bulk::decompress(PACKED_TEXTS, size);
        let bytes = bytes.expect("the build script compressed it");
        String::from_utf8(bytes).expect("the build script read it as text")
    });
    let mut rest = WHOLE.as_str();
    let cut = |(name, length): &(&'static str, usize)| {
        let (text, after) = rest.split_at(*length);
        rest = after;
        (*name, text)
    };
    TEXTS.iter().map(cut).collect()
});

pub fn plugins() -> impl Iterator<Item = &'static str> {
    PLUGINS.iter().map(|(name, _)| *name)
}

/// The scenario of that name, such as `scenarios/quickstart.toml`.
pub fn scenario(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find_map(|(known, text)| (*known == name).then_some(*text))
}

pub fn scenarios() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The lab file of that name, such as `scenarios/labs/gpustack.toml`.
pub fn lab(name: &str) -> Option<&'static str> {
    LABS.iter().find_map(|(known, text)| (*known == name).then_some(*text))
}

pub fn labs() -> impl Iterator<Item = &'static str> {
    LABS.iter().map(|(name, _)| *name)
}
