//! Folder in which compiled plugins and tokenizers are kept between runs.

use std::path::PathBuf;

/// The folder in which compiled plugins and tokenizers are kept.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Plugins")]
pub struct Artifacts {
    /// Folder for compiled plugins and tokenizers [default: runner in $XDG_CACHE_HOME, or in
    /// ~/.cache]
    #[arg(long, value_name = "FOLDER", env = "RUNNER_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
    /// Compile plugins without the cache of compiled plugins
    #[arg(long, env = "RUNNER_NO_PLUGIN_CACHE")]
    no_plugin_cache: bool,
}

impl Artifacts {
    /// Passes these settings to the sandbox, before it compiles anything.
    pub(crate) fn apply(&self) {
        if self.no_plugin_cache {
            return;
        }
        if let Some(folder) = self.folder() {
            cache::keep_in(folder);
        }
    }

    /// The folder of files that are kept between runs; none if there is no home.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.cache_dir.clone().or_else(|| of_user("XDG_CACHE_HOME", ".cache"))
    }
}

/// This program's folder in the named base folder (XDG), else in the home; none without one.
pub(super) fn of_user(base: &str, in_home: &str) -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = variable(base).map(PathBuf::from);
    let base = named.or_else(|| Some(PathBuf::from(variable("HOME")?).join(in_home)))?;
    Some(base.join("runner"))
}
