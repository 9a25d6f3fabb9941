//! Files that `runner plugin new` writes: embedded in the binary, with the placeholders filled in.
//! Pure; the caller writes them.
//!
//! Templates are in `plugins/template`: `all/common/`, `all/KIND/`, `LANGUAGE/common/` and
//! `LANGUAGE/KIND/` are overlaid in this order. A file or folder name that begins with `dot-`
//! begins with a dot in the project, so that it has no effect in this repository. Rust projects
//! also get the SDK, the others the contract itself.

use std::collections::BTreeMap;

use clap::ValueEnum;

use super::project::Name;
use super::{AuthorError, Language};
use model::plugin::Kind;
use plugins::Contract;

use shipped::texts_below;

const SDK_FOLDER: &str = "runner-plugin";

/// A project's files: by path, with `/` between folders, and their text.
pub type Files = BTreeMap<String, String>;

pub fn project(kind: Kind, name: &Name, language: Language) -> Result<Files, AuthorError> {
    let own = own_folder(kind, language);
    if texts_below(&own).next().is_none() {
        return Err(AuthorError::NoTemplate {
            kind: kind.name(),
            language: language.name(),
            others: languages(kind),
        });
    }
    let fill = |text: &str| filled(text, kind, name, language);
    let mut files = Files::new();
    let layers = [
        "template/all/common/".to_owned(),
        format!("template/all/{}/", kind.name()),
        format!("template/{}/common/", language.key()),
        own,
    ];
    for (path, text) in layers.iter().flat_map(|layer| texts_below(layer)) {
        files.insert(visible(&fill(path)), fill(text));
    }
    for (path, text) in texts_below("template/ci/") {
        files.insert(format!(".github/workflows/{path}"), fill(text));
    }
    match language {
        Language::Rust => {
            for (path, text) in texts_below("template/rust/sdk/") {
                files.insert(format!("{SDK_FOLDER}/{path}"), fill(text));
            }
            for (path, text) in texts_below("sdk/") {
                files.insert(format!("{SDK_FOLDER}/{path}"), text.to_owned());
            }
            files.extend(contract(&format!("{SDK_FOLDER}/wit")));
            let lock = shipped::text("sdk.lock").unwrap_or_default();
            files.insert("Cargo.lock".to_owned(), lock.to_owned());
        }
        _ => files.extend(contract("wit")),
    }
    Ok(files)
}

pub(super) fn contract(folder: &str) -> impl Iterator<Item = (String, String)> {
    texts_below("wit/").map(move |(path, text)| (format!("{folder}/{path}"), text.to_owned()))
}

fn own_folder(kind: Kind, language: Language) -> String {
    format!("template/{}/{}/", language.key(), kind.name())
}

fn languages(kind: Kind) -> String {
    let has_template =
        |language: &Language| texts_below(&own_folder(kind, *language)).next().is_some();
    let with = Language::value_variants().iter().filter(|language| has_template(language));
    with.map(|language| language.name()).collect::<Vec<_>>().join(", ")
}

/// A template's text with its placeholders in braces filled in.
fn filled(text: &str, kind: Kind, name: &Name, language: Language) -> String {
    [
        ("{{name}}", name.kebab()),
        ("{{snake}}", &name.snake()),
        ("{{kind}}", kind.name()),
        ("{{language}}", language.name()),
        ("{{setup}}", setup(language)),
        ("{{runner}}", env!("CARGO_PKG_VERSION")),
        ("{{contract}}", Contract::NEWEST.version()),
    ]
    .iter()
    .fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}

/// The one-time setup before a project builds, as a shell command.
fn setup(language: Language) -> &'static str {
    match language {
        Language::Rust => "rustup target add wasm32-unknown-unknown",
        Language::Python => "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
        Language::Javascript => "npm install",
        Language::C => "sudo apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32",
    }
}

fn visible(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.strip_prefix("dot-") {
        Some(rest) => format!(".{rest}"),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        "my-engine".parse().unwrap()
    }

    fn projects() -> Vec<(Kind, Language, Files)> {
        let mut projects = Vec::new();
        for kind in Kind::ALL.iter().copied() {
            for language in Language::value_variants() {
                if let Ok(files) = project(kind, &name(), *language) {
                    projects.push((kind, *language, files));
                }
            }
        }
        projects
    }

    #[test]
    fn every_project_has_a_readme_and_a_case() {
        let projects = projects();
        assert!(projects.len() >= 3, "Rust has a template for each kind");
        for (kind, language, files) in projects {
            for wanted in ["README.md", ".gitignore"] {
                assert!(files.contains_key(wanted), "{kind:?} in {language:?}: {wanted}");
            }
            assert!(
                files.keys().any(|path| path.starts_with("cases/first/")),
                "{kind:?} in {language:?} has a first case"
            );
        }
    }

    fn unfilled(text: &str) -> Option<&str> {
        text.split("{{").skip(1).find_map(|rest| {
            let (word, _) = rest.split_once("}}")?;
            let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            is_word.then_some(word)
        })
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        assert_eq!(unfilled("${{ github.ref }} {} {{nme}}"), Some("nme"));
        for (kind, language, files) in projects() {
            for (path, text) in files {
                let left = unfilled(&text).or(unfilled(&path));
                assert_eq!(left, None, "{kind:?} in {language:?}, {path}");
                assert!(!path.contains("dot-"), "{path}");
            }
        }
    }

    #[test]
    fn the_sdk_stands_on_its_own() {
        let files = project(Kind::Backend, &name(), Language::Rust).unwrap();
        let manifest: toml::Table = files["runner-plugin/Cargo.toml"].parse().unwrap();
        assert!(!files["runner-plugin/Cargo.toml"].contains("workspace"));
        assert!(!files["runner-plugin/testing/Cargo.toml"].contains("workspace"));
        assert_eq!(manifest["package"]["name"].as_str(), Some("runner-plugin"));
        let wit = &files["runner-plugin/src/bindings.rs"];
        assert!(wit.contains("path: \"wit\"") && !wit.contains("../wit"));
        assert!(files.contains_key("runner-plugin/wit/worlds.wit"));
        let lock: toml::Table = files["Cargo.lock"].parse().unwrap();
        let locked: Vec<&str> = (lock["package"].as_array().unwrap().iter())
            .filter_map(|package| package["name"].as_str())
            .collect();
        for (name, dependency) in manifest["dependencies"].as_table().unwrap() {
            // Packages of the kit itself lie beside the SDK.
            if let Some(path) = dependency.get("path") {
                let manifest = format!("runner-plugin/{}/Cargo.toml", path.as_str().unwrap());
                assert!(files.contains_key(manifest.as_str()), "{manifest}");
                continue;
            }
            let version = dependency["version"].as_str().unwrap();
            assert!(
                version.starts_with(|first: char| first.is_ascii_digit()),
                "{name}: `{version}` is an exact version, which clashes with the author's others"
            );
            assert!(locked.contains(&name.as_str()), "{name}");
        }
        // The host's own dependencies are not the author's.
        assert!(!locked.contains(&"hyper"));
    }
}
