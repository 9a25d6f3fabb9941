//! The state of a run in a form that adds up: counts and distributions, and no percentiles. A
//! process of a fleet sends its own as [`Figures`], with coarser distributions beyond
//! [`MOST_BYTES`], and rank 0 makes one [`State`] of all of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cells::packed::{COARSE, FINE, NotPacked, PackedBuckets, PackedCells};
use super::cells::{Buckets, Distribution};
use super::snapshot::{Counts, Latency, Phase, Snapshot};
use super::totals::METRICS;
use load::vitals::{Busy, Load};
use model::units::Nanos;

/// The most bytes of JSON that the figures of a process have.
pub const MOST_BYTES: usize = 128 << 10;
/// Characters of a failure's message that travel; in the records it is whole.
const MOST_MESSAGE: usize = 200;
/// The most threads, and the most bytes of a thread's name. No process of this program has as many.
const MOST_THREADS: usize = 128;
const MOST_NAME: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Track {
    pub spans: Distribution,
    pub buckets: Buckets,
}

/// A run at one instant, with its distributions.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) counts: Counts,
    pub(super) tracks: [Track; METRICS.len()],
    pub(super) load: Option<Load>,
}

/// One process's part of a run, which takes the place of the part sent a second before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figures {
    counts: Counts,
    tracks: Vec<PackedTrack>,
    load: Option<PackedLoad>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PackedTrack {
    recent: PackedCells,
    whole: PackedCells,
    buckets: PackedBuckets,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PackedLoad {
    /// Name, share of a core, and share of the time spent waiting for one.
    threads: Vec<(String, f64, f64)>,
    backlog: u64,
}

impl Track {
    pub fn latency(&self) -> Latency {
        Latency {
            recent: self.spans.recent.quantiles(),
            whole: self.spans.whole.quantiles(),
            buckets: self.buckets.clone(),
        }
    }
}

impl Default for State {
    /// Nothing, to which parts may be added.
    fn default() -> Self {
        State {
            counts: Counts::default(),
            tracks: METRICS.map(|(_, bounds)| Track {
                spans: Distribution::default(),
                buckets: Buckets::new(bounds),
            }),
            load: None,
        }
    }
}

impl State {
    /// Adds up the parts. A process that is gone counts without its requests in flight. The whole
    /// has the phase of the slowest part, and the time of the fastest. Fails if no process of this
    /// version sends such a part.
    pub fn together<'f>(
        parts: impl IntoIterator<Item = (&'f Figures, bool)>,
    ) -> Result<Self, NotPacked> {
        let mut whole = State::default();
        let mut phase: Option<Phase> = None;
        let (mut due, mut waiting) = (Some(0), Some(0));
        for (part, gone) in parts {
            let own = &part.counts;
            if !gone {
                phase = Some(phase.map_or(own.phase, |phase| phase.min(own.phase)));
                waiting = sum(waiting, own.waiting);
                whole.counts.in_flight = whole.counts.in_flight.saturating_add(own.in_flight);
            }
            due = sum(due, own.due);
            whole.counts.add(own);
            let (tracks, true) = (&part.tracks, part.tracks.len() == METRICS.len()) else {
                return Err(NotPacked("its metrics differ"));
            };
            for (track, more) in whole.tracks.iter_mut().zip(tracks) {
                if !gone {
                    more.recent.add_to(&mut track.spans.recent)?;
                }
                more.whole.add_to(&mut track.spans.whole)?;
                more.buckets.add_to(&mut track.buckets)?;
            }
            if let (Some(load), false) = (&part.load, gone) {
                worst(whole.load.get_or_insert_default(), load);
            }
        }
        whole.counts.phase = phase.unwrap_or_default();
        if phase >= Some(Phase::Measuring) {
            (whole.counts.due, whole.counts.waiting) = (due, waiting);
        }
        Ok(whole)
    }

    /// Returns the time since the measurement began; absent before.
    pub fn elapsed(&self) -> Option<Nanos> {
        self.counts.elapsed
    }

    pub fn snapshot(&self) -> Snapshot {
        let [ttft, itl, tpot, e2e, send_lag] = self.tracks.each_ref().map(Track::latency);
        Snapshot {
            counts: self.counts.clone(),
            ttft,
            itl,
            tpot,
            e2e,
            send_lag,
            devices: None,
            server: None,
            load: self.load.clone(),
            agents: Vec::new(),
        }
    }

    /// Returns the form that is sent, within [`MOST_BYTES`].
    pub fn figures(&self) -> Value {
        let fine = self.packed(FINE).json();
        if fine.to_string().len() > MOST_BYTES { self.packed(COARSE).json() } else { fine }
    }

    fn packed(&self, bits: u32) -> Figures {
        let mut counts = self.counts.clone();
        for failures in counts.failed.values_mut() {
            failures.latest = failures.latest.chars().take(MOST_MESSAGE).collect();
        }
        let tracks = self.tracks.iter().map(|track| PackedTrack {
            recent: PackedCells::new(&track.spans.recent, bits),
            whole: PackedCells::new(&track.spans.whole, bits),
            buckets: PackedBuckets::new(&track.buckets),
        });
        Figures {
            counts,
            tracks: tracks.collect(),
            load: self.load.as_ref().map(|load| PackedLoad {
                threads: (load.threads.iter().take(MOST_THREADS))
                    .map(|busy| {
                        let name = busy.name.chars().take(MOST_NAME).collect();
                        (name, busy.cpu, busy.waiting)
                    })
                    .collect(),
                backlog: load.backlog,
            }),
        }
    }
}

impl Counts {
    /// Adds the counts of another part. Fields that are not sums are left to the caller.
    fn add(&mut self, other: &Counts) {
        self.stopped = self.stopped.max(other.stopped);
        self.elapsed = self.elapsed.max(other.elapsed);
        for (whole, part) in [
            (&mut self.ready, other.ready),
            (&mut self.warmup, other.warmup),
            (&mut self.given_out, other.given_out),
            (&mut self.answered, other.answered),
            (&mut self.sessions, other.sessions),
            (&mut self.sent, other.sent),
            (&mut self.cancelled, other.cancelled),
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.tokens_seen, other.tokens_seen),
        ] {
            *whole = whole.saturating_add(part);
        }
        for (class, failures) in &other.failed {
            let whole = self.failed.entry(*class).or_default();
            whole.count = whole.count.saturating_add(failures.count);
            whole.latest.clone_from(&failures.latest);
        }
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}

/// The busiest thread of each name.
fn worst(whole: &mut Load, part: &PackedLoad) {
    whole.backlog = whole.backlog.max(part.backlog);
    for (name, cpu, waiting) in &part.threads {
        match whole.threads.iter_mut().find(|busy| busy.name == *name) {
            Some(busy) => {
                busy.cpu = busy.cpu.max(*cpu);
                busy.waiting = busy.waiting.max(*waiting);
            }
            None => whole.threads.push(Busy { name: name.clone(), cpu: *cpu, waiting: *waiting }),
        }
    }
}

impl Figures {
    /// Reads the figures that a process sent; nothing if no process of this version sends them.
    pub fn read(sent: &Value) -> Option<Self> {
        let read = Figures::deserialize(sent).ok()?;
        // Figures that add up alone add up with others.
        State::together([(&read, false)]).ok().map(|_| read)
    }

    fn json(&self) -> Value {
        serde_json::to_value(self)
            .unwrap_or_else(|error| unreachable!("numbers and names are JSON: {error}"))
    }

    pub fn answered(&self) -> u64 {
        self.counts.answered
    }

    pub fn failed(&self) -> u64 {
        self.counts.failed.values().map(|failures| failures.count).fold(0, u64::saturating_add)
    }

    pub fn in_flight(&self) -> u64 {
        self.counts.in_flight
    }

    /// Returns the use of cores by the process's threads; absent if it does not say.
    pub fn load(&self) -> Option<Load> {
        let load = self.load.as_ref()?;
        let mut whole = Load::default();
        worst(&mut whole, load);
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::snapshot::Failures;
    use model::exchange::Class;

    fn ms(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// A part with this many answers, each a millisecond slower than the previous one.
    fn part(answered: u64, phase: Phase) -> State {
        let counts = Counts {
            phase,
            elapsed: Some(ms(1_000 * answered)),
            due: Some(2 * answered),
            waiting: Some(1),
            in_flight: 3,
            answered,
            failed: [(Class::Refused, Failures { count: 2, latest: format!("of {answered}") })]
                .into(),
            ..Counts::default()
        };
        let mut state = State { counts, ..State::default() };
        for (number, track) in (1..).zip(&mut state.tracks) {
            for span in (1..=answered).map(|span| ms(span * number)) {
                track.spans.recent.add(span, 1);
                track.spans.whole.add(span, 2);
                track.buckets.add(span, 2);
            }
        }
        state.load = Some(Load {
            threads: vec![Busy {
                name: "read-0".to_owned(),
                cpu: answered as f64 / 100.0,
                waiting: 0.5,
            }],
            backlog: answered,
        });
        state
    }

    fn sent(state: &State) -> Figures {
        let text = state.figures().to_string();
        Figures::read(&serde_json::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn parts_add_up() {
        let alone = part(30, Phase::Measuring);
        let there = State::together([(&sent(&alone), false)]).unwrap();
        assert_eq!(there.snapshot(), alone.snapshot());
        let [one, other] = [part(10, Phase::Draining), part(20, Phase::Measuring)];
        let seen = State::together([(&sent(&one), false), (&sent(&other), false)]).unwrap();
        let seen = seen.snapshot();
        assert_eq!((seen.counts.phase, seen.counts.elapsed), (Phase::Measuring, Some(ms(20_000))));
        assert_eq!((seen.counts.answered, seen.counts.in_flight), (30, 6));
        assert_eq!((seen.counts.due, seen.counts.waiting), (Some(60), Some(2)));
        assert_eq!(seen.counts.failures(), 4);
        let ttft = seen.ttft.recent.unwrap();
        assert_eq!((ttft.count, ttft.max_ms), (30, 20.0));
        assert_eq!(seen.e2e.whole.unwrap().count, 60);
        assert_eq!(seen.send_lag.buckets.count(), 60);
        let load = seen.load.unwrap();
        assert_eq!((load.threads.len(), load.threads[0].cpu, load.backlog), (1, 0.2, 20));
    }

    #[test]
    fn lost_process_keeps_its_totals() {
        let [stays, gone] =
            [part(10, Phase::Draining), part(20, Phase::Measuring)].map(|part| sent(&part));
        let seen = State::together([(&stays, false), (&gone, true)]).unwrap();
        let seen = seen.snapshot();
        assert_eq!(
            (seen.counts.phase, seen.counts.answered, seen.counts.in_flight),
            (Phase::Draining, 30, 3)
        );
        assert_eq!((seen.counts.waiting, seen.counts.due), (Some(1), Some(60)));
        assert_eq!(seen.ttft.recent.unwrap().count, 10);
        assert_eq!(seen.ttft.whole.unwrap().count, 60);
        assert_eq!(seen.load.unwrap().backlog, 10);
        let all_gone = State::together([(&gone, true)]).unwrap().snapshot();
        assert_eq!(
            (all_gone.counts.answered, all_gone.counts.in_flight, all_gone.load),
            (20, 0, None)
        );
    }

    #[test]
    fn unplanned_figures_are_absent_from_the_total() {
        let mut unknown = part(10, Phase::Measuring);
        (unknown.counts.due, unknown.counts.waiting) = (None, None);
        let parts = [sent(&part(5, Phase::Measuring)), sent(&unknown)];
        let seen = State::together(parts.iter().map(|part| (part, false))).unwrap();
        assert_eq!((seen.counts.due, seen.counts.waiting), (None, None));
        let nothing = State::together([]).unwrap().snapshot();
        assert_eq!(
            (nothing.counts.phase, nothing.counts.due, nothing.counts.elapsed),
            (Phase::Preparing, None, None)
        );
    }

    /// The worst that there is: thirteen digits in every cell, and endless messages and names.
    #[test]
    fn figures_have_a_maximum_size() {
        let mut state = part(10, Phase::Measuring);
        for track in &mut state.tracks {
            for width in 0..54 {
                for step in 0..256_u64 {
                    let span = Nanos((256 + step) << width);
                    track.spans.recent.add(span, 1_000_000_000_000);
                    track.spans.whole.add(span, 1_000_000_000_000);
                }
            }
        }
        state.counts.failed = Class::ALL
            .map(|class| {
                let latest = "m".repeat(1 << 20);
                (class, Failures { count: u64::MAX, latest })
            })
            .into();
        state.load.as_mut().unwrap().threads = (0..1_000)
            .map(|number| Busy {
                name: format!("read-{number}").repeat(100),
                cpu: 1.0 / 3.0,
                waiting: 1.0 / 3.0,
            })
            .collect();
        let figures = state.figures();
        let bytes = figures.to_string().len();
        assert!(bytes <= MOST_BYTES, "{bytes} bytes");
        let seen = State::together([(&Figures::read(&figures).unwrap(), false)]).unwrap();
        let (seen, exact) = (seen.snapshot(), state.snapshot());
        assert_eq!(seen.e2e.whole.unwrap().count, exact.e2e.whole.unwrap().count);
        // An ordinary run is told finely.
        let ordinary = part(2_000, Phase::Measuring);
        assert_eq!(sent(&ordinary), ordinary.packed(FINE));
    }

    #[test]
    fn malformed_figures_are_ignored() {
        let good = part(3, Phase::Measuring).figures();
        for (key, wrong) in [
            ("tracks", serde_json::json!([])),
            ("counts", serde_json::json!({})),
            ("more", serde_json::json!(1)),
        ] {
            let mut figures = good.clone();
            figures[key] = wrong;
            assert_eq!(Figures::read(&figures), None, "{key}");
        }
        assert_eq!(Figures::read(&Value::Null), None);
        assert!(Figures::read(&good).is_some());
    }
}
