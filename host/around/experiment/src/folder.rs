//! A lab's folder: the journal, which is read, cut where a line is torn, and appended to; and what
//! the lab is.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use lab::journal::{Began, VERSION, text_of, whole};
use lab::walk::Kept;
use lab::{Event, Journal, Lab, Results, digest};
use model::private;
use session::Faults;

use crate::date::now;
use crate::error::Error;

/// The file that says what the lab is: the lab file and its scenarios.
pub const KEPT: &str = "lab.json";
const FILE: &str = "journal.jsonl";
/// Held while a lab runs, so that no second one writes to the same journal.
const LOCK: &str = "lock";

/// An open journal, with the results in it.
pub struct OpenJournal {
    file: File,
    results: Results,
    notes: Vec<String>,
    _lock: File,
}

impl OpenJournal {
    /// Reads the results in the journal of a folder without changing it; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn peek(folder: &Path) -> Result<Results, Error> {
        Ok(Results::of(&read(folder)?.0.events))
    }

    /// Opens the journal of a lab's folder, which is made if it is not there. The text is that of
    /// the lab file.
    ///
    /// # Errors
    /// If it cannot be read or written, or another process has it open.
    pub fn open(folder: &Path, lab: &Lab, text: &str) -> Result<Self, Error> {
        private::folder(folder).map_err(Error::file("create", folder))?;
        let place = folder.join(LOCK);
        let lock = private::create(&place).map_err(Error::file("create", &place))?;
        if lock.try_lock().is_err() {
            return Err(Error::Taken(folder.to_owned()));
        }
        let (journal, kept) = read(folder)?;
        let path = folder.join(FILE);
        let mut file = private::append(&path).map_err(Error::file("open", &path))?;
        // What is torn goes, and what is whole but for its end gets that.
        let mended = file
            .set_len(kept.len() as u64)
            .and_then(|()| file.write_all(Journal::before_next(&kept).as_bytes()));
        mended.map_err(Error::file("write", &path))?;
        let notes = journal.notes.iter();
        let mut open = OpenJournal {
            file,
            results: Results::of(&journal.events),
            notes: notes.map(|note| format!("{FILE}: {note}")).collect(),
            _lock: lock,
        };
        open.add(&Event::Began(Began {
            at: now().to_string(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            lab: lab.name.clone(),
            file: digest([text]),
        }))?;
        Ok(open)
    }

    /// The results so far.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Remarks for the user on what was found in it, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Appends an event, and adds it to the results.
    ///
    /// # Errors
    /// If it cannot be written: then nothing further must be measured.
    pub(crate) fn add(&mut self, event: &Event) -> Result<(), Error> {
        let line = event.line();
        let written = (self.file.write_all(line.as_bytes())).and_then(|()| self.file.sync_data());
        written.map_err(Error::Unwritten)?;
        self.results.add(event);
        Ok(())
    }
}

/// The journal, and its text without a torn line.
fn read(folder: &Path) -> Result<(Journal, String), Error> {
    let path = folder.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(cause) => return Err(Error::file("read", &path)(cause)),
    };
    let read = text_of(&bytes).and_then(|text| Ok((Journal::read(&text)?, text)));
    let (journal, text) = read.map_err(|why| Error::Journal(path, why))?;
    let kept = whole(&text).to_owned();
    Ok((journal, kept))
}

/// Reads a lab's folder: the lab file as it was, its scenarios, and the results in the journal.
///
/// # Errors
/// If it is not a lab's folder, or cannot be read.
pub fn opened(folder: &Path) -> Result<(Kept, Lab, Results), Error> {
    let path = folder.join(KEPT);
    let wrong = |why: String| Error::NoLab(path.clone(), why);
    let text = std::fs::read(&path).map_err(|cause| wrong(cause.to_string()))?;
    let kept: Kept = serde_json::from_slice(&text).map_err(|cause| wrong(cause.to_string()))?;
    let lab = Lab::parse(&kept.path, &kept.text).map_err(|error| Faults::of(&error))?;
    Ok((kept, lab, OpenJournal::peek(folder)?))
}
