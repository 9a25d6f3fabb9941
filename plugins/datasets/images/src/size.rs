//! The sizes of images: a list with weights, or a distribution each of width and height.

use runner_plugin::Error;
use runner_plugin::lengths::{Choice, Lengths};
use runner_plugin::random::Python;

use crate::Config;

/// Sides of an image, in pixels: a smaller image shows nothing, and a larger one takes very long.
const SIDES: std::ops::RangeInclusive<u32> = 8..=8192;

/// The most pixels of an image: 48 MiB without compression.
const MOST_PIXELS: u32 = 1 << 24;

pub fn check(width: u32, height: u32) -> Result<(), Error> {
    if width * height <= MOST_PIXELS {
        return Ok(());
    }
    Err(Error::InvalidConfig(format!(
        "an image of {width}x{height} has {} pixels; expected at most {MOST_PIXELS}, such as 4096x4096",
        width * height
    )))
}

const USUAL: (u32, u32) = (512, 512);

pub enum Sizes {
    /// Some sizes, and which is how likely.
    Some(Vec<(u32, u32)>, Choice),
    Sides(Lengths, Lengths),
}

impl Sizes {
    pub fn from_config(config: &Config) -> Result<Self, Error> {
        match (&config.width, &config.height) {
            (Some(width), Some(height)) if config.sizes.is_empty() => {
                let width = width.lengths("width", SIDES)?;
                let height = height.lengths("height", SIDES)?;
                check(width.quantile(0.999), height.quantile(0.999))?;
                Ok(Self::Sides(width, height))
            }
            (None, None) => Self::some(&config.sizes),
            (Some(_), Some(_)) => Err(Error::config(
                "`sizes` and `width` with `height` both set the size of images: leave one out",
            )),
            _ => Err(Error::config("`width` and `height` go together: set both, or `sizes`")),
        }
    }

    fn some(sizes: &[String]) -> Result<Self, Error> {
        let mut parsed = Vec::new();
        let mut weights = Vec::new();
        for size in sizes {
            let wrong = || {
                Error::InvalidConfig(format!(
                    "`sizes` has `{size}`; expected a size and its weight such as `512x512:0.7`, with sides from {} to \
                     {} pixels",
                    SIDES.start(),
                    SIDES.end()
                ))
            };
            let (sides, weight) = size.split_once(':').unwrap_or((size, "1"));
            let (width, height) = sides.split_once('x').ok_or_else(wrong)?;
            let side = |text: &str| {
                let side = text.trim().parse().ok();
                side.filter(|side| SIDES.contains(side)).ok_or_else(wrong)
            };
            let (width, height) = (side(width)?, side(height)?);
            check(width, height)?;
            parsed.push((width, height));
            weights.push(weight.trim().parse::<f64>().map_err(|_| wrong())?);
        }
        if parsed.is_empty() {
            parsed.push(USUAL);
            weights.push(1.0);
        }
        Ok(Self::Some(parsed, Choice::weighted("sizes", weights)?))
    }

    pub fn draw(&self, random: &mut Python) -> (u32, u32) {
        match self {
            Self::Some(sizes, choice) => sizes[choice.draw(random)],
            Self::Sides(width, height) => (width.draw(random), height.draw(random)),
        }
    }
}
