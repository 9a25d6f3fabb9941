//! The tokens of made-up prompts: a set of tokens such that a text made from any sequence of them
//! tokenizes to exactly this sequence. So tokens never merge where blocks meet. Equal blocks are
//! equal to the token in every prompt, with no need to mend a block after its neighbours.
//!
//! # How the set is found
//! Candidates are, in this order: tokens of a space and two to nine lower-case letters; of a space
//! and letters; of letters and digits. Common tokenizers split a text before every space, so that
//! the first kind stays apart by construction. Nothing is assumed, however:
//!
//! 1. A candidate stays only if its text tokenizes to it alone.
//! 2. All that stay are put in random order, several times, and the text is tokenized. If every
//!    token comes back, the set is closed.
//! 3. Otherwise tokens merge across words. Then the text of each pair of 128 candidates is
//!    tokenized, and candidates are removed, most merging pairs first, until no pair merges. The
//!    rest must pass step 2.
//!
//! The same tokenizer gives the same set on every machine. Tokenizers that put a space before every
//! text are recognized, and the first word's own space is left out for them.

use runner_plugin::{Error, Tokenizer};

use crate::config::{Form, invalid};
use crate::content::mixed;

/// Candidates of the first kind are enough at this number.
const MOST: usize = 8192;
/// Fewer do not make a set.
const LEAST: usize = 16;
/// The longest text of a word in bytes. With the limit on a prompt's tokens it bounds its text.
const LONGEST: usize = 10;
/// Token ids to decode, or texts to encode, in one call.
const BATCH: usize = 4096;
/// Words of a text by which a set is tried.
const TRIED: usize = 512;
/// The number of times that each word is tried, with other neighbours each time.
const ROUNDS: u64 = 4;
/// Candidates whose pairs are all tried.
const PAIRED: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    id: u32,
    text: String,
}

#[derive(Debug)]
pub(crate) struct Words {
    words: Vec<Word>,
    /// Begins every prompt that is not measured, and is part of no other.
    mark: Word,
    /// True if the first word's space is left out.
    bare: bool,
    /// Number of tokens that the model adds around a text.
    pub(crate) added: u32,
}

impl Words {
    /// The set of a tokenizer.
    pub(crate) fn new(tokenizer: &dyn Tokenizer, form: Form) -> Result<Self, Error> {
        let facts = tokenizer.describe();
        let mut kinds: [Vec<Word>; 3] = Default::default();
        let ids: Vec<u32> =
            (0..facts.base_size).filter(|id| facts.special.binary_search(id).is_err()).collect();
        for batch in ids.chunks(BATCH) {
            if kinds[0].len() >= MOST {
                break;
            }
            for word in texts(tokenizer, batch) {
                if let Some(kind) = kind(&word.text) {
                    kinds[kind].push(word);
                }
            }
        }
        for mut kind in kinds {
            kind.truncate(MOST);
            for bare in [false, true] {
                if let Some(mut words) = closed(tokenizer, &kind, bare)
                    && let Some(mark) = words.pop()
                {
                    return Ok(Self { words, mark, bare, added: facts.added_tokens });
                }
            }
        }
        if form == Form::Tokens && ids.len() > LEAST {
            let mut words: Vec<Word> =
                ids.into_iter().map(|id| Word { id, text: String::new() }).collect();
            if let Some(mark) = words.pop() {
                return Ok(Self { words, mark, bare: false, added: 0 });
            }
        }
        Err(invalid(format!(
            "the tokenizer has fewer than {LEAST} tokens that stay apart in a text, so that blocks of a prompt would not \
             be shared to the token: pass the model's own with --tokenizer, or set `as = \"tokens\"`"
        )))
    }

    /// The index of a word, uniform if the number is.
    pub(crate) fn pick(&self, number: u64) -> usize {
        ((u128::from(number) * self.words.len() as u128) >> 64) as usize
    }

    pub(crate) fn text(&self, marked: bool, indices: impl Iterator<Item = usize>) -> String {
        let mut text = String::new();
        if marked {
            text.push_str(&self.mark.text);
        }
        for index in indices {
            text.push_str(&self.words[index].text);
        }
        if self.bare && text.starts_with(' ') {
            text.remove(0);
        }
        text
    }

    pub(crate) fn ids(&self, marked: bool, indices: impl Iterator<Item = usize>) -> Vec<u32> {
        let mark = marked.then_some(self.mark.id);
        mark.into_iter().chain(indices.map(|index| self.words[index].id)).collect()
    }
}

/// The texts of tokens behind other tokens: some tokenizers drop a space at the beginning.
fn texts(tokenizer: &dyn Tokenizer, ids: &[u32]) -> Vec<Word> {
    let once: Vec<Vec<u32>> = ids.iter().map(|id| vec![*id]).collect();
    let twice: Vec<Vec<u32>> = ids.iter().map(|id| vec![*id, *id]).collect();
    let (once, twice) = (tokenizer.decode(&once), tokenizer.decode(&twice));
    let behind = once
        .iter()
        .zip(&twice)
        .map(|(once, twice)| twice.strip_prefix(once.as_str()).unwrap_or_default());
    ids.iter().zip(behind).map(|(id, text)| Word { id: *id, text: text.to_owned() }).collect()
}

/// The kind of candidate that a text is.
fn kind(text: &str) -> Option<usize> {
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    match text.strip_prefix(' ') {
        Some(rest) if rest.len() >= 2 && rest.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            Some(0)
        }
        Some(rest) if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            Some(1)
        }
        None if text.chars().all(char::is_alphanumeric) => Some(2),
        _ => None,
    }
}

fn joined<'a>(words: impl IntoIterator<Item = &'a Word>, bare: bool) -> String {
    let text: String = words.into_iter().map(|word| word.text.as_str()).collect();
    match text.strip_prefix(' ') {
        Some(rest) if bare => rest.to_owned(),
        _ => text,
    }
}

/// The candidates that make a closed set, if there are enough.
fn closed(tokenizer: &dyn Tokenizer, candidates: &[Word], bare: bool) -> Option<Vec<Word>> {
    let mut alone = Vec::new();
    for batch in candidates.chunks(BATCH) {
        let texts: Vec<String> = batch.iter().map(|word| joined([word], bare)).collect();
        let encoded = tokenizer.encode(&texts, false);
        let same = batch.iter().zip(encoded);
        alone.extend(same.filter(|(word, ids)| *ids == [word.id]).map(|(word, _)| word.clone()));
    }
    if alone.len() < LEAST {
        return None;
    }
    if holds(tokenizer, &alone, bare) {
        return Some(alone);
    }
    let step = alone.len().div_ceil(PAIRED);
    let few = unmerged(tokenizer, alone.into_iter().step_by(step.max(1)).collect(), bare);
    (few.len() >= LEAST && holds(tokenizer, &few, bare)).then_some(few)
}

/// True if texts of the words in random orders tokenize to them.
fn holds(tokenizer: &dyn Tokenizer, words: &[Word], bare: bool) -> bool {
    let mut order: Vec<&Word> = words.iter().collect();
    let rounds = ROUNDS * (TRIED as u64).div_ceil(words.len() as u64);
    for round in 0..rounds {
        for at in (1..order.len()).rev() {
            let other = mixed(round << 32 | at as u64) % (at as u64 + 1);
            order.swap(at, other as usize);
        }
        let texts: Vec<String> =
            order.chunks(TRIED).map(|chunk| joined(chunk.iter().copied(), bare)).collect();
        let same = tokenizer
            .encode(&texts, false)
            .iter()
            .zip(order.chunks(TRIED))
            .all(|(ids, chunk)| ids.iter().eq(chunk.iter().map(|word| &word.id)));
        if !same {
            return false;
        }
    }
    true
}

/// The words without a merging pair.
fn unmerged(tokenizer: &dyn Tokenizer, mut words: Vec<Word>, bare: bool) -> Vec<Word> {
    let size = words.len();
    let pairs: Vec<(usize, usize)> = (0..size * size).map(|at| (at / size, at % size)).collect();
    let mut merging = Vec::new();
    for batch in pairs.chunks(BATCH) {
        let texts: Vec<String> = batch
            .iter()
            .map(|(first, second)| joined([&words[*first], &words[*second]], bare))
            .collect();
        for (pair, ids) in batch.iter().zip(tokenizer.encode(&texts, false)) {
            if ids != [words[pair.0].id, words[pair.1].id] {
                merging.push(*pair);
            }
        }
    }
    let mut removed = vec![false; size];
    while !merging.is_empty() {
        let mut count = vec![0_u32; size];
        for (first, second) in &merging {
            count[*first] += 1;
            count[*second] += 1;
        }
        let worst = (0..size).max_by_key(|at| count[*at]).unwrap_or_default();
        removed[worst] = true;
        merging.retain(|(first, second)| *first != worst && *second != worst);
    }
    let mut at = 0;
    words.retain(|_| {
        at += 1;
        !removed[at - 1]
    });
    words
}
