//! Prompts and conversations of a file that the user has: JSON, JSON lines, CSV, text or Parquet, with columns of any
//! names. The custom formats of vLLM, SGLang, evalscope and guidellm, OpenAI's batch files and fine-tuning files,
//! Spec-Bench and SPEED-Bench are recognised without configuration.
//!
//! This module orders and numbers samples; `source` reads rows, `row` makes of each what it asks, `count` counts its
//! tokens.
#![deny(unsafe_code)]

mod arrivals;
mod columns;
mod config;
mod conversation;
mod count;
mod cut;
mod format;
mod media;
mod row;
mod source;
#[cfg(test)]
mod tests;
mod zstd;

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use runner_plugin::random::Python;
use runner_plugin::report::Remarks;
use runner_plugin::{
    Amount, Dataset, Dependency, Error, Inputs, Message, Prompt, Remark, Sample, Tokenizer, Turn,
};
use serde_json::Value;

use arrivals::Arrivals;
pub use config::Config;
use count::{Counted, count};
use media::Finder;
use row::{Draft, Reader};
use source::{Found, Place, Source};

/// The scenario's name for the file.
const FILE: &str = "data";

/// Rows to tokenize in one call of the host.
const BATCH: usize = 64;

/// Samples of a file's rows.
pub struct Custom {
    reader: Reader,
    source: Source,
    tokenizer: Box<dyn Tokenizer>,
    amount: Amount,
    remarks: Remarks,
    /// Samples that were made and not yet returned.
    ready: VecDeque<Sample>,
    /// How often the file was read to its end, and whether this time a sample came of it.
    passes: u64,
    fruitful: bool,
    /// How many rows became samples, for names.
    drawn: u64,
    /// Fingerprints of the names so far, and of prompts that are not measured.
    names: HashSet<u64>,
    spares: HashSet<u64>,
    spared: u64,
    arrivals: Arrivals,
    /// The session of the row before, its last sample, and how many it has.
    session: Option<(String, String, u32)>,
    sessions: HashSet<u64>,
}

runner_plugin::export_dataset!(Custom);

impl Dataset for Custom {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let files = Rc::from(inputs.files);
        let is_header = |names: &[String]| columns::is_header(&config, names);
        let opened = Source::open(&*files, FILE, config.format, &is_header)?;
        let Some(mut source) = opened else {
            return Err(Error::InvalidConfig(format!(
                "no file of prompts: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under [dataset.files]"
            )));
        };
        let mut remarks = Remarks::default();
        if config.shuffle {
            // What decides about rows before they are shuffled decides about the order.
            let by_class = !config.classes.is_empty();
            let pairs = match source.next()? {
                Some(Found { row: Ok(row), .. }) => columns::is_pair(&config.columns, &row),
                _ => false,
            };
            let mut short = Vec::new();
            let mut kept = |found: &Found| {
                let Ok(row) = &found.row else { return true };
                if pairs && columns::is_short_pair(&config.columns, row) {
                    short.push(found.place);
                    return false;
                }
                columns::is_of(&config, row)
            };
            source.shuffle(&mut Python::new(seed), &mut kept, by_class || pairs)?;
            for place in short {
                remarks.dropped(SHORT, || source.describe(place));
            }
        }
        Ok(Self {
            reader: Reader {
                config,
                finder: Finder(files),
                strict: source.is_table(),
            },
            source,
            tokenizer: inputs.tokenizer,
            amount,
            remarks,
            ready: VecDeque::new(),
            passes: 0,
            fruitful: false,
            drawn: 0,
            names: HashSet::new(),
            spares: HashSet::new(),
            spared: 0,
            arrivals: Arrivals::default(),
            session: None,
            sessions: HashSet::new(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let limit = limit as usize;
        while self.ready.len() < limit {
            // Never more rows than are needed, so that what is said about them does not depend on the size of calls.
            let wanted = (limit - self.ready.len()).min(BATCH);
            let mut rows = Vec::new();
            while rows.len() < wanted
                && let Some(found) = self.source.next()?
            {
                rows.extend(self.draft(found)?);
            }
            if rows.is_empty() && !self.again()? {
                break;
            }
            for counted in count(&self.reader.config, &*self.tokenizer, rows) {
                self.make(counted)?;
            }
        }
        Ok(self.ready.drain(..limit.min(self.ready.len())).collect())
    }

    /// From the end of shuffled rows, as long as enough are left to measure; otherwise from the beginning of the file.
    /// Only the first request of a session.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let measured = self.amount.samples().or(self.amount.sessions());
        let rows = self.source.rows();
        let least = rows.map(|rows| {
            let half = rows.div_ceil(2);
            measured.map_or(half, |count| usize::try_from(count).unwrap_or(usize::MAX))
        });
        let mut samples = Vec::new();
        while samples.len() < limit as usize {
            let found = match least {
                Some(least) => self.source.last(least)?,
                None => self.source.next()?,
            };
            let Some(found) = found else { break };
            let Some(row) = self.draft(found)? else {
                continue;
            };
            for counted in count(&self.reader.config, &*self.tokenizer, vec![row]) {
                if counted.refused(&self.reader.config).is_none()
                    && self.spares.insert(fingerprint(&counted.draft.prompt))
                {
                    self.spared += 1;
                    let id = format!("custom-spare-{:06}", self.spared);
                    let output = counted.outputs.first().copied().flatten();
                    samples.push(sample(&counted, id, counted.draft.prompt.clone(), output));
                }
            }
        }
        Ok(samples)
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }
}

/// Why a ShareGPT conversation is left out.
const SHORT: &str = "conversation of fewer than two turns";

impl Custom {
    /// At the end of the file: whether to read it again.
    fn again(&mut self) -> Result<bool, Error> {
        if self.drawn == 0 {
            let dropped = self.remarks.list().iter().map(|remark| remark.count).sum();
            let why = match dropped {
                0_u64 if self.spared > 0 => {
                    "those that there are were used for requests that are not measured".to_owned()
                }
                0 if self.reader.config.classes.is_empty() => "it has none".to_owned(),
                0 => "none is of these `classes`".to_owned(),
                dropped => format!("{dropped} were left out"),
            };
            return Err(Error::InvalidInput(format!(
                "file `{FILE}`: no row is left to measure: {why}"
            )));
        }
        if !self.reader.config.repeat || !self.fruitful {
            return Ok(false);
        }
        self.passes += 1;
        self.fruitful = false;
        self.session = None;
        self.sessions.clear();
        self.source.rewind()?;
        Ok(true)
    }

    /// What a row asks; `None` if it is left out.
    fn draft(&mut self, found: Found) -> Result<Option<(Place, Draft)>, Error> {
        let place = found.place;
        let read = found.row.and_then(|row| {
            if !columns::is_of(&self.reader.config, &row) {
                return Ok(None);
            }
            if columns::is_short_pair(&self.reader.config.columns, &row) {
                return Ok(Some(None));
            }
            self.reader.draft(&row).map(|draft| Some(Some(draft)))
        });
        match read {
            Ok(None) => Ok(None),
            Ok(Some(Some(draft))) => Ok(Some((place, draft))),
            Ok(Some(None)) => {
                self.remarks.dropped(SHORT, || self.source.describe(place));
                Ok(None)
            }
            Err(what) if self.reader.config.skip_invalid => {
                let example = || format!("{}: {what}", self.source.describe(place));
                self.remarks.dropped("row that cannot be read", example);
                Ok(None)
            }
            Err(what) => Err(self.wrong(place, &what)),
        }
    }

    fn wrong(&self, place: Place, what: &str) -> Error {
        let place = self.source.describe(place);
        Error::InvalidInput(format!("file `{FILE}`, {place}: {what}"))
    }

    /// Makes a row's samples.
    fn make(&mut self, row: Counted) -> Result<(), Error> {
        if let Some(reason) = row.refused(&self.reader.config) {
            self.remarks
                .dropped(&reason, || self.source.describe(row.place));
            return Ok(());
        }
        if !self.spares.is_empty() && self.spares.contains(&fingerprint(&row.draft.prompt)) {
            return Ok(());
        }
        if self.passes > 0 {
            self.remarks
                .repeated("row of a file that is shorter than the run", || {
                    self.source.describe(row.place)
                });
        }
        self.drawn += 1;
        self.fruitful = true;
        let config = &self.reader.config;
        let arrival = self
            .arrivals
            .arrival(config, &row.draft, self.passes > 0)
            .map_err(|what| self.wrong(row.place, &what))?;
        let name = self.name(&row);
        if row.draft.session {
            self.turns(&row, &name, arrival);
            return Ok(());
        }
        let output = row.outputs.first().copied().flatten();
        let mut sample = sample(&row, name, row.draft.prompt.clone(), output);
        sample.arrival = arrival;
        // Shuffled rows of a session do not follow one another.
        let shuffled = self.reader.config.shuffle;
        if let Some(session) = row.draft.of_session.as_ref().filter(|_| !shuffled) {
            self.chain(&mut sample, session)
                .map_err(|what| self.wrong(row.place, &what))?;
        } else {
            self.session = None;
        }
        self.ready.push_back(sample);
        Ok(())
    }

    /// A name that no other sample has.
    fn name(&mut self, row: &Counted) -> String {
        let Some(id) = &row.draft.id else {
            return format!("custom-{:06}", self.drawn);
        };
        if self.passes > 0 {
            return format!("{id}#{}", self.drawn);
        }
        if self.names.insert(fingerprint(id)) {
            return id.clone();
        }
        self.remarks.repaired("name that a row before has", || {
            format!("{}: `{id}`", self.source.describe(row.place))
        });
        format!("{id}#{}", self.drawn)
    }

    /// The samples of a session of turns.
    fn turns(&mut self, row: &Counted, name: &str, arrival: Option<u64>) {
        let turns = row.draft.following.iter();
        let turn = |index: u32| {
            Some(Turn {
                session: name.to_owned(),
                index,
            })
        };
        let output = |at: usize| row.outputs.get(at).copied().flatten();
        let last = row.draft.following.len();
        let first = format!("{name}/0");
        self.ready.push_back(Sample {
            arrival,
            turn: turn(0),
            reference: reference(&row.draft, 0 == last, row.draft.answer.as_ref()),
            recorded_answer: row.draft.answer.clone(),
            ..sample(row, first, row.draft.prompt.clone(), output(0))
        });
        for (index, next) in turns.enumerate() {
            let parent = format!("{name}/{index}");
            let at = index + 1;
            let following =
                Sample::following(format!("{name}/{at}"), &parent, 0, next.messages.clone());
            self.ready.push_back(Sample {
                after: following.after,
                turn: turn(at as u32),
                input_tokens: None,
                reference: reference(&row.draft, at == last, next.answer.as_ref()),
                recorded_answer: next.answer.clone(),
                ..sample(row, following.id, following.prompt, output(at))
            });
        }
    }

    /// Puts a sample behind the one before it in its session.
    fn chain(&mut self, sample: &mut Sample, session: &str) -> Result<(), String> {
        let index = match self.session.take() {
            Some((name, before, index)) if name == session => {
                sample.after = vec![Dependency::end(before, 0)];
                sample.arrival = None;
                index + 1
            }
            _ if self.sessions.insert(fingerprint(session)) => 0,
            _ => {
                return Err(format!(
                    "the session `{session}` was before, with other rows in between; expected the rows of a session to \
                     follow one another"
                ));
            }
        };
        self.session = Some((session.to_owned(), sample.id.clone(), index));
        let again = self.passes + 1;
        sample.turn = Some(Turn {
            session: match again {
                1 => session.to_owned(),
                again => format!("{session}#{again}"),
            },
            index,
        });
        Ok(())
    }
}

/// What a scorer compares an answer with: the row's reference for the last one, otherwise the text on record.
fn reference(draft: &Draft, last: bool, answer: Option<&Message>) -> Option<String> {
    let own = draft.reference.as_ref().filter(|_| last);
    let recorded = || {
        let text = conversation::text(answer?);
        (!text.is_empty()).then(|| Value::from(text).to_string())
    };
    own.map(Value::to_string).or_else(recorded)
}

/// A sample of a row.
fn sample(row: &Counted, id: String, prompt: Prompt, output_tokens: Option<u32>) -> Sample {
    let draft = &row.draft;
    Sample {
        input_tokens: row.input,
        output_tokens,
        reference: reference(draft, true, draft.answer.as_ref()),
        class: draft.class.clone(),
        adapter: draft.adapter.clone(),
        parameters: (!draft.parameters.is_empty())
            .then(|| Value::Object(draft.parameters.clone()).to_string()),
        ..Sample::new(id, prompt)
    }
}

/// Equal values have equal fingerprints.
fn fingerprint(value: impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}
