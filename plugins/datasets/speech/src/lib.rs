//! Recordings of speech with their texts, for speech to text: WAV and FLAC files in the layouts
//! that people have. A sample is a message with one sound, and its reference is the text and the
//! length of the sound: `{"text": "…", "seconds": 3.2}`.
//!
//! `rows` reads the texts, `places` finds the files that they mean, and `sound` reads headers. All
//! headers are read before the first sample, so that a bad file is named before anything is
//! measured, and with all others.
#![deny(unsafe_code)]

mod places;
mod rows;
mod sound;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use runner_plugin::random::Python;
use runner_plugin::report::Remarks;
use runner_plugin::requests::fill;
use runner_plugin::{
    Amount, Dataset, Error, Inputs, Media, Message, Part, Prompt, Remark, Role, Sample, log,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use places::Places;
use rows::{Columns, Layout, Row};
use sound::Sound;

/// The longest file: a dataset may return at most 64 MiB at once.
const LONGEST: u64 = 48 << 20;

const MOST_SHOWN: usize = 10;

/// The user's configuration.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The place where texts are: `audiofolder` (metadata.csv or metadata.jsonl), `manifest` (JSON
    /// lines with `audio_filepath`), `librispeech` (`*.trans.txt`) or `text-files` (a `.txt` beside
    /// each sound). By default the first of them that the folder has.
    pub layout: Option<Layout>,
    /// The column with the path of a sound; by default `file_name`, `audio_filepath` and other
    /// usual names.
    pub file_column: Option<String>,
    /// The column with its text; by default `text`, `transcription`, `sentence` and other usual
    /// names.
    pub text_column: Option<String>,
    /// A text to send with each sound: for routes of chat the instruction (`Transcribe the
    /// audio.`), for transcriptions the model's `prompt`.
    pub prompt: String,
    /// The language of the sounds, such as `en`, sent as the field `language`, which routes of chat
    /// do not have.
    pub language: Option<String>,
    /// Leave out sounds that are shorter, in seconds.
    pub min_seconds: Option<f64>,
    /// Leave out sounds that are longer, in seconds.
    pub max_seconds: Option<f64>,
    /// Leave out files and rows that cannot be read, instead of ending the run.
    pub skip_invalid: bool,
    /// Shuffle the sounds by the seed. Otherwise they come in the order of their files.
    pub shuffle: bool,
    /// Start over after the last sound. Otherwise the run ends there.
    pub repeat: bool,
}

/// A recording that can be sent.
struct Recording {
    /// The name of its sample, which no other has.
    id: String,
    row: Row,
    sound: Sound,
}

pub struct Speech {
    config: Config,
    places: Places,
    recordings: Vec<Recording>,
    remarks: Remarks,
    /// Samples given, and spare samples, which are taken from the end.
    given: usize,
    spared: usize,
}

runner_plugin::export_dataset!(Speech);

impl Dataset for Speech {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let places = Places::new(inputs.files)?;
        let columns =
            Columns { file: config.file_column.clone(), text: config.text_column.clone() };
        let read = rows::read(&places, config.layout, &columns)?;
        let (mut recordings, mut wrong) = (Vec::new(), read.wrong);
        let mut names = HashSet::new();
        for row in read.rows {
            match checked(&places, &row) {
                Ok(sound) => {
                    // The part after `#` tells samples of one name apart.
                    let mut id = rows::id(&row.sound).replace('#', "_");
                    if !names.insert(id.clone()) {
                        id = format!("{id}#{}", recordings.len() + 1);
                    }
                    recordings.push(Recording { id, row, sound });
                }
                Err(what) => wrong.push(format!("{}: {what}", row.place)),
            }
        }
        let mut remarks = Remarks::default();
        if config.skip_invalid {
            for what in &wrong {
                remarks.dropped("recording that cannot be read", || what.clone());
            }
        } else if !wrong.is_empty() {
            return Err(refused(&wrong));
        }
        recordings.retain(|Recording { row, sound, .. }| {
            let short = |seconds: f64| config.min_seconds.is_some_and(|least| seconds < least);
            let long = |seconds: f64| config.max_seconds.is_some_and(|most| seconds > most);
            let reason = match sound.seconds {
                Some(seconds) if short(seconds) => "sound shorter than `min-seconds`",
                Some(seconds) if long(seconds) => "sound longer than `max-seconds`",
                _ => return true,
            };
            remarks.dropped(reason, || row.sound.clone());
            false
        });
        if recordings.is_empty() {
            let left_out: u64 = remarks.list().iter().map(|remark| remark.count).sum();
            return Err(Error::InvalidInput(format!(
                "no recording is left to measure: {left_out} were left out"
            )));
        }
        if config.shuffle {
            Python::new(seed).shuffle(&mut recordings);
        }
        let seconds: f64 = recordings.iter().filter_map(|one| one.sound.seconds).sum();
        log::info(&format!("{} recordings, {seconds:.1} s of sound", recordings.len()));
        Ok(Self { config, places, recordings, remarks, given: 0, spared: 0 })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let there = self.recordings.len() - self.spared;
        fill(limit, || {
            let pass = self.given.checked_div(there).unwrap_or(1);
            if there == 0 || (pass > 0 && !self.config.repeat) {
                return Ok(None);
            }
            let at = self.given % there;
            let mut id = self.recordings[at].id.clone();
            if pass > 0 {
                let reason = "recording, because there are fewer than the run measures";
                self.remarks.repeated(reason, || id.clone());
                // Names of the first pass have smaller numbers, if any. The number before it stays.
                id = format!("{id}#{}", self.given + 1);
            }
            self.given += 1;
            self.sample(at, id).map(Some)
        })
    }

    /// From the end, so that the measured samples come first.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || {
            // One is left to measure.
            if self.spared + 1 >= self.recordings.len() {
                return Ok(None);
            }
            self.spared += 1;
            let at = self.recordings.len() - self.spared;
            self.sample(at, format!("speech-spare-{:06}", self.spared)).map(Some)
        })
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }
}

impl Speech {
    fn sample(&self, at: usize, id: String) -> Result<Sample, Error> {
        let Recording { row, sound, .. } = &self.recordings[at];
        let wrong = |cause: String| Error::InvalidInput(format!("file `{}`: {cause}", row.sound));
        let file = self.places.open(&row.sound);
        let file = file.ok_or_else(|| wrong("it is gone".to_owned()))?;
        let media = Media {
            media_type: sound.media_type.to_owned(),
            bytes: places::bytes(&*file, LONGEST).map_err(wrong)?,
        };
        let mut parts = Vec::new();
        if !self.config.prompt.is_empty() {
            parts.push(Part::Text(self.config.prompt.clone()));
        }
        parts.push(Part::Audio(media));
        let message = Message { role: Role::User, parts, extra: None };
        let reference = match sound.seconds {
            Some(seconds) => json!({"text": row.text, "seconds": seconds}),
            None => json!({"text": row.text}),
        };
        let language = self.config.language.as_ref();
        Ok(Sample {
            audio_duration: sound.seconds.map(|seconds| (seconds * 1e9).round() as u64),
            reference: Some(reference.to_string()),
            parameters: language.map(|language| json!({"language": language}).to_string()),
            ..Sample::new(id, Prompt::Messages(vec![message]))
        })
    }
}

/// The sound of a row, by its header, which must agree with the row.
fn checked(places: &Places, row: &Row) -> Result<Sound, String> {
    let named = |message: String| {
        if row.place.contains(&format!("`{}`", row.sound)) {
            message
        } else {
            format!("its sound `{}`: {message}", row.sound)
        }
    };
    let file = places.open(&row.sound).ok_or_else(|| named("it is gone".to_owned()))?;
    let mut sound = sound::read(&*file).map_err(named)?;
    if file.size() > LONGEST {
        return Err(named(format!("it has {} bytes; expected at most {LONGEST}", file.size())));
    }
    match (row.duration, sound.seconds) {
        (Some(stated), Some(seconds)) if (stated - seconds).abs() > 0.5 + 0.05 * seconds => {
            return Err(format!(
                "its `duration` is {stated} s, and the sound `{}` has {seconds:.3} s; parts of a sound are not cut out, \
                 so write each into a file of its own, or correct the row",
                row.sound
            ));
        }
        (stated, None) => sound.seconds = stated.filter(|stated| *stated > 0.0),
        _ => {}
    }
    Ok(sound)
}

fn refused(wrong: &[String]) -> Error {
    let mut message = wrong.iter().take(MOST_SHOWN).cloned().collect::<Vec<_>>().join("\n");
    if let Some(further @ 1..) = wrong.len().checked_sub(MOST_SHOWN) {
        message.push_str(&format!("\nand {further} more"));
    }
    message.push_str("\ncorrect them, or set `skip-invalid = true` to leave them out");
    Error::InvalidInput(message)
}
