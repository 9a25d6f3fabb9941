//! Names, the cache, and downloads from a hub on this machine.

mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use tempfile::TempDir;

use crate::*;
use server::{COMMIT, Hub};

const MODEL: &str = "models/org/model";

impl Hub {
    /// Sends other bytes in place of a model's file.
    fn send_instead(&self, path: &str, bytes: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        let files = state.repositories.get_mut(MODEL).unwrap();
        files.get_mut(path).unwrap().sent = Some(bytes);
    }

    /// The first bytes that the requests for contents wanted.
    fn starts(&self) -> Vec<Option<usize>> {
        let seen = self.seen().into_iter();
        seen.filter(|seen| seen.is_of_contents).map(|seen| seen.from).collect()
    }
}

/// Bytes that a file of unknown size may have.
const LIMIT: u64 = 1 << 20;

fn model(name: &str) -> Repository {
    Repository::parse(Kind::Model, name).unwrap()
}

fn variables<'v>(pairs: &'v [(&'v str, &'v str)]) -> impl Fn(&str) -> Option<String> + 'v {
    let map: BTreeMap<&str, &str> = pairs.iter().copied().collect();
    move |name| map.get(name).map(|value| (*value).to_owned())
}

fn settings(hub: &Hub, cache: &TempDir, token: Option<&str>) -> Settings {
    let folder = cache.path().to_str().unwrap();
    let mut pairs = vec![("HF_ENDPOINT", hub.url.as_str()), ("HF_HUB_CACHE", folder)];
    pairs.extend(token.map(|token| ("HF_TOKEN", token)));
    Settings::from_variables(variables(&pairs)).unwrap()
}

/// The result of a download, and its events.
struct Outcome {
    result: Result<Snapshot, Vec<HubError>>,
    got: u64,
    lost: u64,
    again: usize,
    were_there: usize,
}

fn download(settings: &Settings, repository: &Repository, files: &[&str]) -> Outcome {
    let events = Mutex::new((0, 0, 0, 0));
    let on = |event: Event<'_>| {
        let mut events = events.lock().unwrap();
        match event {
            Event::Got(bytes) => events.0 += bytes,
            Event::Lost(bytes) => events.1 += bytes,
            Event::Again { .. } => events.2 += 1,
            Event::Done { was_there, .. } => events.3 += usize::from(was_there),
        }
    };
    let result = (|| {
        let one = |error| vec![error];
        let client = Client::new(settings).map_err(one)?;
        let listing = list(&client, repository).map_err(one)?;
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let files = listing.named(repository, &files)?;
        let remotes = look(&client, repository, &listing.commit, &files)?;
        fetch(&client, &settings.cache, repository, &listing.commit, (&remotes, LIMIT), &on)
    })();
    let (got, lost, again, were_there) = *events.lock().unwrap();
    Outcome { result, got, lost, again, were_there }
}

fn error(outcome: Outcome) -> String {
    let errors = outcome.result.unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Bytes that compress to nothing and repeat nowhere near.
fn some_bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn downloads_are_checked_and_laid_out_for_other_tools() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    let large = some_bytes(300_000);
    hub.put(MODEL, "tokenizer.json", b"{\"small\": 1}", false);
    hub.put(MODEL, "sub/deep/vocab.bin", &large, true);
    let settings = settings(&hub, &cache, None);
    let files = ["tokenizer.json", "sub/deep/vocab.bin"];
    let outcome = download(&settings, &model("org/model"), &files);
    let snapshot = outcome.result.unwrap();
    assert_eq!(outcome.got, 300_012);
    assert_eq!(snapshot.commit, COMMIT);
    let folder = cache.path().join("models--org--model");
    assert_eq!(snapshot.folder, folder.join("snapshots").join(COMMIT));
    assert_eq!(read(&folder.join("refs/main")), COMMIT.as_bytes());
    assert_eq!(read(&snapshot.folder.join("sub/deep/vocab.bin")), large);
    assert_eq!(read(&folder.join("blobs").join(server::sha256(&large))), large);
    let small = folder.join("blobs").join(server::git(b"{\"small\": 1}"));
    let link = snapshot.folder.join("tokenizer.json");
    assert_eq!(std::fs::canonicalize(&link).unwrap(), small.canonicalize().unwrap());
    let target = std::fs::read_link(&link).unwrap();
    assert!(target.starts_with("../../blobs"), "{target:?}");
    assert_eq!(settings.cache.find(&model("org/model")), Some(snapshot));

    let before = hub.seen().len();
    let outcome = download(&settings, &model("org/model@main"), &files);
    outcome.result.unwrap();
    assert_eq!(outcome.were_there, 2);
    let asked_again = hub.seen().split_off(before);
    assert!(
        !asked_again.iter().any(|seen| seen.is_of_contents),
        "nothing comes twice: {asked_again:?}"
    );
}

#[test]
fn revision_has_its_own_reference() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put("datasets/org/data", "a.jsonl", b"{}\n", false);
    let settings = settings(&hub, &cache, None);
    let data = |name: &str| Repository::parse(Kind::Dataset, name).unwrap();
    let outcome = download(&settings, &data("org/data@refs/pr/1"), &["a.jsonl"]);
    outcome.result.unwrap();
    let folder = cache.path().join("datasets--org--data");
    assert_eq!(read(&folder.join("refs/refs/pr/1")), COMMIT.as_bytes());
    assert!(!folder.join("refs/main").exists());
    let by_commit = data(&format!("org/data@{COMMIT}"));
    assert!(settings.cache.find(&by_commit).is_some());
    let wrong = error(download(&settings, &data("org/data@v9"), &["a.jsonl"]));
    assert!(wrong.contains("no revision `v9`"), "{wrong}");
}

#[test]
fn interrupted_download_continues_or_restarts() {
    let large = some_bytes(200_000);
    let in_pieces = vec![None, Some(100_000), Some(150_000)];
    for (on_disk, cuts, knows_no_ranges, starts, lost, again) in [
        (0, vec![100_000, 50_000], false, in_pieces, 0, 2),
        (123_456, vec![], false, vec![Some(123_456)], 0, 0),
        (0, vec![150_000], true, vec![None, Some(150_000)], 150_000, 1),
    ] {
        let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
        hub.put(MODEL, "large.bin", &large, true);
        {
            let mut state = hub.state.lock().unwrap();
            (state.cuts, state.knows_no_ranges) = (cuts, knows_no_ranges);
        }
        let blobs = cache.path().join("models--org--model/blobs");
        let part = blobs.join(format!("{}.incomplete", server::sha256(&large)));
        if on_disk > 0 {
            std::fs::create_dir_all(&blobs).unwrap();
            std::fs::write(&part, &large[..on_disk]).unwrap();
        }
        let settings = settings(&hub, &cache, None);
        let outcome = download(&settings, &model("org/model"), &["large.bin"]);
        assert_eq!(read(&outcome.result.unwrap().folder.join("large.bin")), large);
        assert!(!part.exists());
        assert_eq!(hub.starts(), starts);
        assert_eq!((outcome.got - outcome.lost, outcome.lost), (200_000, lost));
        assert_eq!(outcome.again, again);
    }
}

#[test]
fn stalled_download_keeps_its_bytes() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    let large = some_bytes(10_000);
    hub.put(MODEL, "large.bin", &large, true);
    hub.state.lock().unwrap().cuts = vec![4_000, 0, 0, 0, 0, 0, 0, 0];
    let settings = settings(&hub, &cache, None);
    let stopped = error(download(&settings, &model("org/model"), &["large.bin"]));
    assert!(stopped.contains("large.bin") && stopped.contains("stopped at 4.0 kB"), "{stopped}");
    let part = format!("models--org--model/blobs/{}.incomplete", server::sha256(&large));
    assert_eq!(read(&cache.path().join(part)), large[..4_000]);
    assert!(!cache.path().join("models--org--model/refs/main").exists());
}

/// A byte now and then keeps no download waiting for ever, and no list.
#[test]
fn slow_server_ends_the_download() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put(MODEL, "large.bin", &some_bytes(100_000), true);
    let settings = settings(&hub, &cache, None);
    let client = Client::new(&settings).unwrap();
    let listing = list(&client, &model("org/model")).unwrap();
    let files = look(&client, &model("org/model"), &listing.commit, &listing.files).unwrap();
    hub.state.lock().unwrap().drips = true;
    let commit = &listing.commit;
    let (repository, wanted) = (model("org/model"), (&files[..], u64::MAX));
    let errors = fetch(&client, &settings.cache, &repository, commit, wanted, &|_| {});
    let stopped = errors.unwrap_err()[0].to_string();
    assert!(stopped.contains("large.bin") && stopped.contains("too slow to continue"), "{stopped}");
    for number in 0..2_000 {
        hub.put(MODEL, &format!("file-{number}.json"), b"{}", false);
    }
    let error = list(&client, &model("org/model")).unwrap_err().to_string();
    assert!(error.contains("too slow to continue"), "{error}");
}

#[test]
fn wrong_contents_are_deleted() {
    for is_large in [true, false] {
        let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
        let right = some_bytes(10_000);
        let mut damaged = right.clone();
        damaged[5_000] ^= 1;
        hub.put(MODEL, "file.bin", &right, is_large);
        hub.send_instead("file.bin", damaged);
        let settings = settings(&hub, &cache, None);
        let refused = error(download(&settings, &model("org/model"), &["file.bin"]));
        let hash = if is_large { "SHA-256" } else { "SHA-1" };
        assert!(refused.contains("damaged") && refused.contains(hash), "{refused}");
        let blobs = cache.path().join("models--org--model/blobs");
        assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 0, "it is deleted");
        assert_eq!(settings.cache.find(&model("org/model")), None);
        hub.send_instead("file.bin", right.clone());
        let outcome = download(&settings, &model("org/model"), &["file.bin"]);
        assert_eq!(read(&outcome.result.unwrap().folder.join("file.bin")), right);
    }
}

#[test]
fn file_of_unknown_size_has_a_limit() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.state.lock().unwrap().states_no_sizes = true;
    hub.put(MODEL, "small.bin", &some_bytes(1_000), true);
    hub.put(MODEL, "endless.bin", &some_bytes(3 << 20), true);
    let settings = settings(&hub, &cache, None);
    let outcome = download(&settings, &model("org/model"), &["small.bin"]);
    let small = outcome.result.unwrap().file("small.bin");
    assert_eq!(small.map(|path| read(&path).len()), Some(1_000));
    let refused = error(download(&settings, &model("org/model"), &["endless.bin"]));
    assert!(refused.contains("does not state its size"), "{refused}");
}

/// Runs read a model's files from the cache, so a part of a model must not look like all of it.
#[test]
fn surplus_bytes_leave_no_snapshot_in_the_cache() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put(MODEL, "a.json", b"{}", false);
    hub.put(MODEL, "b.bin", &some_bytes(1_000), true);
    hub.send_instead("b.bin", some_bytes(999_000));
    let settings = settings(&hub, &cache, None);
    let refused = error(download(&settings, &model("org/model"), &["a.json", "b.bin"]));
    assert!(refused.contains("the hub states 1000"), "{refused}");
    assert_eq!(settings.cache.find(&model("org/model")), None);
}

#[test]
fn busy_hub_is_retried_and_missing_hub_is_named() {
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put(MODEL, "a.json", b"{}", false);
    hub.state.lock().unwrap().busy = 1;
    let there = settings(&hub, &cache, None);
    download(&there, &model("org/model"), &["a.json"]).result.unwrap();

    let folder = cache.path().to_str().unwrap();
    let pairs = [("HF_ENDPOINT", "http://127.0.0.1:9/"), ("HF_HUB_CACHE", folder)];
    let nowhere = Settings::from_variables(variables(&pairs)).unwrap();
    let client = Client::new(&nowhere).unwrap();
    let refused = list(&client, &model("org/model")).unwrap_err();
    assert!(refused.is_of_hub());
    assert!(refused.to_string().contains("cannot reach 127.0.0.1"), "{refused}");
}

#[test]
fn token_is_read_from_the_hubs_file() {
    let home = TempDir::new().unwrap();
    std::fs::write(home.path().join("token"), "hf_of_a_file\n").unwrap();
    let (hub, cache) = (Hub::start(), TempDir::new().unwrap());
    hub.put(MODEL, "a.json", b"{}", false);
    let pairs = [
        ("HF_ENDPOINT", hub.url.as_str()),
        ("HF_HUB_CACHE", cache.path().to_str().unwrap()),
        ("HF_HOME", home.path().to_str().unwrap()),
    ];
    let settings = Settings::from_variables(variables(&pairs)).unwrap();
    let client = Client::new(&settings).unwrap();
    list(&client, &model("org/model")).unwrap();
    assert_eq!(hub.seen()[0].token.as_deref(), Some("hf_of_a_file"));
}

// Tests without a server: names, variables, and the content of the cache.

#[test]
fn repository_names_follow_the_hub() {
    for name in ["gpt2", "Qwen/Qwen3-0.6B", "a_b/c.d", "o/n@v1.0", "o/n@refs/pr/1"] {
        assert_eq!(model(name).to_string(), name);
    }
    assert_eq!(model("o/n").revision(), "main");
    assert_eq!(model("o/n@v2").revision(), "v2");
    let wrong = "|/|a/|/a|a/b/c|../a|a/..|.|./a|a--b|-a/b|a/b.|a b|a/b@|a/b@../../x|a/b@-x|a\\b|\
                  https://huggingface.co/a/b|a/b@x@y|~/a";
    for name in wrong.split('|') {
        let refused = Repository::parse(Kind::Model, name);
        assert!(refused.is_err(), "`{name}` is {refused:?}");
    }
}

#[test]
fn cache_folder_equals_that_of_the_hubs_tools() {
    let of = |pairs: &[(&str, &str)]| {
        Cache::from_variables(variables(pairs)).map(|cache| cache.root().display().to_string())
    };
    let home = ("HOME", "/h");
    let xdg = ("XDG_CACHE_HOME", "/x");
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[home]).unwrap(), "/h/.cache/huggingface/hub");
    assert_eq!(of(&[home, xdg]).unwrap(), "/x/huggingface/hub");
    assert_eq!(of(&[home, xdg, ("HF_HOME", "/f")]).unwrap(), "/f/hub");
    assert_eq!(of(&[home, ("HF_HOME", "~/f")]).unwrap(), "/h/f/hub");
    let all = [home, xdg, ("HF_HOME", "/f"), ("HF_HUB_CACHE", "/c")];
    assert_eq!(of(&all).unwrap(), "/c");
    assert_eq!(of(&[home, ("HF_HUB_CACHE", "")]).unwrap(), "/h/.cache/huggingface/hub");
}

#[test]
fn snapshot_is_found_by_branch_commit_or_alone() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path());
    let repository = folder.path().join("models--org--model");
    let found = |name: &str| cache.find(&model(name)).map(|found| found.commit);
    assert_eq!(found("org/model"), None);
    std::fs::create_dir_all(repository.join("snapshots/aaa")).unwrap();
    assert_eq!(found("org/model").as_deref(), Some("aaa"), "the only one");
    assert_eq!(found("org/model@aaa").as_deref(), Some("aaa"));
    assert_eq!(found("org/model@v1"), None, "a revision that is not there");
    std::fs::create_dir_all(repository.join("snapshots/bbb")).unwrap();
    assert_eq!(found("org/model"), None, "no branch says which");
    std::fs::create_dir_all(repository.join("refs/pr")).unwrap();
    std::fs::write(repository.join("refs/main"), "bbb\n").unwrap();
    std::fs::write(repository.join("refs/pr/1"), "aaa").unwrap();
    assert_eq!(found("org/model").as_deref(), Some("bbb"));
    assert_eq!(found("org/model@pr/1").as_deref(), Some("aaa"));
    std::fs::write(repository.join("refs/main"), "../../elsewhere").unwrap();
    assert_eq!(found("org/model"), None, "no path out of the cache");

    let snapshot = cache.find(&model("org/model@aaa")).unwrap();
    assert!(!snapshot.has_tokenizer());
    std::fs::write(snapshot.folder.join("config.json"), "{}").unwrap();
    assert!(!snapshot.has_tokenizer());
    std::fs::write(snapshot.folder.join("tokenizer.json"), "{}").unwrap();
    assert!(snapshot.has_tokenizer());
    assert!(snapshot.file("tokenizer.json").is_some());
}

#[test]
fn tokenizer_and_data_files_are_recognised() {
    let of_tokenizers = "tokenizer.json tokenizer.model tokenizer.model.v3 qwen.tiktoken \
        tiktoken.model chat_template.jinja additional_chat_templates/tools.jinja config.json merges.txt";
    for path in of_tokenizers.split_whitespace() {
        assert!(is_of_tokenizer(path), "{path}");
    }
    for path in ["model.safetensors", "README.md", "original/tokenizer.model", "x/y.tiktoken"] {
        assert!(!is_of_tokenizer(path), "{path}");
    }
    assert!(!decides_tokens("config.json"));
    for path in ["a.jsonl", "data/train-0.parquet", "b.JSON", "c.jsonl.zst", "d.csv.gz"] {
        assert!(is_data(path), "{path}");
    }
    for path in ["README.md", ".gitattributes", "a.py", "dataset_infos.json"] {
        assert!(!is_data(path), "{path}");
    }
}

#[test]
fn wrong_variables_are_named_and_secrets_are_not_shown() {
    let wrong = |pairs: &[(&str, &str)]| {
        let home = [&[("HOME", "/nowhere")], pairs].concat();
        Settings::from_variables(variables(&home)).unwrap_err().to_string()
    };
    assert!(wrong(&[("HF_ENDPOINT", "hub.example")]).contains("HF_ENDPOINT"));
    assert!(wrong(&[("HF_ENDPOINT", "ftp://hub.example")]).contains("HF_ENDPOINT"));
    let credentials = wrong(&[("HF_ENDPOINT", "https://me:secret@hub.example")]);
    assert!(credentials.contains("HF_ENDPOINT") && !credentials.contains("secret"));
    let token = wrong(&[("HF_TOKEN", "hf secret")]);
    assert!(token.contains("HF_TOKEN") && !token.contains("secret"));
    let known = [("HOME", "/nowhere"), ("HF_TOKEN", "hf_secret")];
    let known = Settings::from_variables(variables(&known)).unwrap();
    assert!(!format!("{known:?}").contains("hf_secret"));
    assert!(wrong(&[("HF_TOKEN_PATH", "/no/file")]).contains("HF_TOKEN_PATH"));
    let offline = [("HOME", "/nowhere"), ("HF_HUB_OFFLINE", "1")];
    let offline = Settings::from_variables(variables(&offline)).unwrap();
    assert!(matches!(Client::new(&offline), Err(HubError::Offline)));
}

#[test]
fn sizes_have_units() {
    let sizes = [0, 999, 1_000, 1_234_567, 999_960_000, 5_000_000_000].map(size);
    assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.2 MB", "1.0 GB", "5.0 GB"]);
}
