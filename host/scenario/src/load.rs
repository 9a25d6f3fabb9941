//! `[load]` as written: how many requests, and when.

use std::path::PathBuf;

use serde::Serialize;

use model::arrival::{Shape, ThinkSpread};
use model::duration::Span;
use reader::{Place, Said};

/// `[load]`: how many requests, and when.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Load {
    /// How many requests are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Said<u64>>,
    /// How long requests are sent, instead of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Said<Span>>,
    /// When requests are due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Said<Arrival>>,
    /// Requests per second. Infinite is another way to write [`Arrival::Inf`].
    /// Set by a flag without an arrival, it means [`Arrival::Poisson`], as with the tools that have the flag.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rate")]
    pub rate: Option<Said<f64>>,
    /// Shape of the gamma distribution of the gaps; alone it means [`Arrival::Gamma`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burstiness: Option<Said<f64>>,
    /// Whether random gaps are scaled so that the last of n requests is due at n/rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalise: Option<Said<bool>>,
    /// A rate that changes once, instead of a constant one.
    #[serde(skip_serializing_if = "Ramp::is_unsaid")]
    pub ramp: Ramp,
    /// Rates one after the other, instead of a constant one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<Vec<Stage>>,
    /// A file with the times when requests are due; alone it means [`Arrival::Trace`].
    #[serde(skip_serializing_if = "Trace::is_unsaid")]
    pub trace: Trace,
    /// How many requests a closed loop keeps in flight; alone it means [`Arrival::Closed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Said<u64>>,
    /// How long a user in a closed loop waits after an answer, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_time: Option<Said<Span>>,
    /// How the think time varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_spread: Option<Said<ThinkSpread>>,
    /// The maximum number of requests in flight of an open-loop arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<Said<u64>>,
    /// How many requests are sent before the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Said<u64>>,
    /// Whether the server clears its prefix cache between the warmup and the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_cache: Option<Said<bool>>,
    /// Random seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Said<u64>>,
}

/// JSON has no infinity; this uses TOML's word for it.
fn rate<S: serde::Serializer>(rate: &Option<Said<f64>>, serializer: S) -> Result<S::Ok, S::Error> {
    match rate {
        Some(rate) if rate.value.is_infinite() => serializer.serialize_str("inf"),
        rate => rate.serialize(serializer),
    }
}

/// `[load.ramp]`: a rate that goes from one value to another and stays there.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ramp {
    /// The shape of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Said<Shape>>,
    /// Requests per second at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Said<f64>>,
    /// Requests per second at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Said<f64>>,
    /// How long it takes; without it, the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Said<Span>>,
}

/// One of `[[load.stages]]`: a rate, or a ramp to one, for a while.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stage {
    /// A constant number of requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Said<f64>>,
    /// Requests per second at the start; without it, the rate at the end of the stage before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Said<f64>>,
    /// Requests per second at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Said<f64>>,
    /// The shape of the change between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Said<Shape>>,
    /// How long the stage takes.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub length: Option<Said<Span>>,
    /// The place of the stage.
    #[serde(skip)]
    pub place: Place,
}

/// `[load.trace]`: a file with the times when requests are due.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trace {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Said<PathBuf>>,
    /// How many times as fast it is played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<Said<f64>>,
}

/// When requests are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// All at once.
    Inf,
    /// At equal gaps.
    Constant,
    /// At exponentially distributed gaps.
    Poisson,
    /// At gamma-distributed gaps.
    Gamma,
    /// At the times in a file.
    Trace,
    /// At the times in the dataset's samples.
    Dataset,
    /// Each when an earlier one is answered: a closed loop.
    Closed,
}

impl Arrival {
    /// Every arrival, in the order in which messages list them.
    pub const ALL: [Arrival; 7] = [
        Arrival::Inf,
        Arrival::Constant,
        Arrival::Poisson,
        Arrival::Gamma,
        Arrival::Trace,
        Arrival::Dataset,
        Arrival::Closed,
    ];

    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Arrival::Inf => "inf",
            Arrival::Constant => "constant",
            Arrival::Poisson => "poisson",
            Arrival::Gamma => "gamma",
            Arrival::Trace => "trace",
            Arrival::Dataset => "dataset",
            Arrival::Closed => "closed",
        }
    }

    /// Whether due times of this arrival follow a rate.
    pub fn has_rate(self) -> bool {
        matches!(self, Arrival::Constant | Arrival::Poisson | Arrival::Gamma)
    }
}

/// Names of the ways in which a rate goes from one value to another.
pub const SHAPES: [(&str, Shape); 2] = [
    ("linear", Shape::Linear),
    ("exponential", Shape::Exponential),
];

/// Names of the ways in which the users' think time varies.
pub const THINK_SPREADS: [(&str, ThinkSpread); 2] = [
    ("constant", ThinkSpread::Constant),
    ("exponential", ThinkSpread::Exponential),
];

fn at<T>(said: &Option<Said<T>>) -> Option<&Place> {
    said.as_ref().map(|said| &said.place)
}

impl Ramp {
    /// The first place where it is set, if it is.
    pub fn place(&self) -> Option<&Place> {
        at(&self.to)
            .or(at(&self.from))
            .or(at(&self.shape))
            .or(at(&self.over))
    }

    fn is_unsaid(&self) -> bool {
        self.place().is_none()
    }
}

impl Trace {
    /// The first place where it is set, if it is.
    pub fn place(&self) -> Option<&Place> {
        at(&self.file).or(at(&self.time_scale))
    }

    fn is_unsaid(&self) -> bool {
        self.place().is_none()
    }
}

impl Load {
    /// The arrival that the keys imply: by its name, else by a key that only one arrival has,
    /// else by a rate.
    pub fn meant_arrival(&self) -> Option<Arrival> {
        let by_rate = |rate: &Said<f64>| match rate.value == f64::INFINITY {
            true => Arrival::Inf,
            false => Arrival::Poisson,
        };
        let only = [
            (self.trace.place(), Arrival::Trace),
            (at(&self.burstiness), Arrival::Gamma),
        ];
        let said = self.arrival.as_ref().map(|arrival| arrival.value);
        said.or_else(|| only.into_iter().find_map(|(at, means)| at.map(|_| means)))
            .or_else(|| self.rate.as_ref().map(by_rate))
            .or_else(|| {
                let varies = self.ramp.place().is_some() || self.stages.is_some();
                varies.then_some(Arrival::Poisson)
            })
            .or_else(|| {
                let user = at(&self.concurrency)
                    .or(at(&self.think_time))
                    .or(at(&self.think_spread));
                user.map(|_| Arrival::Closed)
            })
    }
}
