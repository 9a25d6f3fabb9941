//! The lab's journal on disk: read, cut where a line is torn, and appended to.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::super::failure::{Exit, Failure};
use super::super::print::tell;
use lab::journal::{Began, VERSION, text_of, whole};
use lab::{Event, Journal, Lab, Results, digest};
use model::private;

const FILE: &str = "journal.jsonl";
/// Held while a lab runs, so that no second one writes to the same journal.
const LOCK: &str = "lock";

/// An open journal.
pub(super) struct OpenJournal {
    file: File,
    _lock: File,
}

fn cannot(what: &str, path: &Path, cause: &io::Error) -> Failure {
    Failure::new(
        Exit::Input,
        format!("cannot {what} `{}`: {cause}", path.display()),
    )
}

impl OpenJournal {
    /// Reads the results in a journal without changing it; empty if there is none.
    pub(super) fn peek(folder: &Path) -> Result<Results, Failure> {
        Ok(Results::of(&read(folder)?.0.events))
    }

    /// Opens the journal of a lab's folder, which is made if it is not there.
    pub(super) fn open(folder: &Path, lab: &Lab, text: &str) -> Result<(Self, Results), Failure> {
        private::folder(folder).map_err(|cause| cannot("create", folder, &cause))?;
        let place = folder.join(LOCK);
        let lock = private::create(&place).map_err(|cause| cannot("create", &place, &cause))?;
        if lock.try_lock().is_err() {
            return Err(Failure::new(
                Exit::Input,
                format!(
                    "another `runner lab` works in `{}`; wait until it is done, or choose another --output-dir",
                    folder.display()
                ),
            ));
        }
        let (journal, kept) = read(folder)?;
        for note in &journal.notes {
            tell(format_args!("note: {FILE}: {note}"));
        }
        let path = folder.join(FILE);
        let mut file = private::append(&path).map_err(|cause| cannot("open", &path, &cause))?;
        // What is torn goes, and what is whole but for its end gets that.
        let mended = file
            .set_len(kept.len() as u64)
            .and_then(|()| file.write_all(Journal::before_next(&kept).as_bytes()));
        mended.map_err(|cause| cannot("write", &path, &cause))?;
        let mut results = Results::of(&journal.events);
        let mut journal = OpenJournal { file, _lock: lock };
        journal.add(
            &Event::Began(Began {
                at: jiff::Timestamp::now().to_string(),
                version: VERSION,
                program: env!("CARGO_PKG_VERSION").to_owned(),
                lab: lab.name.clone(),
                file: digest([text]),
            }),
            &mut results,
        )?;
        Ok((journal, results))
    }

    /// Appends an event, and adds it to the results.
    ///
    /// # Errors
    /// If it cannot be written: then nothing further must be measured.
    pub(super) fn add(&mut self, event: &Event, results: &mut Results) -> Result<(), Failure> {
        let line = event.line();
        let written = (self.file.write_all(line.as_bytes())).and_then(|()| self.file.sync_data());
        written.map_err(|cause| {
            Failure::new(
                Exit::Input,
                format!("cannot write the lab's journal: {cause}; free some space, and go on with --resume"),
            )
        })?;
        results.add(event);
        Ok(())
    }
}

/// The journal, and its text without a torn line.
fn read(folder: &Path) -> Result<(Journal, String), Failure> {
    let path = folder.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(cause) => return Err(cannot("read", &path, &cause)),
    };
    let read = text_of(&bytes).and_then(|text| Ok((Journal::read(&text)?, text)));
    let (journal, text) = read.map_err(|why| {
        Failure::new(
            Exit::Input,
            format!(
                "`{}` cannot be read: {why}; choose another --output-dir to begin anew",
                path.display()
            ),
        )
    })?;
    let kept = whole(&text).to_owned();
    Ok((journal, kept))
}
