//! Reads devices at an interval, on a thread of its own.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rapl::Rapl;
use crate::reading::{Facts, Reading, Source};

/// More samples are thinned out, and the interval is doubled: ten hours at one in a second.
const MOST_SAMPLES: usize = 36_000;

/// How long a source may take to give its last reading: a driver that hangs holds no run up.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// What all devices said at an instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Sample {
    /// When, since the origin of the run's clock.
    pub at_ns: Nanos,
    /// The devices in the order of the facts. Absent is one that said nothing; there may be fewer than in the facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Option<Reading>>,
    /// What the host has drawn since the recording began, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_j: Option<f64>,
}

/// What was recorded of devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Recording {
    /// Which devices there are; absent where none are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// What of the host is counted, such as `package-0`; nothing where it is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,
    /// The time from one sample to the next.
    pub every_ns: Nanos,
    /// The samples, the earliest first.
    pub samples: Vec<Sample>,
    /// How many readings failed.
    #[serde(default)]
    pub failed: u64,
    /// Why the last of these failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Devices that are being recorded. The recording ends when this is dropped.
pub struct Watch {
    shared: Arc<Mutex<Recording>>,
    stop: Sender<()>,
    ended: Receiver<()>,
}

impl Watch {
    /// Begins to record, with a sample at once and one at each interval. The clock's origin is that of the samples.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        clock: Clock,
        every: Nanos,
        source: Option<Box<dyn Source>>,
        host: Option<Rapl>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Recording {
            facts: source.as_ref().map(|source| source.facts().clone()),
            host: host.iter().flat_map(Rapl::names).cloned().collect(),
            every_ns: Nanos(every.0.max(1)),
            ..Recording::default()
        }));
        let (stop, stopped) = channel();
        let (end, ended) = channel();
        let mut recorder = Recorder {
            clock,
            source,
            host,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name("devices".to_owned());
        thread.spawn(move || {
            recorder.run(&stopped);
            drop(end);
        })?;
        Ok(Watch {
            shared,
            stop,
            ended,
        })
    }

    /// The latest sample.
    pub fn latest(&self) -> Option<Sample> {
        lock(&self.shared).samples.last().cloned()
    }

    /// Ends the recording with a last sample, and gives it. Where the devices do not answer, it does without that sample.
    pub fn finish(self) -> Recording {
        let _ = self.stop.send(());
        let _ = self.ended.recv_timeout(LAST_WITHIN);
        std::mem::take(&mut *lock(&self.shared))
    }
}

fn lock(shared: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Recorder {
    clock: Clock,
    source: Option<Box<dyn Source>>,
    host: Option<Rapl>,
    shared: Arc<Mutex<Recording>>,
}

impl Recorder {
    fn run(&mut self, stopped: &Receiver<()>) {
        let mut due = self.clock.now();
        loop {
            self.sample();
            // A source that is slower than the interval is read as often as it can be.
            due = (due + lock(&self.shared).every_ns).max(self.clock.now());
            match stopped.recv_timeout(due.since(self.clock.now()).into()) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) => break self.sample(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    fn sample(&mut self) {
        let before = self.clock.now();
        let mut errors = Vec::new();
        let mut known = |result: Result<Vec<Option<Reading>>, String>| {
            result.unwrap_or_else(|error| {
                errors.push(error);
                Vec::new()
            })
        };
        let devices = self.source.as_mut().map(|source| known(source.read()));
        let host = self.host.as_mut().map(Rapl::read);
        let host_j = match host.transpose() {
            Ok(host) => host,
            Err(error) => {
                errors.push(error.to_string());
                None
            }
        };
        // Reading takes time: it is half over when the device in the middle is read.
        let after = self.clock.now();
        let sample = Sample {
            at_ns: Nanos(before.0.midpoint(after.0)),
            devices: devices.unwrap_or_default(),
            host_j,
        };
        let mut recording = lock(&self.shared);
        if let Some(source) = &self.source
            && let Some(facts) = &mut recording.facts
            && facts.devices.len() < source.facts().devices.len()
        {
            *facts = source.facts().clone();
        }
        recording.failed += errors.len() as u64;
        if let Some(error) = errors.pop() {
            recording.error = Some(error);
        }
        if !sample.devices.is_empty() || sample.host_j.is_some() {
            recording.add(sample);
        }
    }
}

impl Recording {
    /// Adds a sample, and thins the others out where there are too many.
    fn add(&mut self, sample: Sample) {
        if self.samples.len() >= MOST_SAMPLES {
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::reading::Device;

    /// A device whose counter grows with each reading, and that fails at the third.
    struct Counting {
        facts: Facts,
        read: Arc<AtomicU64>,
    }

    impl Source for Counting {
        fn facts(&self) -> &Facts {
            &self.facts
        }

        fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
            let count = self.read.fetch_add(1, Ordering::SeqCst);
            if count == 2 {
                return Err("a lost device".to_owned());
            }
            self.facts
                .devices
                .resize(count.min(3) as usize, Device::default());
            let reading = Reading {
                energy_j: Some(count as f64),
                ..Reading::default()
            };
            Ok(vec![Some(reading)])
        }
    }

    #[test]
    fn samples_from_the_first_instant_to_the_last() {
        let read = Arc::new(AtomicU64::new(0));
        let source = Counting {
            facts: Facts::default(),
            read: Arc::clone(&read),
        };
        let clock = Clock::start();
        let watch = Watch::start(clock, Nanos(1_000), Some(Box::new(source)), None).unwrap();
        while read.load(Ordering::SeqCst) < 20 {
            std::thread::yield_now();
        }
        assert!(watch.latest().is_some());
        let recording = watch.finish();
        let samples = &recording.samples;
        let read = read.load(Ordering::SeqCst);
        assert_eq!(
            samples.len() as u64,
            read - 1,
            "all but the one that failed"
        );
        let last = samples.last().unwrap().devices[0].unwrap();
        assert_eq!(last.energy_j, Some((read - 1) as f64));
        assert!(samples.is_sorted_by_key(|sample| sample.at_ns));
        assert_eq!(recording.failed, 1);
        assert_eq!(recording.error.as_deref(), Some("a lost device"));
        assert_eq!(recording.facts.unwrap().devices.len(), 3);
    }

    #[test]
    fn an_interval_that_is_long_ends_at_once() {
        let clock = Clock::start();
        let hour = Nanos(3_600_000_000_000);
        let read = Arc::new(AtomicU64::new(5));
        let source = Counting {
            facts: Facts::default(),
            read,
        };
        let watch = Watch::start(clock, hour, Some(Box::new(source)), None).unwrap();
        while watch.latest().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(watch.finish().samples.len(), 2);
    }

    #[test]
    fn a_source_that_hangs_holds_nothing_up() {
        struct Hangs(Facts);
        impl Source for Hangs {
            fn facts(&self) -> &Facts {
                &self.0
            }
            fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
                loop {
                    std::thread::park();
                }
            }
        }
        let source = Box::new(Hangs(Facts::default()));
        let watch = Watch::start(Clock::start(), Nanos(1), Some(source), None).unwrap();
        assert_eq!(watch.finish().samples, []);
    }

    #[test]
    fn many_samples_are_thinned_out() {
        let mut recording = Recording {
            every_ns: Nanos(10),
            ..Recording::default()
        };
        for at in 0..=MOST_SAMPLES as u64 {
            recording.add(Sample {
                at_ns: Nanos(at * 10),
                ..Sample::default()
            });
        }
        assert_eq!(recording.samples.len(), MOST_SAMPLES / 2 + 1);
        assert_eq!(recording.every_ns, Nanos(20));
        let steps = recording.samples.windows(2);
        let mut steps = steps.map(|two| two[1].at_ns.since(two[0].at_ns));
        assert!(steps.all(|step| step == Nanos(20)));
    }
}
