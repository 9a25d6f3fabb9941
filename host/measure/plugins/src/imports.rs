//! Imports that a component may have, and why the rest is refused.

use super::compile::Contract;
use super::outline::Outline;
use model::clean;
use model::plugin::Kind;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Import {
    /// Its name, such as `wasi:cli/environment@0.2.6`.
    pub name: String,
    /// True if a plugin may import it.
    pub allowed: bool,
    /// The purpose of the import, or why it is refused.
    pub why: &'static str,
}

/// The prefix of the plugin interface's own names.
const OURS: &str = "runner:plugin/";

/// The packages of WASI 0.2 and 0.3 that exist but are empty, and the consequence.
const EMPTY: [(&str, &str); 6] = [
    ("wasi:cli/", "no arguments and no environment variables; standard output goes to the log"),
    ("wasi:clocks/", "clocks stand still at 0"),
    ("wasi:filesystem/", "no files; a dataset reads its input files through runner:plugin/files"),
    ("wasi:io/", "input is empty, output goes to the log, and nothing ever blocks"),
    ("wasi:random/", "random numbers follow from the run's seed"),
    ("wasi:sockets/", "there is no network: using it aborts the call to the plugin"),
];

/// Checks a component's imports, in order.
pub fn list(outline: &Outline) -> Vec<Import> {
    let kind = kind(&outline.exports);
    let imports = outline.imports.iter();
    imports.map(|name| judge(name, kind)).collect()
}

/// The kind of plugin with these exports, in any version.
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
    Import { name: clean::line(name).into_owned(), allowed, why }
}

fn ours(interface: &str, kind: Option<Kind>) -> (bool, &'static str) {
    let (interface, version) = interface.split_once('@').unwrap_or((interface, ""));
    match (interface, kind) {
        ("types" | "log", _)
        | ("files" | "tokenizer", None | Some(Kind::Dataset))
        | ("tokenizer", Some(Kind::Scorer)) => match Contract::serving(version) {
            Ok(_) => (true, "part of the plugin interface"),
            Err(_) => (false, "this runner does not support that version"),
        },
        ("files", _) => (false, "only datasets can read files"),
        ("tokenizer", _) => (false, "backends have no tokenizer"),
        _ => (false, "this runner has no such interface"),
    }
}

fn foreign(name: &str) -> (bool, &'static str) {
    let version = name.split_once('@').map_or("", |(_, version)| version);
    let empty = EMPTY.iter().find(|(package, _)| name.starts_with(package));
    match empty {
        Some((_, what)) if version.starts_with("0.2.") || version.starts_with("0.3.") => {
            (true, what)
        }
        Some(_) => (
            false,
            "this runner supports only versions 0.2 and 0.3 of WASI; its author must build it for one of them",
        ),
        None if name.starts_with("wasi:http/") => (
            false,
            "plugins have no network, and only the runner sends requests; its author must build it without this import",
        ),
        None => (
            false,
            "this runner provides only runner:plugin and an empty WASI 0.2 and 0.3; its author must build it without this import",
        ),
    }
}

/// Describes the refused imports. Our own are checked once the version is known to be supported.
pub(super) fn refused(outline: &Outline, ours_too: bool) -> Option<String> {
    let mut refused = (list(outline).into_iter())
        .filter(|import| !import.allowed && (ours_too || !import.name.starts_with(OURS)))
        .map(|import| format!("imports `{}`, which is refused: {}", import.name, import.why));
    let first = refused.next()?;
    match refused.count() {
        0 => Some(first),
        more => Some(format!("{first} (and {more} more imports are refused)")),
    }
}
