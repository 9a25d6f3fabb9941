//! The sessions of a run, in the order of their source: spare ones apart, and from the beginning
//! again where a file ends before the run does.

use std::collections::{BTreeSet, VecDeque};

use runner_plugin::report::Remarks;
use runner_plugin::requests::{fill, prompt_fingerprint};
use runner_plugin::{ENOUGH, Error, Remark, Sample};

use crate::FILE;

pub trait Source {
    /// The samples of the next session to measure, the root first: none of a session that is left
    /// out. `pass` counts the passes over the file, and is part of names from 2 on.
    fn next(&mut self, pass: u64, remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error>;

    /// The root of a session that [`next`](Self::next) does not return.
    fn spare(&mut self) -> Result<Option<Sample>, Error>;

    /// Begins again, without the [spare](Self::spare) sessions.
    fn rewind(&mut self) -> Result<(), Error>;

    /// The error if no session can be measured, after this many spare ones.
    fn nothing(&self, spares: u64, remarks: &Remarks) -> Error {
        let reasons = remarks.reasons();
        Error::InvalidInput(if !reasons.is_empty() {
            format!("no session of the file `{FILE}` can be used ({reasons}): use another file")
        } else if spares > 0 {
            format!(
                "all {spares} sessions of the file `{FILE}` were used for warmup: warm up with fewer requests, or use a \
                 larger file"
            )
        } else {
            format!("the file `{FILE}` has no sessions")
        })
    }
}

pub struct Sessions {
    source: Box<dyn Source>,
    /// The name of sessions in remarks, such as `conversations`.
    name: &'static str,
    repeat: bool,
    /// Samples of a session that were not yet returned.
    ready: VecDeque<Sample>,
    pass: u64,
    /// Number of sessions that are measured, in all and since the file began the last time.
    used: u64,
    used_since: u64,
    spares: Spares,
    remarks: Remarks,
}

impl Sessions {
    /// `repeat` says that the source begins again at its end; `remarks` are its first.
    pub fn new(
        source: Box<dyn Source>,
        name: &'static str,
        repeat: bool,
        remarks: Remarks,
    ) -> Self {
        let (ready, spares) = (VecDeque::new(), Spares::default());
        Self { source, name, repeat, ready, pass: 1, used: 0, used_since: 0, spares, remarks }
    }

    pub fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || Ok(if self.fill()? { self.ready.pop_front() } else { None }))
    }

    /// First requests of sessions that are not measured.
    pub fn spare(&mut self, limit: u32, name: &str) -> Result<Vec<Sample>, Error> {
        self.spares.take(limit, name, || self.source.spare())
    }

    pub fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }

    /// Reads on until there is a sample to return; `false` at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        while self.ready.is_empty() {
            // The first pass counted the omissions and changes.
            let mut again = Remarks::default();
            let remarks = if self.pass > 1 { &mut again } else { &mut self.remarks };
            let Some(samples) = self.source.next(self.pass, remarks)? else {
                if self.used == 0 {
                    return Err(self.source.nothing(self.spares.count, remarks));
                }
                if !self.repeat || self.used_since == 0 {
                    return Ok(false);
                }
                self.source.rewind()?;
                self.pass += 1;
                self.used_since = 0;
                continue;
            };
            let Some(root) = samples.first() else { continue };
            let session = || root.turn.as_ref().map_or(&root.id, |turn| &turn.session).clone();
            if self.spares.has(root) {
                remarks.dropped("a prompt that was used for warmup", session);
                continue;
            }
            if self.pass > 1 {
                let reason = format!("fewer {} in the file than the run measures", self.name);
                self.remarks.repeated(&reason, session);
            }
            self.used += 1;
            self.used_since += 1;
            self.ready.extend(samples);
        }
        Ok(true)
    }
}

/// Arrivals of sessions by a file's times, counted from the first session; none is before its
/// predecessor's.
#[derive(Default)]
pub struct Arrivals {
    /// Time of the first session since the file began.
    began: Option<u64>,
    last: u64,
    /// The arrival from which the file's times count when it began again.
    base: u64,
}

impl Arrivals {
    /// The arrival of the next session, and true if its time is before the previous session's.
    pub fn next(&mut self, at: u64) -> (u64, bool) {
        let began = *self.began.get_or_insert(at);
        let arrival = self.base.saturating_add(at.saturating_sub(began));
        let is_early = arrival < self.last || at < began;
        self.last = self.last.max(arrival);
        (self.last, is_early)
    }

    /// Continues after the last arrival with the file's first session.
    pub fn rewind(&mut self) {
        self.began = None;
        self.base = self.last;
    }
}

// First requests of sessions that are not measured.

const MOST_SPARE: u32 = 1000;

#[derive(Default)]
pub struct Spares {
    /// Fingerprints of their prompts.
    prompts: BTreeSet<u64>,
    pub count: u64,
}

impl Spares {
    /// At most `limit` samples with new prompts and names that begin with `name`. `next` gives the
    /// root of the next session; `None` at the end.
    pub fn take(
        &mut self,
        limit: u32,
        name: &str,
        mut next: impl FnMut() -> Result<Option<Sample>, Error>,
    ) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        for _ in 0..limit.saturating_add(MOST_SPARE) {
            if samples.len() == limit as usize || bytes >= ENOUGH {
                break;
            }
            let Some(root) = next()? else { break };
            if self.prompts.insert(prompt_fingerprint(&root)) {
                self.count += 1;
                bytes += root.bytes();
                let id = format!("{name}-{:06}", self.count);
                samples.push(Sample {
                    id,
                    recorded_answer: None,
                    turn: None,
                    arrival: None,
                    ..root
                });
            }
        }
        Ok(samples)
    }

    /// True if a sample has the prompt of a spare one.
    pub fn has(&self, sample: &Sample) -> bool {
        self.prompts.contains(&prompt_fingerprint(sample))
    }
}
