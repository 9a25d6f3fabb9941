//! Synthetic prompts of given lengths, and pieces of texts. The same seed, number of prompts and
//! tokenizer give the prompts of the chosen Python tool.
//!
//! The tools draw all lengths before all offsets, for all prompts of the run. So the prompts equal
//! theirs only if the run's number of requests is known beforehand, and only up to that number.
//! Further prompts, and prompts of a run that is limited by time, are drawn in the same way in
//! blocks of 1024.
//!
//! A sample's `input-tokens` are counted from the text that is sent, with the tokens that the model
//! adds around it, as a server counts them. The tools report the requested number instead.
#![deny(unsafe_code)]

mod corpus;
mod lengths;
mod source;
#[cfg(test)]
mod tests;
mod vllm;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{
    Amount, Dataset, ENOUGH, Error, Facts, File, Inputs, Remark, Sample, Tokenizer,
};
use sharegpt_file::{Conversations, Like};

use lengths::{Draw, Lengths};
use runner_plugin::lengths::{Distribution, MOST_TOKENS};
use runner_plugin::random::{NumpyGenerator, NumpyLegacy};
use source::{AnswerRequest, Drafts, ENOUGH_TOKENS, Entry, Source, formed};

/// The scenario's name for a ShareGPT file.
const FILE: &str = "data";

/// The scenario's name for a text.
const TEXT: &str = "text";

pub struct Random {
    source: Box<dyn Source>,
    tokenizer: Box<dyn Tokenizer>,
    given: u64,
    spares: BTreeSet<u64>,
    classes: Vec<String>,
    remarks: Remarks,
}

runner_plugin::export_dataset!(Random);

impl Dataset for Random {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let count = amount.samples();
        config.check()?;
        let source = source(&config, seed, count, &inputs)?;
        Ok(Self {
            source,
            tokenizer: inputs.tokenizer,
            given: 0,
            spares: BTreeSet::new(),
            classes: config.classes.into_iter().map(|class| class.name).collect(),
            remarks: Remarks::default(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        while samples.len() < limit as usize && bytes < ENOUGH {
            let drawn = self.source.next(&*self.tokenizer, limit as usize - samples.len())?;
            if drawn.is_empty() {
                break;
            }
            for drawn in drawn {
                if self.spares.contains(&fingerprint(&drawn.content)) {
                    self.remarks.dropped(
                        "prompt that was used for warmup; later prompts shift by one",
                        String::new,
                    );
                    continue;
                }
                self.given += 1;
                let id = format!("random-{:06}", self.given);
                let sample = self.sample(id, drawn);
                bytes += sample.bytes();
                samples.push(sample);
            }
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        for drawn in self.source.spare(&*self.tokenizer, limit as usize)? {
            if self.spares.insert(fingerprint(&drawn.content)) {
                let id = format!("random-spare-{:06}", self.spares.len());
                samples.push(self.sample(id, drawn));
            }
        }
        Ok(samples)
    }

    fn remarks(&self) -> Vec<Remark> {
        let mut remarks = self.remarks.list();
        remarks.extend(self.source.remarks().map(Remarks::list).unwrap_or_default());
        remarks
    }
}

impl Random {
    fn sample(&self, id: String, drawn: Entry) -> Sample {
        let class = drawn.answer.class.map(|class| class as usize);
        Sample {
            input_tokens: Some(drawn.input_tokens),
            output_tokens: Some(drawn.answer.output_tokens),
            class: class.and_then(|class| self.classes.get(class).cloned()),
            ..Sample::new(id, drawn.content.into())
        }
    }
}

fn source(
    config: &Config,
    seed: u64,
    count: Option<u64>,
    inputs: &Inputs,
) -> Result<Box<dyn Source>, Error> {
    let facts = inputs.tokenizer.describe();
    let lengths = lengths::Lengths::from_config(config, facts.added_tokens, seed)?;
    if config.form == Form::Tokens && facts.approximate {
        return Err(Error::config(
            "`as = \"tokens\"` needs the ids of the model's own tokenizer: pass --tokenizer, or send text",
        ));
    }
    // LMDeploy drops empty texts before it shuffles; SGLang skips them later.
    let keep_empty = config.way() != Like::Lmdeploy;
    if let Some(conversations) =
        Conversations::open(&*inputs.files, FILE, config.way(), keep_empty)?
    {
        if inputs.files.open(TEXT).is_some() {
            return Err(Error::config(format!(
                "prompts are cut from the file `{FILE}` or from the file `{TEXT}`, not from both: leave one of them out"
            )));
        }
        if config.way() == Like::Vllm {
            return Err(Error::config(format!(
                "`like = \"vllm\"` draws token ids and reads no file: leave `{FILE}` out, or take `like = \"sglang\"`"
            )));
        }
        if conversations.is_empty() {
            return Err(Error::InvalidInput(format!(
                "the file `{FILE}` has no conversation of two turns or more: use a file of the ShareGPT format"
            )));
        }
        return Ok(Box::new(corpus::Corpus::new(
            conversations,
            lengths,
            config.making(),
            seed,
            count,
        )));
    }
    if let Some(file) = inputs.files.open(TEXT) {
        if config.like.is_some() {
            return Err(Error::config(format!(
                "no tool cuts prompts from a text: leave `like` out, or the file `{TEXT}`"
            )));
        }
        let text = Text::new(TEXT, file, lengths, config.making(), seed, count)?;
        return Ok(Box::new(text));
    }
    if config.way() == Like::Lmdeploy {
        return Err(Error::config(format!(
            "`like = \"lmdeploy\"` cuts its prompts from a ShareGPT file: pass --dataset-path FILE, or set \
             `{FILE} = \"FILE\"` under [dataset.files], or take `like = \"sglang\"`"
        )));
    }
    let no_vocabulary = || {
        Error::config(
            "the tokenizer has no tokens to draw from: pass the model's own with --tokenizer",
        )
    };
    if facts.approximate {
        let stand_in = StandIn::new(lengths, &facts, seed, count).ok_or_else(no_vocabulary)?;
        return Ok(Box::new(stand_in));
    }
    let usable = (0..facts.base_size).any(|id| facts.special.binary_search(&id).is_err());
    if !usable {
        return Err(no_vocabulary());
    }
    Ok(match config.way() {
        Like::Vllm => {
            Box::new(vllm::Vllm::new(lengths, &facts, config.prefix_len, config.form, seed, count))
        }
        Like::Sglang | Like::Lmdeploy => {
            Box::new(Ids::new(lengths, facts.base_size, config.making(), seed, count))
        }
    })
}

/// The number of times that a text is converted to ids and back before its end is searched for.
const MENDINGS: u32 = 6;

/// The number of more ids than that are wanted the text has in which an end is searched for.
const SPARE: usize = 32;

/// Characters that are tried as the end, on each side of the wanted length.
const AROUND: usize = 64;

/// A text for each, which tokenizes to as many ids: missing ids come from the beginning again,
/// surplus ones are cut off. A text without such an end is as near as it came.
fn texts(tokenizer: &dyn Tokenizer, drawn: Vec<Vec<u32>>) -> Vec<String> {
    let mut texts = vec![String::new(); drawn.len()];
    let mut open: Vec<(usize, Vec<u32>)> = drawn.iter().cloned().enumerate().collect();
    for _ in 0..=MENDINGS {
        let (places, ids): (Vec<usize>, Vec<_>) = open.into_iter().unzip();
        let made = tokenizer.decode(&ids);
        let counted = tokenizer.encode(&made, false);
        open = Vec::new();
        for ((place, text), ids) in places.into_iter().zip(made).zip(counted) {
            let wanted = &drawn[place];
            if ids.len() != wanted.len() {
                open.push((place, to_length(ids, wanted)));
            }
            texts[place] = text;
        }
        if open.is_empty() {
            return texts;
        }
    }
    for (place, _) in open {
        if let Some(text) = cut(tokenizer, &drawn[place]) {
            texts[place] = text;
        }
    }
    texts
}

/// Cuts surplus ids off, and repeats the ids of `wanted` for missing ones.
fn to_length(mut ids: Vec<u32>, wanted: &[u32]) -> Vec<u32> {
    ids.truncate(wanted.len());
    let missing = wanted.len() - ids.len();
    ids.extend(wanted.iter().cycle().take(missing));
    ids
}

/// The beginning of the ids' text with the number of ids, if a cut near that number has it.
fn cut(tokenizer: &dyn Tokenizer, ids: &[u32]) -> Option<String> {
    let wanted = u32::try_from(ids.len()).ok()?;
    let count = |text: &str| tokenizer.count(&[text.to_owned()], false).pop();
    let mut most = ids.len() + SPARE;
    let text = loop {
        let longer = ids.iter().copied().cycle().take(most).collect();
        let text = tokenizer.decode(&[longer]).pop()?;
        if count(&text)? > wanted {
            break text;
        }
        // Text that becomes longer and has no more tokens never has enough.
        if most > 64 * (ids.len() + SPARE) {
            return None;
        }
        most *= 2;
    };
    let ends = text.char_indices().map(|(at, _)| at).skip(1);
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    let passed = ends.partition_point(|end| count(&text[..*end]).is_some_and(|it| it <= wanted));
    let near = &ends[passed.saturating_sub(AROUND)..(passed + AROUND).min(ends.len())];
    let beginnings: Vec<String> = near.iter().map(|end| text[..*end].to_owned()).collect();
    let counts = tokenizer.count(&beginnings, false);
    let found = counts.iter().rposition(|count| *count == wanted)?;
    beginnings.into_iter().nth(found)
}

/// The stand-in's tokens are characters, so there is nothing to adjust.
const PLAIN: Recipe = Recipe { form: Form::Text, exact: false };

/// Draws every token at random from the tokens that stand for text.
#[derive(Debug)]
struct StandIn {
    random: NumpyGenerator,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: NumpyGenerator,
    drafts: Drafts,
    /// Ids that may occur in a prompt, except `mark`.
    plain: Vec<u32>,
    /// The id with which spare prompts begin, and measured ones never do.
    mark: u32,
}

impl StandIn {
    /// `None` if the tokenizer has fewer than two ids that stand for text.
    pub(crate) fn new(
        lengths: Lengths,
        facts: &Facts,
        seed: u64,
        count: Option<u64>,
    ) -> Option<Self> {
        let special = |id: &u32| facts.special.binary_search(id).is_ok();
        let mut plain: Vec<u32> = (0..facts.vocabulary_size).filter(|id| !special(id)).collect();
        let mark = plain.pop()?;
        (!plain.is_empty()).then(|| Self {
            random: NumpyGenerator::new(seed),
            apart: NumpyGenerator::new(!seed),
            drafts: Drafts::new(lengths, 0, count),
            plain,
            mark,
        })
    }
}

fn run(random: &mut NumpyGenerator, plain: &[u32], length: u32) -> Vec<u32> {
    let last = plain.len() as u32 - 1;
    (0..length).map(|_| plain[random.draw(&(0..=last)) as usize]).collect()
}

impl Source for StandIn {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit
            && tokens < ENOUGH_TOKENS
            && let Some((_, draft)) = self.drafts.next(&mut self.random)
        {
            tokens += draft.input as usize;
            prompts.push((run(&mut self.random, &self.plain, draft.input), draft.answer));
        }
        Ok(formed(tokenizer, PLAIN, prompts))
    }

    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (lengths.longest(), lengths.longest_output());
        let mut prompts = Vec::new();
        for _ in 0..limit.min(ENOUGH_TOKENS.div_ceil(length.max(1) as usize)) {
            let mut ids = run(&mut self.apart, &self.plain, length);
            if let Some(first) = ids.first_mut() {
                *first = self.mark;
            }
            prompts.push((ids, AnswerRequest::spare(output)));
        }
        Ok(formed(tokenizer, PLAIN, prompts))
    }
}

/// Prompt `i` is the ids from `offset + i` on, around the vocabulary, with special ids.
#[derive(Debug)]
struct Ids {
    random: NumpyLegacy,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: NumpyGenerator,
    drafts: Drafts,
    vocabulary: u32,
    making: Recipe,
}

impl Ids {
    pub(crate) fn new(
        lengths: Lengths,
        vocabulary: u32,
        making: Recipe,
        seed: u64,
        count: Option<u64>,
    ) -> Self {
        Self {
            // NumPy accepts only 32-bit seeds; of larger ones the lower half is used.
            random: NumpyLegacy::new(seed as u32),
            apart: NumpyGenerator::new(seed),
            drafts: Drafts::new(lengths, vocabulary, count),
            vocabulary,
            making,
        }
    }
}

impl Source for Ids {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let vocabulary = u64::from(self.vocabulary);
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit
            && tokens < ENOUGH_TOKENS
            && let Some((index, draft)) = self.drafts.next(&mut self.random)
        {
            let start = u64::from(draft.offset) + index;
            let ids = (0..u64::from(draft.input)).map(|at| ((start + at) % vocabulary) as u32);
            tokens += draft.input as usize;
            prompts.push((ids.collect(), draft.answer));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }

    /// Descending runs, whereas the measured ones ascend.
    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (lengths.longest(), lengths.longest_output());
        if length < 2 || self.vocabulary < 3 {
            return Ok(Vec::new());
        }
        let mut prompts = Vec::new();
        for _ in 0..limit.min(ENOUGH_TOKENS.div_ceil(length as usize)) {
            let start = self.apart.draw(&(0..=self.vocabulary - 1));
            prompts
                .push((descending(start, length, self.vocabulary), AnswerRequest::spare(output)));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }
}

/// `length` numbers from `start` downwards, modulo `size`.
fn descending(start: u32, length: u32, size: u32) -> Vec<u32> {
    (0..length)
        .map(|at| {
            ((u64::from(start) + u64::from(size) - u64::from(at % size)) % u64::from(size)) as u32
        })
        .collect()
}

/// Bytes to read for a token at first. It is more for ordinary text, so that one attempt is enough.
const BYTES_A_TOKEN: u64 = 6;

/// Bytes in which the beginning of a word is searched, at most.
const WORD: usize = 64;

/// The number of places that are remembered to count repeated places.
const PLACES: usize = 1 << 20;

/// Every prompt begins at a random word, and continues at the beginning of the file after its end.
struct Text {
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

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Prompt length in tokens: a number, or the table of a distribution.
    pub input_len: Distribution,
    /// Output tokens to request: a number, or the table of a distribution.
    pub output_len: Distribution,
    /// Kinds of prompts, each with its share and its lengths. Every sample carries the name of its
    /// class, by which results can be grouped.
    pub classes: Vec<Class>,
    /// The range of lengths, as defined by the tool in `like`. With `sglang`, `lmdeploy` and
    /// without `like`, lengths are drawn from (ratio × length) to (length); 1, the default, makes
    /// all exact. With `vllm`, they are drawn from (1 − ratio) × length to (1 + ratio) × length; 0,
    /// the default, makes all exact. A table `{ input = …, output = … }` sets the two separately.
    /// Not with distributions or classes, which set the range themselves.
    pub range_ratio: Option<Ratio>,
    /// The tool whose prompts to reproduce, character by character, for the same seed, number of
    /// prompts and tokenizer. Without it, prompts are drawn as with `sglang` and then adjusted
    /// until their text tokenizes to exactly the requested length. `sglang`: runs of consecutive
    /// token ids (its `random-ids`), or, with a ShareGPT file `data`, its texts cut and repeated to
    /// length (its `random`). The text of such prompts often has more or fewer tokens than drawn.
    /// `lmdeploy`: the latter, in LMDeploy's way. `vllm`: runs of consecutive token ids, adjusted
    /// until their text tokenizes to the requested length. With distributions or classes, prompts
    /// are made in the tool's way, but with other lengths. With a file `text`, prompts are pieces
    /// of that text, without `like`.
    pub like: Option<Like>,
    /// Send the prompt as `text` or as token ids (`tokens`). By default `text`.
    #[serde(rename = "as")]
    pub form: Form,
    /// Length in tokens of a prefix that all prompts share; it is drawn once. Only for `like =
    /// "vllm"`; it is added to `input-len`.
    pub prefix_len: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input_len: Distribution::constant(1024.0),
            output_len: Distribution::constant(128.0),
            classes: Vec::new(),
            range_ratio: None,
            like: None,
            form: Form::Text,
            prefix_len: 0,
        }
    }
}

/// A kind of prompts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Class {
    /// Its name, which each of its samples carries.
    pub name: String,
    /// Frequency, in proportion to the weights of the other classes.
    #[serde(default = "one")]
    pub weight: f64,
    /// Prompt length in tokens, a number or a distribution; by default the dataset's.
    pub input_len: Option<Distribution>,
    /// Output tokens to request, a number or a distribution; by default the dataset's.
    pub output_len: Option<Distribution>,
}

fn one() -> f64 {
    1.0
}

const MOST_CLASSES: usize = 1000;

/// One ratio for prompts and answers, or one for each.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number, or a table with the numbers `input` and `output`"
)]
pub enum Ratio {
    Both(f64),
    /// For each.
    Each {
        /// For prompts.
        input: f64,
        /// For answers.
        output: f64,
    },
}

/// The form in which a prompt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As text. The server may count a different number of tokens than were drawn.
    Text,
    /// As token ids, if the server accepts them.
    Tokens,
}

#[derive(Clone, Copy, Debug)]
struct Recipe {
    pub(crate) form: Form,
    /// True if a text is adjusted until it has as many tokens as there are ids.
    pub(crate) exact: bool,
}

impl Config {
    /// The tool in whose way prompts are drawn, also if they are then adjusted.
    pub(crate) fn way(&self) -> Like {
        self.like.unwrap_or(Like::Sglang)
    }

    pub(crate) fn making(&self) -> Recipe {
        Recipe { form: self.form, exact: self.like.is_none() }
    }

    pub(crate) fn ratios(&self) -> (f64, f64) {
        match (self.range_ratio, self.way()) {
            (Some(Ratio::Both(both)), _) => (both, both),
            (Some(Ratio::Each { input, output }), _) => (input, output),
            (None, Like::Vllm) => (0.0, 0.0),
            (None, Like::Sglang | Like::Lmdeploy) => (1.0, 1.0),
        }
    }

    /// True if lengths are drawn from distributions, and not from the range of a tool.
    pub(crate) fn is_free(&self) -> bool {
        let constant = |length: &Distribution| length.as_constant().is_some();
        !(self.classes.is_empty() && constant(&self.input_len) && constant(&self.output_len))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_free() && self.range_ratio.is_some() {
            return Err(Error::config(
                "`range-ratio` does not go with a distribution of lengths or with `classes`: leave it out, and set the \
                 range of lengths there",
            ));
        }
        self.check_classes()?;
        let (input, output) = self.ratios();
        for ratio in [input, output] {
            let (holds, expected) = match self.way() {
                Like::Vllm => {
                    ((0.0..1.0).contains(&ratio), "from 0 (all lengths exact) to below 1")
                }
                Like::Sglang | Like::Lmdeploy => {
                    ((0.0..=1.0).contains(&ratio), "from 0 to 1 (all lengths exact)")
                }
            };
            if !holds {
                return Err(Error::config(format!(
                    "`range-ratio` is {ratio}; expected a number {expected}"
                )));
            }
        }
        if self.prefix_len > MOST_TOKENS {
            return Err(Error::config(format!(
                "`prefix-len` is {}; expected at most {MOST_TOKENS}",
                self.prefix_len
            )));
        }
        if self.prefix_len > 0 && self.way() != Like::Vllm {
            return Err(Error::config("`prefix-len` belongs to `like = \"vllm\"`: leave it out"));
        }
        Ok(())
    }
}

impl Config {
    fn check_classes(&self) -> Result<(), Error> {
        if self.classes.len() > MOST_CLASSES {
            return Err(Error::config(format!(
                "`classes` has {} entries; expected at most {MOST_CLASSES}",
                self.classes.len()
            )));
        }
        for (at, class) in self.classes.iter().enumerate() {
            if class.name.is_empty() {
                return Err(Error::config(format!(
                    "`name` of entry {} of `classes` is empty; expected a name",
                    at + 1
                )));
            }
            if self.classes[..at].iter().any(|other| other.name == class.name) {
                return Err(Error::config(format!(
                    "`classes` has two entries named `{}`; expected different names",
                    class.name
                )));
            }
        }
        Ok(())
    }
}
