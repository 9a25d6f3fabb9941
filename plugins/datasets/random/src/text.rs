//! Pieces of a text, cut to length. Random ids resemble no text that a model has learned: a server
//! with speculative decoding looks slower on them than it is.

use std::collections::BTreeSet;

use runner_plugin::random::{NumpyGenerator, NumpyLegacy};
use runner_plugin::report::Remarks;
use runner_plugin::{Error, File, Tokenizer};

use crate::config::Recipe;
use crate::lengths::Lengths;
use crate::source::{AnswerRequest, Drafts, ENOUGH_TOKENS, Entry, Source, formed};

/// Bytes to read for a token at first. It is more for ordinary text, so that one attempt is enough.
const BYTES_A_TOKEN: u64 = 6;

/// Bytes in which the beginning of a word is searched, at most.
const WORD: usize = 64;

/// The number of places that are remembered to count repeated places.
const PLACES: usize = 1 << 20;

/// Every prompt begins at a random word, and continues at the beginning of the file after its end.
pub(crate) struct Text {
    name: String,
    file: Box<dyn File>,
    /// Draws lengths.
    random: NumpyLegacy,
    /// Draws where prompts begin.
    places: NumpyGenerator,
    /// Draws where spare prompts begin, separately so that it does not affect the measured ones.
    apart: NumpyGenerator,
    drafts: Drafts,
    making: Recipe,
    begun: BTreeSet<u64>,
    remarks: Remarks,
}

impl Text {
    pub(crate) fn new(
        name: &str,
        file: Box<dyn File>,
        lengths: Lengths,
        making: Recipe,
        seed: u64,
        count: Option<u64>,
    ) -> Result<Self, Error> {
        if file.size() == 0 {
            return Err(Error::InvalidInput(format!(
                "the file `{name}` is empty; expected a text to cut prompts from"
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            file,
            random: NumpyLegacy::new(seed as u32),
            places: NumpyGenerator::new(seed),
            apart: NumpyGenerator::new(!seed),
            drafts: Drafts::new(lengths, 0, count),
            making,
            begun: BTreeSet::new(),
            remarks: Remarks::default(),
        })
    }

    /// `length` ids from the word at or behind `place`.
    fn piece(
        &mut self,
        tokenizer: &dyn Tokenizer,
        place: u64,
        length: u32,
    ) -> Result<Vec<u32>, Error> {
        let mut bytes = u64::from(length) * BYTES_A_TOKEN + WORD as u64;
        let most = bytes * 64 + self.file.size();
        loop {
            let read = self.read(place, bytes)?;
            let text = self.words(&read, place);
            let mut ids = tokenizer.encode(&[text], false).pop().unwrap_or_default();
            if ids.len() >= length as usize {
                ids.truncate(length as usize);
                return Ok(ids);
            }
            if bytes > most {
                return Err(Error::InvalidInput(format!(
                    "{bytes} bytes of the file `{}` have fewer than {length} tokens: it does not seem to be a text",
                    self.name
                )));
            }
            bytes *= 2;
        }
    }

    /// `count` bytes from `place` on, and from the beginning again behind the end.
    fn read(&self, place: u64, count: u64) -> Result<Vec<u8>, Error> {
        let size = self.file.size();
        let (mut read, mut at) = (Vec::new(), place);
        while (read.len() as u64) < count {
            let length = (count - read.len() as u64).min(size.saturating_sub(at).max(1));
            read.extend(self.file.read_all(at, length).map_err(|cause| {
                let name = &self.name;
                Error::input(format!("the file `{name}` cannot be read at byte {at}: {cause}"))
            })?);
            at = (at + length) % size.max(1);
        }
        Ok(read)
    }

    /// The text that was read, from its first word on, without a cut character at the end.
    fn words(&mut self, read: &[u8], place: u64) -> String {
        let within = &read[..read.len().min(WORD)];
        let word = match within.iter().position(u8::is_ascii_whitespace) {
            _ if place == 0 => 0,
            Some(space) => space + 1,
            // A script without spaces: the next character.
            None => within.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(0),
        };
        let read = &read[word..];
        let end = match std::str::from_utf8(read) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => read.len(),
        };
        let text = String::from_utf8_lossy(&read[..end]);
        if text.contains(char::REPLACEMENT_CHARACTER) {
            self.remarks
                .repaired("piece of text that is not UTF-8", || format!("after byte {place}"));
        }
        text.trim_start().to_owned()
    }
}

impl Source for Text {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let size = self.file.size();
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit
            && tokens < ENOUGH_TOKENS
            && let Some((_, draft)) = self.drafts.next(&mut self.random)
        {
            let place = self.places.integers(0, size.max(1));
            if self.begun.len() < PLACES && !self.begun.insert(place) {
                self.remarks.repeated("place of the text at which another prompt begins", || {
                    format!("byte {place}")
                });
            }
            tokens += draft.input as usize;
            prompts.push((self.piece(tokenizer, place, draft.input)?, draft.answer));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }

    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (lengths.longest(), lengths.longest_output());
        let size = self.file.size();
        let mut prompts = Vec::new();
        for _ in 0..limit.min(ENOUGH_TOKENS.div_ceil(length.max(1) as usize)) {
            let place = self.apart.integers(0, size.max(1));
            let ids = self.piece(tokenizer, place, length)?;
            prompts.push((ids, AnswerRequest::spare(output)));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }

    fn remarks(&self) -> Option<&Remarks> {
        Some(&self.remarks)
    }
}
