//! Prompts with audio: real WAV files of given lengths and sample rate, drawn by the seed, each
//! with a text.
//!
//! `sound` makes the sound and the file.
#![deny(unsafe_code)]

mod sound;
#[cfg(test)]
mod tests;

use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::words::{Words, stream};
use runner_plugin::{
    Amount, Dataset, ENOUGH, Error, Inputs, Media, Message, Part, Prompt, Role, Sample, Tokenizer,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The most pieces of audio of a request.
const MOST_CLIPS: u32 = 64;

/// The longest piece, in milliseconds: an hour.
const LONGEST: u32 = 3_600_000;

/// The most bytes of the audio of a request: a dataset may return at most 64 MiB at once.
const MOST_BYTES: usize = 48 << 20;

/// Requests whose texts are made together, and the tokens after which there are no more of them.
const BATCH: usize = 16;
const ENOUGH_TOKENS: u32 = 1 << 20;

/// The user's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Tokens of the text of a prompt, without its audio: a number or a distribution.
    pub input_len: Distribution,
    /// Output tokens to request: a number or a distribution.
    pub output_len: Distribution,
    /// The length of a piece of audio in milliseconds: a number or a distribution.
    pub milliseconds: Distribution,
    /// Pieces of audio of a request: a number or a distribution.
    pub clips: Distribution,
    /// Samples a second of the audio.
    pub sample_rate: u32,
    /// Share of the audio that is noise, from 0 to 1; the rest are tones that rise and fall in
    /// syllables.
    pub noise: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input_len: Distribution::constant(32.0),
            output_len: Distribution::constant(128.0),
            milliseconds: Distribution::constant(10_000.0),
            clips: Distribution::constant(1.0),
            sample_rate: 16_000,
            noise: 0.2,
        }
    }
}

/// Prompts with audio.
pub struct Audio {
    input: Lengths,
    output: Lengths,
    milliseconds: Lengths,
    clips: Lengths,
    rate: u32,
    noise: f64,
    seed: u64,
    words: Words,
    tokenizer: Box<dyn Tokenizer>,
    given: u64,
    spared: u64,
}

runner_plugin::export_dataset!(Audio);

impl Dataset for Audio {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&config.noise) {
            return Err(Error::InvalidConfig(format!(
                "`noise` is {}; expected a share from 0 to 1",
                config.noise
            )));
        }
        if !(4_000..=192_000).contains(&config.sample_rate) {
            return Err(Error::InvalidConfig(format!(
                "`sample-rate` is {}; expected 4000 to 192000 samples a second, such as 16000",
                config.sample_rate
            )));
        }
        let milliseconds = config.milliseconds.lengths("milliseconds", 1..=LONGEST)?;
        let clips = config.clips.lengths("clips", 0..=MOST_CLIPS)?;
        let each = u64::from(milliseconds.quantile(0.999)) * u64::from(config.sample_rate) / 500;
        let all = each * u64::from(clips.quantile(0.999));
        if all > MOST_BYTES as u64 {
            return Err(Error::InvalidConfig(format!(
                "`clips`, `milliseconds` and `sample-rate` give requests of up to {} MiB; expected at most {}: set smaller \
                 numbers, or a `max` for a distribution",
                all >> 20,
                MOST_BYTES >> 20
            )));
        }
        Ok(Self {
            input: config.input_len.lengths("input-len", 1..=1 << 20)?,
            output: config.output_len.lengths("output-len", 1..=1 << 20)?,
            milliseconds,
            clips,
            rate: config.sample_rate,
            noise: config.noise,
            seed,
            words: Words::common(),
            tokenizer: inputs.tokenizer,
            given: 0,
            spared: 0,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let samples = self.samples("audio", 0, self.given, limit)?;
        self.given += samples.len() as u64;
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let samples = self.samples("audio-spare", 1, self.spared, limit)?;
        self.spared += samples.len() as u64;
        Ok(samples)
    }
}

impl Audio {
    /// Samples of a kind, each from generators of its own; fewer when they are large.
    fn samples(&self, name: &str, kind: u64, from: u64, limit: u32) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        let end = from + u64::from(limit);
        let mut next = from;
        while next < end && bytes < ENOUGH {
            let mut drawn = Vec::new();
            let mut wanted = Vec::new();
            let mut tokens = 0;
            while next < end && drawn.len() < BATCH && tokens < ENOUGH_TOKENS {
                let index = next;
                next += 1;
                let mut random = stream(self.seed, kind, index);
                let input = self.input.draw(&mut random);
                let output = self.output.draw(&mut random);
                let clips = self.clips.draw(&mut random);
                tokens += input;
                wanted.push((random, input));
                // The text's random numbers must not come again in the audio.
                drawn.push((index, output, clips, stream(self.seed, kind + 2, index)));
            }
            let texts = self.words.texts(&*self.tokenizer, wanted);
            for ((index, output, clips, mut random), text) in drawn.into_iter().zip(texts) {
                // The next call makes the rest of the batch.
                if bytes >= ENOUGH {
                    break;
                }
                let (mut own, mut played) = (0, 0);
                let mut parts = vec![Part::Text(text.text)];
                for _ in 0..clips {
                    let length = u64::from(self.milliseconds.draw(&mut random));
                    let length = (length * u64::from(self.rate)).div_ceil(1000) as usize;
                    own += 2 * length;
                    played += length as u64 * 1_000_000_000 / u64::from(self.rate);
                    if own > MOST_BYTES {
                        return Err(too_much(index));
                    }
                    parts.push(Part::Audio(Media {
                        media_type: "audio/wav".to_owned(),
                        bytes: sound::wav(&mut random, self.rate, length, self.noise),
                    }));
                }
                let message = Message { role: Role::User, parts, extra: None };
                let sample = Sample {
                    audio_duration: (clips > 0).then_some(played),
                    output_tokens: Some(output),
                    ..Sample::new(
                        format!("{name}-{:06}", index + 1),
                        Prompt::Messages(vec![message]),
                    )
                };
                bytes += sample.bytes();
                samples.push(sample);
            }
        }
        Ok(samples)
    }
}

fn too_much(index: u64) -> Error {
    Error::InvalidConfig(format!(
        "the audio of request {} has more than {} MiB: set fewer `clips`, fewer `milliseconds`, or a lower `sample-rate`",
        index + 1,
        MOST_BYTES >> 20
    ))
}
