//! Files that every agent needs, by their digest: plugins, datasets, traces.
//!
//! An agent keeps them in a folder, each under its SHA-256, so a file is fetched once for all runs.
//! A file that comes goes to a part of its own; when it is complete its digest is verified, and it
//! gets its name in one step. A part stays when a link breaks, and the rest of the file follows
//! from there. The folder and all in it are their owner's alone, because rank 0 may have kept them
//! from others. The folder has a bound: before files come, those of earlier runs make room, the
//! oldest first. This module owns the folder and reading pieces from files; the order of questions
//! and pieces is for `link`.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use model::private;

use crate::records::{RecordsError, seal};
use crate::wire::{BODY, FileEntry};

/// The number of files that a run may have.
pub const MOST: usize = 4096;

/// A file could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("`{path}` cannot be used: {cause}")]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The run's files do not fit.
    #[error(
        "the run's files have {bytes} bytes, and `{folder}` may hold {most}: give the folder a larger bound"
    )]
    TooLarge {
        /// The number of bytes that they have.
        bytes: u64,
        /// The folder.
        folder: PathBuf,
        /// The number of entries that it may hold.
        most: u64,
    },
    /// The list of files cannot be right.
    #[error("the coordinator's list of files is unusable: {0}")]
    List(String),
    /// The bytes that came are not the file.
    #[error(
        "the file `{name}` came with the SHA-256 {found}; the run's is {expected}: it changed on the coordinator's disk"
    )]
    Differs {
        /// Its name in the documents.
        name: String,
        /// The digest of what came.
        found: String,
        /// The digest that it must have.
        expected: String,
    },
    /// A piece of another place.
    #[error("a piece of `{name}` came for byte {came}, and the next is byte {expected}")]
    Gap {
        /// Its name in the documents.
        name: String,
        /// The place where it belongs.
        came: u64,
        /// The place where the part ends.
        expected: u64,
    },
}

fn system(path: &Path) -> impl Fn(io::Error) -> FileError + '_ {
    |cause| FileError::System { path: path.to_owned(), cause }
}

/// The entry of a file on this disk.
///
/// # Errors
/// If it cannot be read.
pub fn entry(name: &str, path: &Path) -> Result<FileEntry, RecordsError> {
    let (bytes, digest) = seal(path)?;
    Ok(FileEntry { name: name.to_owned(), digest, bytes })
}

/// Up to [`BODY`] bytes of a file from a place on; none at its end.
///
/// # Errors
/// If it cannot be read.
pub fn piece(path: &Path, offset: u64) -> Result<Vec<u8>, FileError> {
    let mut file = File::open(path).map_err(system(path))?;
    file.seek(SeekFrom::Start(offset)).map_err(system(path))?;
    let mut bytes = Vec::new();
    file.take(BODY as u64).read_to_end(&mut bytes).map_err(system(path))?;
    Ok(bytes)
}

/// A folder of files under their digests.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    most: u64,
    /// Several processes may share the folder; each has parts of its own.
    owner: u64,
}

impl Store {
    /// The one in this folder, which is made if need be, with a bound in bytes. `owner` tells apart
    /// the processes that share it.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(folder: &Path, most: u64, owner: u64) -> Result<Self, FileError> {
        private::folder(folder).map_err(system(folder))?;
        Ok(Store { folder: folder.to_owned(), most, owner })
    }

    /// The place where a file is, or will be.
    pub fn path(&self, digest: &str) -> PathBuf {
        self.folder.join(digest)
    }

    fn part(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.{:016x}.part", self.owner))
    }

    /// Checks a run's list, makes room for it, and says which files are lacking.
    ///
    /// # Errors
    /// If the list is no list of files, or they do not fit.
    pub fn lacking(&self, list: &[FileEntry]) -> Result<Vec<FileEntry>, FileError> {
        if list.len() > MOST {
            let words = format!("it has {} files; at most {MOST} are allowed", list.len());
            return Err(FileError::List(words));
        }
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        for entry in list {
            if entry.digest.len() != 64 || !entry.digest.bytes().all(hexadecimal) {
                let words = format!("`{}` has a digest that is no SHA-256", entry.name);
                return Err(FileError::List(words));
            }
        }
        let mut once: Vec<&FileEntry> = list.iter().collect();
        once.sort_by(|a, b| a.digest.cmp(&b.digest));
        once.dedup_by(|a, b| a.digest == b.digest);
        let bytes = once.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.bytes));
        if bytes > self.most {
            return Err(FileError::TooLarge {
                bytes,
                folder: self.folder.clone(),
                most: self.most,
            });
        }
        self.make_room(bytes, &once)?;
        let mut lacking = Vec::new();
        for entry in once {
            let path = self.path(&entry.digest);
            // One that was damaged on the disk is fetched again.
            let whole = private::close(&path).is_ok()
                && seal(&path)
                    .is_ok_and(|(length, digest)| length == entry.bytes && digest == entry.digest);
            if !whole {
                let _ = fs::remove_file(&path);
                lacking.push(entry.clone());
            }
        }
        Ok(lacking)
    }

    /// Removes what this run does not need, the oldest first, until its files fit.
    fn make_room(&self, bytes: u64, needed: &[&FileEntry]) -> Result<(), FileError> {
        let mut others = Vec::new();
        for found in fs::read_dir(&self.folder).map_err(system(&self.folder))? {
            let found = found.map_err(system(&self.folder))?;
            let name = found.file_name();
            let digest = name.to_str().and_then(|name| name.get(..64));
            // Files that this module did not make stay.
            let Some(digest) = digest else { continue };
            let ours = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            let Ok(about) = found.metadata() else {
                continue;
            };
            if ours && about.is_file() && !needed.iter().any(|entry| entry.digest == digest) {
                others.push((about.modified().ok(), about.len(), found.path()));
            }
        }
        let mut held: u64 = others.iter().map(|(_, length, _)| length).sum();
        others.sort();
        for (_, length, path) in others {
            if held.saturating_add(bytes) <= self.most {
                break;
            }
            match fs::remove_file(&path) {
                // Another process that shares the folder made room too.
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(system(&path)(cause));
                }
                _ => held -= length,
            }
        }
        Ok(())
    }

    /// The number of bytes of a file that have come.
    pub fn have(&self, entry: &FileEntry) -> u64 {
        let length = fs::metadata(self.part(&entry.digest)).map_or(0, |about| about.len());
        // A part that is longer cannot be of this file; it is begun anew.
        if length > entry.bytes { 0 } else { length }
    }

    /// Adds a piece to a file's part, and says whether the file is complete and in its place.
    ///
    /// # Errors
    /// If the piece belongs elsewhere, cannot be written, or completes something that is not the
    /// file.
    pub fn add(&self, entry: &FileEntry, offset: u64, bytes: &[u8]) -> Result<bool, FileError> {
        let part = self.part(&entry.digest);
        let expected = self.have(entry);
        let end = offset.saturating_add(bytes.len() as u64);
        if offset != expected || end > entry.bytes {
            return Err(FileError::Gap { name: entry.name.clone(), came: offset, expected });
        }
        let mut file =
            private::options().create(true).truncate(false).open(&part).map_err(system(&part))?;
        file.set_len(offset).map_err(system(&part))?;
        file.seek(SeekFrom::Start(offset)).map_err(system(&part))?;
        file.write_all(bytes).map_err(system(&part))?;
        if end < entry.bytes {
            return Ok(false);
        }
        file.sync_all().map_err(system(&part))?;
        self.complete(entry)?;
        Ok(true)
    }

    /// Gives a part that is complete its name.
    ///
    /// # Errors
    /// If it is not the file; the part is removed then.
    pub fn complete(&self, entry: &FileEntry) -> Result<(), FileError> {
        let part = self.part(&entry.digest);
        if entry.bytes == 0 {
            private::create(&part).map_err(system(&part))?;
        }
        let found = match seal(&part) {
            Ok((_, found)) => found,
            Err(RecordsError::File { path, cause }) => {
                return Err(FileError::System { path, cause });
            }
            Err(other) => return Err(FileError::List(other.to_string())),
        };
        if found != entry.digest {
            fs::remove_file(&part).map_err(system(&part))?;
            return Err(FileError::Differs {
                name: entry.name.clone(),
                found,
                expected: entry.digest.clone(),
            });
        }
        let path = self.path(&entry.digest);
        fs::rename(&part, &path).map_err(system(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(store: &Store, entry: &FileEntry) -> bool {
        let lacking = store.lacking(std::slice::from_ref(entry)).unwrap();
        assert!(lacking.iter().all(|other| other == entry));
        !lacking.is_empty()
    }

    struct Setup {
        folder: tempfile::TempDir,
    }

    impl Setup {
        fn new() -> Self {
            Setup { folder: tempfile::tempdir().unwrap() }
        }

        fn store(&self, most: u64) -> Store {
            Store::open(&self.folder.path().join("store"), most, 7).unwrap()
        }

        fn file(&self, name: &str, content: &[u8]) -> (PathBuf, FileEntry) {
            let path = self.folder.path().join(name);
            fs::write(&path, content).unwrap();
            let entry = entry(name, &path).unwrap();
            (path, entry)
        }
    }

    #[test]
    fn a_file_comes_in_pieces_and_goes_on_after_a_break() {
        let bench = Setup::new();
        let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let (path, entry) = bench.file("plugin.wasm", &content);
        let mut store = bench.store(1 << 20);
        assert!(lacks(&store, &entry));
        let mut pieces = 0;
        loop {
            let offset = store.have(&entry);
            let bytes = piece(&path, offset).unwrap();
            pieces += 1;
            if store.add(&entry, offset, &bytes).unwrap() {
                break;
            }
            // As after a break: nothing is known but what the disk has.
            store = bench.store(1 << 20);
        }
        assert_eq!(pieces, content.len().div_ceil(BODY));
        assert_eq!(fs::read(store.path(&entry.digest)).unwrap(), content);
        assert!(!lacks(&store, &entry));
        // One that was damaged in the store is lacking again.
        fs::write(store.path(&entry.digest), b"damaged").unwrap();
        assert!(lacks(&store, &entry));
    }

    #[test]
    fn what_is_not_the_file_gets_no_name() {
        let bench = Setup::new();
        let (_, entry) = bench.file("a", b"right");
        let store = bench.store(100);
        let error = store.add(&entry, 0, b"wrong").unwrap_err().to_string();
        assert!(error.contains("`a` came with the SHA-256"), "{error}");
        assert!(!store.path(&entry.digest).exists());
        // It can be fetched again from the beginning.
        assert_eq!(store.have(&entry), 0);
        assert!(store.add(&entry, 0, b"right").unwrap());
        for (offset, bytes) in [(1, &b"x"[..]), (0, b"longer than it")] {
            let (_, other) = bench.file("b", b"other");
            let error = store.add(&other, offset, bytes).unwrap_err();
            assert!(matches!(error, FileError::Gap { .. }), "{error}");
        }
    }

    #[test]
    fn an_empty_file_is_a_file() {
        let bench = Setup::new();
        let (_, entry) = bench.file("empty", b"");
        let store = bench.store(0);
        assert!(lacks(&store, &entry));
        store.complete(&entry).unwrap();
        assert!(!lacks(&store, &entry));
    }

    #[test]
    fn the_folder_keeps_its_bound_and_what_is_not_its_own() {
        let bench = Setup::new();
        let store = bench.store(10);
        let (_, old) = bench.file("old", b"12345678");
        assert!(store.add(&old, 0, b"12345678").unwrap());
        fs::write(bench.folder.path().join("store/README"), b"not a file of a run").unwrap();
        let (_, new) = bench.file("new", b"abcd");
        assert!(lacks(&store, &new));
        assert!(!store.path(&old.digest).exists());
        assert!(bench.folder.path().join("store/README").exists());
        // What this run needs stays, however old it is.
        assert!(store.add(&new, 0, b"abcd").unwrap());
        assert!(!lacks(&store, &new));
        let error = store.lacking(&[old, new]).unwrap_err().to_string();
        assert!(error.contains("12 bytes") && error.contains("may hold 10"), "{error}");
    }

    /// A file that rank 0 may have kept from others is readable by its owner alone here too, also
    /// where an earlier run left it open.
    #[test]
    fn what_is_kept_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let bench = Setup::new();
        let store = bench.store(100);
        assert_eq!(mode(&bench.folder.path().join("store")), 0o700);
        let (_, secret) = bench.file("secret", b"prompts");
        assert!(!store.add(&secret, 0, b"prom").unwrap());
        assert_eq!(mode(&store.part(&secret.digest)), 0o600);
        assert!(store.add(&secret, 4, b"pts").unwrap());
        let kept = store.path(&secret.digest);
        assert_eq!(mode(&kept), 0o600);
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(!lacks(&store, &secret));
        assert_eq!(mode(&kept), 0o600);
        let (_, empty) = bench.file("empty", b"");
        store.complete(&empty).unwrap();
        assert_eq!(mode(&store.path(&empty.digest)), 0o600);
    }

    #[test]
    fn a_digest_is_no_path() {
        let bench = Setup::new();
        for digest in ["../../etc/passwd", &"A".repeat(64), &"../".repeat(22)[..64]] {
            let entry = FileEntry { name: "a".to_owned(), digest: digest.to_owned(), bytes: 1 };
            let error = bench.store(10).lacking(&[entry]).unwrap_err().to_string();
            assert!(error.contains("no SHA-256"), "{error}");
        }
    }
}
