//! Prompts and conversations of a file that the user has: JSON, JSON lines, CSV, text or Parquet,
//! with columns of any names. The custom formats of vLLM, SGLang, evalscope and guidellm, OpenAI's
//! batch files and fine-tuning files, Spec-Bench and SPEED-Bench are recognised without
//! configuration.
//!
//! This module orders samples; `source` reads rows, `row` makes a prompt of each, `count` counts
//! its tokens, `names` names it. `spare` chooses the rows that are not measured.
#![deny(unsafe_code)]

mod columns;
mod config;
mod conversation;
mod count;
mod format;
mod row;
mod source;
mod spare;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use runner_plugin::random::Python;
use runner_plugin::report::Remarks;
use runner_plugin::{
    Amount, Dataset, Dependency, Error, Files, Inputs, Media, Message, Prompt, Remark, Sample,
    Tokenizer, Turn, requests,
};
use serde_json::Value;

pub use config::Config;
use config::Unit;
use count::{CountedRow, count};
use row::{Draft, Reader};
use runner_plugin::date::instant;
use source::{FileRow, Place, Source};

const FILE: &str = "data";

/// Rows to tokenize in one call of the host.
const BATCH: usize = 64;

pub struct Custom {
    reader: Reader,
    source: Source,
    tokenizer: Box<dyn Tokenizer>,
    amount: Amount,
    remarks: Remarks,
    /// Samples that were made and not yet returned.
    ready: VecDeque<Sample>,
    /// Number of times that the file was read to its end; and true if this time it gave a sample.
    passes: u64,
    fruitful: bool,
    /// Number of rows that became samples, for names.
    drawn: u64,
    names: Names,
    /// Rows that were read and come next.
    ahead: VecDeque<FileRow>,
    /// Fingerprints of prompts that are not measured, and of the sessions that begin with one.
    spares: HashSet<u64>,
    spare_sessions: HashSet<u64>,
    spared: u64,
    arrivals: Arrivals,
    /// The session of the row before, its last sample, and its number of samples.
    session: Option<(String, String, u32)>,
    sessions: HashSet<u64>,
}

runner_plugin::export_dataset!(Custom);

impl Dataset for Custom {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let files = Rc::from(inputs.files);
        let header = |names: &[String]| columns::header(&config, names);
        let opened = Source::open(&*files, FILE, config.format, &header)?;
        let Some(mut source) = opened else {
            return Err(Error::InvalidConfig(format!(
                "no file of prompts: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under [dataset.files]"
            )));
        };
        if !source.is_table() {
            in_some_row(&config, &mut source)?;
        }
        let mut remarks = Remarks::default();
        if config.shuffle {
            // A choice among rows before the shuffle determines the order.
            let by_class = !config.classes.is_empty();
            let pairs = match source.next()? {
                Some(FileRow { row: Ok(row), .. }) => columns::is_pair(&config.columns, &row),
                _ => false,
            };
            let mut short = Vec::new();
            let mut kept = |found: &FileRow| {
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
        let mut custom = Self {
            reader: Reader { config, finder: Finder(files), strict: source.is_table() },
            source,
            tokenizer: inputs.tokenizer,
            amount,
            remarks,
            ready: VecDeque::new(),
            passes: 0,
            fruitful: false,
            drawn: 0,
            names: Names::default(),
            ahead: VecDeque::new(),
            spares: HashSet::new(),
            spare_sessions: HashSet::new(),
            spared: 0,
            arrivals: Arrivals::default(),
            session: None,
            sessions: HashSet::new(),
        };
        // A file without rows is refused before anything is begun.
        if custom.source.rows() == Some(0) {
            return Err(custom.nothing_left());
        }
        if custom.source.rows().is_none() {
            match custom.source.next()? {
                Some(found) => custom.ahead.push_back(found),
                None => return Err(custom.nothing_left()),
            }
        }
        Ok(custom)
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let limit = limit as usize;
        while self.ready.len() < limit {
            // Never more rows than needed: remarks about rows do not depend on the size of calls.
            let wanted = (limit - self.ready.len()).min(BATCH);
            let mut rows = Vec::new();
            while rows.len() < wanted
                && let Some(found) = match self.ahead.pop_front() {
                    None => self.source.next()?,
                    found => found,
                }
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

    /// Behind the measured rows, if their number is known; otherwise from the beginning of the
    /// file. Only the first request of a session.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        for counted in self.take_spares(limit as usize)? {
            self.spared += 1;
            let id = format!("custom-spare-{:06}", self.spared);
            self.names.take(&id, None);
            let output = counted.outputs.first().copied().flatten();
            samples.push(sample(&counted, id, counted.draft.prompt.clone(), output));
        }
        Ok(samples)
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }
}

/// The reason why a ShareGPT conversation is left out.
const SHORT: &str = "conversation of fewer than two turns";

impl Custom {
    /// At the end of the file: true if it is to be read again.
    fn again(&mut self) -> Result<bool, Error> {
        if self.drawn == 0 {
            return Err(self.nothing_left());
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

    fn nothing_left(&self) -> Error {
        let dropped = self.remarks.list().iter().map(|remark| remark.count).sum();
        let why = match dropped {
            0_u64 if self.spared > 0 => {
                "all of its rows were used for requests that are not measured".to_owned()
            }
            0 if self.reader.config.classes.is_empty() => "the file has none".to_owned(),
            0 => "none is of these `classes`".to_owned(),
            dropped => format!("{dropped} were left out"),
        };
        Error::InvalidInput(format!("file `{FILE}`: no row is left to measure: {why}"))
    }

    /// Reads the prompts and settings of a row; `None` if it is left out.
    fn draft(&mut self, found: FileRow) -> Result<Option<(Place, Draft)>, Error> {
        let FileRow { place, row } = found;
        let config = &self.reader.config;
        let read = match row {
            Ok(row) if !columns::is_of(config, &row) => return Ok(None),
            Ok(row) if columns::is_short_pair(&config.columns, &row) => {
                self.remarks.dropped(SHORT, || self.source.describe(place));
                return Ok(None);
            }
            row => row.and_then(|row| self.reader.draft(&row)),
        };
        match read {
            Ok(draft) => Ok(Some((place, draft))),
            Err(message) => self.invalid(place, &message).map(|()| None),
        }
    }

    /// A row that cannot be sent: it is left out if the user says so.
    fn invalid(&mut self, place: Place, message: &str) -> Result<(), Error> {
        if self.reader.config.skip_invalid {
            let example = || format!("{}: {message}", self.source.describe(place));
            self.remarks.dropped("row that cannot be read", example);
            return Ok(());
        }
        let place = self.source.describe(place);
        Err(Error::InvalidInput(format!("file `{FILE}`, {place}: {message}")))
    }

    fn make(&mut self, row: CountedRow) -> Result<(), Error> {
        if let Some(reason) = row.refused(&self.reader.config) {
            self.remarks.dropped(&reason, || self.source.describe(row.place));
            return Ok(());
        }
        if let Some(reason) = self.is_spare(&row.draft) {
            // A file that is read again was counted before.
            if self.passes == 0 {
                self.remarks.dropped(reason, || self.source.describe(row.place));
            }
            return Ok(());
        }
        // Shuffled rows of a session do not follow one another.
        let shuffled = self.reader.config.shuffle;
        let session = row.draft.of_session.clone();
        let session = session.filter(|_| !shuffled && !row.draft.session);
        let timed = self.in_order(session.as_deref()).and_then(|()| {
            let config = &self.reader.config;
            self.arrivals.arrival(config, &row.draft, self.passes > 0)
        });
        let arrival = match timed {
            Ok(arrival) => arrival,
            Err(message) => return self.invalid(row.place, &message),
        };
        if self.passes > 0 {
            self.remarks.repeated("row of a file that is shorter than the run", || {
                self.source.describe(row.place)
            });
        }
        self.drawn += 1;
        self.fruitful = true;
        let name = self.name(&row);
        if row.draft.session {
            self.session = None;
            self.turns(&row, &name, arrival);
            return Ok(());
        }
        let output = row.outputs.first().copied().flatten();
        let mut sample = sample(&row, name, row.draft.prompt.clone(), output);
        sample.arrival = arrival;
        match session {
            Some(session) => self.chain(&mut sample, &session),
            None => self.session = None,
        }
        self.ready.push_back(sample);
        Ok(())
    }

    /// Returns the reason why a correct row is not measured, if it is not.
    fn is_spare(&self, draft: &Draft) -> Option<&'static str> {
        if self.spares.is_empty() {
            return None;
        }
        if self.spares.contains(&fingerprint(&draft.prompt)) {
            return Some(
                "row with the prompt of a request that is not measured, such as the warm-up's",
            );
        }
        let session = draft.of_session.as_ref();
        let session = session.filter(|_| !self.reader.config.shuffle);
        session
            .filter(|session| self.spare_sessions.contains(&fingerprint(session)))
            .map(|_| "row of a session whose first request is not measured, such as the warm-up's")
    }

    fn name(&mut self, row: &CountedRow) -> String {
        let own = row.draft.id.as_deref();
        let turns = row.draft.session.then(|| row.draft.following.len() + 1);
        let (name, changed) = self.names.name(own, self.drawn, turns, self.passes > 0);
        if changed {
            self.remarks.repaired("name of an earlier row", || {
                let own = own.unwrap_or_default();
                format!("{}: `{own}`", self.source.describe(row.place))
            });
        }
        name
    }

    /// The samples of a session of turns.
    fn turns(&mut self, row: &CountedRow, name: &str, arrival: Option<u64>) {
        let turns = row.draft.following.iter();
        let turn = |index: u32| Some(Turn { session: name.to_owned(), index });
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

    /// Checks that a row of this session follows its predecessor, or begins the session.
    fn in_order(&self, session: Option<&str>) -> Result<(), String> {
        let before = self.session.as_ref().map(|(name, ..)| name.as_str());
        match session {
            Some(session)
                if before != Some(session) && self.sessions.contains(&fingerprint(session)) =>
            {
                Err(format!(
                    "the session `{session}` was before, with other rows in between; expected the rows of a session to \
                     follow one another"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Puts a sample behind its predecessor in its session.
    fn chain(&mut self, sample: &mut Sample, session: &str) {
        let index = match self.session.take() {
            Some((name, before, index)) if name == session => {
                sample.after = vec![Dependency::end(before, 0)];
                sample.arrival = None;
                index + 1
            }
            _ => 0,
        };
        self.sessions.insert(fingerprint(session));
        self.session = Some((session.to_owned(), sample.id.clone(), index));
        let again = self.passes + 1;
        sample.turn = Some(Turn {
            session: match again {
                1 => session.to_owned(),
                again => format!("{session}#{again}"),
            },
            index,
        });
    }
}

/// The most rows and bytes in which configured columns are looked for.
const LOOKED_AT: (u64, u64) = (100_000, 64 << 20);

/// Fails if a configured column that a row can do without is in no row.
fn in_some_row(config: &Config, source: &mut Source) -> Result<(), Error> {
    let mut missing: Vec<_> = config.columns.optional().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let (mut rows, mut bytes, mut example) = (0, 0, None);
    let scanned = source.scan(|row, length| {
        let body = row.get("body").map(columns::structured);
        let body = body.as_ref().and_then(Value::as_object);
        missing.retain(|(_, name)| {
            let is_in = |row| columns::path(row, name).is_some();
            !is_in(row) && !body.is_some_and(is_in)
        });
        example.get_or_insert_with(|| columns::list(row));
        (rows, bytes) = (rows + 1, bytes + length);
        missing.is_empty() || rows >= LOOKED_AT.0 || bytes >= LOOKED_AT.1
    });
    let (false, Ok(enough), Some(example)) = (missing.is_empty(), scanned, example) else {
        // Mistakes in the file are reported where the row is to be sent.
        return Ok(());
    };
    let missing: Vec<_> =
        missing.iter().map(|(key, name)| format!("`{name}` (`columns.{key}`)")).collect();
    let no_row =
        if enough { format!("none of the first {rows} rows has") } else { "no row has".to_owned() };
    Err(Error::InvalidInput(format!(
        "file `{FILE}`: {no_row} the column {}; {}",
        missing.join(", "),
        example.replacen("it has", "the first row has", 1)
    )))
}

/// The reference for a scorer: the row's for the last answer, otherwise the text on record.
fn reference(draft: &Draft, last: bool, answer: Option<&Message>) -> Option<String> {
    let own = draft.reference.as_ref().filter(|_| last);
    let recorded = || {
        let text = conversation::text(answer?);
        (!text.is_empty()).then(|| Value::from(text).to_string())
    };
    own.map(Value::to_string).or_else(recorded)
}

fn sample(row: &CountedRow, id: String, prompt: Prompt, output_tokens: Option<u32>) -> Sample {
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

fn fingerprint(value: impl std::fmt::Debug) -> u64 {
    requests::fingerprint(format!("{value:?}"))
}

// Arrival times of rows: from the file's unit and origin to nanoseconds after the first row.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    number: f64,
    /// Its unit, if it does not follow from the configuration.
    unit: Option<Unit>,
}

impl Time {
    /// A number, or a date and time such as `2026-03-01T12:00:00.25Z`.
    pub fn read(value: &Value) -> Result<Self, String> {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let Some(number) = number.filter(|number| number.is_finite()) {
            return Ok(Self { number, unit: None });
        }
        let nanos = value.as_str().and_then(instant).ok_or_else(|| {
            format!(
                "the arrival time: expected a number, or a time such as `2026-03-01T12:00:00Z`, found `{value}`"
            )
        })?;
        let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        Ok(Self { number: seconds as f64 + rest as f64 / 1e9, unit: Some(Unit::Seconds) })
    }
}

#[derive(Default)]
struct Arrivals {
    rows: u64,
    began: Option<f64>,
    last: u64,
}

impl Arrivals {
    pub fn arrival(
        &mut self,
        config: &Config,
        draft: &Draft,
        again: bool,
    ) -> Result<Option<u64>, String> {
        self.rows += 1;
        let Some(time) = draft.arrival else {
            return match self.began {
                None => Ok(None),
                Some(_) => Err("the arrival time is missing; earlier rows have one".to_owned()),
            };
        };
        if config.shuffle || again {
            // Shuffled rows are not in the order of their times, and a time does not come again.
            return Ok(None);
        }
        if self.began.is_none() && self.rows > 1 {
            return Err("this row has an arrival time, and earlier rows have none".to_owned());
        }
        let unit = time.unit.or(config.arrival_unit);
        let unit = unit.unwrap_or(if draft.recorded { Unit::Seconds } else { Unit::Milliseconds });
        let began = *self.began.get_or_insert(time.number);
        let due = ((time.number - began) * unit.nanoseconds()).round();
        if due < self.last as f64 {
            return Err(format!("the arrival time {} is before the previous row's", time.number));
        }
        self.last = due as u64;
        Ok(Some(self.last))
    }
}

/// The longest file of an image, of audio or of a video, in bytes.
const LONGEST: u64 = 64 << 20;

#[derive(Clone)]
struct Finder(pub Rc<dyn Files>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Audio,
    Video,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Image => "image",
            Kind::Audio => "audio",
            Kind::Video => "video",
        }
    }
}

impl Finder {
    /// All media of a column: one, or a list.
    pub fn all(&self, value: &Value, kind: Kind) -> Result<Vec<Media>, String> {
        match value {
            Value::Array(items) => items.iter().map(|item| self.one(item, kind)).collect(),
            value => Ok(vec![self.one(value, kind)?]),
        }
    }

    /// One of a column: a text, or an object that has it in `bytes`, `data`, `url` or `path`.
    pub fn one(&self, value: &Value, kind: Kind) -> Result<Media, String> {
        match value {
            Value::String(text) => self.named(text, kind),
            Value::Object(fields) => {
                let texts = ["bytes", "data", "url", "path"].into_iter();
                let text = texts.filter_map(|key| fields.get(key)?.as_str()).next();
                self.named(text.unwrap_or(""), kind)
            }
            _ => self.named("", kind),
        }
    }

    /// A text: a `data:` URL, the name of a file, or base64.
    pub fn named(&self, text: &str, kind: Kind) -> Result<Media, String> {
        let wrong = || {
            let name = kind.name();
            let shown: String = text.chars().take(40).collect();
            format!(
                "expected {name} data: a data URL such as `data:{name}/…;base64,…`, base64, or the name of a file \
                 under [dataset.files]; found `{shown}`; nothing is fetched"
            )
        };
        if text.is_empty() {
            return Err(wrong());
        }
        if text.starts_with("data:") {
            let media = Media::of_data_url(text).ok_or_else(wrong)?;
            return match media.media_type.as_str() {
                "" | "application/octet-stream" => typed(media.bytes, kind).ok_or_else(wrong),
                _ => Ok(media),
            };
        }
        let base = text.rsplit('/').next().unwrap_or(text);
        for name in [text, base] {
            if let Some(file) = self.0.open(name) {
                let size = file.size();
                if size > LONGEST {
                    return Err(format!(
                        "the file `{name}` has {size} bytes; expected at most {LONGEST}"
                    ));
                }
                let bytes = file.read_all(0, size);
                let bytes = bytes.map_err(|cause| format!("the file `{name}`: {cause}"))?;
                return typed(bytes, kind).ok_or_else(|| {
                    format!("the file `{name}` has no known {} format", kind.name())
                });
            }
        }
        let decoded = Media::of_base64("", text).and_then(|media| typed(media.bytes, kind));
        // A file's bytes that happen to be text, as Parquet gives them.
        decoded.or_else(|| typed(text.as_bytes().to_vec(), kind)).ok_or_else(wrong)
    }
}

/// Media of these bytes, with the type that they begin like.
fn typed(bytes: Vec<u8>, kind: Kind) -> Option<Media> {
    let at = |start: usize, mark: &[u8]| bytes.get(start..start + mark.len()) == Some(mark);
    let media_type = match kind {
        Kind::Image if at(0, b"\x89PNG") => "image/png",
        Kind::Image if at(0, b"\xff\xd8\xff") => "image/jpeg",
        Kind::Image if at(0, b"GIF8") => "image/gif",
        Kind::Image if at(0, b"BM") => "image/bmp",
        Kind::Image if at(0, b"RIFF") && at(8, b"WEBP") => "image/webp",
        Kind::Audio if at(0, b"RIFF") && at(8, b"WAVE") => "audio/wav",
        Kind::Audio if at(0, b"ID3") || at(0, b"\xff\xfb") || at(0, b"\xff\xf3") => "audio/mpeg",
        Kind::Audio if at(0, b"fLaC") => "audio/flac",
        Kind::Audio if at(0, b"OggS") => "audio/ogg",
        Kind::Video if at(4, b"ftypqt") => "video/quicktime",
        Kind::Video if at(4, b"ftyp") => "video/mp4",
        Kind::Video if at(0, b"\x1a\x45\xdf\xa3") => "video/webm",
        Kind::Video if at(0, b"RIFF") && at(8, b"AVI ") => "video/x-msvideo",
        _ => return None,
    };
    Some(Media { media_type: media_type.to_owned(), bytes })
}

// Unique names of samples: the rows' own, or made of a sample's number if repeated or missing.

#[derive(Default)]
struct Names {
    /// Fingerprints of the rows' own names, and of their replacements.
    taken: HashSet<u64>,
    /// True if a name was made for a row without one.
    made: bool,
}

impl Names {
    /// The name of sample `number`, from 1, and whether it had to be changed. `turns` is the number
    /// of samples of a session, which are called `NAME/0`, `NAME/1` and so on, or none if the
    /// sample stands alone. `again` says that the file is read again, where every name gets the
    /// number.
    pub fn name(
        &mut self,
        own: Option<&str>,
        number: u64,
        turns: Option<usize>,
        again: bool,
    ) -> (String, bool) {
        let Some(own) = own else {
            self.made = true;
            return (self.free(generated(number), number, turns), false);
        };
        // Made names are not kept, since a file may have many: their form identifies them.
        let was_made =
            self.made && number_of(own).is_some_and(|made| made < number && own == generated(made));
        if !again && !was_made && self.is_free(own, turns) {
            self.take(own, turns);
            return (own.to_owned(), false);
        }
        let name = self.free(format!("{own}#{number}"), number, turns);
        if !again {
            self.take(&name, turns);
        }
        (name, !again)
    }

    /// A free name. Names that end in the number differ from all names that end in other numbers.
    fn free(&self, name: String, number: u64, turns: Option<usize>) -> String {
        let mut name = name;
        while !self.is_free(&name, turns) {
            name = format!("{name}#{number}");
        }
        name
    }

    fn is_free(&self, name: &str, turns: Option<usize>) -> bool {
        let mut names = names_of(name, turns);
        names.all(|name| !self.taken.contains(&fingerprint(name)))
    }

    fn take(&mut self, name: &str, turns: Option<usize>) {
        self.taken.extend(names_of(name, turns).map(fingerprint));
    }
}

/// The names of a session's samples, after its own.
fn names_of(name: &str, turns: Option<usize>) -> impl Iterator<Item = String> {
    let turns = (0..turns.unwrap_or(0)).map(move |turn| format!("{name}/{turn}"));
    std::iter::once(name.to_owned()).chain(turns)
}

fn generated(number: u64) -> String {
    format!("custom-{number:06}")
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("custom-")?.parse().ok()
}
