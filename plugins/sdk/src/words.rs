//! Texts of a given number of tokens, where a benchmark needs some text: common English words drawn
//! at random, or passages of a file.
//!
//! Words are drawn as Python's `random.choice` draws them, and a passage begins at a word that is
//! drawn likewise, from a generator for each text. So a text depends on its own generator and
//! length alone.

use std::borrow::Cow;

use crate::random::{Python, mixed};
use crate::{Error, File, Tokenizer};

/// Common words, most of them a token each for tokenizers of English.
const WORDS: &str = "time year people way day man thing woman life child world school state family student group \
    country problem hand part place case week company system program question work government number night point \
    home water room mother area money story fact month lot right study book eye job word business issue side kind \
    head house service friend father power hour game line end member law car city community name president team \
    minute idea kid body information back parent face others level office door health person art war history party \
    result change morning reason research girl guy moment air teacher force education foot boy age policy music \
    process market sense nation plan college interest death experience effect use class control care field \
    development role effort rate heart drug show leader light voice wife police mind price report decision son view \
    town road arm difference value building action model season society tax director position player record paper \
    space ground form event official matter center couple site project activity star table need court produce eat \
    teach oil half situation easy cost industry figure street image phone data picture practice piece land product \
    doctor wall patient worker news test movie north love step machine wind river stone green silver open quick \
    bright gentle simple common early small large strong young public whole clear certain able free true full \
    special low single poor happy ready left main close cold hard fine";

/// The number of times that a text is adjusted until it has its number of tokens.
const ADJUSTMENTS: u32 = 8;

/// A text and how many tokens it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its tokens, including the model's own around a text.
    pub tokens: u32,
}

/// The longest file to take passages from, in bytes: all of it is held.
const LONGEST: u64 = 64 << 20;

/// Words to make texts of.
pub struct Words {
    words: Vec<Cow<'static, str>>,
    /// True if the words of a text follow one another, as in the file.
    passages: bool,
}

impl Words {
    /// Common English words, drawn at random.
    #[must_use]
    pub fn common() -> Self {
        Self { words: WORDS.split_ascii_whitespace().map(Cow::Borrowed).collect(), passages: false }
    }

    /// Passages of the file `name` of the scenario, which continues at its end with its beginning.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if it is too long, no text, or has no words.
    pub fn passages(name: &str, file: &dyn File) -> Result<Self, Error> {
        let wrong = |cause: String| Error::InvalidInput(format!("file `{name}`: {cause}"));
        let size = file.size();
        if size > LONGEST {
            return Err(wrong(format!(
                "it has {size} bytes; expected a text of at most {} MiB",
                LONGEST >> 20
            )));
        }
        let bytes = file.read_all(0, size).map_err(wrong)?;
        let text =
            str::from_utf8(&bytes).map_err(|error| wrong(format!("expected text: {error}")))?;
        let words = text.split_whitespace();
        let words: Vec<_> = words.map(|word| Cow::Owned(word.to_owned())).collect();
        if words.is_empty() {
            return Err(wrong("it has no words".to_owned()));
        }
        Ok(Self { words, passages: true })
    }

    /// A text for each of these generators and numbers of tokens, which include the model's own
    /// around a text. In rare cases, where the tokenizer gives no prefix of the words exactly that
    /// number, a text is a token or two shorter or longer.
    pub fn texts(&self, tokenizer: &dyn Tokenizer, wanted: Vec<(Python, u32)>) -> Vec<Text> {
        let around = tokenizer.describe().added_tokens;
        let mut drafts: Vec<Draft> = wanted
            .into_iter()
            .map(|(random, length)| Draft {
                random,
                target: length.saturating_sub(around).max(1),
                text: String::new(),
                count: 0,
                next: None,
            })
            .collect();
        for round in 1..=ADJUSTMENTS {
            let mut open: Vec<&mut Draft> =
                drafts.iter_mut().filter(|draft| draft.count != draft.target).collect();
            if open.is_empty() {
                break;
            }
            for draft in &mut open {
                draft.lengthen(self);
            }
            let texts: Vec<String> = open.iter().map(|draft| draft.text.clone()).collect();
            let mut cut = Vec::new();
            let mut ids = Vec::new();
            for (draft, mut own) in open.into_iter().zip(tokenizer.encode(&texts, false)) {
                draft.count = own.len() as u32;
                if draft.count > draft.target && round < ADJUSTMENTS {
                    own.truncate(draft.target as usize);
                    ids.push(own);
                    cut.push(draft);
                }
            }
            if cut.is_empty() {
                continue;
            }
            let texts = tokenizer.decode(&ids);
            let counts = tokenizer.count(&texts, false);
            for (draft, (text, count)) in cut.into_iter().zip(texts.into_iter().zip(counts)) {
                draft.text = text;
                draft.count = count;
            }
        }
        let texts: Vec<String> = drafts.into_iter().map(|draft| draft.text).collect();
        let tokens = tokenizer.count(&texts, true);
        let both = texts.into_iter().zip(tokens);
        both.map(|(text, tokens)| Text { text, tokens }).collect()
    }
}

struct Draft {
    random: Python,
    target: u32,
    text: String,
    count: u32,
    /// Position of the next word of a passage.
    next: Option<usize>,
}

impl Draft {
    /// Adds a word for each token that is missing.
    fn lengthen(&mut self, words: &Words) {
        let all = words.words.len();
        for _ in self.count..self.target {
            let at = match self.next {
                Some(next) if words.passages => next,
                _ => self.random.below(all as u64) as usize,
            };
            self.next = Some((at + 1) % all);
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(&words.words[at]);
        }
    }
}

/// The generator of the `index`-th thing that a seed makes; `kind` tells kinds of things apart.
pub fn stream(seed: u64, kind: u64, index: u64) -> Python {
    // SplitMix64's mixing of the three: neighbours get generators that have nothing in common.
    let mut state = seed;
    for part in [kind, index] {
        state = mixed(state.wrapping_add(part.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
    Python::new(state)
}
