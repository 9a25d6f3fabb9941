//! Arrival models: the due times of requests, as pure functions of model, rate and seed.
//!
//! They do not depend on the server, the number of workers or the machine. `pace` waits for the due
//! times.

use std::fmt::{Display, Formatter, Result};

use rand_mt::Mt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file::PlannedFile;
use crate::units::Nanos;

mod profile;
#[cfg(test)]
mod tests;
mod trace;

use crate::duration::format;
use crate::random::mix;
use profile::Profile;

pub use profile::{Shape, Stage, length_for};
pub use trace::{MOST_TIMES, Trace, TraceError};

/// The arrival of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "model",
    deny_unknown_fields
)]
pub enum Arrival {
    /// All at once.
    Inf,
    /// One every 1/rate seconds, the first at once.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Independent exponential gaps of mean 1/rate, the first request at once.
    Poisson {
        /// Requests per second.
        rate: f64,
        /// True if the first request comes after a gap too and all gaps are scaled so that the last
        /// of n requests is due at n/rate: [`Arrival::Gamma`] of burstiness 1, normalised.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        normalise: bool,
    },
    /// Independent gamma-distributed gaps of mean 1/rate, the first before the first request.
    Gamma {
        /// Requests per second.
        rate: f64,
        /// The distribution's shape: 1 is Poisson, less is burstier, more is more even.
        burstiness: f64,
        /// True if all gaps are scaled so that the last of n requests is due at n/rate.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        normalise: bool,
    },
    /// A rate that goes from one value to another, and stays there.
    Ramp {
        /// Spread of requests over the area under the rate.
        spread: Spread,
        /// The ramp between the two.
        ramp: Stage,
    },
    /// Rates one after the other. Nothing is due after the last.
    Stages {
        /// Spread of requests over the area under the rate.
        spread: Spread,
        /// The rates.
        stages: Vec<Stage>,
    },
    /// At the times in a file.
    Trace {
        /// The file.
        file: PlannedFile,
        /// Playing speed, as a multiple of the recorded speed.
        time_scale: f64,
        /// The number of its times; no request is due after the last.
        timestamps: u64,
        /// Seconds from the first to the last, as played.
        length: f64,
        /// The maximum number within a second, as played.
        peak: f64,
    },
    /// At the times in the dataset's samples.
    Dataset {
        /// Playing speed, as a multiple of the recorded speed.
        time_scale: f64,
        /// Number of samples; no request is due after the last.
        timestamps: u64,
        /// Time from the beginning to the first due time, in nanoseconds, as played.
        first: Nanos,
        /// Seconds from the beginning to the last, as played.
        length: f64,
        /// The maximum number within a second, as played.
        peak: f64,
    },
    /// This many users, each sending its next request when the last one is answered.
    Closed {
        /// Number of users.
        concurrency: u32,
        /// Think time of a user before its next request; absent if it does not think.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        think: Option<Think>,
    },
}

/// The spread of requests over the area under a rate: the areas at which a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Spread {
    /// 0, 1, 2 …
    Constant,
    /// A Poisson process of rate 1 that begins with a request.
    Poisson,
    /// Gamma-distributed gaps of mean 1, the first before the first request.
    Gamma {
        /// The distribution's shape.
        burstiness: f64,
    },
}

/// The due time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At this instant of its phase.
    At(Nanos),
    /// As soon as one of the users is free, and has thought.
    WhenFree,
}

/// Due times in order.
pub type DueTimes = Box<dyn Iterator<Item = Due> + Send>;

impl Arrival {
    /// The due times of a phase with this many requests; without end except for [`Arrival::Trace`],
    /// [`Arrival::Dataset`], [`Arrival::Stages`] and a ramp to zero. `trace` is the contents of the
    /// file that [`Arrival::Trace`] names, or the dataset's times for [`Arrival::Dataset`]; the
    /// others ignore it.
    ///
    /// Random gaps are NumPy's legacy stream, `np.random.seed(seed)`. Poisson draws
    /// `np.random.exponential(1 / rate)` after each request, as SGLang and LMDeploy do. Gamma draws
    /// `np.random.gamma(burstiness, 1 / (rate * burstiness))` before each, as vLLM does. Normalised
    /// gaps are multiplied by n/rate over their sum, as in vLLM at a constant rate. A changing rate
    /// carries a process of rate 1 through the area under it, which is exact over any change.
    /// vLLM's client instead gives each gap the rate of its request's number, so its rate is no
    /// function of time.
    pub fn due_times(&self, seed: u64, requests: Option<u64>, trace: &Trace) -> DueTimes {
        match *self {
            Arrival::Inf => Box::new(std::iter::repeat(Due::At(Nanos::ZERO))),
            Arrival::Closed { .. } => Box::new(std::iter::repeat(Due::WhenFree)),
            Arrival::Constant { rate } => at((0u64..).map(move |i| i as f64 / rate)),
            Arrival::Poisson { rate, normalise: false } => at(from_zero(gaps(seed, rate, 1.0))),
            Arrival::Poisson { rate, normalise: true } => normalised(seed, rate, 1.0, requests),
            Arrival::Gamma { rate, burstiness, normalise: true } => {
                normalised(seed, rate, burstiness, requests)
            }
            Arrival::Gamma { rate, burstiness, normalise: false } => {
                at(sums(gaps(seed, rate, burstiness)))
            }
            Arrival::Ramp { spread, ramp } => {
                // Then the rate stays at its end value for longer than any run.
                let hold = Stage {
                    from: ramp.to,
                    to: ramp.to,
                    shape: Shape::Linear,
                    length: Nanos(u64::MAX),
                };
                varying([ramp, hold].into_iter(), spread, seed)
            }
            Arrival::Stages { spread, ref stages } => {
                varying(stages.clone().into_iter(), spread, seed)
            }
            Arrival::Trace { time_scale, .. } | Arrival::Dataset { time_scale, .. } => {
                at(trace.seconds(time_scale))
            }
        }
    }

    /// Mean requests per second, if the model has such a rate; infinite if all are due at
    /// once. For a ramp, stages or a trace, the mean from the beginning to the end.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Arrival::Inf => Some(f64::INFINITY),
            Arrival::Constant { rate }
            | Arrival::Poisson { rate, .. }
            | Arrival::Gamma { rate, .. } => Some(*rate),
            Arrival::Ramp { ramp, .. } => Some(ramp.area() / ramp.length.as_secs_f64()),
            Arrival::Stages { stages, .. } => {
                let area: f64 = stages.iter().map(Stage::area).sum();
                let seconds: f64 = stages.iter().map(|stage| stage.length.as_secs_f64()).sum();
                Some(area / seconds)
            }
            Arrival::Trace { timestamps, length, .. }
            | Arrival::Dataset { timestamps, length, .. } => Some(*timestamps as f64 / length),
            Arrival::Closed { .. } => None,
        }
    }

    /// The highest rate that it reaches, in requests per second, for which requests must be ready.
    pub fn peak_rate(&self) -> Option<f64> {
        let higher = |stage: &Stage| stage.from.max(stage.to);
        match self {
            Arrival::Ramp { ramp, .. } => Some(higher(ramp)),
            Arrival::Stages { stages, .. } => Some(stages.iter().map(higher).fold(0.0, f64::max)),
            Arrival::Trace { peak, .. } | Arrival::Dataset { peak, .. } => Some(*peak),
            _ => self.rate(),
        }
    }

    /// The number of requests after which nothing is due any more, if it is known beforehand.
    pub fn limit(&self) -> Option<u64> {
        match self {
            Arrival::Trace { timestamps, .. } => Some(*timestamps),
            _ => None,
        }
    }

    /// True if requests come at one mean rate from the first to the last.
    pub fn is_even(&self) -> bool {
        matches!(self, Arrival::Constant { .. } | Arrival::Poisson { .. } | Arrival::Gamma { .. })
    }

    /// True if due times are known beforehand and do not depend on the server.
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrival::Closed { .. })
    }
}

impl Spread {
    fn areas(self, seed: u64) -> Box<dyn Iterator<Item = f64> + Send> {
        match self {
            Spread::Constant => Box::new((0u64..).map(|i| i as f64)),
            Spread::Poisson => Box::new(from_zero(gaps(seed, 1.0, 1.0))),
            Spread::Gamma { burstiness } => Box::new(sums(gaps(seed, 1.0, burstiness))),
        }
    }
}

fn at(seconds: impl Iterator<Item = f64> + Send + 'static) -> DueTimes {
    Box::new(seconds.map(|seconds| Due::At(Nanos::from_secs_f64(seconds))))
}

/// `np.random.gamma(burstiness, 1 / (rate * burstiness))` repeatedly.
fn gaps(seed: u64, rate: f64, burstiness: f64) -> impl Iterator<Item = f64> + Send {
    let mut stream = Legacy::new(seed);
    let scale = 1.0 / (rate * burstiness);
    std::iter::repeat_with(move || scale * stream.gamma(burstiness))
}

/// The sum so far, each gap included.
fn sums(gaps: impl Iterator<Item = f64> + Send) -> impl Iterator<Item = f64> + Send {
    gaps.scan(0.0, |sum, gap| {
        *sum += gap;
        Some(*sum)
    })
}

/// Zero, then the sum so far.
fn from_zero(gaps: impl Iterator<Item = f64> + Send) -> impl Iterator<Item = f64> + Send {
    std::iter::once(0.0).chain(sums(gaps))
}

/// Gamma-distributed gaps, scaled so that the last of `requests` ends at its expected time. They
/// are drawn twice, because their sum must be known before the first is used.
fn normalised(seed: u64, rate: f64, burstiness: f64, requests: Option<u64>) -> DueTimes {
    let ends = requests.and_then(|requests| {
        let last = usize::try_from(requests).ok()?.checked_sub(1)?;
        let sum = sums(gaps(seed, rate, burstiness)).nth(last)?;
        (sum > 0.0).then_some((requests as f64 / rate, sum))
    });
    let factor = ends.map_or(1.0, |(wanted, sum)| wanted / sum);
    at(sums(gaps(seed, rate, burstiness)).map(move |sum| sum * factor))
}

fn varying(
    stages: impl Iterator<Item = Stage> + Send + 'static,
    spread: Spread,
    seed: u64,
) -> DueTimes {
    let mut profile = Profile::new(stages);
    at(spread.areas(seed).map_while(move |area| profile.seconds_until(area)))
}

/// The think time of users.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct Think {
    /// On average.
    pub time: Nanos,
    /// Variation of the think time.
    pub spread: ThinkSpread,
}

crate::words! {
    /// The variation of users' think time.
    pub enum ThinkSpread {
        /// Always the same.
        Constant = "constant",
        /// Exponentially distributed.
        Exponential = "exponential",
    }
}

impl Think {
    /// This user's think time before its request of this turn; turn 1 follows its first answer.
    pub fn pause(&self, seed: u64, user: u32, turn: u32) -> Nanos {
        match self.spread {
            ThinkSpread::Constant => self.time,
            ThinkSpread::Exponential => {
                let place = u64::from(user) << 32 | u64::from(turn);
                let word = mix(mix(seed).wrapping_add(place));
                // 53 bits: in [0, 1), so the logarithm is finite.
                let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
                Nanos::from_secs_f64(-(-unit).ln_1p() * self.time.as_secs_f64())
            }
        }
    }
}

/// `np.random` after `np.random.seed(seed)`.
struct Legacy {
    twister: Mt,
    /// The second of a pair of normal variates, kept for the next call.
    gauss: Option<f64>,
}

impl Legacy {
    /// A stream at its beginning. Only a seed's lowest 32 bits count, since NumPy takes no more.
    fn new(seed: u64) -> Self {
        Legacy { twister: Mt::new(seed as u32), gauss: None }
    }

    /// A double in [0, 1) of 53 bits from two words.
    fn double(&mut self) -> f64 {
        let high = f64::from(self.twister.next_u32() >> 5);
        let low = f64::from(self.twister.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// Exponential with mean 1: `np.random.standard_exponential()`.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.double()).ln()
    }

    /// Normal with mean 0 and deviation 1, by Marsaglia's polar method.
    fn gauss(&mut self) -> f64 {
        if let Some(gauss) = self.gauss.take() {
            return gauss;
        }
        loop {
            let x = 2.0 * self.double() - 1.0;
            let y = 2.0 * self.double() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.gauss = Some(factor * x);
                return factor * y;
            }
        }
    }

    /// Gamma with this shape and scale 1: `np.random.standard_gamma(shape)`. Below 1 by Ahrens and
    /// Dieter's method, above by Marsaglia and Tsang's; at 1 it is the exponential.
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape == 1.0 {
            return self.exponential();
        }
        if shape < 1.0 {
            return loop {
                let u = self.double();
                let v = self.exponential();
                if u <= 1.0 - shape {
                    let x = u.powf(1.0 / shape);
                    if x <= v {
                        break x;
                    }
                } else {
                    let y = -((1.0 - u) / shape).ln();
                    let x = (1.0 - shape + shape * y).powf(1.0 / shape);
                    if x <= v + y {
                        break x;
                    }
                }
            };
        }
        let b = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * b).sqrt();
        loop {
            let (x, v) = loop {
                let x = self.gauss();
                let v = 1.0 + c * x;
                if v > 0.0 {
                    break (x, v * v * v);
                }
            };
            let u = self.double();
            if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + b * (1.0 - v + v.ln())
            {
                return b * v;
            }
        }
    }
}

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
