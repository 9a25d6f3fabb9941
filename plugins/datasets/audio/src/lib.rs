//! Prompts with audio: real WAV files of given lengths and sample rate, drawn by the seed, each
//! with a text.
//!
//! `sound` makes the sound and the file.
#![deny(unsafe_code)]

mod sound;
#[cfg(test)]
mod tests;

use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::random::Python;
use runner_plugin::requests::{MediaRequests, MediaShape, Medium};
use runner_plugin::{Error, Media, Part};
use schemars::JsonSchema;
use serde::Deserialize;

const MOST_CLIPS: u32 = 64;

/// The longest piece, in milliseconds: an hour.
const LONGEST: u32 = 3_600_000;

const MOST_BYTES: usize = Audio::MOST_BYTES;

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

pub type Audio = MediaRequests<Clips>;

runner_plugin::export_dataset!(Audio);

pub struct Clips {
    milliseconds: Lengths,
    rate: u32,
    noise: f64,
}

impl Medium for Clips {
    const NAME: &str = "audio";

    type Config = Config;

    fn open(config: Config) -> Result<(Self, MediaShape), Error> {
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
        let Config { input_len, output_len, sample_rate: rate, noise, .. } = config;
        let shape = MediaShape { input_len, output_len, count: clips };
        Ok((Self { milliseconds, rate, noise }, shape))
    }

    fn draw(&self, random: &mut Python, room: usize) -> Result<Option<(Part, Option<u64>)>, Error> {
        let length = u64::from(self.milliseconds.draw(random));
        let length = (length * u64::from(self.rate)).div_ceil(1000) as usize;
        if 2 * length > room {
            return Ok(None);
        }
        let bytes = sound::wav(random, self.rate, length, self.noise);
        let part = Part::Audio(Media { media_type: "audio/wav".to_owned(), bytes });
        Ok(Some((part, Some(length as u64 * 1_000_000_000 / u64::from(self.rate)))))
    }

    fn too_large(request: u64) -> String {
        format!(
            "the audio of request {request} has more than {} MiB: set fewer `clips`, fewer `milliseconds`, or a lower \
             `sample-rate`",
            MOST_BYTES >> 20
        )
    }
}
