//! What a component may import, and why not the rest.
//!
//! Responsible for the judgement; what stands behind an import is the `sandbox`'s and `wasi`'s.

use super::contract::Contract;
use super::outline::Outline;
use model::plugin::Kind;

/// Something that a component imports.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Import {
    /// Its name, such as `wasi:cli/environment@0.2.6`.
    pub name: String,
    /// Whether a plugin may import it.
    pub allowed: bool,
    /// What it gets, or why it is refused.
    pub why: &'static str,
}

/// What the names of the plugin interface's own begin with.
const OURS: &str = "runner:plugin/";

/// The packages of WASI 0.2 that are there with nothing in them, and what that means.
const EMPTY: [(&str, &str); 6] = [
    (
        "wasi:cli/",
        "there are no arguments and no variables; what is written to standard output goes to the log",
    ),
    ("wasi:clocks/", "clocks stand still at 0"),
    (
        "wasi:filesystem/",
        "there are no files; a dataset reads its inputs through runner:plugin/files",
    ),
    (
        "wasi:io/",
        "input is at its end, output goes to the log, and nothing has to be waited for",
    ),
    ("wasi:random/", "random numbers follow from the run's seed"),
    (
        "wasi:sockets/",
        "there is no network: every call of it ends the plugin's call",
    ),
];

/// Judges what a component imports, in its order.
pub fn of(outline: &Outline) -> Vec<Import> {
    let kind = kind(&outline.exports);
    let imports = outline.imports.iter();
    imports.map(|name| judge(name, kind)).collect()
}

/// The kind of plugin that these exports make it, in whatever version.
fn kind(exports: &[String]) -> Option<Kind> {
    let is = |kind: &Kind| {
        let interface = format!("runner:plugin/{}@", kind.name());
        exports.iter().any(|name| name.starts_with(&interface))
    };
    Kind::ALL.into_iter().find(is)
}

fn judge(name: &str, kind: Option<Kind>) -> Import {
    let (allowed, why) = match name.strip_prefix(OURS) {
        Some(interface) => ours(interface, kind),
        None => foreign(name),
    };
    Import {
        name: name.to_owned(),
        allowed,
        why,
    }
}

fn ours(interface: &str, kind: Option<Kind>) -> (bool, &'static str) {
    let (interface, version) = interface.split_once('@').unwrap_or((interface, ""));
    match (interface, kind) {
        ("types" | "log", _)
        | ("files" | "tokenizer", None | Some(Kind::Dataset))
        | ("tokenizer", Some(Kind::Scorer)) => match Contract::serving(version) {
            Ok(_) => (true, "it is part of the plugin interface"),
            Err(_) => (false, "this runner does not speak that version of it"),
        },
        ("files", _) => (false, "only a dataset is given files"),
        ("tokenizer", _) => (false, "a backend is given no tokenizer"),
        _ => (false, "this runner has no such interface"),
    }
}

fn foreign(name: &str) -> (bool, &'static str) {
    let version = name.split_once('@').map_or("", |(_, version)| version);
    let empty = EMPTY.iter().find(|(package, _)| name.starts_with(package));
    match empty {
        Some((_, what)) if version.starts_with("0.2.") => (true, what),
        Some(_) => (
            false,
            "of WASI this runner has version 0.2 alone; its author must build it against that",
        ),
        None if name.starts_with("wasi:http/") => (
            false,
            "a plugin has no network, and requests are the runner's to send; its author must build it without",
        ),
        None => (
            false,
            "this runner offers the interfaces of runner:plugin, and WASI 0.2 with nothing in it; its author must build it without",
        ),
    }
}

/// What is refused, in words; absent where nothing is. Interfaces of our own are judged only once the version is
/// known to be one that is spoken: those of another are a matter of versions.
pub(super) fn refused(outline: &Outline, ours_too: bool) -> Option<String> {
    let mut refused = (of(outline).into_iter())
        .filter(|import| !import.allowed && (ours_too || !import.name.starts_with(OURS)))
        .map(|import| {
            format!(
                "imports `{}`, which is refused: {}",
                import.name, import.why
            )
        });
    let first = refused.next()?;
    match refused.count() {
        0 => Some(first),
        more => Some(format!("{first} (and {more} more imports are refused)")),
    }
}
