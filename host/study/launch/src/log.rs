//! The output of an engine: to a file of bounded length without secrets, and the last lines in
//! memory.
//!
//! A thread of its own reads the pipe of the engine's standard output and its standard error. So an
//! engine is never held up, whatever else this process does, and a full disk does not hold it up
//! either. The file is a ring of two: when the first is half the limit, it takes the place of the
//! second.

mod hint;
mod lines;

use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lines::Lines;
use model::private;
use model::redact::Known;

pub(crate) use hint::Hint;

/// Bytes read at once: the capacity of a pipe.
const CHUNK: usize = 64 << 10;

/// A longer line is cut into several.
const LONGEST_LINE: usize = 64 << 10;

#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<Mutex<State>>,
}

struct State {
    ring: Ring,
    lines: Lines,
    /// True once the engine cannot write any more, and everything is in the file.
    complete: bool,
}

impl Log {
    /// Begins to copy the output of a pipe, until nobody can write to it any more. Fails if the
    /// file cannot be made, or no thread can be started.
    pub fn start(
        mut pipe: PipeReader,
        path: &Path,
        limit: u64,
        last: usize,
        secrets: Known,
    ) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(State {
            ring: Ring::create(path, limit)?,
            lines: Lines::new(last, secrets),
            complete: false,
        }));
        let writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("engine-log".to_owned());
        thread.spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                match pipe.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(read) => lock(&writer).take(&chunk[..read]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => {
                        lock(&writer).ring.file = None;
                        break;
                    }
                }
            }
            lock(&writer).finish();
        })?;
        Ok(Log { shared })
    }

    /// True once the engine cannot write any more, and everything is in the file.
    pub fn is_complete(&self) -> bool {
        lock(&self.shared).complete
    }

    /// The last lines, and the present part of an unfinished line.
    pub fn last_lines(&self) -> Vec<String> {
        lock(&self.shared).lines.last()
    }

    /// The latest of the last lines that names the reason of an end.
    pub fn hint(&self) -> Option<Hint> {
        lock(&self.shared).lines.hint()
    }
}

fn lock(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn take(&mut self, bytes: &[u8]) {
        let mut whole = Vec::new();
        self.lines.take(bytes, &mut whole);
        self.ring.write(&whole);
    }

    fn finish(&mut self) {
        let mut whole = Vec::new();
        self.lines.finish(&mut whole);
        self.ring.write(&whole);
        self.complete = true;
    }
}

/// Two files with the last part of the output.
struct Ring {
    path: PathBuf,
    earlier: PathBuf,
    file: Option<File>,
    /// Largest size of one of the files, in bytes.
    half: u64,
    /// Bytes in the newer file.
    held: u64,
}

impl Ring {
    fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let mut earlier = path.as_os_str().to_owned();
        earlier.push(".earlier");
        let earlier = PathBuf::from(earlier);
        if let Some(folder) = path.parent() {
            private::folder(folder)?;
        }
        if let Err(error) = fs::remove_file(&earlier)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        Ok(Ring {
            path: path.to_owned(),
            earlier,
            file: Some(private::create(path)?),
            half: (limit / 2).max(1),
            held: 0,
        })
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.held >= self.half {
                self.turn();
            }
            let room = usize::try_from(self.half - self.held).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            bytes = rest;
            self.held += now.len() as u64;
            let written = self.file.as_mut().map(|file| file.write_all(now));
            if let Some(Err(_)) = written {
                // A file with holes would mislead.
                self.file = None;
            }
        }
    }

    /// The file takes the place of the earlier one, and a new one begins.
    fn turn(&mut self) {
        self.held = 0;
        if self.file.take().is_none() {
            return;
        }
        let turned =
            fs::rename(&self.path, &self.earlier).and_then(|()| private::create(&self.path));
        self.file = turned.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_kept_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/engine.log");
        let (pipe, mut engine) = io::pipe().unwrap();
        let log = Log::start(pipe, &path, 1000, 2, Known::default()).unwrap();
        let line = |number: u32| format!("line {number:04}\n");
        for number in 0..500 {
            engine.write_all(line(number).as_bytes()).unwrap();
        }
        engine.write_all(b"and no end").unwrap();
        drop(engine);
        while !log.is_complete() {
            std::thread::yield_now();
        }
        let newer = fs::read_to_string(&path).unwrap();
        let older = fs::read_to_string(folder.path().join("new/engine.log.earlier")).unwrap();
        assert_eq!(older.len(), 500, "half the limit");
        assert!(newer.len() <= 500);
        let kept = older + &newer;
        let whole: String = (0..500).map(line).collect::<String>() + "and no end";
        assert!(whole.ends_with(&kept), "{kept}");
        assert_eq!(log.last_lines(), ["line 0499", "and no end"]);
    }

    #[test]
    fn a_disk_that_fails_holds_no_engine_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.log");
        let mut ring = Ring::create(&path, 20).unwrap();
        ring.write(b"12345");
        fs::remove_dir_all(folder.path()).unwrap();
        ring.write(b"1234567890");
        ring.write(b"12345678901234567890123");
        assert!(ring.file.is_none());
    }
}
