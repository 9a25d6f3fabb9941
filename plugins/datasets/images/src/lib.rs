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

use runner_plugin::lengths::Distribution;
use runner_plugin::random::Python;
use runner_plugin::requests::{MediaRequests, MediaShape, Medium};
use runner_plugin::{Error, Media, Part};
use schemars::JsonSchema;
use serde::Deserialize;

use size::Sizes;

const MOST_IMAGES: u32 = 256;

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

pub type Images = MediaRequests<Pictures>;

runner_plugin::export_dataset!(Images);

pub struct Pictures {
    sizes: Sizes,
    format: Format,
    quality: u8,
    noise: f64,
}

impl Medium for Pictures {
    const NAME: &str = "images";

    type Config = Config;

    fn open(config: Config) -> Result<(Self, MediaShape), Error> {
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
        let sizes = Sizes::from_config(&config)?;
        let count = config.images.lengths("images", 0..=MOST_IMAGES)?;
        let Config { input_len, output_len, format, quality, noise, .. } = config;
        let shape = MediaShape { input_len, output_len, count };
        Ok((Self { sizes, format, quality, noise }, shape))
    }

    fn draw(&self, random: &mut Python, room: usize) -> Result<Option<(Part, Option<u64>)>, Error> {
        let (width, height) = self.sizes.draw(random);
        size::check(width, height)?;
        let pixels = draw::pixels(random, width, height, self.noise);
        let (media_type, bytes) = match self.format {
            Format::Png => ("image/png", png(width, height, &pixels)),
            Format::Jpeg => {
                let quality = self.quality;
                ("image/jpeg", Ok(jpeg::write(width as u16, height as u16, &pixels, quality)))
            }
        };
        let bytes =
            bytes.map_err(|error| Error::Other(format!("an image cannot be written: {error}")))?;
        if bytes.len() > room {
            return Ok(None);
        }
        Ok(Some((Part::Image(Media { media_type: media_type.to_owned(), bytes }), None)))
    }

    fn too_large(request: u64) -> String {
        format!(
            "the images of request {request} have more than {} MiB: set fewer `images`, smaller ones, or `format = \
             \"jpeg\"`",
            Images::MOST_BYTES >> 20
        )
    }
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
