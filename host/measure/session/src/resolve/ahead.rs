//! Reads everything that a scenario names and that takes time, all at the same time: plugins to
//! compile, the tokenizer, the input files' digests. The results are looked at afterwards, in the
//! order of the scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Source;
use super::defaults::limits;
use super::measured::{Measurement, measure_all};
use super::tokens::{self, Counting};
use model::timings::{Stage, Timings};
use plugins::PluginError;
use plugins::load::{self, Plugin, SearchPath};
use reader::Located;

/// The plugins and files that were read ahead.
pub(super) struct Ahead {
    /// By the name under which it was asked for.
    pub(super) plugins: BTreeMap<String, Result<Plugin, PluginError>>,
    /// The tokenizer, or the reason why the scenario's cannot be opened.
    pub(super) tokenizer: Result<Counting, String>,
    /// Path, length and SHA-256, by the scenario's names; of a folder, for each file.
    pub(super) files: BTreeMap<String, Measurement>,
}

/// The most threads that read input files.
const MOST_THREADS: usize = 16;

/// Reads all of it, each on a thread of its own.
pub(super) fn read(source: &Source, timings: &Timings) -> Ahead {
    let scenario = &source.scenario;
    let scorers = scenario.scorers.iter().flatten();
    let of_scenario = [&scenario.backend.plugin, &scenario.dataset.plugin];
    let names: BTreeSet<&str> = (source.plugins.iter())
        .chain(of_scenario.into_iter().flatten())
        .chain(scorers.filter_map(|scorer| scorer.value.plugin.as_ref()))
        .map(|entry| entry.value.as_str())
        .collect();
    let search = search(source);
    let limits = limits(scenario);
    // A run over a folder that is drawn again names each of its files.
    let named: Vec<_> = scenario.dataset.files.iter().collect();
    let share = named.len().div_ceil(MOST_THREADS).max(1);
    std::thread::scope(|scope| {
        let tokenizer = scope.spawn(|| {
            let opened = tokens::open(source);
            // The substitute is not loaded.
            if opened.as_ref().is_ok_and(|made| !made.planned.approximate) {
                timings.reach(Stage::TokenizerLoaded);
            }
            opened
        });
        let files: Vec<_> = (named.chunks(share))
            .map(|named| {
                scope.spawn(move || {
                    let measured = (named.iter())
                        .flat_map(|(name, entry)| measure_all(name, &path_of(source, entry)));
                    measured.collect::<Vec<_>>()
                })
            })
            .collect();
        let plugins: Vec<_> = names
            .into_iter()
            .map(|name| {
                let (search, limits) = (&search, &limits);
                let plugin = scope.spawn(move || load::load_within(name, search, limits));
                (name.to_owned(), plugin)
            })
            .collect();
        let plugins = plugins.into_iter().map(|(name, thread)| (name, join(thread))).collect();
        timings.reach(Stage::PluginsLoaded);
        Ahead {
            plugins,
            tokenizer: join(tokenizer),
            files: files.into_iter().flat_map(join).collect(),
        }
    })
}

/// Returns where to search for a scenario's plugins.
pub(super) fn search(source: &Source) -> SearchPath {
    SearchPath {
        scenario: source.folder.clone(),
        folders: source.plugin_path.clone(),
        shipped: source.shipped,
    }
}

/// A path, relative to where it was written.
pub(super) fn path_of(source: &Source, entry: &Located<PathBuf>) -> PathBuf {
    match &source.folder {
        Some(folder) => entry.seen_from(folder),
        None => entry.value.clone(),
    }
}

/// A panic of a thread is a bug, and is passed on.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
