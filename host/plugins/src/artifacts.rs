//! A cache of compiled plugins between processes: compiling takes a tenth of a second or more, reading a compiled
//! plugin a few milliseconds.
//!
//! The cache contains machine code that runs outside any sandbox, so nothing is trusted: the folder must belong to
//! the user, and each file records the component and the compiler it was made from, and the digest of its contents.
//! A problem with a file is never an error: the plugin is recompiled, and the user is warned. A missing file, or one
//! that cannot be written, is not even reported.

use std::fs::{self, DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use super::sandbox;
use model::clock;
use model::hex;

/// The magic bytes of a file. Another layout has other magic bytes.
const MAGIC: &[u8; 16] = b"runner artifact1";
/// Length of the header: magic bytes, component, engine, digest of what follows.
const HEADER: usize = MAGIC.len() + 3 * 32;
/// Extensions of files, and of those that are not yet complete.
const ENDING: &str = ".artifact";
const UNFINISHED: &str = ".unfinished";
/// The size limit of all files together, in bytes; beyond it, the least recently used ones are removed.
const FOLDER_BYTES: u64 = 1 << 30;
/// The size limit of one file.
const FILE_BYTES: u64 = 512 << 20;
/// Files unused for this long are removed in any case.
const UNUSED: Duration = Duration::from_secs(60 * 24 * 3600);
/// The precision of the date of the last use.
const DAY: Duration = Duration::from_secs(24 * 3600);

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Caches compiled plugins in a folder, and creates it if needed. Call this before the first plugin is loaded;
/// later calls have no effect.
pub fn keep_in(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// A folder of compiled plugins.
pub(super) struct Shelf(PathBuf);

/// The cached form of a component.
pub(super) enum Found {
    /// It is there and valid.
    Whole(Component),
    /// It is not there.
    Nothing,
    /// It cannot be used, and why.
    Wrong(String),
}

impl Shelf {
    /// The folder that was set, if any and if it can be created.
    ///
    /// # Errors
    /// A message, if other users may write to it.
    pub fn opened() -> Result<Option<Self>, String> {
        FOLDER.get().map_or(Ok(None), |folder| Shelf::at(folder))
    }

    fn at(folder: &Path) -> Result<Option<Self>, String> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let Ok(metadata) = made.and_then(|()| fs::metadata(folder)) else {
            return Ok(None);
        };
        match stranger(&metadata) {
            None => Ok(Some(Shelf(folder.to_owned()))),
            Some(who) => Err(format!(
                "the cache of compiled plugins in {} is not used: {who}; name a folder of your own with --cache-dir",
                folder.display()
            )),
        }
    }

    /// Looks for a component by the SHA-256 of its file.
    pub fn find(&self, digest: &str) -> Found {
        let path = self.path(digest);
        let read = match read(&path) {
            Ok(read) => read,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(cause) => Err(format!("cannot be read: {cause}")),
        };
        match read.and_then(|bytes| open(digest, &bytes)) {
            Ok(component) => Found::Whole(component),
            Err(what) => Found::Wrong(format!("its cached form {} {what}", path.display())),
        }
    }

    /// Stores a component. A concurrent reader finds all of it or nothing.
    pub fn put(&self, digest: &str, component: &Component) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let payload = component.serialize().map_err(io::Error::other)?;
        let mut header = header(digest);
        header.extend(Sha256::digest(&payload));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished = self
            .0
            .join(format!("{}-{number}{UNFINISHED}", std::process::id()));
        let written = (|| {
            let _ = fs::remove_file(&unfinished);
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&header)?;
            file.write_all(&payload)?;
            Ok(())
        })();
        let kept = written.and_then(|()| {
            fs::rename(&unfinished, self.path(digest))?;
            self.tidy()
        });
        if kept.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        kept
    }

    fn path(&self, digest: &str) -> PathBuf {
        let engine = hex(&engine()[..8]);
        self.0.join(format!("{digest}-{engine}{ENDING}"))
    }

    /// Removes files that are long unused, that exceed the size limit, or that another process did not finish.
    fn tidy(&self) -> io::Result<()> {
        let now = clock::date();
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let (Ok(metadata), true) = (
                entry.metadata(),
                name.ends_with(ENDING) || name.ends_with(UNFINISHED),
            ) else {
                continue;
            };
            let unused = now.duration_since(metadata.modified()?).unwrap_or_default();
            let most = if name.ends_with(ENDING) { UNUSED } else { DAY };
            if unused > most {
                fs::remove_file(entry.path())?;
            } else if name.ends_with(ENDING) {
                kept.push((unused, metadata.len(), entry.path()));
            }
        }
        kept.sort();
        let mut bytes = 0_u64;
        for (_, length, path) in kept {
            bytes = bytes.saturating_add(length);
            if bytes > FOLDER_BYTES {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Reads a file that only this user may write; the inner error says what is wrong with it.
fn read(path: &Path) -> io::Result<Result<Vec<u8>, String>> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Err("is not a regular file".to_owned()));
    }
    if let Some(who) = stranger(&metadata) {
        return Ok(Err(format!("is not used: {who}")));
    }
    if metadata.len() > FILE_BYTES {
        return Ok(Err(format!("is of {} bytes", metadata.len())));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    Read::by_ref(&mut file)
        .take(FILE_BYTES)
        .read_to_end(&mut bytes)?;
    let now = clock::date();
    if now
        .duration_since(metadata.modified()?)
        .is_ok_and(|unused| unused > DAY)
    {
        // If its date cannot be set, the date of writing stays.
        let _ = file.set_times(FileTimes::new().set_modified(now));
    }
    Ok(Ok(bytes))
}

/// Which other user could have written it, as text.
fn stranger(metadata: &Metadata) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Some(format!(
            "it belongs to user {}, but this is user {user}",
            metadata.uid()
        ));
    }
    (metadata.mode() & 0o022 != 0).then(|| {
        format!(
            "other users may write to it (mode {:03o})",
            metadata.mode() & 0o777
        )
    })
}

/// The component in a file, or what is wrong with the file.
fn open(digest: &str, bytes: &[u8]) -> Result<Component, String> {
    let header = header(digest);
    let Some((found, payload)) = bytes.split_at_checked(HEADER) else {
        return Err("is truncated".to_owned());
    };
    let (found, sum) = found.split_at(header.len());
    let component = MAGIC.len()..MAGIC.len() + 32;
    if found[..MAGIC.len()] != *MAGIC {
        return Err("is not a compiled plugin".to_owned());
    }
    if found[component.clone()] != header[component] {
        return Err("belongs to another component".to_owned());
    }
    if found != header {
        return Err("was written by another version of the compiler".to_owned());
    }
    if Sha256::digest(payload)[..] != *sum {
        return Err("was changed after it was written, or is truncated".to_owned());
    }
    deserialize(payload).map_err(|cause| format!("cannot be loaded: {cause}"))
}

#[allow(unsafe_code)]
fn deserialize(payload: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must be what `Component::serialize` gave. They are those that this program wrote, for
    // this component and an engine of this configuration, unchanged: the header names both, and the digest of
    // the bytes. A header can be forged, but only by someone who may write to the file, and that is only
    // this user (`stranger`), who can run any machine code anyway.
    unsafe { Component::deserialize(sandbox::engine(), payload) }
}

/// The header of a component's file, up to the digest of what follows.
fn header(digest: &str) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend((0..32).map(|at| {
        let pair = digest.get(2 * at..2 * at + 2).unwrap_or_default();
        u8::from_str_radix(pair, 16).unwrap_or_default()
    }));
    header.extend(engine());
    header
}

/// The facts that decide whether compiled code fits the engine: version, settings and processor.
fn engine() -> [u8; 32] {
    static ENGINE: OnceLock<[u8; 32]> = OnceLock::new();
    *ENGINE.get_or_init(|| {
        let mut sum = Sum(Sha256::new());
        let engine = sandbox::engine();
        engine.precompile_compatibility_hash().hash(&mut sum);
        sum.0.finalize().into()
    })
}

/// A SHA-256 of what is hashed.
struct Sum(Sha256);

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Part of the digest; nobody asks for it.
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest
            .iter()
            .take(8)
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests;
