//! The line as typed so far: its words, and the value of a flag or its variable.

use std::ffi::{OsStr, OsString};

/// The index of the word under the cursor, as bash and zsh give it.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// The words of a line, the program's first, and the place of the word that the shell asks about.
#[derive(Debug)]
pub(super) struct Line {
    words: Vec<OsString>,
    at: usize,
}

impl Line {
    /// The line that a shell passes on after `--`.
    pub(super) fn from_shell(arguments: &[OsString]) -> Self {
        let begin = arguments.iter().position(|word| word == "--");
        let words = begin.and_then(|begin| arguments.get(begin + 1..));
        let words = words.unwrap_or_default().to_vec();
        let index = std::env::var(INDEX).ok().and_then(|at| at.parse().ok());
        // The other shells leave out the text behind the cursor.
        Line::new(words, index)
    }

    fn new(words: Vec<OsString>, index: Option<usize>) -> Self {
        let at = index.unwrap_or(words.len().saturating_sub(1));
        Line { words, at }
    }

    pub(super) fn first(&self) -> Option<&str> {
        self.words.get(1).filter(|_| self.at > 1)?.to_str()
    }

    /// The word under the cursor; zsh leaves it out where it is empty.
    pub(super) fn current(&self) -> &OsStr {
        self.words.get(self.at).map_or(OsStr::new(""), |word| word)
    }

    /// The value that the line gives a flag, else its variable's.
    pub(super) fn value(&self, flag: &str, variable: &str) -> Option<OsString> {
        let given = self.words.iter().enumerate().rev().find_map(|(at, word)| {
            if at == self.at {
                return None;
            }
            if word == flag {
                return self.words.get(at + 1).filter(|_| at + 1 != self.at).cloned();
            }
            let rest = word.to_str()?.strip_prefix(flag)?.strip_prefix('=')?;
            Some(OsString::from(rest))
        });
        given.or_else(|| std::env::var_os(variable)).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_last_complete_value_of_a_flag() {
        let backend = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let value = Line::new(words, None).value("--backend", "NO_SUCH_VARIABLE");
            value.map(|value| value.to_string_lossy().into_owned())
        };
        for (line, value) in [
            ("runner --backend vllm --endpoint /", Some("vllm")),
            ("runner --backend=vllm --backend sglang -", Some("sglang")),
            ("runner --backend=vllm x", Some("vllm")),
            ("runner --backend vl", None),
            ("runner --backend=vl", None),
            ("runner --backend= -", None),
            ("runner --backends=x -", None),
        ] {
            assert_eq!(backend(line).as_deref(), value, "{line}");
        }
    }
}
