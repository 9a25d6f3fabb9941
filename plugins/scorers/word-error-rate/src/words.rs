//! The words and characters of a text, by `jiwer`'s transforms.

use std::borrow::Cow;
use std::collections::HashMap;

use judging::python;
use schemars::JsonSchema;
use serde::Deserialize;

/// The changes to both texts before they are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// None but for white space, as `jiwer` without transforms: case and punctuation count.
    #[default]
    None,
    /// Lower case, without Unicode's punctuation; words are between any white space.
    Words,
}

impl Normalization {
    pub fn words(self, text: &str) -> Vec<String> {
        let text = match self {
            Normalization::None => single_spaces(text),
            Normalization::Words => plain(text),
        };
        (text.trim_matches(python::is_space).split(' '))
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// The text whose characters are compared.
    pub fn characters(self, text: &str) -> Cow<'_, str> {
        match self {
            Normalization::None => Cow::Borrowed(python::strip(text)),
            Normalization::Words => Cow::Owned(plain(text)),
        }
    }
}

/// The text with a space in place of each run of two and more characters of white space.
fn single_spaces(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut run: Option<(char, usize)> = None;
    let end = |run: &mut Option<(char, usize)>, written: &mut String| {
        if let Some((first, length)) = run.take() {
            written.push(if length > 1 { ' ' } else { first });
        }
    };
    for character in text.chars() {
        if python::is_space(character) {
            run = Some(run.map_or((character, 1), |(first, length)| (first, length + 1)));
        } else {
            end(&mut run, &mut written);
            written.push(character);
        }
    }
    end(&mut run, &mut written);
    written
}

/// The text in lower case, without punctuation, with single spaces.
fn plain(text: &str) -> String {
    let text = python::without_punctuation(&text.to_lowercase());
    let words: Vec<_> = python::split(&text).collect();
    words.join(" ")
}

/// Numbers for the words of two texts: equal words have equal numbers.
pub fn numbered(one: &[String], other: &[String]) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |word| {
        let next = numbers.len() as u32;
        *numbers.entry(word).or_insert(next)
    };
    let one = one.iter().map(|word| number(word.as_str())).collect();
    let other = other.iter().map(|word| number(word.as_str())).collect();
    (one, other)
}
