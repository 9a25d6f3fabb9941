//! Names of repositories: `ORG/NAME`, or `NAME` for the oldest, with `@REVISION` where it is not
//! the main branch.
//!
//! A name becomes part of a path and of an address, so a text that could leave either is no name.

use std::fmt;

/// Longest part of a name, as the hub has it.
const LONGEST: usize = 96;

model::names! {
    /// Everything that a repository holds.
    pub enum Kind {
        /// A model, and its tokenizer.
        Model = "model",
        Dataset = "dataset",
    }
}

impl Kind {
    /// As the hub's API and the cache's folders call it.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Kind::Model => "models",
            Kind::Dataset => "datasets",
        }
    }

    /// The text before the name in the addresses of its pages and files.
    pub(crate) fn before(self) -> &'static str {
        match self {
            Kind::Model => "",
            Kind::Dataset => "datasets/",
        }
    }
}

/// A repository of the hub, at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    kind: Kind,
    name: String,
    revision: Option<String>,
}

impl Repository {
    /// Reads `NAME`, `ORG/NAME`, or either with `@REVISION`: a branch, a tag or a commit. Fails if
    /// it cannot be the name of a repository.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, String> {
        let (name, revision) = match text.split_once('@') {
            Some((name, revision)) => (name, Some(revision)),
            None => (text, None),
        };
        let wrong = |why: &str| {
            Err(format!(
                "`{text}` is not the name of a {} on the hub: {why}; give it as ORG/NAME or ORG/NAME@REVISION",
                kind.name()
            ))
        };
        let parts: Vec<&str> = name.split('/').collect();
        if name.contains("://") {
            return wrong("it is an address");
        }
        if parts.len() > 2 {
            return wrong("it has more than two parts");
        }
        if !parts.iter().all(|part| is_part(part)) {
            return wrong(
                "each part has letters, digits, `-`, `_` and `.`, and neither `--` nor `..`",
            );
        }
        let repository = Repository { kind, name: name.to_owned(), revision: None };
        match revision {
            None => Ok(repository),
            Some(revision) => repository.at(revision),
        }
    }

    /// The same at a revision: a branch, a tag or a commit. Fails if it cannot be a revision.
    pub fn at(self, revision: &str) -> Result<Self, String> {
        if !is_revision(revision) {
            return Err(format!(
                "`{revision}` is not a revision; give a branch, a tag or a commit"
            ));
        }
        Ok(Repository { revision: Some(revision.to_owned()), ..self })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The revision that is asked for: the main branch where none is said.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    pub(crate) fn has_revision(&self) -> bool {
        self.revision.is_some()
    }

    pub(crate) fn folder(&self) -> String {
        format!("{}--{}", self.kind.plural(), self.name.replace('/', "--"))
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.revision {
            Some(revision) => write!(f, "@{revision}"),
            None => Ok(()),
        }
    }
}

fn is_part(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let outer = |byte: Option<&u8>| byte.is_some_and(|byte| !b"-.".contains(byte));
    let bytes = part.as_bytes();
    bytes.len() <= LONGEST
        && bytes.iter().copied().all(inner)
        && outer(bytes.first())
        && outer(bytes.last())
        && !part.contains("--")
        && !part.contains("..")
}

fn is_revision(revision: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.bytes().all(allowed);
    revision.len() <= 200 && revision.split('/').all(is_part)
}

/// True if it is exactly one component of a path, such as a commit, or a tag of contents.
pub(crate) fn is_component(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= 200 && !text.starts_with('.') && text.bytes().all(allowed)
}
