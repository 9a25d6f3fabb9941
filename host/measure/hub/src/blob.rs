//! Contents in the cache: brought once, whole and checked, under the hub's tag for them, with a
//! link for each commit.
//!
//! A download goes to a file `TAG.incomplete`, as the hub's own tools do it, and gets its name when
//! it is checked. So an interrupted download is continued, and nobody sees half a file.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use model::hex;
use sha1::Digest as _;
use ureq::http::{Method, header};

use crate::cache::Cache;
use crate::client::{Answer, Client, Pace, is_passing, pause};
use crate::error::HubError;
use crate::fetch::{Event, Remote, is_link};
use crate::name::Repository;

/// The number of times that a download may stop without a further byte.
const STUCK: u32 = 5;
/// The amount that is read at a time.
const PIECE: usize = 128 << 10;

/// A digest that can be a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    /// The digest of a file in the hub's store of large files.
    Sha256,
    /// The digest of a file in git itself: SHA-1 of `blob LENGTH`, a zero and the contents.
    Git,
}

impl Digest {
    pub(crate) fn from_tag(tag: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match tag.len() {
            _ if !tag.bytes().all(is_hex) => None,
            64 => Some(Digest::Sha256),
            40 => Some(Digest::Git),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Digest::Sha256 => "SHA-256",
            Digest::Git => "digest in git (SHA-1)",
        }
    }

    /// Computes the digest of a file from its beginning.
    fn measure(self, file: &mut File) -> std::io::Result<String> {
        file.rewind()?;
        match self {
            Digest::Sha256 => {
                let mut hash = sha2::Sha256::new();
                std::io::copy(file, &mut hash)?;
                Ok(hex(&hash.finalize()))
            }
            Digest::Git => {
                let mut hash = sha1::Sha1::new();
                hash.update(format!("blob {}\0", file.metadata()?.len()));
                std::io::copy(file, &mut hash)?;
                Ok(hex(&hash.finalize()))
            }
        }
    }
}

pub(crate) struct Blobs {
    folder: PathBuf,
    /// The place where the hub's tools keep the locks on it.
    locks: PathBuf,
}

/// The way an attempt to bring the rest ended.
enum TransferEnd {
    Whole,
    Cut(String),
    /// By us, because it was too slow.
    Slow(String),
}

impl Blobs {
    pub(crate) fn new(cache: &Cache, repository: &Repository) -> Self {
        let folder = cache.folder(repository);
        let locks = cache.root().join(".locks");
        Blobs { locks: locks.join(folder.file_name().unwrap_or_default()), folder }
    }

    /// Brings a file's contents, unless they are there.
    pub(crate) fn bring(
        &self,
        client: &Client,
        path: &str,
        (remote, limit): (&Remote, u64),
        refused: &dyn Fn(&Answer) -> HubError,
        on: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<(), HubError> {
        let blobs = self.folder.join("blobs");
        let whole = blobs.join(&remote.tag);
        let part = blobs.join(format!("{}.incomplete", remote.tag));
        for folder in [&blobs, &self.locks] {
            fs::create_dir_all(folder).map_err(|cause| HubError::disk(folder, cause))?;
        }
        // Another program may bring the same; then this waits for it.
        let lock = self.locks.join(format!("{}.lock", remote.tag));
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|cause| HubError::disk(&lock, cause))?;
        let there = fs::metadata(&whole).map(|file| file.len());
        if let Ok(bytes) = there
            && remote.bytes.is_none_or(|expected| expected == bytes)
        {
            on(Event::Got(bytes));
            on(Event::Done { path: &remote.path, bytes, was_there: true });
            return Ok(());
        }
        let disk = |cause| HubError::disk(&part, cause);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&part)
            .map_err(disk)?;
        let request = (remote, limit);
        let bytes = complete(client, path, request, (&mut file, &part), refused, on)?;
        check(&mut file, bytes, remote).inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })?;
        file.sync_all().map_err(disk)?;
        fs::rename(&part, &whole).map_err(|cause| HubError::disk(&whole, cause))?;
        drop(lock);
        on(Event::Done { path: &remote.path, bytes, was_there: false });
        Ok(())
    }

    /// Gives contents their name at a commit.
    pub(crate) fn link(&self, commit: &str, remote: &Remote) -> Result<(), HubError> {
        let link = self.folder.join("snapshots").join(commit).join(&remote.path);
        let disk = |cause| HubError::disk(&link, cause);
        let folder = link.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(disk)?;
        // From a snapshot's own folder, and from each folder in it.
        let up = "../".repeat(2 + remote.path.matches('/').count());
        let target = format!("{up}blobs/{}", remote.tag);
        if is_link(&link) && fs::read_link(&link).is_ok_and(|to| to == Path::new(&target)) {
            return Ok(());
        }
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link).map_err(disk)?;
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(&target, &link).map_err(disk)?;
        #[cfg(not(unix))]
        fs::copy(folder.join(&target), &link).map_err(disk)?;
        Ok(())
    }
}

/// Writes a small file whole, or not at all.
pub(crate) fn store(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    let disk = |cause| HubError::disk(path, cause);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(disk)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(name);
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
        .map_err(disk)
}

/// Downloads a file's missing part, over as many connections as it takes. Returns its length.
fn complete(
    client: &Client,
    path: &str,
    (remote, limit): (&Remote, u64),
    (file, part): (&mut File, &Path),
    refused: &dyn Fn(&Answer) -> HubError,
    on: &(dyn Fn(Event<'_>) + Sync),
) -> Result<u64, HubError> {
    let disk = |cause| HubError::disk(part, cause);
    let mut held = file.seek(std::io::SeekFrom::End(0)).map_err(disk)?;
    let most = remote.bytes.unwrap_or(limit);
    if held > most || remote.bytes.is_none() {
        held = empty(file).map_err(disk)?;
    }
    on(Event::Got(held));
    let (mut furthest, mut stuck) = (held, 0);
    while remote.bytes.is_none_or(|bytes| held < bytes) {
        let mut answer = client.ask(&Method::GET, path, held)?;
        let (status, host) = (answer.status(), answer.host.clone());
        let ended = match status {
            // The server's file is shorter, so the part on disk is of another file.
            416 => TransferEnd::Cut("HTTP 416, the server has no further bytes".to_owned()),
            200 | 206 => {
                if held > 0 && !(status == 206 && starts_at(&answer, held)) {
                    on(Event::Lost(held));
                    held = empty(file).map_err(disk)?;
                }
                if status == 206 && !starts_at(&answer, held) {
                    TransferEnd::Cut("it sent another part than requested".to_owned())
                } else {
                    pour(&mut answer, (file, part), &mut held, most, on)?
                }
            }
            _ if is_passing(status) => TransferEnd::Cut(format!("HTTP {status}")),
            _ => return Err(refused(&answer)),
        };
        if remote.bytes.is_none() && held > limit {
            empty(file).map_err(disk)?;
            return Err(HubError::Larger { path: remote.path.clone(), limit });
        }
        let cause = match ended {
            TransferEnd::Whole if remote.bytes.is_none_or(|bytes| held >= bytes) => break,
            TransferEnd::Whole => "the connection was closed".to_owned(),
            TransferEnd::Cut(cause) => cause,
            TransferEnd::Slow(cause) => {
                // The bytes so far do not justify another long wait.
                furthest = furthest.max(held);
                cause
            }
        };
        if status == 416 && held > 0 {
            on(Event::Lost(held));
            held = empty(file).map_err(disk)?;
        }
        stuck = if held > furthest { 0 } else { stuck + 1 };
        furthest = furthest.max(held);
        if stuck == STUCK {
            return Err(HubError::Stopped { path: remote.path.clone(), host, held, cause });
        }
        on(Event::Again { path: &remote.path, cause: &cause });
        std::thread::sleep(pause(stuck));
    }
    Ok(held)
}

/// Appends the body of an answer to the file.
fn pour(
    answer: &mut Answer,
    (file, part): (&mut File, &Path),
    held: &mut u64,
    most: u64,
    on: &(dyn Fn(Event<'_>) + Sync),
) -> Result<TransferEnd, HubError> {
    let mut pace = Pace::start();
    let mut body = answer.response.body_mut().as_reader();
    let mut buffer = vec![0; PIECE];
    loop {
        let read = match body.read(&mut buffer) {
            Ok(0) => return Ok(TransferEnd::Whole),
            Ok(read) => read,
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(cause) => return Ok(TransferEnd::Cut(cause.to_string())),
        };
        let written = file.write_all(&buffer[..read]);
        written.map_err(|cause| HubError::disk(part, cause))?;
        *held += read as u64;
        on(Event::Got(read as u64));
        // More than the hub says is no file of its, and may have no end.
        if *held > most {
            return Ok(TransferEnd::Whole);
        }
        if let Err(slow) = pace.took(read as u64) {
            return Ok(TransferEnd::Slow(slow));
        }
    }
}

/// True if an answer is the part of a file that begins at this byte.
fn starts_at(answer: &Answer, byte: u64) -> bool {
    let range = answer.response.headers().get(header::CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok());
    let start = range.and_then(|range| range.trim().strip_prefix("bytes ")?.split('-').next());
    start.and_then(|start| start.trim().parse().ok()) == Some(byte)
}

/// Empties a file. Returns the length that is left: 0.
fn empty(file: &mut File) -> std::io::Result<u64> {
    file.set_len(0)?;
    file.rewind()?;
    Ok(0)
}

/// Compares the downloaded file with the length and the digest that the hub states.
fn check(file: &mut File, bytes: u64, remote: &Remote) -> Result<(), HubError> {
    if let Some(expected) = remote.bytes.filter(|expected| *expected != bytes) {
        return Err(HubError::Length { path: remote.path.clone(), expected, found: bytes });
    }
    let Some(digest) = Digest::from_tag(&remote.tag) else { return Ok(()) };
    let found = digest
        .measure(file)
        .map_err(|cause| HubError::Disk { path: PathBuf::from(&remote.path), cause })?;
    if found == remote.tag {
        Ok(())
    } else {
        Err(HubError::Checksum {
            path: remote.path.clone(),
            hash: digest.name(),
            expected: remote.tag.clone(),
            found,
        })
    }
}
