//! The flights of requests, from being sent to their end: the number in flight over time.

use std::collections::BTreeMap;

use model::units::Nanos;
use statistics::blocks::{Layout, design_effect_of};
use statistics::interval::Loads;

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
}

impl Span {
    /// True if an observation at an instant belongs to the time within: the end belongs to it, the
    /// beginning belongs to the time before.
    pub(super) fn holds(self, at: Nanos) -> bool {
        self.from < at && at <= self.to
    }

    /// The number of the equal part of the time that an instant lies in.
    pub(super) fn part(self, at: Nanos, parts: usize) -> Option<usize> {
        let length = u128::from(self.to.since(self.from).0);
        let into = u128::from(at.since(self.from).0);
        let part = (self.holds(at) && length > 0).then(|| into * parts as u128 / length)?;
        // A flight that ends the time belongs to its last part.
        usize::try_from(part).ok().map(|part| part.min(parts - 1))
    }
}

/// Times at which requests were sent and at which they ended, each in order.
#[derive(Clone, Copy)]
pub(super) struct Flights<'a> {
    pub(super) starts: &'a [Nanos],
    pub(super) ends: &'a [Nanos],
}

impl Flights<'_> {
    /// Shows the number in flight after each change, in order of time. One that ends when another
    /// is sent has made way for it.
    pub(super) fn sweep(self, mut show: impl FnMut(Nanos, u64)) {
        let (mut started, mut ended) = (0, 0);
        while ended < self.ends.len() {
            let end = self.ends[ended];
            match self.starts.get(started) {
                Some(start) if *start < end => {
                    started += 1;
                    show(*start, (started - ended) as u64);
                }
                _ => {
                    ended += 1;
                    show(end, (started - ended) as u64);
                }
            }
        }
    }

    /// Finds the median number in flight: that number or fewer for half of the time in which
    /// requests were sent.
    pub(super) fn median(self) -> u64 {
        let Some(last) = self.starts.last().copied() else { return 0 };
        let mut times = BTreeMap::<u64, u64>::new();
        let mut before: Option<(Nanos, u64)> = None;
        self.sweep(|at, in_flight| {
            if let Some((since, level)) = before {
                *times.entry(level).or_default() += at.min(last).since(since).0;
            }
            before = Some((at, in_flight));
        });
        let half = times.values().sum::<u64>() / 2;
        let mut sum = 0;
        let median = times.into_iter().find(|(_, time)| {
            sum += time;
            sum > half
        });
        median.map_or(0, |(level, _)| level)
    }

    /// Requests that were sent before the first answer ended.
    pub(super) fn fill(self, first_answer: Option<Nanos>) -> usize {
        first_answer.map_or(0, |end| self.starts.partition_point(|start| *start < end))
    }

    /// Computes the number of independent loads of the run: its requests after the fill, divided by
    /// the design effect of the number in flight when each was sent. `None` if that number hardly
    /// varies.
    pub(super) fn loads(self, layout: Layout) -> Option<Loads> {
        let mut ended = 0;
        let mut levels: Vec<u32> = Vec::with_capacity(self.starts.len());
        for (started, start) in self.starts.iter().enumerate() {
            while self.ends.get(ended).is_some_and(|end| end <= start) {
                ended += 1;
            }
            levels.push(u32::try_from(started - ended).unwrap_or(u32::MAX));
        }
        let levels = levels.get(layout.fill() as usize..)?;
        let (least, most) = (levels.iter().min()?, levels.iter().max()?);
        let (first, last) = (self.ends.first()?, self.ends.last()?);
        (most - least > 1).then(|| Loads {
            independent: levels.len() as f64 / design_effect_of(levels, layout.blocks()),
            between_ends: last.since(*first).as_millis_f64() / (self.ends.len() - 1) as f64,
        })
    }

    /// Nanoseconds in flight within the span, summed over the requests.
    pub(super) fn within(self, span: Span) -> u128 {
        let upto = |instants: &[Nanos]| -> u128 {
            let within = instants.iter().map(|at| span.to.since(*at.max(&span.from)));
            within.map(|part| u128::from(part.0)).sum()
        };
        // Time since each start, less time since each end.
        upto(self.starts) - upto(self.ends)
    }

    /// Most requests in flight at one instant.
    pub(super) fn peak(self) -> Option<u64> {
        let mut most = None;
        self.sweep(|_, in_flight| most = most.max(Some(in_flight)));
        most
    }
}
