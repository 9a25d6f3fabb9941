//! The instructions of IFEval: their names, their arguments, and the check of an answer.

use judging::python;
use serde_json::{Map, Value};

use crate::find::{self, Splitter, Word};
use crate::json;

const KEYWORDS: usize = 1000;

/// The answers that `constrained_response` allows.
const CONSTRAINED: [&str; 3] = ["My answer is yes.", "My answer is no.", "My answer is maybe."];

/// A number of things, and whether it must be reached or must not be.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    count: f64,
    is_least: bool,
}

impl Amount {
    fn fits(self, count: usize) -> bool {
        (count as f64 >= self.count) == self.is_least
    }
}

pub enum Instruction {
    Existence(Vec<Word>),
    Frequency(Word, Amount),
    ForbiddenWords(Vec<Word>),
    LetterFrequency(char, Amount),
    Paragraphs(f64),
    Words(Amount),
    FirstWord {
        paragraphs: f64,
        nth: usize,
        word: String,
    },
    Placeholders(f64),
    Postscript(String),
    Bullets(f64),
    Constrained,
    Highlights(f64),
    Sections(Splitter, f64),
    Json,
    Title,
    TwoResponses,
    RepeatPrompt(String),
    End(String),
    EnglishCapital,
    EnglishLowercase,
    NoComma,
    Quotation,
    /// An instruction that is never judged.
    Unjudged,
}

struct Arguments<'a> {
    id: &'a str,
    given: &'a Map<String, Value>,
}

impl Arguments<'_> {
    fn missing(&self, key: &str, expected: &str) -> String {
        let found = self.given.get(key).unwrap_or(&Value::Null);
        format!(
            "{expected} under `{key}` for the instruction `{}`, where it has {}",
            self.id,
            judging::shown(found)
        )
    }

    fn text(&self, key: &str) -> Result<&str, String> {
        (self.given.get(key).and_then(Value::as_str))
            .filter(|text| !python::strip(text).is_empty())
            .ok_or_else(|| self.missing(key, "a text"))
    }

    fn number(&self, key: &str) -> Result<f64, String> {
        (self.given.get(key).and_then(Value::as_f64))
            .filter(|number| *number != 0.0)
            .ok_or_else(|| self.missing(key, "a number other than 0"))
    }

    fn amount(&self, count: &str, relation: &str) -> Result<Amount, String> {
        let count = self.number(count)?;
        let is_least = match self.text(relation)? {
            "at least" => true,
            "less than" => false,
            _ => return Err(self.missing(relation, "`at least` or `less than`")),
        };
        Ok(Amount { count, is_least })
    }

    fn words(&self, key: &str) -> Result<Vec<Word>, String> {
        let listed = (self.given.get(key).and_then(Value::as_array))
            .filter(|list| (1..=KEYWORDS).contains(&list.len()))
            .ok_or_else(|| self.missing(key, &format!("a list of 1 to {KEYWORDS} texts")))?;
        let word = |value: &Value| match value.as_str() {
            Some(text) => self.word(text),
            None => Err(self.missing(key, "a list of texts")),
        };
        listed.iter().map(word).collect()
    }

    fn word(&self, text: &str) -> Result<Word, String> {
        Word::new(text).map_err(|cause| {
            format!("a usable keyword in the instruction `{}`, but {cause}", self.id)
        })
    }
}

impl Instruction {
    pub fn new(id: &str, given: &Map<String, Value>) -> Result<Self, String> {
        let with = Arguments { id, given };
        let made = match id {
            "keywords:existence" => Self::Existence(with.words("keywords")?),
            "keywords:frequency" => Self::Frequency(
                with.word(python::strip(with.text("keyword")?))?,
                with.amount("frequency", "relation")?,
            ),
            "keywords:forbidden_words" => Self::ForbiddenWords(with.words("forbidden_words")?),
            "keywords:letter_frequency" => {
                let amount = with.amount("let_frequency", "let_relation")?;
                let mut letters = with.text("letter")?.chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) if letter.is_ascii_alphabetic() => {
                        Self::LetterFrequency(letter.to_ascii_lowercase(), amount)
                    }
                    // The harness draws a letter at random in place of any other.
                    _ => Self::Unjudged,
                }
            }
            "length_constraints:number_paragraphs" => {
                Self::Paragraphs(with.number("num_paragraphs")?)
            }
            "length_constraints:number_words" => Self::Words(with.amount("num_words", "relation")?),
            "length_constraints:nth_paragraph_first_word" => {
                let paragraphs = with.number("num_paragraphs")?;
                let nth = with.number("nth_paragraph")?;
                let word = with.text("first_word")?.to_lowercase();
                if nth < 1.0 || nth > paragraphs || nth.fract() != 0.0 {
                    // The harness draws a number at random in place of any other.
                    Self::Unjudged
                } else {
                    let nth = nth as usize;
                    Self::FirstWord { paragraphs, nth, word }
                }
            }
            "detectable_content:number_placeholders" => {
                Self::Placeholders(with.number("num_placeholders")?)
            }
            "detectable_content:postscript" => {
                let marker = python::strip(with.text("postscript_marker")?).to_owned();
                find::has_postscript("", &marker).map_err(|cause| {
                    with.missing("postscript_marker", &format!("a marker, but {cause},"))
                })?;
                Self::Postscript(marker)
            }
            "detectable_format:number_bullet_lists" => Self::Bullets(with.number("num_bullets")?),
            "detectable_format:constrained_response" => Self::Constrained,
            "detectable_format:number_highlighted_sections" => {
                Self::Highlights(with.number("num_highlights")?)
            }
            "detectable_format:multiple_sections" => {
                let splitter = python::strip(with.text("section_spliter")?);
                let splitter = Splitter::new(splitter).map_err(|cause| {
                    with.missing("section_spliter", &format!("a word, but {cause},"))
                })?;
                Self::Sections(splitter, with.number("num_sections")?)
            }
            "detectable_format:json_format" => Self::Json,
            "detectable_format:title" => Self::Title,
            "combination:two_responses" => Self::TwoResponses,
            "combination:repeat_prompt" => {
                Self::RepeatPrompt(python::strip(with.text("prompt_to_repeat")?).to_lowercase())
            }
            "startend:end_checker" => {
                Self::End(python::strip(with.text("end_phrase")?).to_lowercase())
            }
            "startend:quotation" => Self::Quotation,
            "change_case:english_capital" => Self::EnglishCapital,
            "change_case:english_lowercase" => Self::EnglishLowercase,
            "punctuation:no_comma" => Self::NoComma,
            "language:response_language"
            | "length_constraints:number_sentences"
            | "change_case:capital_word_frequency" => Self::Unjudged,
            _ => {
                return Err(format!("one of the 25 instructions of IFEval, not `{id}`"));
            }
        };
        // The harness draws a number at random in place of one below 0.
        let is_below_zero = |value: &Value| value.as_f64().is_some_and(|number| number < 0.0);
        Ok(if given.values().any(is_below_zero) { Self::Unjudged } else { made })
    }

    /// True if an answer follows it; `None` if unknown.
    pub fn is_followed(&self, answer: &str) -> Option<bool> {
        Some(match self {
            Self::Existence(words) => words.iter().all(|word| word.is_in(answer)),
            Self::Frequency(word, amount) => amount.fits(word.count(answer)),
            Self::ForbiddenWords(words) => !words.iter().any(|word| word.is_a_word_of(answer)),
            Self::LetterFrequency(letter, amount) => {
                let lower = answer.to_lowercase();
                amount.fits(lower.chars().filter(|c| c == letter).count())
            }
            Self::Paragraphs(count) => {
                parts(answer, "***").is_some_and(|found| is(found.len(), *count))
            }
            Self::Words(amount) => amount.fits(find::words(answer)),
            Self::FirstWord { paragraphs, nth, word } => {
                begins_with(answer, *paragraphs, *nth, word)
            }
            Self::Placeholders(count) => find::placeholders(answer) as f64 >= *count,
            Self::Postscript(marker) => find::has_postscript(answer, marker).ok()?,
            Self::Bullets(count) => is(find::points(answer), *count),
            Self::Constrained => {
                let answer = python::strip(answer);
                CONSTRAINED.iter().any(|option| answer.contains(option))
            }
            Self::Highlights(count) => find::highlights(answer) as f64 >= *count,
            Self::Sections(splitter, count) => splitter.sections(answer) as f64 >= *count,
            Self::Json => json::is_json(unfenced(answer)),
            Self::Title => find::has_title(answer),
            Self::TwoResponses => {
                matches!(parts(answer, "******").as_deref(), Some([one, other]) if one != other)
            }
            Self::RepeatPrompt(prompt) => {
                python::strip(answer).to_lowercase().starts_with(prompt.as_str())
            }
            Self::End(phrase) => {
                let answer = python::strip(answer).trim_matches('"').to_lowercase();
                answer.ends_with(phrase.as_str())
            }
            // The answer's language is unknown here, so only a wrong case is judged.
            Self::EnglishCapital => return (!python::is_upper(answer)).then_some(false),
            Self::EnglishLowercase => return (!python::is_lower(answer)).then_some(false),
            Self::NoComma => !answer.contains(','),
            Self::Quotation => {
                let answer = python::strip(answer);
                answer.len() > 1 && answer.starts_with('"') && answer.ends_with('"')
            }
            Self::Unjudged => return None,
        })
    }
}

fn is(found: usize, wanted: f64) -> bool {
    (found as f64 - wanted).abs() < f64::EPSILON
}

/// The parts between separators, without empty ends; `None` if another is empty.
fn parts<'a>(answer: &'a str, separator: &str) -> Option<Vec<&'a str>> {
    let parts: Vec<&str> = answer.split(separator).map(python::strip).collect();
    let last = parts.len() - 1;
    let is_end = |index: usize| index == 0 || index == last;
    let is_allowed = |(index, part): (usize, &&str)| !part.is_empty() || is_end(index);
    (parts.iter().enumerate().all(is_allowed))
        .then(|| parts.into_iter().filter(|part| !part.is_empty()).collect())
}

/// True if the number of paragraphs is the wanted one, and the nth begins with the word.
fn begins_with(answer: &str, wanted: f64, nth: usize, first: &str) -> bool {
    let paragraphs: Vec<&str> = answer.split("\n\n").map(python::strip).collect();
    let count = paragraphs.iter().filter(|paragraph| !paragraph.is_empty()).count();
    if nth > count || !is(count, wanted) {
        return false;
    }
    let Some(word) = python::split(paragraphs[nth - 1]).next() else { return false };
    let word = word.trim_start_matches('\'').trim_start_matches('"');
    let end = word.find(['.', ',', '?', '!', '\'', '"']).unwrap_or(word.len());
    let lower: String = word[..end].chars().flat_map(char::to_lowercase).collect();
    lower == first
}

/// The answer without the fences of a code block around it.
fn unfenced(answer: &str) -> &str {
    let mut text = python::strip(answer);
    for fence in ["```json", "```Json", "```JSON", "```"] {
        text = text.strip_prefix(fence).unwrap_or(text);
    }
    python::strip(text.strip_suffix("```").unwrap_or(text))
}
