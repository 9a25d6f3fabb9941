//! Downloads of a repository: its list of files, their sizes, and then the files, several at a
//! time.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::Deserialize;
use ureq::http::Method;

use crate::blob::{Blobs, store};
use crate::cache::{Cache, Snapshot};
use crate::client::{Answer, Client};
use crate::error::HubError;
use crate::name::{Kind, Repository, is_component};
use crate::origin::escaped;

/// Longest list of files that is read, in bytes.
const LIST_BYTES: u64 = 64 << 20;
/// The number of questions about files that are asked at a time.
const QUESTIONS: usize = 8;
const DOWNLOADS: usize = 4;

/// Everything that a repository has at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub commit: String,
    pub files: Vec<String>,
}

/// The hub's facts about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub path: String,
    /// Its length; absent where the hub does not state it.
    pub bytes: Option<u64>,
    /// The tag of its contents: SHA-256 for large files, the digest of git for others.
    pub(crate) tag: String,
}

impl Remote {
    /// True if the hub states a digest with which the download can be compared.
    pub fn has_checksum(&self) -> bool {
        crate::blob::Digest::from_tag(&self.tag).is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes that are there, from an earlier download or from now.
    Got(u64),
    /// Bytes that were there and are not used.
    Lost(u64),
    /// A connection failed, and the download continues with another.
    Again { path: &'a str, cause: &'a str },
    /// A file is complete and checked.
    Done {
        path: &'a str,
        bytes: u64,
        /// True if it had been there already.
        was_there: bool,
    },
}

pub fn list(client: &Client, repository: &Repository) -> Result<Listing, HubError> {
    #[derive(Deserialize)]
    struct Info {
        sha: String,
        #[serde(default)]
        siblings: Vec<Sibling>,
    }
    #[derive(Deserialize)]
    struct Sibling {
        rfilename: String,
    }
    let path = format!(
        "/api/{}/{}/revision/{}",
        repository.kind().plural(),
        repository.name(),
        escaped(repository.revision(), false)
    );
    let mut answer = client.ask(&Method::GET, &path, 0)?;
    if !answer.is_ok() {
        return Err(refused(client, &answer, repository, &path, None));
    }
    let host = answer.host.clone();
    let unexpected =
        |cause: String| HubError::Unexpected { host: host.clone(), what: path.clone(), cause };
    let text = answer.whole(LIST_BYTES);
    let text = text.map_err(|cause| unexpected(cause.to_string()))?;
    let info: Info =
        serde_json::from_slice(&text).map_err(|cause| unexpected(cause.to_string()))?;
    if !is_component(&info.sha) {
        return Err(unexpected("its commit is not one".to_owned()));
    }
    let files: Vec<String> = (info.siblings.into_iter()).map(|file| file.rfilename).collect();
    if let Some(wrong) = files.iter().find(|path| !is_path(path)) {
        return Err(unexpected(format!("`{wrong}` is not the path of a file")));
    }
    Ok(Listing { commit: info.sha, files })
}

fn is_path(path: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', ':', '\0'])
    };
    path.len() <= 1_000 && path.split('/').all(is_part)
}

/// Asks for files' lengths and tags, in order. Errors: one for each file that cannot be read.
pub fn look(
    client: &Client,
    repository: &Repository,
    commit: &str,
    files: &[String],
) -> Result<Vec<Remote>, Vec<HubError>> {
    each(files, QUESTIONS, |file| {
        let path = address(repository, commit, file);
        let answer = client.ask(&Method::HEAD, &path, 0)?;
        if !answer.is_ok() {
            return Err(refused(client, &answer, repository, &path, Some(file)));
        }
        // A large file's own tag and length stand in fields of their own, beside the redirect's.
        let tag = answer.field("x-linked-etag").or(answer.field("etag"));
        let tag = tag.map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
        let Some(tag) = tag.filter(|tag| is_component(tag)) else {
            return Err(HubError::Unexpected {
                host: answer.host,
                what: path,
                cause: "it has no tag (ETag) of the file's contents".to_owned(),
            });
        };
        let bytes = (answer.field("x-linked-size")).or_else(|| {
            let of_file = answer.is_of_hub.then(|| answer.response.headers());
            of_file?.get("content-length")?.to_str().ok()
        });
        Ok(Remote { path: file.clone(), bytes: bytes.and_then(|bytes| bytes.parse().ok()), tag })
    })
}

/// Downloads files into the cache, checks them, and makes them the repository's at its revision,
/// once all of them are there. Of a file whose size the hub does not state, at most `limit` bytes
/// are taken. Fails if files are missing. The bytes that have come of them are kept.
pub fn fetch(
    client: &Client,
    cache: &Cache,
    repository: &Repository,
    commit: &str,
    (files, limit): (&[Remote], u64),
    on: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Snapshot, Vec<HubError>> {
    let folder = cache.folder(repository);
    let blobs = Blobs::new(cache, repository);
    each(files, DOWNLOADS, |file| {
        let path = address(repository, commit, &file.path);
        let refused =
            |answer: &Answer| refused(client, answer, repository, &path, Some(&file.path));
        blobs.bring(client, &path, (file, limit), &refused, on)
    })?;
    let one = |error: HubError| vec![error];
    for file in files {
        blobs.link(commit, file).map_err(one)?;
    }
    if repository.revision() != commit {
        let branch = folder.join("refs").join(repository.revision());
        store(&branch, commit.as_bytes()).map_err(one)?;
    }
    Ok(Snapshot { folder: folder.join("snapshots").join(commit), commit: commit.to_owned() })
}

/// The place where the hub has a file.
fn address(repository: &Repository, commit: &str, file: &str) -> String {
    format!(
        "/{}{}/resolve/{}/{}",
        repository.kind().before(),
        repository.name(),
        escaped(commit, false),
        escaped(file, true)
    )
}

/// Does something with each of them, some at a time; begins nothing new once something failed.
fn each<I: Sync, T: Send>(
    items: &[I],
    at_a_time: usize,
    work: impl Fn(&I) -> Result<T, HubError> + Sync,
) -> Result<Vec<T>, Vec<HubError>> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.min(items.len()) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else { return };
                    let result = work(item);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    let mut done = done.lock().unwrap_or_else(|held| held.into_inner());
                    done.push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|held| held.into_inner());
    done.sort_by_key(|(number, _)| *number);
    let (mut made, mut errors) = (Vec::new(), Vec::new());
    for (_, result) in done {
        match result {
            Ok(one) => made.push(one),
            Err(error) => errors.push(error),
        }
    }
    // The same cause is said once.
    let mut texts = std::collections::BTreeSet::new();
    errors.retain(|error| texts.insert(error.to_string()));
    if errors.is_empty() { Ok(made) } else { Err(errors) }
}

/// Turns an answer that is no file and no list into an error, by the hub's field for the reason.
fn refused(
    client: &Client,
    answer: &Answer,
    repository: &Repository,
    what: &str,
    file: Option<&str>,
) -> HubError {
    let status = answer.status();
    let name = repository.name().to_owned();
    let endpoint = &client.endpoint;
    let code = answer.field("x-error-code").unwrap_or_default();
    let no_repository = || HubError::NoRepository {
        endpoint: endpoint.to_owned(),
        kind: repository.kind().name(),
        name: name.clone(),
        status,
    };
    let gated = || {
        let page = format!("{endpoint}/{}{name}", repository.kind().before());
        let advice = if client.has_token() {
            format!(
                "the token of HF_TOKEN may not read it; accept the terms at {page} with the token's account, or give the token of another, with the right to read gated repositories"
            )
        } else {
            format!(
                "accept its terms at {page} with your account, and set HF_TOKEN to a token of that account"
            )
        };
        HubError::Gated { name: name.clone(), status, advice }
    };
    match (answer.is_of_hub, code, status) {
        (true, "GatedRepo", _) | (true, "", 401 | 403) | (true, _, 403) => gated(),
        (true, "RepoNotFound", _) => no_repository(),
        (true, "RevisionNotFound", _) => {
            HubError::NoRevision { name, revision: repository.revision().to_owned() }
        }
        (true, "EntryNotFound", _) | (true, "", 404) if file.is_some() => HubError::NoFile {
            name,
            path: file.unwrap_or_default().to_owned(),
            advice: String::new(),
        },
        (true, "", 404) => no_repository(),
        _ => HubError::Status {
            host: answer.host.clone(),
            what: what.to_owned(),
            status,
            message: client.error_text(answer),
        },
    }
}

impl Listing {
    /// The named files. Errors: one for each that is not there, with the nearest that is.
    pub fn named(
        &self,
        repository: &Repository,
        names: &[String],
    ) -> Result<Vec<String>, Vec<HubError>> {
        let missing = names.iter().filter(|name| !self.files.contains(name));
        let errors: Vec<HubError> = missing
            .map(|name| {
                let nearest = model::nearest(name, self.files.iter().map(String::as_str));
                HubError::NoFile {
                    name: repository.to_string(),
                    path: name.clone(),
                    advice: match nearest {
                        Some(near) => format!("; did you mean `{near}`?"),
                        None => format!("; its files are {}", self.few()),
                    },
                }
            })
            .collect();
        if errors.is_empty() { Ok(names.to_vec()) } else { Err(errors) }
    }

    /// The files of this kind that are downloaded where none is named.
    pub fn chosen(&self, kind: Kind) -> Vec<String> {
        let wanted = match kind {
            Kind::Model => crate::is_of_tokenizer,
            Kind::Dataset => crate::is_data,
        };
        let files = self.files.iter().filter(|path| wanted(path));
        files.cloned().collect()
    }

    pub fn few(&self) -> String {
        const SHOWN: usize = 10;
        let shown: Vec<&str> = self.files.iter().take(SHOWN).map(String::as_str).collect();
        match self.files.len() {
            0 => "none".to_owned(),
            1..=SHOWN => shown.join(", "),
            all => format!("{} and {} more", shown.join(", "), all - SHOWN),
        }
    }
}

/// True if a path is one of the cache's links to the contents of a file.
pub(crate) fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_symlink())
}
