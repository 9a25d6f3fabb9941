//! The labels of arrival models in a run's summary.

use std::fmt::{Display, Formatter, Result};

use super::{Arrival, Shape, Spread, Stage, Think, ThinkSpread};
use crate::duration::format;

/// The most stages that are listed one by one.
const LISTED: usize = 6;

impl Display for Arrival {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Arrival::Inf => f.write_str("all at once"),
            Arrival::Constant { rate } => write!(f, "{}, {rate}/s", Spread::Constant),
            Arrival::Poisson { rate, normalise } => {
                write!(f, "{}, {rate}/s{}", Spread::Poisson, or_not(*normalise))
            }
            Arrival::Gamma { rate, burstiness, normalise } => {
                let spread = Spread::Gamma { burstiness: *burstiness };
                write!(f, "{spread}, {rate}/s{}", or_not(*normalise))
            }
            Arrival::Ramp { spread, ramp } => write!(f, "{spread}, ramp {ramp}"),
            Arrival::Stages { spread, stages } => {
                write!(f, "{spread}, {} stages: ", stages.len())?;
                for (number, stage) in stages.iter().take(LISTED).enumerate() {
                    let separator = if number == 0 { "" } else { "; " };
                    write!(f, "{separator}{stage}")?;
                }
                let rest = if stages.len() > LISTED { "; …" } else { "" };
                f.write_str(rest)
            }
            Arrival::Trace { file, time_scale, timestamps, .. } => {
                let name = file.path.file_name().unwrap_or(file.path.as_os_str());
                let (name, speed) = (name.display(), speed(*time_scale));
                write!(f, "trace {name}, {timestamps} timestamps{speed}")
            }
            Arrival::Dataset { time_scale, timestamps, .. } => {
                let speed = speed(*time_scale);
                write!(f, "as the dataset has it, {timestamps} samples{speed}")
            }
            Arrival::Closed { concurrency, think } => {
                write!(f, "closed loop of {concurrency}")?;
                think.map_or(Ok(()), |think| write!(f, ", {think}"))
            }
        }
    }
}

fn speed(time_scale: f64) -> String {
    match time_scale {
        1.0 => String::new(),
        scale => format!(", {scale} times as fast"),
    }
}

fn or_not(normalise: bool) -> &'static str {
    if normalise { ", normalised" } else { "" }
}

impl Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Spread::Constant => f.write_str("constant"),
            Spread::Poisson => f.write_str("Poisson"),
            Spread::Gamma { burstiness } => write!(f, "gamma of burstiness {burstiness}"),
        }
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Stage { from, to, shape, .. } = self;
        let length = format(self.length.into());
        if from == to {
            return write!(f, "{from}/s for {length}");
        }
        let shape = match shape {
            Shape::Linear => "",
            Shape::Exponential => ", exponential",
        };
        write!(f, "from {from}/s to {to}/s in {length}{shape}")
    }
}

impl Display for Think {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let time = format(self.time.into());
        match self.spread {
            ThinkSpread::Constant => write!(f, "thinking {time}"),
            ThinkSpread::Exponential => write!(f, "thinking {time} on average"),
        }
    }
}
