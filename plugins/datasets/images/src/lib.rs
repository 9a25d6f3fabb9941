//! Prompts with images: real PNG or JPEG files of given sizes, drawn by the seed, each with a text
//! of a given length.
//!
//! `draw` draws a picture, `jpeg` writes one, and `size` reads the sizes.
#![deny(unsafe_code)]

mod draw;
mod jpeg;
mod size;
#[cfg(test)]
mod tests;

use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::random::Python;
use runner_plugin::words::{Words, stream};
use runner_plugin::{
    Amount, Dataset, ENOUGH, Error, Inputs, Media, Message, Part, Prompt, Role, Sample, Tokenizer,
};
use schemars::JsonSchema;
use serde::Deserialize;

use size::Sizes;

/// The most images of a request.
const MOST_IMAGES: u32 = 256;

/// The most bytes of the images of a request: a dataset may return at most 64 MiB at once.
const MOST_BYTES: usize = 48 << 20;

/// Requests whose texts are made together, and the tokens after which there are no more of them.
const BATCH: usize = 16;
const ENOUGH_TOKENS: u32 = 1 << 20;

/// The user's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Tokens of the text of a prompt, without its images: a number or a distribution.
    pub input_len: Distribution,
    /// Output tokens to request: a number or a distribution.
    pub output_len: Distribution,
    /// Images of a request: a number or a distribution.
    pub images: Distribution,
    /// Sizes of images, each with its weight: `["512x512:0.7", "1920x1080:0.3"]`, width before
    /// height. Without a weight, it is 1.
    pub sizes: Vec<String>,
    /// The width of an image in pixels, instead of `sizes`: a number or a distribution.
    pub width: Option<Distribution>,
    /// The height of an image in pixels, with `width`.
    pub height: Option<Distribution>,
    /// The format of images.
    pub format: Format,
    /// The quality of JPEG, from 1 to 100.
    pub quality: u8,
    /// Share of an image that is noise, from 0 to 1: 0 compresses to almost nothing, and 1, as in
    /// vLLM's `random-mm`, not at all.
    pub noise: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input_len: Distribution::constant(128.0),
            output_len: Distribution::constant(128.0),
            images: Distribution::constant(1.0),
            sizes: Vec::new(),
            width: None,
            height: None,
            format: Format::default(),
            quality: 85,
            noise: 0.2,
        }
    }
}

/// The format of images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// PNG: exact, and larger.
    Png,
    /// JPEG.
    #[default]
    Jpeg,
}

/// Prompts with images.
pub struct Images {
    input: Lengths,
    output: Lengths,
    images: Lengths,
    sizes: Sizes,
    format: Format,
    quality: u8,
    noise: f64,
    seed: u64,
    words: Words,
    tokenizer: Box<dyn Tokenizer>,
    given: u64,
    spared: u64,
}

runner_plugin::export_dataset!(Images);

impl Dataset for Images {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&config.noise) {
            return Err(Error::InvalidConfig(format!(
                "`noise` is {}; expected a share from 0 to 1",
                config.noise
            )));
        }
        if !(1..=100).contains(&config.quality) {
            return Err(Error::InvalidConfig(format!(
                "`quality` is {}; expected 1 to 100",
                config.quality
            )));
        }
        Ok(Self {
            input: config.input_len.lengths("input-len", 1..=1 << 20)?,
            output: config.output_len.lengths("output-len", 1..=1 << 20)?,
            images: config.images.lengths("images", 0..=MOST_IMAGES)?,
            sizes: Sizes::from_config(&config)?,
            format: config.format,
            quality: config.quality,
            noise: config.noise,
            seed,
            words: Words::common(),
            tokenizer: inputs.tokenizer,
            given: 0,
            spared: 0,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let samples = self.samples("images", 0, self.given, limit)?;
        self.given += samples.len() as u64;
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let samples = self.samples("images-spare", 1, self.spared, limit)?;
        self.spared += samples.len() as u64;
        Ok(samples)
    }
}

impl Images {
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
                let count = self.images.draw(&mut random);
                tokens += input;
                wanted.push((random, input));
                // The text's random numbers must not come again in the images.
                drawn.push((index, output, count, stream(self.seed, kind + 2, index)));
            }
            let texts = self.words.texts(&*self.tokenizer, wanted);
            for ((index, output, count, mut random), text) in drawn.into_iter().zip(texts) {
                // The next call makes the rest of the batch.
                if bytes >= ENOUGH {
                    break;
                }
                let mut own = 0;
                let mut parts = vec![Part::Text(text.text)];
                for _ in 0..count {
                    let image = self.image(&mut random)?;
                    own += image.bytes.len();
                    if own > MOST_BYTES {
                        return Err(too_much(index));
                    }
                    parts.push(Part::Image(image));
                }
                let message = Message { role: Role::User, parts, extra: None };
                let sample = Sample {
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

    fn image(&self, random: &mut Python) -> Result<Media, Error> {
        let (width, height) = self.sizes.draw(random);
        size::check(width, height)?;
        let pixels = draw::pixels(random, width, height, self.noise);
        Ok(match self.format {
            Format::Png => Media {
                media_type: "image/png".to_owned(),
                bytes: png(width, height, &pixels).map_err(|error| {
                    Error::Other(format!("an image cannot be written: {error}"))
                })?,
            },
            Format::Jpeg => Media {
                media_type: "image/jpeg".to_owned(),
                bytes: jpeg::write(width as u16, height as u16, &pixels, self.quality),
            },
        })
    }
}

fn too_much(index: u64) -> Error {
    Error::InvalidConfig(format!(
        "the images of request {} have more than {} MiB: set fewer `images`, smaller ones, or `format = \"jpeg\"`",
        index + 1,
        MOST_BYTES >> 20
    ))
}

fn png(width: u32, height: u32, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    // Noise does not compress, and a file that grows step by step takes twice its size.
    let mut bytes = Vec::with_capacity(pixels.len() + pixels.len() / 64 + 1024);
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    bytes.shrink_to_fit();
    Ok(bytes)
}
