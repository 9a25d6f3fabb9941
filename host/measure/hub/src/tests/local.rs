//! Tests without a server: names, variables, and the content of the cache.

use tempfile::TempDir;

use super::{model, variables};
use crate::*;

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
