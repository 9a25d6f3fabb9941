//! Scorer of transcriptions: word error rate and character error rate, as Python's `jiwer` 4.0.0
//! computes them.
//!
//! - `word-error-rate`, of the run: insertions, deletions and substitutions of all samples by the
//!   words of all references; as `jiwer.wer` of two lists
//! - `character-error-rate`, of the run: the same of characters, spaces included; as `jiwer.cer` of
//!   two lists
//! - `sample-word-error-rate`, of a sample: the same of one sample; its mean weighs a short sample
//!   as much as a long one; as `jiwer.wer` of two texts
//! - `sample-character-error-rate`, of a sample: the same of characters; as `jiwer.cer` of two
//!   texts
//! - `word-hits`, `word-substitutions`, `word-deletions`, `word-insertions`, of a sample: numbers
//!   of words; as `jiwer.process_words`
//! - `audio-seconds`, of a sample: the length of the sound, where the reference has it as `seconds`
//!
//! A rate is above 1 where more is inserted than the reference has. With an empty reference it is
//! the number of insertions, as in `jiwer`: 0 if the answer to silence is empty. Of several
//! references, the first with the lowest rate of words counts.
//!
//! `normalization` defines a word:
//!
//! - `none`: `wer_default`: runs of white space become a space, and words are between spaces. A
//!   single tab or line break is part of a word
//! - `words`: `ToLowerCase`, `RemovePunctuation`, `SubstituteRegexes({r"\s+": " "})`, `Strip`
//!
//! Counts come from the alignment that `jiwer` takes of the shortest ones. They equal its own up to
//! some 2000 words a text; beyond, it takes another alignment of the same length. Beyond 268
//! million pairs of words two texts have no counts, and beyond 34 billion no rate, because the time
//! grows with the pairs. Such a sample is an error, so that no rate of the run leaves it out in
//! silence.
//!
//! A sample without a reference is not judged. Nothing is extracted, so there is no `-unparsed`.
#![deny(unsafe_code)]

mod align;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;

use judging::{Part, python, reference, score, texts};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use align::{Counts, align};

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The changes to both texts before they are compared.
    pub normalization: Normalization,
    /// The part of the reply that is compared.
    pub part: Part,
    /// The key of the text if a reference is a table.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            normalization: Normalization::None,
            part: Part::Answer,
            reference_key: "text".to_owned(),
        }
    }
}

/// The errors in texts, and the length of their references.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    errors: u64,
    length: u64,
}

impl Errors {
    fn add(&mut self, other: Errors) {
        self.errors += other.errors;
        self.length += other.length;
    }

    /// Errors by length; for references without any, the errors, which are insertions.
    fn rate(self) -> f64 {
        let errors = self.errors as f64;
        match self.length {
            0 => errors,
            length => errors / length as f64,
        }
    }
}

struct Comparison {
    words: Errors,
    characters: Errors,
    counts: Option<Counts>,
}

pub struct WordErrorRate {
    config: Config,
    words: Errors,
    characters: Errors,
    judged: bool,
}

runner_plugin::export_scorer!(WordErrorRate);

impl Scorer for WordErrorRate {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config, words: Errors::default(), characters: Errors::default(), judged: false })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let references = texts(exchange, &reference, &self.config.reference_key)?;
        let answer = self.config.part.text(exchange);
        let mut best: Option<Comparison> = None;
        for reference in &references {
            let compared = self.compare(&answer, reference).ok_or_else(|| {
                Error::InvalidInput(format!(
                    "sample {}: the answer has {} bytes and the reference {}, which is too much to compare; transcribe \
                     shorter recordings",
                    exchange.id,
                    answer.len(),
                    reference.len()
                ))
            })?;
            let rate = |compared: &Comparison| compared.words.rate();
            if best.as_ref().is_none_or(|best| rate(&compared) < rate(best)) {
                best = Some(compared);
            }
        }
        let Some(best) = best else { return Ok(Vec::new()) };
        self.words.add(best.words);
        self.characters.add(best.characters);
        self.judged = true;
        let mut scores = vec![
            score("sample-word-error-rate", best.words.rate()),
            score("sample-character-error-rate", best.characters.rate()),
        ];
        if let Some(counts) = best.counts {
            scores.extend([
                score("word-hits", counts.hits as f64),
                score("word-substitutions", counts.substitutions as f64),
                score("word-deletions", counts.deletions as f64),
                score("word-insertions", counts.insertions as f64),
            ]);
        }
        let seconds = reference.get("seconds").and_then(Value::as_f64);
        scores.extend(seconds.map(|seconds| score("audio-seconds", seconds)));
        Ok(scores)
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        if !self.judged {
            return Ok(Vec::new());
        }
        Ok(vec![
            score("word-error-rate", self.words.rate()),
            score("character-error-rate", self.characters.rate()),
        ])
    }
}

impl WordErrorRate {
    fn compare(&self, answer: &str, reference: &str) -> Option<Comparison> {
        let normalization = self.config.normalization;
        let (reference_words, answer_words) =
            (normalization.words(reference), normalization.words(answer));
        let (one, other) = numbered(&reference_words, &answer_words);
        let words = align(&one, &other, true)?;
        let character = |text: &str| -> Vec<u32> { text.chars().map(u32::from).collect() };
        let (reference, answer) =
            (normalization.characters(reference), normalization.characters(answer));
        let (one, other) = (character(&reference), character(&answer));
        let characters = align(&one, &other, false)?;
        Some(Comparison {
            words: Errors { errors: words.distance, length: reference_words.len() as u64 },
            characters: Errors { errors: characters.distance, length: one.len() as u64 },
            counts: words.counts,
        })
    }
}

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
fn numbered(one: &[String], other: &[String]) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |word| {
        let next = numbers.len() as u32;
        *numbers.entry(word).or_insert(next)
    };
    let one = one.iter().map(|word| number(word.as_str())).collect();
    let other = other.iter().map(|word| number(word.as_str())).collect();
    (one, other)
}
