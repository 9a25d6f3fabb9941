//! The recording, entry by entry. A recording is the sum of its entries, so a file with an entry on
//! each line gives the same recording again, even if it ends early.

use model::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::{Facts, Reading};

/// More samples are thinned out, and the interval is doubled: ten hours at one in a second.
pub(crate) const MOST_SAMPLES: usize = 36_000;

/// The most readings, some 50 MB: more devices have fewer samples.
pub(crate) const MOST_READINGS: usize = 288_000;

/// One line of the file that a recording is kept in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// The devices and counters of the entries that follow: the first line, and again where a
    /// device was added.
    Head(Head),
    /// Readings at one instant.
    Sample(Sample),
    /// Readings that failed.
    Failed(Failed),
}

/// The devices and counters that are recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Head {
    /// The devices; absent where none are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The host's counters that are read, such as `package-0`; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,
    /// The time from one sample to the next, in nanoseconds.
    pub every_ns: Nanos,
}

/// The readings of all devices at one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Sample {
    /// The instant, since the origin of the run's clock, in nanoseconds.
    pub at_ns: Nanos,
    /// The devices in the order of the facts; a device without a reading is absent. There may be
    /// fewer than in the facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Option<Reading>>,
    /// Energy that the host has drawn since the recording began, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_j: Option<f64>,
}

/// Readings that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Failed {
    /// Failed readings since the recording began.
    pub count: u64,
    /// The error of the last of these.
    pub error: String,
}

/// The readings of devices over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Recording {
    /// The devices; absent where none are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The host's counters that are read, such as `package-0`; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,
    /// The time from one sample to the next, in nanoseconds.
    pub every_ns: Nanos,
    /// The samples, the earliest first.
    pub samples: Vec<Sample>,
    /// Readings that failed.
    #[serde(default)]
    pub failed: u64,
    /// The error of the last of these.
    pub error: Option<String>,
}

impl Recording {
    pub fn enter(&mut self, entry: Entry) {
        match entry {
            Entry::Head(head) => {
                self.facts = head.facts;
                self.host = head.host;
                self.every_ns = head.every_ns;
            }
            Entry::Sample(sample) => self.add(sample),
            Entry::Failed(failed) => {
                self.failed = failed.count;
                self.error = Some(failed.error);
            }
        }
    }

    /// Adds a sample, and thins the samples out if there are too many. A sample that is not later
    /// than the last is from a changed file, and is left out.
    fn add(&mut self, sample: Sample) {
        if self.samples.last().is_some_and(|last| sample.at_ns <= last.at_ns) {
            return;
        }
        let devices = sample.devices.len().max(1);
        let most = MOST_SAMPLES.min(MOST_READINGS / devices).max(2);
        if self.samples.len() >= most {
            let mut at = 0;
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every_ns = self.every_ns + self.every_ns;
        }
        self.samples.push(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Device;

    fn sample(at: u64, devices: usize) -> Entry {
        Entry::Sample(Sample {
            at_ns: Nanos(at),
            devices: vec![Some(Reading::default()); devices],
            host_j: None,
        })
    }

    fn begun() -> Recording {
        let mut recording = Recording::default();
        recording.enter(Entry::Head(Head { every_ns: Nanos(10), ..Head::default() }));
        recording
    }

    #[test]
    fn many_samples_are_thinned_out() {
        let mut recording = begun();
        for at in 0..=MOST_SAMPLES as u64 {
            recording.enter(sample(at * 10, 1));
        }
        assert_eq!(recording.samples.len(), MOST_SAMPLES / 2 + 1);
        assert_eq!(recording.every_ns, Nanos(20));
        let steps = recording.samples.windows(2);
        let mut steps = steps.map(|two| two[1].at_ns.since(two[0].at_ns));
        assert!(steps.all(|step| step == Nanos(20)));
    }

    #[test]
    fn the_readings_of_many_devices_have_the_same_bound() {
        let mut recording = begun();
        for at in 0..2_000 {
            recording.enter(sample(at, 1_000));
            assert!(recording.samples.len() * 1_000 <= MOST_READINGS);
        }
        assert!(recording.samples.len() > MOST_READINGS / 1_000 / 2);
    }

    #[test]
    fn entries_read_back_give_the_same_recording() {
        let facts = |devices| Facts {
            source: "dcgm".to_owned(),
            driver: None,
            devices: vec![Device::default(); devices],
        };
        let head = |devices| {
            Entry::Head(Head {
                facts: Some(facts(devices)),
                host: vec!["package-0".to_owned()],
                every_ns: Nanos(10),
            })
        };
        let failed = Entry::Failed(Failed { count: 2, error: "connection refused".to_owned() });
        let entries = [head(1), sample(5, 1), failed, head(2), sample(15, 2)];
        let mut live = Recording::default();
        let mut again = Recording::default();
        for entry in entries {
            let line = serde_json::to_string(&entry).unwrap();
            again.enter(serde_json::from_str(&line).unwrap());
            live.enter(entry);
        }
        assert_eq!(again, live);
        assert_eq!(live.samples.len(), 2);
        assert_eq!(live.facts, Some(facts(2)));
        assert_eq!((live.failed, live.host.len()), (2, 1));
    }
}
