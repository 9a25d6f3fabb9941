//! Samples of one metric on the way to their statistics, in memory that is bounded however many
//! there are: kept one by one up to [`KEPT`], counted in a histogram beyond.

use super::histogram::{ERROR, Histogram, Statistics};
use super::{Ranked, Sorted};

/// The most samples that are kept as they are; their percentiles are NumPy's to the last bit. With
/// one more, all of them are counted instead. Which of the two depends on their number alone.
pub const KEPT: usize = 100_000;

#[derive(Clone, Debug)]
pub struct Spread {
    scale: f64,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Samples(Vec<f64>),
    Counts(Box<Histogram>),
}

impl Spread {
    /// No samples yet. Where they are counted, they are rounded to `1 / scale`.
    pub fn new(scale: f64) -> Self {
        Spread { scale, store: Store::Samples(Vec::new()) }
    }

    /// No samples yet; all samples to come will be counted in a histogram.
    pub fn counting(scale: f64) -> Self {
        Spread { scale, store: Store::Counts(Box::default()) }
    }

    /// Adds a sample, which is not negative.
    pub fn add(&mut self, sample: f64) {
        match &mut self.store {
            Store::Samples(samples) => {
                samples.push(sample);
                if samples.len() > KEPT {
                    self.counts();
                }
            }
            Store::Counts(counts) => counts.add(rounded(sample, self.scale), 1),
        }
    }

    /// The histogram that the samples are counted in, which they are from here on.
    pub fn counts(&mut self) -> &mut Histogram {
        if let Store::Samples(samples) = &mut self.store {
            let mut counts = Box::<Histogram>::default();
            for sample in std::mem::take(samples) {
                counts.add(rounded(sample, self.scale), 1);
            }
            self.store = Store::Counts(counts);
        }
        match &mut self.store {
            Store::Counts(counts) => counts,
            Store::Samples(_) => unreachable!("they were turned into counts above"),
        }
    }

    /// Adds all samples of another one of the same scale.
    pub fn merge(&mut self, other: Spread) {
        match other.store {
            Store::Samples(samples) => samples.into_iter().for_each(|sample| self.add(sample)),
            Store::Counts(counts) => self.counts().merge(&counts),
        }
    }

    /// The statistics; `None` if there are no samples.
    pub fn figures(self) -> Option<Figures> {
        match self.store {
            Store::Samples(samples) => Sorted::new(samples).map(Figures::Samples),
            Store::Counts(counts) => counts.counted(self.scale).map(Figures::Histogram),
        }
    }
}

fn rounded(sample: f64, scale: f64) -> u64 {
    (sample * scale).round() as u64
}

#[derive(Clone, Debug, PartialEq)]
pub enum Figures {
    Samples(Sorted),
    Histogram(Statistics),
}

impl Figures {
    pub fn mean(&self) -> f64 {
        match self {
            Figures::Samples(sorted) => sorted.mean(),
            Figures::Histogram(counted) => counted.mean,
        }
    }

    pub fn std(&self) -> f64 {
        match self {
            Figures::Samples(sorted) => sorted.std(),
            Figures::Histogram(counted) => counted.std,
        }
    }

    pub fn min(&self) -> f64 {
        self.at(0)
    }

    pub fn max(&self) -> f64 {
        self.at(self.count() - 1)
    }

    /// The most by which a percentile may be off, as a share of it; `None` if it is exact.
    pub fn error(&self) -> Option<f64> {
        match self {
            Figures::Samples(_) => None,
            Figures::Histogram(_) => Some(ERROR),
        }
    }
}

impl Ranked for Figures {
    fn count(&self) -> u64 {
        match self {
            Figures::Samples(sorted) => sorted.count(),
            Figures::Histogram(counted) => counted.count(),
        }
    }

    fn at(&self, rank: u64) -> f64 {
        match self {
            Figures::Samples(sorted) => sorted.at(rank),
            Figures::Histogram(counted) => counted.at(rank),
        }
    }
}
