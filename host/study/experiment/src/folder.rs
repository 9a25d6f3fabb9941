//! A lab's folder: the journal, which is read, cut where a line is torn, and appended to; and the
//! description of the lab.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use lab::journal::{Began, VERSION, whole};
use lab::walk::SavedLab;
use lab::{Event, Journal, Lab, Results, digest};
use model::private;
use session::Faults;

use crate::error::Error;
use crate::now;

/// The file with the lab file and its scenarios.
pub const KEPT: &str = "lab.json";
const FILE: &str = "journal.jsonl";
/// Held while a lab runs, so that no second one writes to the same journal.
const LOCK: &str = "lock";

pub struct OpenJournal {
    file: File,
    results: Results,
    was_killed: bool,
    notes: Vec<String>,
    _lock: File,
}

impl OpenJournal {
    /// Reads the results in a folder's journal without changing it; empty if there is none.
    pub fn peek(folder: &Path) -> Result<Results, Error> {
        Ok(Results::from_events(&read(folder)?.0.events))
    }

    /// Opens the journal of a lab's folder, and creates the folder if it is missing. `text` is the
    /// lab file's. Fails if it cannot be read or written, or another process has it open.
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
        // A torn line is removed, and a whole line without its end gets one.
        let end = Journal::before_next(&kept).as_bytes();
        let mended = file.set_len(kept.len() as u64).and_then(|()| file.write_all(end));
        mended.map_err(Error::file("write", &path))?;
        let notes = journal.notes.iter();
        let mut open = OpenJournal {
            file,
            results: Results::from_events(&journal.events),
            was_killed: is_within_a_start(&journal.events),
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

    pub fn results(&self) -> &Results {
        &self.results
    }

    /// True if the lab was killed while it had an engine.
    pub(crate) fn was_killed(&self) -> bool {
        self.was_killed
    }

    /// Remarks for the user on the journal's text, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Appends an event, and adds it to the results. Fails if it cannot be written: then nothing
    /// further must be measured. The journal is unchanged.
    pub(crate) fn add(&mut self, event: &Event) -> Result<(), Error> {
        let before = self.file.metadata().map_err(Error::Unwritten)?.len();
        let line = event.line();
        let written = (self.file.write_all(line.as_bytes())).and_then(|()| self.file.sync_data());
        if let Err(cause) = written {
            // Half a line would spoil the next line, which may find room again.
            let _ = self.file.set_len(before);
            return Err(Error::Unwritten(cause));
        }
        self.results.add(event);
        Ok(())
    }
}

/// True if the last start has no end.
fn is_within_a_start(events: &[Event]) -> bool {
    let last = events.iter().rev().find(|event| !matches!(event, Event::Began(_)));
    !matches!(last, None | Some(Event::Stopped(_) | Event::Failed(_)))
}

/// The journal, and its text without a torn last line.
fn read(folder: &Path) -> Result<(Journal, Vec<u8>), Error> {
    let path = folder.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(cause) => return Err(Error::file("read", &path)(cause)),
    };
    let journal = Journal::read(&bytes).map_err(|why| Error::Journal(path, why))?;
    let kept = whole(&bytes).to_owned();
    Ok((journal, kept))
}

/// Reads a lab's folder: the lab file as it was, its scenarios, and the results in the journal.
pub fn opened(folder: &Path) -> Result<(SavedLab, Lab, Results), Error> {
    let path = folder.join(KEPT);
    let wrong = |why: String| Error::NoLab(path.clone(), why);
    let text = std::fs::read(&path).map_err(|cause| wrong(cause.to_string()))?;
    let saved: SavedLab =
        serde_json::from_slice(&text).map_err(|cause| wrong(cause.to_string()))?;
    let lab =
        Lab::parse(&saved.path, &saved.text).map_err(|error| Faults::from_scenario(&error))?;
    Ok((saved, lab, OpenJournal::peek(folder)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::TrialId;
    use lab::journal::{End, Ending, Failed};
    use std::process::Command;

    /// The folder of the journal, in the process in which no file may outgrow 2 KiB.
    const FOLDER: &str = "RUNNER_TEST_JOURNAL";

    fn failed(log: &str) -> Event {
        let end = End { class: Ending::NotReady, exit: None, log: vec![log.to_owned()] };
        Event::Failed(Failed { trial: TrialId("t".to_owned()), round: 0, seconds: 1.0, end })
    }

    #[test]
    fn an_event_without_room_leaves_the_journal_unchanged() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            let folder = tempfile::tempdir().unwrap();
            let limited = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
            let mut again = Command::new("sh");
            again.args(["-c", limited, "sh"]).arg(std::env::current_exe().unwrap());
            again.arg("an_event_without_room").env(FOLDER, folder.path());
            let ended = again.output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            return;
        };
        let folder = Path::new(&folder);
        let mut journal = OpenJournal {
            file: private::append(&folder.join(FILE)).unwrap(),
            results: Results::default(),
            was_killed: false,
            notes: Vec::new(),
            _lock: File::open("/dev/null").unwrap(),
        };
        journal.add(&failed("short")).unwrap();
        assert!(matches!(journal.add(&failed(&"long".repeat(1_000))), Err(Error::Unwritten(_))));
        journal.add(&failed("after")).unwrap();
        let (read, _) = read(folder).unwrap();
        assert_eq!(read.events, [failed("short"), failed("after")]);
    }
}
