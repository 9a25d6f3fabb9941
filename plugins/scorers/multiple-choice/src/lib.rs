//! Scorer that checks if an answer chooses the right letter. The extractions come from the
//! generative tasks of EleutherAI's lm-evaluation-harness 0.4.13 (`lm_eval/tasks/`, with the
//! filters of `lm_eval/filters/extraction.py`). Each `extraction`, with its task:
//!
//! - `mmlu-pro` (`mmlu_pro`): the first `answer is \(?([ABCDEFGHIJ])\)?`
//! - `mmlu` (`mmlu_*_generative`): the first line
//! - `mmlu-strict` (`mmlu_*_flan_cot_zeroshot`, `strict-match`): the rest of the line, but for its
//!   last character, after the first `answer is `, `The answer: ` or `The final answer: `
//! - `gpqa-strict` (`gpqa_*_cot_zeroshot`, `strict-match`): the same after `The answer is `
//! - `flexible` (these two groups of tasks, `flexible-extract`): the last `(A)`, else the last
//!   choice whose text the answer repeats, else the last letter after `:`
//! - `arc` (`arc_challenge_chat`): the whole answer
//!
//! The choice and the reference are compared without regard to case and ASCII punctuation, so `(b)`
//! is `B`. Where a task cuts answers at certain texts, set them as `request.stop`: `.` and an empty
//! line for `arc`.
//!
//! The reference is a letter (`"B"` or `"(B)"`), the index of one from 0 (`1`), its number from 1
//! as a text (`"2"`, as in ARC), or a table with one of these under `answer` and, for `flexible`,
//! the choices' texts under `choices`.
//!
//! A sample without a reference is not judged. `multiple-choice-unparsed` is 1 if the choice is
//! neither right nor one of the letters; `multiple-choice` is 0 then.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use judging::{Part, python, reference, truth, unusable};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The way in which the chosen letter is found.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extraction {
    /// The first letter after `answer is `, as the task mmlu_pro.
    #[default]
    MmluPro,
    /// The first line, as the tasks mmlu_generative.
    Mmlu,
    /// The rest of the line after `answer is ` and the like, as the tasks mmlu_flan_cot_zeroshot.
    MmluStrict,
    /// The rest of the line after `The answer is `, as the tasks gpqa_cot_zeroshot.
    GpqaStrict,
    /// The last `(A)`, choice or letter after `:`, as the filter flexible-extract of the last two.
    Flexible,
    /// The whole answer, as the task arc_challenge_chat.
    Arc,
}

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Way in which the chosen letter is found.
    pub extraction: Extraction,
    /// The letters that stand for choices, in their order. Default: ABCDEFGHIJ, and all of the
    /// alphabet for flexible.
    pub letters: Option<String>,
    /// The part of the reply that is searched.
    pub part: Part,
    /// The key of the right choice if a reference is a table.
    pub reference_key: String,
    /// The key of the choices' texts if a reference is a table.
    pub choices_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            extraction: Extraction::MmluPro,
            letters: None,
            part: Part::Answer,
            reference_key: "answer".to_owned(),
            choices_key: "choices".to_owned(),
        }
    }
}

pub struct MultipleChoice {
    config: Config,
    letters: Vec<char>,
}

runner_plugin::export_scorer!(MultipleChoice);

impl Scorer for MultipleChoice {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let letters = config.letters.as_deref().unwrap_or(match config.extraction {
            Extraction::Flexible => "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            _ => "ABCDEFGHIJ",
        });
        let listed: Vec<char> = letters.chars().collect();
        let mut distinct = listed.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let is_choice = |c: &char| c.is_ascii_alphanumeric();
        if !(2..=62).contains(&listed.len())
            || distinct.len() != listed.len()
            || !listed.iter().all(is_choice)
        {
            return Err(Error::InvalidConfig(format!(
                "key `letters`: expected two or more different letters or digits of ASCII, such as \"ABCD\", got \
                 `{letters}`"
            )));
        }
        Ok(Self { config, letters: listed })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let wanted = comparable(&self.wanted(exchange, &reference)?);
        let text = self.config.part.text(exchange);
        let found = match self.config.extraction {
            Extraction::MmluPro => letter_after_answer_is(&text, &self.letters),
            Extraction::Mmlu => first_line(&text),
            Extraction::MmluStrict => {
                rest_of_line(&text, &["answer is ", "The answer: ", "The final answer: "])
            }
            Extraction::GpqaStrict => rest_of_line(&text, &["The answer is "]),
            Extraction::Flexible => {
                let choices = self.choices(exchange, &reference)?;
                flexible(&text, &self.letters, &choices)
            }
            Extraction::Arc => Some(python::strip(&text).to_owned()),
        };
        let found = found.map(|found| comparable(&found));
        let right = found.as_ref() == Some(&wanted);
        let is_letter = found.is_some_and(|found| {
            let letter = |letter: &char| found == letter.to_ascii_lowercase().to_string();
            self.letters.iter().any(letter)
        });
        Ok(vec![
            truth("multiple-choice", right),
            truth("multiple-choice-unparsed", !right && !is_letter),
        ])
    }
}

impl MultipleChoice {
    fn wanted(&self, exchange: &Exchange, reference: &Value) -> Result<String, Error> {
        let answer = match reference {
            Value::Object(table) => table.get(&self.config.reference_key),
            single => Some(single),
        };
        let letter = match answer {
            Some(Value::Number(index)) => (index.as_u64())
                .and_then(|index| self.letters.get(usize::try_from(index).ok()?))
                .map(char::to_string),
            Some(Value::String(text)) => match text.parse::<usize>() {
                // Digits may also be the letters themselves.
                Ok(number) if !self.letters.iter().any(char::is_ascii_digit) => number
                    .checked_sub(1)
                    .and_then(|index| self.letters.get(index))
                    .map(char::to_string),
                _ => Some(text.clone()).filter(|text| !comparable(text).is_empty()),
            },
            _ => None,
        };
        letter.ok_or_else(|| {
            let letters: String = self.letters.iter().collect();
            let expected = format!(
                "one of the letters {letters}, the index of one from 0, its number from 1 as a text, or a table with \
                 one of these under `{}`",
                self.config.reference_key
            );
            unusable(exchange, reference, &expected)
        })
    }

    /// The texts of the choices; none if the reference does not have them.
    fn choices(&self, exchange: &Exchange, reference: &Value) -> Result<Vec<String>, Error> {
        let Some(choices) = reference.get(&self.config.choices_key) else { return Ok(Vec::new()) };
        let texts = choices
            .as_array()
            .and_then(|choices| choices.iter().map(judging::text).collect::<Option<Vec<String>>>());
        (texts.filter(|texts| texts.len() <= self.letters.len())).ok_or_else(|| {
            let expected = format!(
                "a list of at most {} texts under `{}`",
                self.letters.len(),
                self.config.choices_key
            );
            unusable(exchange, reference, &expected)
        })
    }
}

/// A text without regard to case and ASCII punctuation.
fn comparable(text: &str) -> String {
    python::without_ascii_punctuation(&text.to_lowercase())
}

/// The first match of `answer is \(?([LETTERS])\)?`: the letter.
fn letter_after_answer_is(text: &str, letters: &[char]) -> Option<String> {
    let phrase = "answer is ";
    text.match_indices(phrase).find_map(|(at, _)| {
        let rest = &text[at + phrase.len()..];
        let letter = rest.strip_prefix('(').unwrap_or(rest).chars().next()?;
        letters.contains(&letter).then(|| letter.to_string())
    })
}

fn first_line(text: &str) -> Option<String> {
    text.split('\n').next().map(|line| python::strip(line).to_owned())
}

/// The first match of `(?<=PHRASE)(.*)(?=.)` for any phrase: a line's rest but its last character.
fn rest_of_line(text: &str, phrases: &[&str]) -> Option<String> {
    let ends = phrases.iter().filter_map(|phrase| {
        (text.match_indices(phrase))
            .map(|(at, _)| at + phrase.len())
            .find(|end| !text[*end..].is_empty() && !text[*end..].starts_with('\n'))
    });
    let line = text[ends.min()?..].split('\n').next()?;
    let mut characters = line.chars();
    characters.next_back();
    Some(python::strip(characters.as_str()).to_owned())
}

/// `multi_choice_regex` with `(\([A-Z]\))`, `group_select: -1` and both flags to ignore.
fn flexible(text: &str, letters: &[char], choices: &[String]) -> Option<String> {
    last_in_parentheses(text, letters).or_else(|| last_choice(text, letters, choices)).or_else(
        || {
            // Without choices, every letter may be meant.
            let count = if choices.is_empty() { letters.len() } else { choices.len() };
            last_after_colon(text, &letters[..count])
        },
    )
}

fn last_in_parentheses(text: &str, letters: &[char]) -> Option<String> {
    let found = text.rmatch_indices('(').find_map(|(at, _)| {
        let mut rest = text[at + 1..].chars();
        let letter = rest.next().filter(|letter| letters.contains(letter))?;
        (rest.next() == Some(')')).then_some(letter)
    });
    found.map(|letter| letter.to_string())
}

/// The last choice whose text the answer repeats, without regard to case and punctuation; of
/// several at one place the longest. Two equal choices count as the later.
fn last_choice(text: &str, letters: &[char], choices: &[String]) -> Option<String> {
    let plain = |text: &str| python::without_punctuation(&text.to_lowercase());
    let mut wanted: Vec<(String, char)> = choices
        .iter()
        .map(|choice| plain(python::strip(choice)))
        .zip(letters.iter().copied())
        .collect();
    // A choice of punctuation alone matches the empty text at the end, which is no choice.
    if wanted.is_empty() || wanted.iter().any(|(choice, _)| choice.is_empty()) {
        return None;
    }
    wanted.reverse();
    wanted.sort_by_key(|(choice, _)| std::cmp::Reverse(choice.len()));
    let text = plain(text);
    let mut found = None;
    let mut at = 0;
    while at < text.len() {
        match wanted.iter().find(|(choice, _)| text[at..].starts_with(choice.as_str())) {
            Some((choice, letter)) => {
                found = Some((choice, letter));
                at += choice.len();
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    found
        .map(|(choice, letter)| {
            let bare = python::strip(choice);
            // The harness looks the text up without the white space that was beside punctuation,
            // and so may not find it.
            match wanted.iter().find(|(choice, _)| choice == bare) {
                Some((_, other)) if bare != choice => other.to_string(),
                _ if bare == choice => letter.to_string(),
                _ => bare.to_owned(),
            }
        })
        .filter(|found| !found.is_empty())
}

/// The last match of `:[\s]*(LETTERS)`.
fn last_after_colon(text: &str, letters: &[char]) -> Option<String> {
    let found = text.rmatch_indices(':').find_map(|(at, _)| {
        let rest = text[at + 1..].trim_start_matches(python::is_space);
        rest.chars().next().filter(|letter| letters.contains(letter))
    });
    found.map(|letter| letter.to_string())
}
