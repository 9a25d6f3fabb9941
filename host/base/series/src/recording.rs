//! The series over a run, as the sum of the entries of their file.

use std::collections::BTreeMap;

use model::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Failed, MOST_SERIES, Sample, Series};

/// The most samples of all targets that are read from a file.
const MOST_SAMPLES: usize = 1_000_000;

/// The most values that are read of a file: some 200 MB.
const MOST_VALUES: usize = 8_000_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recording {
    pub targets: Vec<String>,
    /// The time from one sample to the next, at the end of the run.
    pub every_ns: Nanos,
    pub series: BTreeMap<u32, RecordedSeries>,
    /// The instants of the pages of each target, the earliest first.
    pub pages: BTreeMap<u32, Vec<Nanos>>,
    pub longest_ns: Nanos,
    /// Lines that were not kept, of the page with the most such lines.
    pub left_out: u64,
    pub failed: BTreeMap<u32, Failed>,
    samples: usize,
    values: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RecordedSeries {
    pub series: Series,
    /// Its values where they changed, by the place of the page among its target's pages; absent
    /// where the page did not have it any longer.
    pub changes: Vec<(u32, Option<f64>)>,
}

impl RecordedSeries {
    /// True if it has this value of a label, or no label matters.
    pub(crate) fn has(&self, label: Option<(&str, &str)>) -> bool {
        let labels = &self.series.labels;
        label.is_none_or(|(key, value)| labels.get(key).is_some_and(|own| own == value))
    }
}

impl Recording {
    /// Adds an entry, unless it contradicts earlier entries: the file was changed.
    pub fn enter(&mut self, entry: Entry) {
        match entry {
            Entry::Head(head) => {
                self.targets = head.targets;
                self.every_ns = head.every_ns;
            }
            Entry::Series(series) => {
                if self.series.len() < MOST_SERIES {
                    self.series
                        .entry(series.id)
                        .or_insert(RecordedSeries { series, changes: Vec::new() });
                }
            }
            Entry::Sample(sample) => self.add(sample),
            Entry::Failed(failed) => {
                if (failed.target as usize) < self.targets.len() {
                    self.failed.insert(failed.target, failed);
                }
            }
        }
    }

    fn add(&mut self, sample: Sample) {
        if sample.target as usize >= self.targets.len() {
            return;
        }
        let pages = self.pages.entry(sample.target).or_default();
        let is_late = pages.last().is_none_or(|last| *last < sample.at_ns);
        if !is_late || self.samples >= MOST_SAMPLES {
            return;
        }
        let place = pages.len() as u32;
        pages.push(sample.at_ns);
        self.samples += 1;
        self.longest_ns = self.longest_ns.max(sample.took_ns);
        self.left_out = self.left_out.max(sample.left_out);
        let values = sample.values.iter().map(|(id, value)| (id, Some(*value)));
        let gone = sample.gone.iter().map(|id| (id, None));
        for (id, value) in values.chain(gone) {
            let Some(recorded) = self.series.get_mut(id) else { continue };
            if recorded.series.target != sample.target || self.values >= MOST_VALUES {
                continue;
            }
            if (recorded.changes.last()).is_none_or(|(last, _)| *last < place) {
                recorded.changes.push((place, value.filter(|it| it.is_finite())));
                self.values += 1;
            }
        }
    }

    pub(crate) fn series_of<'a>(
        &'a self,
        target: u32,
        name: &'a str,
    ) -> impl Iterator<Item = &'a RecordedSeries> + 'a {
        let series = self.series.values();
        series.filter(move |it| it.series.target == target && it.series.name == name)
    }

    pub(crate) fn pages_of(&self, target: u32) -> &[Nanos] {
        self.pages.get(&target).map_or(&[], Vec::as_slice)
    }
}
