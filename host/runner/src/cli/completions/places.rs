//! Names on disk that a line can hold: runs, plugins and tokenizers by their names, and
//! files. Only names are read.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use hub::{Cache, Kind, Repository};

/// The most entries of a folder of results to examine, the newest first: thousands take long.
const MOST: usize = 200;

const KINDS: [&str; 3] = ["backends", "datasets", "scorers"];

/// The folders with this file that the written text can become, the newest first, then other
/// folders to look in. Folders in the folder of results match without its path.
pub(super) fn results(written: &str, home: &Path, file: &str) -> Vec<CompletionCandidate> {
    let (folder, begin) = written.split_at(written.rfind('/').map_or(0, |at| at + 1));
    let mut offered = Vec::new();
    let home = format!("{}/", home.display().to_string().trim_end_matches('/'));
    let is_at_home = home.starts_with(written) && home != folder;
    if is_at_home {
        offered = newest(&home, "", file);
    }
    let has_home = !offered.is_empty();
    offered.extend(newest(folder, begin, file));
    let known: Vec<String> = offered.iter().map(|name| format!("{name}/")).collect();
    let others = folders(written).into_iter();
    let others = others.filter(|other| {
        let other = other.get_value().to_string_lossy();
        other != "." && !known.iter().any(|known| *known == *other) && !(has_home && *other == home)
    });
    let offered = offered.into_iter().map(CompletionCandidate::new);
    offered.chain(others).collect()
}

/// The folders with this file in a folder (`runs/`) by the beginning of their names, new first.
fn newest(folder: &str, begin: &str, file: &str) -> Vec<String> {
    let place = if folder.is_empty() { "." } else { folder };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_meant = name.starts_with(begin) && (!name.starts_with('.') || !begin.is_empty());
        is_meant.then(|| (age(&name, &entry.path()), name))
    });
    let mut named: Vec<(Age, String)> = named.collect();
    named.sort_unstable();
    let named = named.into_iter().take(MOST);
    named
        .filter(|(_, name)| Path::new(place).join(name).join(file).is_file())
        .map(|(_, name)| format!("{folder}{name}"))
        .collect()
}

/// The order of results: results whose names begin with their time, then the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Named(Reverse<String>),
    Changed(Reverse<Option<SystemTime>>),
}

fn age(name: &str, path: &Path) -> Age {
    let stamp: Vec<&str> = name.splitn(3, '-').take(2).collect();
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    match stamp.as_slice() {
        [date, time] if date.len() == 8 && time.len() == 6 && stamp.iter().all(is_number) => {
            Age::Named(Reverse(name.to_owned()))
        }
        _ => {
            let changed = std::fs::metadata(path).and_then(|about| about.modified());
            Age::Changed(Reverse(changed.ok()))
        }
    }
}

pub(super) fn folders(written: &str) -> Vec<CompletionCandidate> {
    PathCompleter::dir().complete(OsStr::new(written))
}

pub(super) fn files(written: &str) -> Vec<CompletionCandidate> {
    PathCompleter::file().complete(OsStr::new(written))
}

/// The files with this extension that the written text can become, and folders to look in.
pub(super) fn files_of(written: &str, extension: &'static str) -> Vec<CompletionCandidate> {
    let is_of = move |path: &Path| path.extension().is_some_and(|own| own == extension);
    let completer = PathCompleter::any().filter(is_of);
    completer.complete(OsStr::new(written))
}

/// The components in folders of plugins, by the names that `--plugin` takes.
pub(super) fn components(folders: &[PathBuf]) -> Vec<String> {
    let in_folder = |folder: &PathBuf| {
        let mut found = stems(folder, "");
        for kind in KINDS {
            found.extend(stems(&folder.join(kind), kind));
        }
        found
    };
    let mut found: Vec<String> = folders.iter().flat_map(in_folder).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn stems(folder: &Path, kind: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| entry.file_name().into_string().ok());
    named
        .filter(|name| name.ends_with(".wasm"))
        .map(|name| if kind.is_empty() { name } else { format!("{kind}/{name}") })
        .collect()
}

/// The names on the hub of the tokenizers that its local cache has.
pub(super) fn tokenizers() -> Vec<String> {
    let Some(cache) = Cache::from_variables(|name| std::env::var(name).ok()) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(cache.root()).into_iter().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let name = name.strip_prefix("models--")?.replace("--", "/");
        let repository = Repository::parse(Kind::Model, &name).ok()?;
        cache.find(&repository)?.has_tokenizer().then_some(name)
    });
    let mut named: Vec<String> = named.collect();
    named.sort_unstable();
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(written: &str, home: &Path) -> Vec<String> {
        let all = results(written, home, "plan.json");
        let values = all.iter().map(|one| one.get_value().to_string_lossy());
        values.map(std::borrow::Cow::into_owned).collect()
    }

    #[test]
    fn offers_the_newest_runs_and_then_folders() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("results");
        for run in
            ["20260101-000000-old", "20260103-000000-new", "renamed", "20260102-000000-middle"]
        {
            std::fs::create_dir_all(home.join(run)).unwrap();
            std::fs::write(home.join(run).join("plan.json"), "{}").unwrap();
        }
        std::fs::create_dir(home.join("20260104-000000-chat-sweep")).unwrap();
        let at = |name: &str| format!("{}/{name}", home.display());
        let runs = [
            at("20260103-000000-new"),
            at("20260102-000000-middle"),
            at("20260101-000000-old"),
            at("renamed"),
        ];
        // Where it begins like the folder of results, and in it.
        assert_eq!(offered("", &home)[..4], runs);
        let all = [&runs[..], &[at("20260104-000000-chat-sweep/")]].concat();
        assert_eq!(offered(&at(""), &home), all);
        assert_eq!(offered(&at("20260102"), &home), [runs[1].clone()]);
        assert_eq!(offered(&at("none"), &home), Vec::<String>::new());
    }
}
