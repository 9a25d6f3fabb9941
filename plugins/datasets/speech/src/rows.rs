//! The rows of the texts, in the layouts that people have:
//!
//! | layout | texts |
//! | --- | --- |
//! | `audiofolder` | `metadata.csv` or `metadata.jsonl` of the Hugging Face hub, in any folder |
//! | `manifest` | NeMo's JSON lines: `audio_filepath`, `text`, `duration` |
//! | `librispeech` | `84-121123.trans.txt`, whose lines are a sound's name and its text |
//! | `text-files` | `NAME.txt` beside `NAME.wav` |
//!
//! The first two are one: rows with a column for the file and one for the text.

use std::rc::Rc;

use records::{Cut, Packing, Records, cells, stream};
use runner_plugin::{Error, File};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::places::{DATA, Places, is_sound, stem, text};

/// The columns that a sound is found in, where the configuration names none.
const FILES: [&str; 7] =
    ["file_name", "audio_filepath", "audio_path", "audio", "path", "file", "wav"];
/// The columns of its text.
const TEXTS: [&str; 8] = [
    "text",
    "transcription",
    "transcript",
    "sentence",
    "normalized_text",
    "raw_text",
    "transcripts",
    "label",
];

/// The most rows: each is held with its text.
const MOST_ROWS: usize = 500_000;
/// The longest text of a file of its own, and the most bytes of all texts.
const LONGEST: u64 = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

/// The place where texts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `metadata.csv` or `metadata.jsonl`.
    Audiofolder,
    /// JSON lines with `audio_filepath` and `text`, in files whose names end in `.json` or
    /// `.jsonl`.
    Manifest,
    /// Files whose names end in `.trans.txt`.
    Librispeech,
    /// A `.txt` of the same name beside each sound.
    TextFiles,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The place of the row, for messages: `data/metadata.csv`, line 3.
    pub place: String,
    /// The whole name of the sound.
    pub sound: String,
    pub text: String,
    /// The length in seconds that the row states.
    pub duration: Option<f64>,
}

/// Names of columns that the user gives.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub file: Option<String>,
    pub text: Option<String>,
}

/// All rows, and the mistakes of the rows that cannot be used.
pub struct Rows<'p> {
    places: &'p Places,
    columns: &'p Columns,
    pub rows: Vec<Row>,
    pub wrong: Vec<String>,
    bytes: usize,
}

pub fn read<'p>(
    places: &'p Places,
    layout: Option<Layout>,
    columns: &'p Columns,
) -> Result<Rows<'p>, Error> {
    let mut rows = Rows { places, columns, rows: Vec::new(), wrong: Vec::new(), bytes: 0 };
    if !places.is_folder() {
        let file = places.open(DATA).ok_or_else(no_data)?;
        match layout {
            Some(Layout::Librispeech) => rows.of_transcripts(DATA, file)?,
            Some(Layout::TextFiles) => {
                return Err(Error::config(
                    "key `layout`: text-files needs a folder; give one as `data` under [dataset.files], or with --dataset-path",
                ));
            }
            Some(Layout::Audiofolder | Layout::Manifest) => {
                rows.of_table(DATA, file)?;
            }
            None => rows.of_file(DATA, file)?,
        }
        return Ok(rows);
    }
    let (layout, files) = found(places, layout)?;
    for name in files {
        let file = || {
            let unreadable = || Error::InvalidInput(format!("file `{name}`: it is gone"));
            places.open(name).ok_or_else(unreadable)
        };
        match layout {
            Layout::Audiofolder | Layout::Manifest => {
                rows.of_table(name, file()?)?;
            }
            Layout::Librispeech => rows.of_transcripts(name, file()?)?,
            Layout::TextFiles => rows.of_sound(name)?,
        }
    }
    Ok(rows)
}

fn no_data() -> Error {
    Error::input(
        "no file `data`: name a folder of sounds or a list of them with --dataset-path, or as `data` under [dataset.files]",
    )
}

/// The layout of the folder and its files of texts; for `text-files`, its files of sound.
fn found(places: &Places, layout: Option<Layout>) -> Result<(Layout, Vec<&str>), Error> {
    let of = |layout: Layout| -> Vec<&str> {
        let is = |name: &&str| {
            let base = name.rsplit('/').next().unwrap_or(name);
            match layout {
                Layout::Audiofolder => matches!(base, "metadata.csv" | "metadata.jsonl"),
                Layout::Manifest => base.ends_with(".json") || base.ends_with(".jsonl"),
                Layout::Librispeech => base.ends_with(".trans.txt"),
                Layout::TextFiles => is_sound(base),
            }
        };
        places.of_data().filter(is).collect()
    };
    let beside = |sound: &&str| {
        let name = sound.rsplit_once('.').map_or(*sound, |(name, _)| name);
        places.has(&format!("{name}.txt"))
    };
    // A folder of sounds may have a .json that is no manifest.
    let order = if of(Layout::TextFiles).iter().any(beside) {
        [Layout::TextFiles, Layout::Manifest]
    } else {
        [Layout::Manifest, Layout::TextFiles]
    };
    let wanted = match layout {
        Some(layout) => vec![layout],
        None => [&[Layout::Audiofolder, Layout::Librispeech][..], &order].concat(),
    };
    let found = wanted.into_iter().map(|layout| (layout, of(layout)));
    let mut found = found.filter(|(_, files)| !files.is_empty());
    found.next().ok_or_else(|| {
        let missing = match layout {
            None | Some(Layout::TextFiles) => "no sound, such as a .wav or .flac",
            Some(Layout::Audiofolder) => "no metadata.csv and no metadata.jsonl",
            Some(Layout::Manifest) => "no .json and no .jsonl",
            Some(Layout::Librispeech) => "no .trans.txt",
        };
        Error::InvalidInput(format!("folder `{DATA}`: it has {missing}"))
    })
}

impl Rows<'_> {
    /// A file of an unknown kind: a table, or lines of names and texts.
    fn of_file(&mut self, name: &str, file: Box<dyn File>) -> Result<(), Error> {
        let wrong = |cause: String| Error::InvalidInput(format!("file `{name}`: {cause}"));
        let head = file.read(0, 64 << 10).map_err(wrong)?;
        let head = String::from_utf8_lossy(&head);
        let first = head.trim_start_matches('\u{feff}').trim_start().lines().next().unwrap_or("");
        let first_word = first.split_ascii_whitespace().next().unwrap_or("");
        let is_named = |names: &[&str]| {
            names.iter().any(|name| {
                first.split([',', '\t']).any(|cell| cell.trim_matches(['"', '\r']) == *name)
            })
        };
        let own = self.columns.file.as_deref();
        let is_table = first.starts_with(['{', '['])
            || is_named(&FILES)
            || own.is_some_and(|own| is_named(&[own]));
        if !is_table && self.places.sound_of(name, first_word).is_some() {
            return self.of_transcripts(name, file);
        }
        self.of_table(name, file)
    }

    /// Rows with columns: JSON lines, a JSON array, CSV, or TSV.
    fn of_table(&mut self, name: &str, file: Box<dyn File>) -> Result<(), Error> {
        let wrong = |cause: String| Error::InvalidInput(format!("file `{name}`: {cause}"));
        let file: Rc<dyn File> = Rc::from(file);
        let head = file.read(0, 4096).map_err(wrong)?;
        let packed = Packing::detect(&head);
        let text = String::from_utf8_lossy(&head);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let separator = match text.lines().next() {
            Some(line) if line.contains('\t') => b'\t',
            _ => b',',
        };
        // Compressed files are taken for JSON lines.
        let (cut, is_json) = match text.chars().next() {
            Some('[') => (Cut::Items, true),
            Some('{') => (Cut::Lines, true),
            _ if packed != Packing::Not => (Cut::Lines, true),
            _ => (Cut::Quoted(separator), false),
        };
        let mut records = Records::new(stream(&file, packed), cut);
        let mut header: Option<Vec<String>> = None;
        while let Some(record) = records.next_record().map_err(wrong)? {
            let place = format!("file `{name}`, line {}", record.line);
            let row = if is_json {
                serde_json::from_slice::<Map<String, Value>>(&record.bytes)
                    .map_err(|error| format!("expected a JSON object: {error}"))
            } else {
                cells(&record.bytes, separator).map(|cells| match &header {
                    None => {
                        header = Some(cells);
                        Map::new()
                    }
                    Some(header) => {
                        (header.iter().cloned()).zip(cells.into_iter().map(Value::from)).collect()
                    }
                })
            };
            // The header itself.
            if !is_json && row.as_ref().is_ok_and(Map::is_empty) {
                continue;
            }
            let made = row.and_then(|row| of_columns(self.places, name, &row, self.columns));
            match made {
                Ok((sound, text, duration)) => self.add(Row { place, sound, text, duration })?,
                Err(cause) => self.wrong.push(format!("{place}: {cause}")),
            }
        }
        Ok(())
    }

    /// Lines of a sound's name and its text, as LibriSpeech has them.
    fn of_transcripts(&mut self, name: &str, file: Box<dyn File>) -> Result<(), Error> {
        let wrong = |cause: String| Error::InvalidInput(format!("file `{name}`: {cause}"));
        let file: Rc<dyn File> = Rc::from(file);
        let mut records = Records::new(stream(&file, Packing::Not), Cut::Lines);
        while let Some(record) = records.next_record().map_err(wrong)? {
            let place = format!("file `{name}`, line {}", record.line);
            let Ok(line) = str::from_utf8(&record.bytes) else {
                self.wrong.push(format!("{place}: expected UTF-8"));
                continue;
            };
            let line = line.trim();
            let (id, text) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            match self.places.sound_of(name, id) {
                Some(sound) => {
                    self.add(Row { place, sound, text: text.trim().to_owned(), duration: None })?
                }
                None => {
                    self.wrong.push(format!("{place}: there is no sound `{id}`, such as {id}.flac"))
                }
            }
        }
        Ok(())
    }

    /// A sound with its text in a file of its own.
    fn of_sound(&mut self, name: &str) -> Result<(), Error> {
        let beside = name.rsplit_once('.').map_or(name, |(before, _)| before);
        let beside = format!("{beside}.txt");
        let place = format!("file `{name}`");
        let Some(file) = self.places.open(&beside) else {
            let cause = format!("{place}: no text for it: expected a file `{beside}`");
            self.wrong.push(cause);
            return Ok(());
        };
        match text(&*file, LONGEST) {
            Ok(text) => self.add(Row {
                place,
                sound: name.to_owned(),
                text: text.trim_start_matches('\u{feff}').trim().to_owned(),
                duration: None,
            }),
            Err(cause) => {
                self.wrong.push(format!("file `{beside}`: {cause}"));
                Ok(())
            }
        }
    }

    fn add(&mut self, row: Row) -> Result<(), Error> {
        self.bytes += row.place.len() + row.sound.len() + row.text.len();
        if self.rows.len() >= MOST_ROWS || self.bytes > MOST_BYTES {
            return Err(Error::InvalidInput(format!(
                "there are more than {MOST_ROWS} recordings, or their texts have more than {} MiB; name a part of them",
                MOST_BYTES >> 20
            )));
        }
        self.rows.push(row);
        Ok(())
    }
}

/// The sound, text and stated length of a row.
fn of_columns(
    places: &Places,
    name: &str,
    row: &Map<String, Value>,
    columns: &Columns,
) -> Result<(String, String, Option<f64>), String> {
    let column = |own: &Option<String>, usual: &[&'static str], key: &str| {
        let named = match own {
            Some(own) => row.get(own).map(|value| (own.clone(), value)),
            None => (usual.iter()).find_map(|name| Some(((*name).to_owned(), row.get(*name)?))),
        };
        named.ok_or_else(|| {
            let expected = own.clone().unwrap_or_else(|| usual.join(", "));
            let has: Vec<_> = row.keys().take(20).map(String::as_str).collect();
            format!(
                "no column for the {key}: expected {expected}, and it has {}; name it with `{key}-column` in [dataset.config]",
                has.join(", ")
            )
        })
    };
    let (of_file, file) = column(&columns.file, &FILES, "file")?;
    let (of_text, text) = column(&columns.text, &TEXTS, "text")?;
    let Some(file) = file.as_str().filter(|file| !file.is_empty()) else {
        return Err(format!("column `{of_file}`: expected the path of a sound, found {file}"));
    };
    let Some(text) = text.as_str() else {
        return Err(format!("column `{of_text}`: expected a text, found {text}"));
    };
    let number = |key: &str| match row.get(key) {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    if let Some(offset) = number("offset").filter(|offset| *offset != 0.0) {
        return Err(format!(
            "it is a part of a sound, from second {offset} on, and parts are not cut out; write each into a file of its own"
        ));
    }
    let sound = places.sound(name, file).ok_or_else(|| {
        format!(
            "there is no sound `{file}` in the folder; name the folder of the sounds as `audio` under [dataset.files], or \
             with --set dataset.files.audio=FOLDER"
        )
    })?;
    Ok((sound, text.to_owned(), number("duration")))
}

/// A name for a sample: its sound's name, without the folder `data` and the ending.
pub fn id(sound: &str) -> String {
    let (folder, _) = sound.rsplit_once('/').unwrap_or(("", sound));
    let folder = folder.split_once('/').map_or("", |(_, below)| below);
    match folder {
        "" => stem(sound).to_owned(),
        folder => format!("{folder}/{}", stem(sound)),
    }
}
