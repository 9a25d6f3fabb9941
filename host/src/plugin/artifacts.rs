//! Compiled plugins, kept between processes: compiling takes a tenth of a second each, reading what was compiled
//! a few milliseconds.
//!
//! They are native code, so they lie in a folder of the user's own. Nothing that is wrong with it is an error:
//! plugins are then compiled anew.

use std::path::PathBuf;
use std::sync::OnceLock;

use wasmtime::{Cache, CacheConfig};

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps compiled plugins in a folder, and makes it if it is not there. To be said before the first plugin is
/// loaded; later words, and second ones, are not heard.
pub fn keep_in(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// The folder, opened, if it was named and is of use.
pub(super) fn opened() -> Option<Cache> {
    let folder = std::path::absolute(FOLDER.get()?).ok()?;
    private(&folder).ok()?;
    let mut config = CacheConfig::new();
    config
        .with_directory(folder)
        .with_baseline_compression_level(1)
        // Compressing better takes a core for a while, which would be taken from a run.
        .with_optimized_compression_usage_counter_threshold(u64::MAX);
    Cache::new(config).ok()
}

/// Makes a folder that nobody else can write in.
fn private(folder: &std::path::Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
