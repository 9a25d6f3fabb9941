//! The tokenizer that counts on this side. The scenario names it, by a path or a name on the
//! Hugging Face hub. Else the hub's local cache may have it under a name of the served model; else
//! bytes count. Nothing is downloaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::measured::measure;
use super::{Faults, ResolvedRun, Source, kept, resolve_timed};
use crate::prompts;
use hub::{Cache, Kind, Repository, Snapshot};
use model::hex;
use scenario::plan::PlannedTokenizer;
use tokenizer::Tokenizer;

/// Files whose names end so are meant as files, not as names on the hub.
const OF_FILES: [&str; 3] = [".json", ".model", ".tiktoken"];

/// The largest file that is read for its digest before it is opened, in bytes.
const LARGEST: u64 = 256 << 20;

pub(super) struct Counting {
    pub(super) tokenizer: Tokenizer,
    pub(super) planned: PlannedTokenizer,
    pub(super) remarks: Vec<String>,
}

impl Counting {
    /// The substitute, which takes every byte for a token.
    pub(super) fn bytes(remarks: Vec<String>) -> Self {
        let tokenizer = Tokenizer::bytes();
        let planned = PlannedTokenizer {
            name: tokenizer.name().to_owned(),
            approximate: tokenizer.facts().approximate,
            ..PlannedTokenizer::default()
        };
        Counting { tokenizer, planned, remarks }
    }

    fn open(name: String, path: &Path) -> Result<Self, String> {
        let file = Tokenizer::file(path).map_err(|cause| cause.to_string())?;
        // A missing or too large file is refused when it is opened, and not read to its end.
        let is_one = |metadata: std::fs::Metadata| metadata.is_file() && metadata.len() <= LARGEST;
        let known = if std::fs::metadata(&file).is_ok_and(is_one) {
            Digests::read(path, &file).ok()
        } else {
            None
        };
        let digest = known.as_ref().map(|own| own.of_file.as_str());
        let mut remarks = Vec::new();
        let tokenizer = kept::open(path, &file, digest, &mut remarks)?;
        let digests = known
            .map_or_else(|| Digests::read(path, &file), Ok)
            .map_err(|cause| format!("cannot read the tokenizer `{}`: {cause}", path.display()))?;
        let planned = PlannedTokenizer {
            name,
            approximate: tokenizer.facts().approximate,
            digest: Some(digests.of_all),
            template_tokens: prompts::template_tokens(&tokenizer),
            ..PlannedTokenizer::default()
        };
        Ok(Counting { tokenizer, planned, remarks })
    }

    fn of_snapshot(repository: &Repository, snapshot: Snapshot) -> Result<Self, String> {
        let mut counting = Counting::open(repository.name().to_owned(), &snapshot.folder)?;
        counting.planned.revision = Some(snapshot.commit);
        Ok(counting)
    }
}

impl ResolvedRun {
    /// Looks for a tokenizer under the server's names for its model, unless the scenario names one
    /// or one was found. With a new one resolves the run again. Second, remarks about it.
    pub(crate) fn counting_for(
        self,
        names: Vec<String>,
    ) -> Result<(ResolvedRun, Vec<String>), Faults> {
        let source = &self.source;
        let tried = candidates(source);
        let is_settled = source.scenario.tokenizer.path.is_some() || self.draft.tokenizer.found;
        if is_settled || names.iter().all(|name| tried.contains(name)) {
            return Ok((self, Vec::new()));
        }
        let found = find(&names, cache(source).as_ref());
        if found.planned.approximate {
            return Ok((self, found.remarks));
        }
        let source = Source { served: names, ..(**source).clone() };
        let again = resolve_timed(&source, Arc::clone(&self.timings))?;
        Ok((again, found.remarks))
    }
}

/// Opens the tokenizer that a scenario names, or looks for one.
pub(super) fn open(source: &Source) -> Result<Counting, String> {
    let Some(entry) = &source.scenario.tokenizer.path else {
        return Ok(find(&candidates(source), cache(source).as_ref()));
    };
    let path = super::path_of(source, entry);
    let of_path = || Counting::open(path.display().to_string(), &path);
    match repository(&entry.value).filter(|_| !path.exists()) {
        None => of_path(),
        Some(repository) => cached(&repository, &path, cache(source).as_ref()),
    }
}

/// The tokenizer that a source names, with its entry in a plan.
pub(crate) fn tokenizer_of(source: &Source) -> Result<(Tokenizer, PlannedTokenizer), String> {
    let counting = open(source)?;
    Ok((counting.tokenizer, counting.planned))
}

/// The names under which a tokenizer is looked for where the scenario names none.
pub(super) fn candidates(source: &Source) -> Vec<String> {
    let named = source.scenario.target.model.as_ref();
    let mut names: Vec<String> = named.map(|model| model.value.clone()).into_iter().collect();
    for name in &source.served {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Opens the first tokenizer that a cache has under one of these names; else returns the
/// substitute. A name that cannot be on the hub, such as a path, is skipped.
pub(super) fn find(names: &[String], cache: Option<&Cache>) -> Counting {
    let mut remarks = Vec::new();
    for name in names {
        let Ok(repository) = Repository::parse(Kind::Model, name) else { continue };
        let found = cache.and_then(|cache| cache.find(&repository));
        let Some(snapshot) = found.filter(Snapshot::has_tokenizer) else { continue };
        let commit: String = snapshot.commit.chars().take(12).collect();
        match Counting::of_snapshot(&repository, snapshot) {
            Ok(mut counting) => {
                counting.planned.found = true;
                remarks.push(format!(
                    "note: tokens are counted with the tokenizer of {} (commit {commit}), found in the local Hugging Face cache by the served model's name; give another with --tokenizer",
                    repository.name()
                ));
                return Counting { remarks, ..counting };
            }
            Err(cause) => remarks.push(format!(
                "note: the local cache of the Hugging Face hub has {repository}, but its tokenizer cannot be used: {cause}"
            )),
        }
    }
    Counting::bytes(remarks)
}

pub(super) fn cache(source: &Source) -> Option<Cache> {
    Cache::from_variables(|name| source.variables.get(name))
}

/// Reads a path as the name of a model on the hub.
fn repository(path: &Path) -> Option<Repository> {
    let text = path.to_str()?;
    if OF_FILES.iter().any(|ending| text.ends_with(ending)) {
        return None;
    }
    Repository::parse(Kind::Model, text).ok()
}

/// The tokenizer that a cache has under a name.
fn cached(repository: &Repository, path: &Path, cache: Option<&Cache>) -> Result<Counting, String> {
    let found = cache.and_then(|cache| cache.find(repository));
    if let Some(snapshot) = found.filter(Snapshot::has_tokenizer) {
        return Counting::of_snapshot(repository, snapshot);
    }
    let looked = match cache {
        Some(cache) => {
            let folder: PathBuf = cache.folder(repository);
            if folder.exists() {
                format!(
                    "the local cache of the Hugging Face hub has no tokenizer of it at `{}` (in `{}`)",
                    repository.revision(),
                    folder.display()
                )
            } else {
                format!("the local cache of the Hugging Face hub has no `{}`", folder.display())
            }
        }
        None => "there is no home directory with a cache of the Hugging Face hub".to_owned(),
    };
    Err(format!(
        "tokenizer `{repository}`: there is no file or folder `{}`, and {looked}; download it with `runner fetch tokenizer {repository}`, or give a tokenizer's file or folder",
        path.display()
    ))
}

/// The digests of a tokenizer, whose file is read once for both.
struct Digests {
    of_file: String,
    /// The same; of a folder, the SHA-256 of a list with a line for each file that decides tokens:
    /// its SHA-256 and name, in the order of names.
    of_all: String,
}

impl Digests {
    fn read(path: &Path, file: &Path) -> std::io::Result<Self> {
        let (_, of_file) = measure(file)?;
        let mut of_all = of_file.clone();
        if path.is_dir() {
            let mut hash = Sha256::new();
            for name in deciding(path)? {
                let one = path.join(&name);
                let digest = if one == file { of_file.clone() } else { measure(&one)?.1 };
                hash.update(format!("{digest}  {name}\n"));
            }
            of_all = hex(&hash.finalize());
        }
        Ok(Digests { of_file, of_all })
    }
}

/// The files of a tokenizer's folder that decide tokens, in the order of their names.
fn deciding(path: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for below in ["", "additional_chat_templates/"] {
        let Ok(entries) = std::fs::read_dir(path.join(below)) else { continue };
        for entry in entries {
            let name = entry?.file_name();
            let name = name.to_str().map(|name| format!("{below}{name}"));
            names
                .extend(name.filter(|name| hub::decides_tokens(name) && path.join(name).is_file()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reader::Located;
    use tempfile::TempDir;

    /// The smallest tokenizer: three words.
    const SMALL: &str = r#"{"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel",
        "vocab": {"a": 0, "b": 1, "[UNK]": 2}, "unk_token": "[UNK]"}}"#;

    /// A cache with a tokenizer of each name at a commit.
    fn cache_of(models: &[(&str, &str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (name, commit, tokenizer) in models {
            let model = folder.path().join(format!("models--{}", name.replace('/', "--")));
            let snapshot = model.join("snapshots").join(commit);
            std::fs::create_dir_all(&snapshot).unwrap();
            std::fs::create_dir_all(model.join("refs")).unwrap();
            std::fs::write(model.join("refs/main"), commit).unwrap();
            std::fs::write(snapshot.join("tokenizer.json"), tokenizer).unwrap();
        }
        folder
    }

    fn source(cache: &TempDir) -> Source {
        let folder = cache.path().display().to_string();
        let variables = [("HF_HUB_CACHE".to_owned(), folder)];
        Source { variables: super::super::Variables::Given(variables.into()), ..Source::default() }
    }

    fn asking(cache: &TempDir, name: &str) -> Source {
        let mut source = source(cache);
        source.scenario.tokenizer.path = Some(Located::flag("--tokenizer", PathBuf::from(name)));
        source
    }

    #[test]
    fn plan_states_the_commit_of_a_cached_name() {
        let cache = cache_of(&[("org/model", "abc123", SMALL)]);
        for (name, revision) in [("org/model", "abc123"), ("org/model@abc123", "abc123")] {
            let planned = open(&asking(&cache, name)).unwrap().planned;
            assert_eq!(planned.name, "org/model");
            assert_eq!(planned.revision.as_deref(), Some(revision));
            assert!(planned.digest.is_some() && !planned.found && !planned.approximate);
        }
    }

    #[test]
    fn missing_tokenizer_error_names_the_fetch_command() {
        let cache = cache_of(&[("org/model", "abc123", SMALL)]);
        let wrong = |name: &str| match open(&asking(&cache, name)) {
            Ok(_) => panic!("{name} was opened"),
            Err(error) => error,
        };
        let other = wrong("org/other");
        let folder = cache.path().join("models--org--other");
        assert!(other.contains(&folder.display().to_string()), "{other}");
        assert!(other.contains("runner fetch tokenizer org/other`"), "{other}");
        let revision = wrong("org/model@v2");
        assert!(revision.contains("no tokenizer of it at `v2`"), "{revision}");
        assert!(revision.contains("runner fetch tokenizer org/model@v2`"), "{revision}");
        for path in ["./org/model", "/no/such/folder", "a/b/c", "no-such/tokenizer.json"] {
            let error = wrong(path);
            assert!(!error.contains("runner fetch"), "{path}: {error}");
        }
    }

    #[test]
    fn existing_path_wins_over_a_name() {
        let cache = cache_of(&[("org/model", "abc123", SMALL)]);
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("org/model");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("tokenizer.json"), SMALL).unwrap();
        // A path in a scenario's text starts from the scenario's folder.
        let text = "[tokenizer]\npath = \"org/model\"\n";
        let mut written = source(&cache);
        written.scenario = scenario::Scenario::parse("s.toml", text).unwrap();
        assert!(open(&written).unwrap().planned.revision.is_some());
        written.folder = Some(folder.path().to_owned());
        assert_eq!(open(&written).unwrap().planned.revision, None);

        let direct = asking(&cache, path.to_str().unwrap());
        let planned = open(&direct).unwrap().planned;
        assert_eq!((planned.name.as_str(), planned.revision), (path.to_str().unwrap(), None));
    }

    #[test]
    fn served_model_names_the_tokenizer_with_a_note() {
        let cache = cache_of(&[("org/model", "abc123", SMALL), ("org/broken", "def456", "{")]);
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let at = Cache::at(cache.path());
        let counting = find(&names(&["/models/llama", "org/other", "org/model"]), Some(&at));
        assert_eq!(counting.planned.name, "org/model");
        assert!(counting.planned.found && !counting.planned.approximate);
        assert!(
            counting.remarks[0].contains("org/model (commit abc123)"),
            "{:?}",
            counting.remarks
        );

        let none = find(&names(&["org/other"]), Some(&at));
        assert_eq!((none.planned.name.as_str(), none.planned.found), ("bytes", false));
        assert!(none.planned.approximate && none.remarks.is_empty());
        assert_eq!(find(&names(&["org/model"]), None).planned.name, "bytes");

        let broken = find(&names(&["org/broken"]), Some(&at));
        assert_eq!(broken.planned.name, "bytes");
        assert!(broken.remarks[0].contains("cannot be used"), "{:?}", broken.remarks);

        let mut source = source(&cache);
        source.served = names(&["org/model"]);
        assert!(open(&source).unwrap().planned.found);
    }

    #[test]
    fn folder_digest_covers_files_that_decide_tokens() {
        let cache = cache_of(&[("org/model", "abc", SMALL)]);
        let folder = cache.path().join("models--org--model/snapshots/abc");
        let digest = |folder: &Path| {
            let digests = Digests::read(folder, &folder.join("tokenizer.json")).unwrap();
            assert_eq!(digests.of_file, hex(&Sha256::digest(SMALL)));
            digests.of_all
        };
        let before = digest(&folder);
        std::fs::write(folder.join("README.md"), "words").unwrap();
        std::fs::write(folder.join("config.json"), "{}").unwrap();
        assert_eq!(digest(&folder), before);
        std::fs::write(folder.join("chat_template.jinja"), "{{ x }}").unwrap();
        assert_ne!(digest(&folder), before);
    }
}
