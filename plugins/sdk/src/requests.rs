//! Requests that a dataset draws from its seed: several texts each, or a text with media. Each
//! request has generators of its own, so the size of a call changes nothing.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::lengths::{Distribution, Lengths, MOST_TOKENS};
use crate::random::Python;
use crate::words::{Text, Words, stream};
use crate::{
    Amount, Dataset, ENOUGH, Error, Inputs, Message, Part, Prompt, Role, Sample, Tokenizer,
};

const FILE: &str = "data";

/// Requests whose texts are made together, and the tokens after which there are no more of them.
const BATCH: u64 = 16;
const ENOUGH_TOKENS: u64 = 1 << 20;

/// A request of several texts.
pub trait TextRequest: Sized + 'static {
    /// The beginning of the names of its samples.
    const NAME: &str;

    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// The requests of a configuration.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if a length is out of range.
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// The generator and the number of tokens of each text of the `index`-th request of a kind.
    fn draw(&self, seed: u64, kind: u64, index: u64) -> Vec<(Python, u32)>;

    /// The prompt, and the tokens that a server counts for it.
    fn prompt(texts: Vec<Text>) -> (Prompt, u32);
}

/// Requests of random words, or of passages of the file `data` if the scenario names one.
pub struct TextRequests<R> {
    request: R,
    words: Words,
    tokenizer: Box<dyn Tokenizer>,
    seed: u64,
    given: u64,
    spared: u64,
    /// Fingerprints of prompts that are not measured.
    spares: HashSet<u64>,
}

impl<R: TextRequest> Dataset for TextRequests<R> {
    type Config = R::Config;

    fn open(config: R::Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let request = R::open(config)?;
        let words = match inputs.files.open(FILE) {
            Some(file) => Words::passages(FILE, &*file)?,
            None => Words::common(),
        };
        let (tokenizer, spares) = (inputs.tokenizer, HashSet::new());
        Ok(Self { request, words, tokenizer, seed, given: 0, spared: 0, spares })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        let mut fruitless = 0;
        while samples.len() < limit as usize && bytes < ENOUGH && fruitless < 1000 {
            let missing = (u64::from(limit) - samples.len() as u64).min(BATCH);
            let made = self.samples(R::NAME, 0, self.given, missing)?;
            self.given += made.len() as u64;
            let before = samples.len();
            let measured = |sample: &Sample| !self.spares.contains(&prompt_fingerprint(sample));
            samples.extend(made.into_iter().filter(measured));
            bytes += samples[before..].iter().map(Sample::bytes).sum::<usize>();
            fruitless = if samples.len() > before { 0 } else { fruitless + 1 };
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let name = format!("{}-spare", R::NAME);
        let samples = self.samples(&name, 1, self.spared, limit.into())?;
        self.spared += samples.len() as u64;
        self.spares.extend(samples.iter().map(prompt_fingerprint));
        Ok(samples)
    }
}

impl<R: TextRequest> TextRequests<R> {
    /// Samples of a kind; fewer when they have [`ENOUGH_TOKENS`].
    fn samples(&self, name: &str, kind: u64, from: u64, count: u64) -> Result<Vec<Sample>, Error> {
        let (mut tokens, mut wanted, mut counts) = (0, Vec::new(), Vec::new());
        for index in from..from + count {
            if tokens >= ENOUGH_TOKENS {
                break;
            }
            let texts = self.request.draw(self.seed, kind, index);
            let own: u64 = texts.iter().map(|(_, length)| u64::from(*length)).sum();
            if own > MOST_TOKENS.into() {
                return Err(Error::InvalidConfig(format!(
                    "the texts of request {} have {own} tokens; expected at most {MOST_TOKENS} together: set a smaller \
                     `max` for the distributions",
                    index + 1
                )));
            }
            tokens += own;
            counts.push(texts.len());
            wanted.extend(texts);
        }
        let mut texts = self.words.texts(&*self.tokenizer, wanted).into_iter();
        let sample = |(number, count): (u64, usize)| {
            let (prompt, tokens) = R::prompt(texts.by_ref().take(count).collect());
            let sample = Sample::new(format!("{name}-{number:06}"), prompt);
            Sample { input_tokens: Some(tokens), ..sample }
        };
        Ok((from + 1..).zip(counts).map(sample).collect())
    }
}

/// Images or audio of a request.
pub trait Medium: Sized + 'static {
    /// The beginning of the names of samples.
    const NAME: &str;

    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// The media of a configuration, and what requests have beside them.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if a value is out of range.
    fn open(config: Self::Config) -> Result<(Self, MediaShape), Error>;

    /// Draws a file of at most `room` bytes, if one fits. Audio comes with its nanoseconds.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if the configuration gives no valid file.
    fn draw(&self, random: &mut Python, room: usize) -> Result<Option<(Part, Option<u64>)>, Error>;

    /// The cause and the remedy for a request whose files have too many bytes together.
    fn too_large(request: u64) -> String;
}

/// The lengths of a request with media.
pub struct MediaShape {
    /// Tokens of its text.
    pub input_len: Distribution,
    /// Output tokens to request.
    pub output_len: Distribution,
    /// Number of its files.
    pub count: Lengths,
}

/// Requests of a text of random words, followed by media.
pub struct MediaRequests<M> {
    medium: M,
    input: Lengths,
    output: Lengths,
    count: Lengths,
    words: Words,
    tokenizer: Box<dyn Tokenizer>,
    seed: u64,
    given: u64,
    spared: u64,
}

impl<M: Medium> MediaRequests<M> {
    /// The most bytes of the media of a request: a dataset may return at most 64 MiB at once.
    pub const MOST_BYTES: usize = 48 << 20;
}

impl<M: Medium> Dataset for MediaRequests<M> {
    type Config = M::Config;

    fn open(config: M::Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let (medium, shape) = M::open(config)?;
        Ok(Self {
            medium,
            input: shape.input_len.lengths("input-len", 1..=1 << 20)?,
            output: shape.output_len.lengths("output-len", 1..=1 << 20)?,
            count: shape.count,
            words: Words::common(),
            tokenizer: inputs.tokenizer,
            seed,
            given: 0,
            spared: 0,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let samples = self.samples(M::NAME, 0, self.given, limit)?;
        self.given += samples.len() as u64;
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let samples = self.samples(&format!("{}-spare", M::NAME), 1, self.spared, limit)?;
        self.spared += samples.len() as u64;
        Ok(samples)
    }
}

impl<M: Medium> MediaRequests<M> {
    /// Samples of a kind; fewer when they are large.
    fn samples(&self, name: &str, kind: u64, from: u64, limit: u32) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        let end = from + u64::from(limit);
        let mut next = from;
        while next < end && bytes < ENOUGH {
            let (mut drawn, mut wanted, mut tokens) = (Vec::new(), Vec::new(), 0);
            while next < end && drawn.len() < BATCH as usize && tokens < ENOUGH_TOKENS {
                let mut random = stream(self.seed, kind, next);
                let input = self.input.draw(&mut random);
                let output = self.output.draw(&mut random);
                let count = self.count.draw(&mut random);
                tokens += u64::from(input);
                wanted.push((random, input));
                // The text's random numbers must not come again in the media.
                drawn.push((next + 1, output, count, stream(self.seed, kind + 2, next)));
                next += 1;
            }
            let texts = self.words.texts(&*self.tokenizer, wanted);
            for ((number, output, count, mut random), text) in drawn.into_iter().zip(texts) {
                // The next call makes the rest of the batch.
                if bytes >= ENOUGH {
                    break;
                }
                let (mut own, mut duration) = (0, None);
                let mut parts = vec![Part::Text(text.text)];
                for _ in 0..count {
                    let drawn = self.medium.draw(&mut random, Self::MOST_BYTES - own)?;
                    let Some((part, played)) = drawn else {
                        return Err(Error::InvalidConfig(M::too_large(number)));
                    };
                    own += match &part {
                        Part::Image(media) | Part::Audio(media) | Part::Video(media) => {
                            media.bytes.len()
                        }
                        Part::Text(_) | Part::Answer(_) => 0,
                    };
                    duration = played.map(|played| duration.unwrap_or(0) + played);
                    parts.push(part);
                }
                let message = Message { role: Role::User, parts, extra: None };
                let prompt = Prompt::Messages(vec![message]);
                let sample = Sample {
                    audio_duration: duration,
                    output_tokens: Some(output),
                    ..Sample::new(format!("{name}-{number:06}"), prompt)
                };
                bytes += sample.bytes();
                samples.push(sample);
            }
        }
        Ok(samples)
    }
}

/// At most `limit` samples, or fewer if they are large; `next` gives `None` at the end.
///
/// # Errors
/// As `next`.
pub fn fill(
    limit: u32,
    mut next: impl FnMut() -> Result<Option<Sample>, Error>,
) -> Result<Vec<Sample>, Error> {
    let (mut samples, mut bytes) = (Vec::new(), 0);
    while samples.len() < limit as usize
        && bytes < ENOUGH
        && let Some(sample) = next()?
    {
        bytes += sample.bytes();
        samples.push(sample);
    }
    Ok(samples)
}

/// Equal values have equal fingerprints.
pub fn fingerprint(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Samples with equal prompts have equal fingerprints.
pub fn prompt_fingerprint(sample: &Sample) -> u64 {
    fingerprint(format!("{:?}", sample.prompt))
}
