//! The known facts about the plugin in a folder: `runner-plugin.toml`, or for Rust the crate's own
//! manifest.

use std::path::{Path, PathBuf};

use super::template::Files;
use super::{AuthorError, Language, tool};
use model::plugin::Kind;

/// The manifest of a project in a language other than Rust.
pub(crate) const MANIFEST: &str = "runner-plugin.toml";

#[derive(Clone, Debug)]
pub struct Project {
    pub folder: PathBuf,
    /// The plugin's name, and its component's.
    pub name: String,
    /// Its language, and the compiler's other needs.
    pub sources: Sources,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    Crate {
        /// The module's file name, as cargo writes it.
        module: String,
    },
    Files {
        language: Language,
        /// The kind of plugin; for a crate, its exports tell.
        kind: Kind,
        entry: String,
    },
}

/// `runner-plugin.toml`.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Manifest {
    name: String,
    kind: Kind,
    language: Language,
    entry: Option<String>,
}

/// The relevant part of `Cargo.toml`.
#[derive(Debug, serde::Deserialize)]
struct CargoManifest {
    package: Option<Package>,
    lib: Option<Lib>,
}

#[derive(Debug, serde::Deserialize)]
struct Package {
    name: String,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Lib {
    name: Option<String>,
    #[serde(default)]
    crate_type: Vec<String>,
}

impl Project {
    pub fn open(folder: &Path) -> Result<Self, AuthorError> {
        if !folder.is_dir() {
            return Err(AuthorError::NoProject {
                folder: folder.to_owned(),
                expected: "there is no such folder; `runner plugin new` creates one".to_owned(),
            });
        }
        let (name, sources) = if let Some((file, text)) = read(folder, MANIFEST)? {
            manifest(&text).map_err(|mistake| AuthorError::Project { file, mistake })?
        } else if let Some((file, text)) = read(folder, "Cargo.toml")? {
            cargo_manifest(&text).map_err(|mistake| AuthorError::Project { file, mistake })?
        } else {
            return Err(AuthorError::NoProject {
                folder: folder.to_owned(),
                expected: format!(
                    "it has neither a {MANIFEST} (name, kind, language) nor a Cargo.toml; \
                     `runner plugin new` creates a project"
                ),
            });
        };
        Ok(Project { folder: folder.to_owned(), name, sources })
    }

    pub fn component(&self) -> PathBuf {
        self.folder.join("target/plugin").join(format!("{}.wasm", self.name))
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("target/plugin/work")
    }
}

/// Writes a project's files into a folder that does not exist yet, or is empty.
pub fn write(folder: &Path, files: &Files) -> Result<(), AuthorError> {
    let occupied = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        // A missing folder counts as empty; one that is not readable is not writable either.
        Err(cause) => cause.kind() == std::io::ErrorKind::NotADirectory,
    };
    if occupied {
        return Err(AuthorError::Occupied(folder.to_owned()));
    }
    for (name, text) in files {
        let path = folder.join(name);
        tool::make_folder(path.parent().unwrap_or(folder))?;
        tool::write(&path, text)?;
    }
    Ok(())
}

fn read(folder: &Path, name: &str) -> Result<Option<(PathBuf, String)>, AuthorError> {
    let path = folder.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(AuthorError::system("read", &path)(cause)),
    }
}

fn manifest(text: &str) -> Result<(String, Sources), String> {
    let manifest: Manifest = toml::from_str(text).map_err(|error| error.to_string())?;
    let name: Name = (manifest.name.parse()).map_err(|error| format!("key `name`: {error}"))?;
    let entry = match (manifest.language, manifest.entry) {
        (Language::Rust, _) => {
            return Err(format!(
                "key `language`: a project in Rust needs no {MANIFEST}, only its Cargo.toml"
            ));
        }
        (_, Some(entry)) => entry,
        // Python's compiler takes the module's name for the interface's.
        (Language::Python, None) => format!("{}.py", manifest.kind.name()),
        (Language::Javascript, None) => "plugin.js".to_owned(),
        (Language::C, None) => "plugin.c".to_owned(),
    };
    if entry.starts_with(['-', '/']) || entry.split(['/', '\\']).any(|part| part == "..") {
        return Err(format!("key `entry`: expected a file of this folder, got `{entry}`"));
    }
    let sources = Sources::Files { language: manifest.language, kind: manifest.kind, entry };
    Ok((name.kebab().to_owned(), sources))
}

fn cargo_manifest(text: &str) -> Result<(String, Sources), String> {
    let manifest: CargoManifest = toml::from_str(text).map_err(|error| error.to_string())?;
    let package = manifest
        .package
        .ok_or("it has no [package]: give the folder of the plugin's crate, not the workspace")?;
    let library = manifest.lib.filter(|library| {
        let kinds = &library.crate_type;
        kinds.iter().any(|kind| kind == "cdylib")
    });
    let library = library.ok_or(
        "it does not build a module: a plugin's crate needs `crate-type = [\"cdylib\"]` under [lib]",
    )?;
    let module = library.name.unwrap_or_else(|| package.name.clone());
    let name = ["backend-", "dataset-", "scorer-"]
        .iter()
        .find_map(|kind| package.name.strip_prefix(kind))
        .unwrap_or(&package.name);
    let module = format!("{}.wasm", module.replace('-', "_"));
    Ok((name.to_owned(), Sources::Crate { module }))
}

/// Maximum length of a name; it becomes the name of files and crates.
const LONGEST: usize = 64;

/// A checked name: lower-case words and numbers joined by `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    pub fn kebab(&self) -> &str {
        &self.0
    }

    /// With `_` for `-`, as identifiers want it.
    pub(crate) fn snake(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl std::str::FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let fits = text.len() <= LONGEST
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.split('-').all(word);
        if fits {
            Ok(Name(text.to_owned()))
        } else {
            Err(format!(
                "expected lower-case words of letters and digits joined by `-`, starting with a letter, \
                 such as {}, at most {LONGEST} long",
                suggestion(text)
            ))
        }
    }
}

fn suggestion(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut last_lower = false;
    for letter in text.chars() {
        let begins = words.is_empty() || !letter.is_ascii_alphanumeric();
        if begins || (letter.is_ascii_uppercase() && last_lower) {
            words.push(String::new());
        }
        last_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if let (true, Some(word)) = (letter.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    let mut name = words.join("-");
    name.truncate(LONGEST);
    if name.starts_with(|first: char| first.is_ascii_lowercase()) {
        format!("`{}`", name.trim_end_matches('-'))
    } else {
        "`my-engine`".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, *};

    #[test]
    fn reads_a_manifest() {
        let text = "name = 'mine'\nkind = 'scorer'\nlanguage = 'python'";
        let (name, sources) = manifest(text).unwrap();
        assert_eq!(name, "mine");
        let wanted = Sources::Files {
            language: Language::Python,
            kind: Kind::Scorer,
            entry: "scorer.py".to_owned(),
        };
        assert_eq!(sources, wanted);
    }

    #[test]
    fn refuses_a_wrong_manifest_by_its_key() {
        for (text, wanted) in [
            ("name = 'mine'\nkind = 'scorer'", "language"),
            ("name = 'Mine'\nkind = 'scorer'\nlanguage = 'c'", "`mine`"),
            ("name = 'mine'\nkind = 'judge'\nlanguage = 'c'", "judge"),
            ("name = 'mine'\nkind = 'scorer'\nlanguage = 'go'", "go"),
            ("name = 'mine'\nkind = 'scorer'\nlanguage = 'rust'", "Cargo.toml"),
            ("name = 'mine'\nkind = 'scorer'\nlanguage = 'c'\nentry = '../a.c'", "entry"),
            ("name = 'mine'\nkind = 'scorer'\nlanguage = 'c'\nentry = '-o'", "entry"),
            ("nam = 'mine'\nkind = 'scorer'\nlanguage = 'c'", "nam"),
        ] {
            let error = manifest(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn names_a_crate_without_its_kind() {
        let text = "[package]\nname = 'backend-my-engine'\n[lib]\ncrate-type = ['cdylib']";
        let (name, sources) = cargo_manifest(text).unwrap();
        assert_eq!(name, "my-engine");
        let module = "backend_my_engine.wasm".to_owned();
        assert_eq!(sources, Sources::Crate { module });
    }

    #[test]
    fn refuses_a_crate_without_a_module() {
        for (text, wanted) in [
            ("[workspace]", "[package]"),
            ("[package]\nname = 'a'", "cdylib"),
            ("[package]\nname = 'a'\n[lib]\ncrate-type = ['rlib']", "cdylib"),
        ] {
            let error = cargo_manifest(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn words_with_dashes_are_names() {
        for text in ["a", "vllm", "my-engine", "engine-2", "x1-2y"] {
            assert_eq!(text.parse::<Name>().unwrap().kebab(), text);
        }
        assert_eq!("my-engine-2".parse::<Name>().unwrap().snake(), "my_engine_2");
    }

    #[test]
    fn suggests_a_valid_name() {
        let error = |text: &str| text.parse::<Name>().unwrap_err();
        for (text, nearest) in [
            ("My_Engine", "`my-engine`"),
            ("myEngine", "`my-engine`"),
            ("my engine", "`my-engine`"),
            ("-engine-", "`engine`"),
            ("a--b", "`a-b`"),
            ("../up", "`up`"),
            ("9", "`my-engine`"),
            ("", "`my-engine`"),
            ("ä", "`my-engine`"),
        ] {
            assert!(error(text).contains(nearest), "{text}: {}", error(text));
        }
        let long = "a".repeat(65);
        assert!(error(&long).contains("at most 64"));
    }
}
