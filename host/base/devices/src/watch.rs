//! Reads devices at an interval, on a thread of its own.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;

use crate::entry::{Entry, Failed, Head, Recording, Sample};
use crate::rapl::Rapl;
use crate::reading::{Facts, Reading, Source};

/// The time limit of a source's last reading, so that a hanging driver delays no run.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Devices that are being recorded. The recording ends when this is dropped.
pub struct Watch {
    shared: Arc<Mutex<Recording>>,
    stop: Sender<()>,
    ended: Receiver<()>,
}

impl Watch {
    /// Begins to record at an interval, with a sample at once, and counts from the clock's origin.
    /// `begin` runs first on the recording's thread. `note` then gets each entry there, but few of
    /// repeated failures.
    pub fn start(
        clock: Clock,
        every: Nanos,
        (source, host): (Option<Box<dyn Source>>, Option<Rapl>),
        begin: impl FnOnce() + Send + 'static,
        note: impl FnMut(&Entry) + Send + 'static,
    ) -> io::Result<Self> {
        let head = Head {
            facts: source.as_ref().map(|source| source.facts().clone()),
            host: host.iter().flat_map(Rapl::names).cloned().collect(),
            every_ns: Nanos(every.0.max(1)),
        };
        let shared = Arc::<Mutex<Recording>>::default();
        let (stop, stopped) = channel();
        let (end, ended) = channel();
        let mut recorder = Recorder {
            clock,
            source,
            host,
            shared: Arc::clone(&shared),
            note,
            failed: Failed::default(),
        };
        // Before the thread begins, so that an onlooker sees the devices at once.
        lock(&shared).enter(Entry::Head(head.clone()));
        let thread = std::thread::Builder::new().name("devices".to_owned());
        thread.spawn(move || {
            begin();
            (recorder.note)(&Entry::Head(head));
            recorder.run(&stopped);
            drop(end);
        })?;
        Ok(Watch { shared, stop, ended })
    }

    /// Returns a monitor, which shows the latest sample for as long as the recording goes on.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.shared))
    }

    /// Ends the recording with a last sample of the devices that answer, and returns it.
    pub fn finish(self) -> Recording {
        let _ = self.stop.send(());
        let _ = self.ended.recv_timeout(LAST_WITHIN);
        std::mem::take(&mut *lock(&self.shared))
    }
}

#[derive(Clone, Debug)]
pub struct Monitor(Arc<Mutex<Recording>>);

impl Monitor {
    /// The devices and the latest sample; absent before the first and after the end.
    pub fn latest(&self) -> Option<(Facts, Sample)> {
        let recording = lock(&self.0);
        Some((recording.facts.clone()?, recording.samples.last()?.clone()))
    }
}

fn lock(shared: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Recorder<N> {
    clock: Clock,
    source: Option<Box<dyn Source>>,
    host: Option<Rapl>,
    shared: Arc<Mutex<Recording>>,
    note: N,
    failed: Failed,
}

impl<N: FnMut(&Entry)> Recorder<N> {
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
        if self.failed.count > 0 {
            (self.note)(&Entry::Failed(self.failed.clone()));
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
        // The device in the middle is read when half of the reading's time is over.
        let after = self.clock.now();
        let sample = Sample {
            at_ns: Nanos(before.0.midpoint(after.0)),
            devices: devices.unwrap_or_default(),
            host_j,
        };
        if let Some(head) = self.grown() {
            self.enter(Entry::Head(head), true);
        }
        for error in errors {
            let count = self.failed.count + 1;
            self.failed = Failed { count, error };
            // A device that is lost for hours fills no disk with its errors.
            self.enter(Entry::Failed(self.failed.clone()), count.is_power_of_two());
        }
        if !sample.devices.is_empty() || sample.host_j.is_some() {
            self.enter(Entry::Sample(sample), true);
        }
    }

    fn grown(&self) -> Option<Head> {
        let facts = self.source.as_ref()?.facts();
        let recording = lock(&self.shared);
        let known = recording.facts.as_ref()?.devices.len();
        (known < facts.devices.len()).then(|| Head {
            facts: Some(facts.clone()),
            host: recording.host.clone(),
            every_ns: recording.every_ns,
        })
    }

    fn enter(&mut self, entry: Entry, is_noted: bool) {
        if is_noted {
            (self.note)(&entry);
        }
        lock(&self.shared).enter(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::reading::Device;

    /// Starts a watch; the entries that it notes come through the channel.
    fn start(every: u64, source: impl Source + 'static) -> (Watch, Receiver<Entry>) {
        let sources: (Option<Box<dyn Source>>, _) = (Some(Box::new(source)), None);
        let (noted, notes) = channel();
        let note = move |entry: &Entry| noted.send(entry.clone()).unwrap_or_default();
        (Watch::start(Clock::start(), Nanos(every), sources, || {}, note).unwrap(), notes)
    }

    fn wait_for(read: &AtomicU64, count: u64) {
        while read.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }

    /// A device whose counter grows with each reading, and that fails at the third.
    struct Counter {
        facts: Facts,
        read: Arc<AtomicU64>,
    }

    impl Source for Counter {
        fn facts(&self) -> &Facts {
            &self.facts
        }

        fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
            let count = self.read.fetch_add(1, Ordering::SeqCst);
            if count == 2 {
                return Err("a lost device".to_owned());
            }
            self.facts.devices.resize(count.min(3) as usize, Device::default());
            let reading = Reading { energy_j: Some(count as f64), ..Reading::default() };
            Ok(vec![Some(reading)])
        }
    }

    #[test]
    fn repeated_failures_are_few_entries() {
        struct Lost(Facts, Arc<AtomicU64>);
        impl Source for Lost {
            fn facts(&self) -> &Facts {
                &self.0
            }
            fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
                let count = self.1.fetch_add(1, Ordering::SeqCst) + 1;
                Err(format!("lost {count}"))
            }
        }
        let read = Arc::new(AtomicU64::new(0));
        let source = Lost(Facts::default(), Arc::clone(&read));
        let (watch, notes) = start(1, source);
        wait_for(&read, 100);
        let recording = watch.finish();
        let read = read.load(Ordering::SeqCst);
        assert_eq!(recording.failed, read);
        assert_eq!(recording.error, Some(format!("lost {read}")));
        let entries: Vec<Entry> = notes.iter().collect();
        // The head, one for each power of two, and the last.
        assert_eq!(entries.len() as u32, 1 + (u64::BITS - read.leading_zeros()) + 1);
        let expected = Some(&Entry::Failed(Failed { count: read, error: format!("lost {read}") }));
        assert_eq!(entries.last(), expected);
    }

    #[test]
    fn samples_from_the_first_instant_to_the_last() {
        let read = Arc::new(AtomicU64::new(0));
        let source = Counter { facts: Facts::default(), read: Arc::clone(&read) };
        let (watch, notes) = start(1_000, source);
        let monitor = watch.monitor();
        wait_for(&read, 20);
        assert!(monitor.latest().is_some());
        let recording = watch.finish();
        assert_eq!(monitor.latest(), None, "it has ended");
        let mut again = Recording::default();
        notes.iter().for_each(|entry| again.enter(entry));
        assert_eq!(again, recording, "the entries are the recording");
        let samples = &recording.samples;
        let read = read.load(Ordering::SeqCst);
        assert_eq!(samples.len() as u64, read - 1, "all but the one that failed");
        let last = samples.last().unwrap().devices[0].unwrap();
        assert_eq!(last.energy_j, Some((read - 1) as f64));
        assert!(samples.is_sorted_by_key(|sample| sample.at_ns));
        assert_eq!(recording.failed, 1);
        assert_eq!(recording.error.as_deref(), Some("a lost device"));
        assert_eq!(recording.facts.unwrap().devices.len(), 3);
    }

    #[test]
    fn an_interval_that_is_long_ends_at_once() {
        let hour = 3_600_000_000_000;
        let source = Counter { facts: Facts::default(), read: Arc::new(AtomicU64::new(5)) };
        let (watch, _notes) = start(hour, source);
        let monitor = watch.monitor();
        while monitor.latest().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(watch.finish().samples.len(), 2);
    }

    #[test]
    fn a_hanging_source_delays_nothing() {
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
        assert_eq!(start(1, Hangs(Facts::default())).0.finish().samples, []);
    }
}
