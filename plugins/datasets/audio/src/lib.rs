//! Prompts with audio: real WAV files of given lengths and sample rate, drawn by the seed, each
//! with a text.
//!
//! `sound` makes the sound and the file.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use std::f32::consts::TAU;

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
        let bytes = wav(random, self.rate, length, self.noise);
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

/// Loudness, as a part of the largest value of a sample.
const LOUDNESS: f32 = 0.6 * i16::MAX as f32;

/// A WAV file of one channel with 16 bits a sample; `noise` is its share, from 0 to 1.
fn wav(random: &mut Python, rate: u32, length: usize, noise: f64) -> Vec<u8> {
    let data = 2 * length as u32;
    let mut file = Vec::with_capacity(44 + 2 * length);
    file.extend(b"RIFF");
    file.extend((36 + data).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    // Samples as they are, and one channel.
    file.extend(1_u16.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    file.extend(2_u16.to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend(data.to_le_bytes());
    let noise = noise as f32;
    let mut written = 0;
    while written < length {
        // A syllable of 120 to 300 ms, and a pause of up to 80.
        let span = |milliseconds: u64| (milliseconds * u64::from(rate) / 1000) as usize;
        let voiced = span(120 + random.below(181)).max(1);
        let silent = span(random.below(81));
        let pitch = 90.0 + 160.0 * random.random() as f32;
        let glide = 0.8 + 0.4 * random.random() as f32;
        let overtones = [0; 4].map(|_: u8| random.random() as f32);
        let mut phase = 0.0;
        for at in 0..voiced + silent {
            if written == length {
                break;
            }
            let place = at as f32 / voiced as f32;
            let tone = if at < voiced {
                phase += pitch * (1.0 + (glide - 1.0) * place) / rate as f32;
                // The phase is kept small: the rounding error of a large phase would be audible.
                phase -= phase.floor();
                let over: f32 = (1..)
                    .zip(overtones)
                    .map(|(times, loud)| loud * wave(times as f32 * phase) / times as f32)
                    .sum();
                // It rises and falls.
                over / 2.1 * 4.0 * place * (1.0 - place)
            } else {
                0.0
            };
            let hiss = random.bits(16) as f32 / 32_768.0 - 1.0;
            let value = (1.0 - noise) * tone + noise * hiss;
            file.extend(((value * LOUDNESS) as i16).to_le_bytes());
            written += 1;
        }
    }
    file
}

/// A sine of turns, by Bhaskara's approximation: the same on every machine, unlike a library's.
fn wave(turns: f32) -> f32 {
    let turns = turns - turns.floor();
    let (half, sign) = if turns < 0.5 { (turns, 1.0) } else { (turns - 0.5, -1.0) };
    let x = half * TAU;
    let product = x * (TAU / 2.0 - x);
    sign * 16.0 * product / (5.0 * (TAU / 2.0) * (TAU / 2.0) - 4.0 * product)
}
