//! The lines of the file that keeps a server's series, made from its pages.
//!
//! A line introduces a series once. After that, a sample lists the numbers of the series whose
//! values changed, so that the hundreds of constant series take no room. The sum of all lines is
//! the [`Recording`](crate::Recording), even if the file ends early.
//!
//! The file hardly grows with a run's length: after 36,000 samples or a million values, the
//! interval between two samples is doubled, and again after half as many.

use std::collections::{BTreeMap, HashMap};

use model::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::page::{self, Kind};

/// Samples at one interval after which it is doubled: ten hours at one a second.
const MOST_SAMPLES: u64 = 36_000;

/// Values after which it is doubled likewise: some 20 MB in memory.
const MOST_VALUES: u64 = 1_000_000;

/// The most series of all targets: servers may put a request's number into a label.
pub const MOST_SERIES: usize = 50_000;

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// The targets and the interval: the first line, and again where the interval changes.
    Head(Head),
    /// A series, before its first value.
    Series(Series),
    /// The changes from a target's page to its next.
    Sample(Sample),
    /// Pages that did not come.
    Failed(Failed),
}

/// The targets whose pages are sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Head {
    /// Their base URLs, in the order of the plan.
    pub targets: Vec<String>,
    /// The time from one sample to the next, in nanoseconds.
    pub every_ns: Nanos,
}

/// A series: one line of a metrics page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Series {
    /// Its number, by which samples name it.
    pub id: u32,
    /// The index of its target among the targets of the head.
    pub target: u32,
    /// The name of the metric, as the server writes it.
    pub name: String,
    /// The kind of its family.
    pub kind: Kind,
    /// Its labels by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The changes from a target's page to its next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Sample {
    /// The instant in the middle of the request, since the origin of the run's clock, in
    /// nanoseconds.
    pub at_ns: Nanos,
    /// The time that the page took, in nanoseconds: the values are of some instant within it.
    pub took_ns: Nanos,
    /// The index of the target.
    pub target: u32,
    /// The numbers of the series that changed, with their new values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(u32, f64)>,
    /// The numbers of the series that are no longer on the page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<u32>,
    /// Lines of the page that are beyond the bounds and were not kept.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub left_out: u64,
}

/// Pages of a target that did not come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Failed {
    /// The index of the target.
    pub target: u32,
    /// Failed samples of it since the recording began.
    pub count: u64,
    /// The error of the last of these.
    pub error: String,
}

type Key = (u32, String, BTreeMap<String, String>);

#[derive(Debug)]
pub struct Encoder {
    head: Head,
    known: HashMap<Key, u32>,
    /// The last value of each series and the page that it was last on, by number.
    last: Vec<(Option<f64>, u64)>,
    of_target: BTreeMap<u32, Vec<u32>>,
    pages: u64,
    room: Room,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    samples: u64,
    values: u64,
}

impl Encoder {
    pub fn new(head: Head) -> Self {
        Encoder {
            head,
            known: HashMap::new(),
            last: Vec::new(),
            of_target: BTreeMap::new(),
            pages: 0,
            room: Room { samples: MOST_SAMPLES, values: MOST_VALUES },
        }
    }

    pub fn head(&self) -> Entry {
        Entry::Head(self.head.clone())
    }

    pub fn every(&self) -> Nanos {
        self.head.every_ns
    }

    /// Returns the changes on a target's page, given the instants of its request and arrival.
    pub fn page(&mut self, target: u32, (sent, came): (Nanos, Nanos), text: &str) -> Vec<Entry> {
        let page = page::read(text);
        self.pages += 1;
        let mut entries = Vec::new();
        let mut sample = Sample {
            at_ns: Nanos(sent.0.midpoint(came.0)),
            took_ns: came.since(sent),
            target,
            left_out: page.left_out,
            ..Sample::default()
        };
        for found in page.samples {
            let key = (target, found.name, found.labels);
            let id = match self.known.get(&key) {
                Some(id) => *id,
                None if self.last.len() >= MOST_SERIES => {
                    sample.left_out += 1;
                    continue;
                }
                None => {
                    let id = self.last.len() as u32;
                    entries.push(Entry::Series(Series {
                        id,
                        target,
                        name: key.1.clone(),
                        kind: found.kind,
                        labels: key.2.clone(),
                    }));
                    self.known.insert(key, id);
                    self.last.push((None, 0));
                    self.of_target.entry(target).or_default().push(id);
                    id
                }
            };
            let (last, page) = &mut self.last[id as usize];
            // A page that has a series twice is wrong, and its first line counts.
            if *page == self.pages {
                continue;
            }
            *page = self.pages;
            if *last != Some(found.value) {
                *last = Some(found.value);
                sample.values.push((id, found.value));
            }
        }
        for id in self.of_target.get(&target).into_iter().flatten() {
            let (last, page) = &mut self.last[*id as usize];
            if *page != self.pages && last.take().is_some() {
                sample.gone.push(*id);
            }
        }
        let written = (sample.values.len() + sample.gone.len()) as u64;
        entries.push(Entry::Sample(sample));
        entries.extend(self.spend(written));
        entries
    }

    /// Takes a sample from the remaining room. Returns the new interval after the last sample.
    fn spend(&mut self, values: u64) -> Option<Entry> {
        self.room.samples = self.room.samples.saturating_sub(1);
        self.room.values = self.room.values.saturating_sub(values);
        if self.room.samples > 0 && self.room.values > 0 {
            return None;
        }
        self.room = Room { samples: MOST_SAMPLES / 2, values: MOST_VALUES / 2 };
        self.head.every_ns = self.head.every_ns + self.head.every_ns;
        Some(self.head())
    }
}
