//! The failures between here and the hub; each message states a remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::size;

#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("{0}")]
    Setting(String),
    #[error("HF_HUB_OFFLINE is set, so nothing is downloaded; unset it to download")]
    Offline,
    #[error("{name} is gated (HTTP {status}): {advice}")]
    Gated { name: String, status: u16, advice: String },
    #[error(
        "{endpoint} has no {kind} `{name}` (HTTP {status}): the name is wrong, or it is private and HF_TOKEN may not read it"
    )]
    NoRepository { endpoint: String, kind: &'static str, name: String, status: u16 },
    #[error("{name} has no revision `{revision}`; give a branch, a tag or a commit of it")]
    NoRevision { name: String, revision: String },
    #[error("{name} has no file `{path}`{advice}")]
    NoFile { name: String, path: String, advice: String },
    #[error(
        "cannot reach {host}: {cause}; check the network, a proxy (HTTPS_PROXY) and HF_ENDPOINT, and repeat the command, which resumes the download"
    )]
    Unreachable { host: String, cause: String },
    #[error("{host} answered {what} with HTTP {status}{message}")]
    Status { host: String, what: String, status: u16, message: String },
    #[error(
        "{host} answered {what} with an unexpected reply: {cause}; is HF_ENDPOINT the address of a hub?"
    )]
    Unexpected { host: String, what: String, cause: String },
    #[error(
        "{path}: the hub does not state its size, and it exceeds the remaining {limit} bytes; it was deleted; allow more with --max-size"
    )]
    Larger { path: String, limit: u64 },
    #[error(
        "{path}: the download is damaged: its {hash} is {found}, and the hub states {expected}; it was deleted; repeat the command, and if it happens again, suspect a proxy or the mirror in HF_ENDPOINT"
    )]
    Checksum { path: String, hash: &'static str, expected: String, found: String },
    #[error(
        "{path}: {found} bytes came, and the hub states {expected}; they were deleted; repeat the command"
    )]
    Length { path: String, expected: u64, found: u64 },
    #[error("{path}: the download from {host} stopped at {} again and again: {cause}; repeat the command to resume", size(*held))]
    Stopped { path: String, host: String, held: u64, cause: String },
    #[error(
        "the disk of {} is full; free some space, or choose another with HF_HUB_CACHE, and repeat the command, which resumes the download",
        folder.display()
    )]
    DiskFull { folder: PathBuf },
    #[error("cannot write {}: {cause}; choose a folder to download to with HF_HUB_CACHE", path.display())]
    Disk { path: PathBuf, cause: io::Error },
}

impl HubError {
    /// Turns the system's error about a file of the cache into one of the hub.
    pub(crate) fn disk(path: &Path, cause: io::Error) -> Self {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if full.contains(&cause.kind()) {
            HubError::DiskFull { folder: path.parent().unwrap_or(path).to_owned() }
        } else {
            HubError::Disk { path: path.to_owned(), cause }
        }
    }

    /// True if the other side failed: it is unreachable, or its data is not as stated.
    pub fn is_of_hub(&self) -> bool {
        matches!(
            self,
            HubError::Unreachable { .. }
                | HubError::Status { .. }
                | HubError::Unexpected { .. }
                | HubError::Checksum { .. }
                | HubError::Length { .. }
                | HubError::Stopped { .. }
        )
    }
}
