//! The course of figures over the steady window: whether they drifted from its beginning to its
//! end, and whether throughput oscillated with a period. A mean hides both.
//!
//! The window is cut into slices of equal length, and a figure's course is its means by slice. The
//! tests are [`statistics::course`]'s; `finding` decides which of this is a reason for doubt.

use std::collections::BTreeMap;

use super::Span;
use crate::metric::{self, Reading};
use model::units::Nanos;
use statistics::course::{oscillation, trend};

/// The name of output throughput among the courses.
pub(crate) const THROUGHPUT: &str = "output-tokens-per-s";

/// Slices in which drift is looked for: enough for a trend, each with several requests.
const SLICES: usize = 32;
/// Samples on which a course must rest.
const LEAST_SAMPLES: u64 = 100;
/// Finer slices, in which swings of throughput are looked for.
const FINE: usize = 256;
/// Length of a slice for detecting oscillation, in gaps between tokens. In shorter slices, the
/// number of engine steps that fall into each matters.
const GAPS: f64 = 20.0;
/// With fewer requests in flight, throughput comes and goes with each of them.
const CROWD: f64 = 8.0;
/// Number of slices needed to distinguish an oscillation from chance.
const LEAST_FINE: usize = 32;

/// The change of a figure from the beginning to the end of the steady window.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Drift {
    /// The change from the beginning to the end, as a share of its median: Theil and Sen's
    /// slope over 32 slices of the window.
    pub change: f64,
    /// The certainty that it rose (above zero) or fell: Mann and Kendall's Z, corrected for the
    /// autocorrelation and the number of the slices. By chance alone, it lies beyond 3.3 either way
    /// in one of a thousand courses.
    pub z: f64,
}

/// The oscillation of throughput.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Swing {
    /// Length of the period in seconds.
    pub period_s: f64,
    /// Standard deviation of the throughput of slices, as a share of its mean.
    pub share: f64,
    /// The similarity of a slice to the slice a period later: the autocorrelation at that lag.
    pub correlation: f64,
}

pub(super) struct Course {
    span: Span,
    tokens: Vec<u64>,
    ttft: Slices,
    tpot: Slices,
}

/// Sums of a metric's samples by slice, in whole nanoseconds, so that order does not matter.
#[derive(Default)]
struct Slices([(u64, u64); SLICES]);

impl Course {
    pub(super) fn over(span: Span) -> Self {
        Course { span, tokens: vec![0; FINE], ttft: Slices::default(), tpot: Slices::default() }
    }

    /// Adds an answered exchange. Its time to first token belongs to the slice in which it was
    /// sent, its TPOT to the slice in which it ended. `is_of_fill` is true if it was sent before
    /// the run's first answer had ended: its time to first token is of an engine that fills, and no
    /// part of the course.
    pub(super) fn add(&mut self, reading: &Reading<'_>, is_of_fill: bool) {
        let exchange = reading.exchange;
        let ttft = reading.ttft().filter(|_| !is_of_fill);
        for (slices, at, sample) in [
            (&mut self.ttft, exchange.sent, ttft),
            (&mut self.tpot, exchange.ended, reading.tpot()),
        ] {
            if let (Some(slice), Some(sample)) =
                (at.and_then(|at| self.span.part(at, SLICES)), sample)
            {
                let (sum, count) = &mut slices.0[slice];
                *sum = sum.saturating_add((sample * 1e6).round() as u64);
                *count += 1;
            }
        }
    }

    pub(super) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        if let Some(slice) = self.span.part(at, FINE) {
            self.tokens[slice] = self.tokens[slice].saturating_add(tokens);
        }
    }

    /// The drift of each figure that rests on enough.
    pub(super) fn drift(&self) -> BTreeMap<String, Drift> {
        let throughput: Vec<f64> = (self.tokens.chunks(FINE / SLICES))
            .map(|fine| fine.iter().sum::<u64>() as f64)
            .collect();
        let enough = self.tokens.iter().sum::<u64>() >= LEAST_SAMPLES;
        let throughput = Some(throughput).filter(|_| enough);
        [
            (THROUGHPUT, throughput),
            (metric::TTFT, self.ttft.means()),
            (metric::TPOT, self.tpot.means()),
        ]
        .into_iter()
        .filter_map(|(name, course)| {
            let trend = trend(&course?)?;
            let (change, z) = (trend.change, trend.z);
            Some((name.to_owned(), Drift { change, z }))
        })
        .collect()
    }

    /// The swing of throughput, if it has one. `gap_ms` is the mean gap between tokens.
    pub(super) fn swing(&self, gap_ms: f64, mean_in_flight: f64) -> Option<Swing> {
        if mean_in_flight < CROWD {
            return None;
        }
        let seconds = self.span.to.since(self.span.from).as_secs_f64();
        let merged = (GAPS * gap_ms / 1000.0 / (seconds / FINE as f64)).ceil() as usize;
        let merged = merged.max(1);
        if FINE / merged < LEAST_FINE {
            return None;
        }
        let course: Vec<f64> = (self.tokens.chunks_exact(merged))
            .map(|fine| fine.iter().sum::<u64>() as f64)
            .collect();
        let slice_s = seconds * merged as f64 / FINE as f64;
        let found = oscillation(&course)?;
        Some(Swing {
            period_s: found.period as f64 * slice_s,
            share: found.share,
            correlation: found.correlation,
        })
    }
}

impl Slices {
    /// The mean of each slice that has samples; absent if there are too few.
    fn means(&self) -> Option<Vec<f64>> {
        let held = self.0.iter().filter(|(_, count)| *count > 0);
        let means: Vec<f64> = held.map(|(sum, count)| *sum as f64 / *count as f64).collect();
        let samples: u64 = self.0.iter().map(|(_, count)| count).sum();
        (samples >= LEAST_SAMPLES).then_some(means)
    }
}
