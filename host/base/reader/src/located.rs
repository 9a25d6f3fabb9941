//! A value together with the place where it was set, a file or a flag, so that a later error can
//! point there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{NamedSource, SourceSpan};
use serde::Serialize;

pub type Source = Arc<NamedSource<String>>;

#[derive(Clone, Debug)]
pub enum Place {
    Text {
        source: Source,
        span: SourceSpan,
    },
    /// On the command line or in the environment, under this name: `--seed`, `RUNNER_SEED`.
    Flag(String),
}

impl Place {
    pub fn span(&self) -> Option<SourceSpan> {
        match self {
            Place::Text { span, .. } => Some(*span),
            Place::Flag(_) => None,
        }
    }

    pub fn source(&self) -> Option<&Source> {
        match self {
            Place::Text { source, .. } => Some(source),
            Place::Flag(_) => None,
        }
    }
}

/// `file:line:column`, or the flag. Columns count characters, from 1.
impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Text { source, span } => {
                let (line, column) = line_and_column(source.inner(), span.offset());
                write!(out, "{}:{line}:{column}", source.name())
            }
            Place::Flag(name) => out.write_str(name),
        }
    }
}

/// Line and column of a byte offset, both from 1; an offset beyond the text is its end.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    (line, column)
}

/// A value and the place where it was set. It is written as its value alone.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Located<T> {
    pub value: T,
    #[serde(skip)]
    pub place: Place,
}

impl<T> Located<T> {
    pub fn new(value: T, place: Place) -> Self {
        Located { value, place }
    }

    /// A value set by a flag, or by its environment variable.
    pub fn flag(name: impl Into<String>, value: T) -> Self {
        Located::new(value, Place::Flag(name.into()))
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Located<U> {
        Located::new(change(self.value), self.place)
    }
}

impl Located<PathBuf> {
    /// The path as seen from the working directory: a path in a scenario's text is
    /// relative to `folder`, the scenario's own; a path from a flag stays as it is.
    pub fn seen_from(&self, folder: &Path) -> PathBuf {
        match self.place {
            Place::Text { .. } => folder.join(&self.value),
            Place::Flag(_) => self.value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_line_and_column_in_characters() {
        let source: Source = Arc::new(NamedSource::new("a.toml", "x = 1\nå = 2\n".to_owned()));
        let place = |offset: usize| {
            Place::Text { source: source.clone(), span: (offset, 0).into() }.to_string()
        };
        assert_eq!(place(0), "a.toml:1:1");
        assert_eq!(place(6), "a.toml:2:1");
        assert_eq!(place(9), "a.toml:2:3");
        assert_eq!(place(9000), "a.toml:3:1");
    }

    #[test]
    fn a_path_in_a_text_is_relative_to_the_scenario() {
        let source: Source = Arc::new(NamedSource::new("a.toml", String::new()));
        let path = || PathBuf::from("data.json");
        let in_text = Located::new(path(), Place::Text { source, span: (0, 0).into() });
        let by_flag = Located::flag("--dataset-path", path());
        let folder = Path::new("scenarios");
        assert_eq!(in_text.seen_from(folder), Path::new("scenarios/data.json"));
        assert_eq!(by_flag.seen_from(folder), Path::new("data.json"));
    }
}
