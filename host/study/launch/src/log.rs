//! The output of an engine: to a file of bounded length without secrets, and the last lines in
//! memory.
//!
//! A thread of its own reads the pipe of the engine's standard output and its standard error. So an
//! engine is never held up, whatever else this process does, and a full disk does not hold it up
//! either. The file is a ring of two: when the first is half the limit, it takes the place of the
//! second.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exit::Class;
use crate::process::cut;
use model::private;
use model::redact::Known;

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
    /// Begins to copy a pipe's output until its last writer is gone. Fails without file or thread.
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

/// The part of a line that is kept for messages, in characters.
const SHOWN: usize = 500;

/// The number of lines for which a line with a cause counts: later lines are a stack trace at most.
const HINT_COUNTS: u64 = 2_000;

struct Lines {
    secrets: Known,
    /// Number of the last lines to keep.
    keep: usize,
    last: VecDeque<String>,
    /// A line that has not ended.
    pending: Vec<u8>,
    /// The number of lines that have ended.
    ended: u64,
    hint: Option<(u64, Hint)>,
}

impl Lines {
    pub fn new(keep: usize, secrets: Known) -> Self {
        Lines { secrets, keep, last: VecDeque::new(), pending: Vec::new(), ended: 0, hint: None }
    }

    /// Takes bytes, and returns the bytes that may be written.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(out);
            } else if self.pending.len() > LONGEST_LINE {
                // The end may be the start of a secret.
                let pending = std::mem::take(&mut self.pending);
                let clean = self.secrets.redact_bytes(&pending);
                let cut = clean.len().saturating_sub(self.secrets.longest());
                self.pending = clean[cut..].to_vec();
                self.keep_line(&clean[..cut]);
                out.extend_from_slice(&clean[..cut]);
            }
        }
    }

    /// Returns an unfinished line.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            self.end_line(out);
        }
    }

    pub fn last(&self) -> Vec<String> {
        let unfinished = self.secrets.redact_bytes(&self.pending);
        let unfinished = shown(&unfinished);
        let lines = self.last.iter().cloned().chain(Some(unfinished));
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(self.keep)..].to_vec()
    }

    pub fn hint(&self) -> Option<Hint> {
        let (at, hint) = self.hint.as_ref()?;
        (self.ended - at < HINT_COUNTS).then(|| hint.clone())
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        let pending = std::mem::take(&mut self.pending);
        let line = self.secrets.redact_bytes(&pending);
        self.keep_line(&line);
        out.extend_from_slice(&line);
    }

    fn keep_line(&mut self, line: &[u8]) {
        self.ended += 1;
        let line = shown(line);
        if line.is_empty() {
            return;
        }
        if let Some(hint) = Hint::from_line(&line) {
            self.hint = Some((self.ended, hint));
        }
        if self.last.len() >= self.keep {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

/// A line as a terminal shows it in the end: without colours, and with the last text at each place.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end();
    let line = line.rsplit('\r').next().unwrap_or_default();
    let line = without_colours(line).replace('\t', " ");
    cut(&model::clean::line(&line), SHOWN)
}

/// A text without sequences of colours and cursors: ESC, `[`, parameters, and a letter.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c| ('\u{40}'..='\u{7e}').contains(&c));
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}

/// A line that names the cause of an engine's death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub class: Class,
    pub line: String,
}

/// Parts of lines, each with its cause. The first match counts.
const KNOWN: [(&str, Class); 26] = [
    // PyTorch, for each kind of device.
    ("torch.OutOfMemoryError", Class::OutOfDeviceMemory),
    ("torch.cuda.OutOfMemoryError", Class::OutOfDeviceMemory),
    ("CUDA out of memory", Class::OutOfDeviceMemory),
    ("HIP out of memory", Class::OutOfDeviceMemory),
    ("XPU out of memory", Class::OutOfDeviceMemory),
    ("CUDA error: out of memory", Class::OutOfDeviceMemory),
    ("CUBLAS_STATUS_ALLOC_FAILED", Class::OutOfDeviceMemory),
    // JAX, TensorRT-LLM and llama.cpp.
    ("RESOURCE_EXHAUSTED: Out of memory", Class::OutOfDeviceMemory),
    ("cudaErrorMemoryAllocation", Class::OutOfDeviceMemory),
    ("cudaMalloc failed: out of memory", Class::OutOfDeviceMemory),
    // vLLM: the first two where the cache has no room beside the weights, the third where other
    // programs fill the device.
    ("No available memory for the cache blocks", Class::OutOfDeviceMemory),
    ("larger than the available KV cache memory", Class::OutOfDeviceMemory),
    ("is less than desired GPU memory utilization", Class::OutOfDeviceMemory),
    // SGLang.
    ("Not enough memory. Please try to increase", Class::OutOfDeviceMemory),
    // Python, C++, and PyTorch on processors.
    ("MemoryError", Class::OutOfMemory),
    ("std::bad_alloc", Class::OutOfMemory),
    ("DefaultCPUAllocator: can't allocate memory", Class::OutOfMemory),
    ("DefaultCPUAllocator: not enough memory", Class::OutOfMemory),
    ("Cannot allocate memory", Class::OutOfMemory),
    ("ddress already in use", Class::PortTaken),
    ("EADDRINUSE", Class::PortTaken),
    // argparse, click, clap and llama.cpp.
    ("error: unrecognized arguments:", Class::WrongOptions),
    (": error: argument ", Class::WrongOptions),
    ("Error: No such option", Class::WrongOptions),
    ("error: unexpected argument", Class::WrongOptions),
    ("error: invalid argument:", Class::WrongOptions),
];

impl Hint {
    /// Returns the cause that a line names, if it is known.
    pub fn from_line(line: &str) -> Option<Self> {
        let (_, class) = KNOWN.iter().find(|(part, _)| line.contains(part))?;
        Some(Hint { class: *class, line: line.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Class;
    use crate::spec::{Spec, Value};

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

    fn secrets(secret: &str) -> Known {
        let mut spec = Spec::new("e", Vec::new(), ("h", 1), "log");
        let secret = Value::Secret(secret.to_owned());
        spec.environment = vec![("KEY".to_owned(), secret)];
        spec.secrets()
    }

    /// Returns the output for a text that comes in chunks of one length.
    fn written(text: &[u8], chunk: usize, lines: &mut Lines) -> Vec<u8> {
        let mut out = Vec::new();
        for bytes in text.chunks(chunk) {
            lines.take(bytes, &mut out);
        }
        lines.finish(&mut out);
        out
    }

    #[test]
    fn no_cut_lets_a_secret_through() {
        let text = b"key=opensesame\nno newline opensesame";
        for chunk in 1..text.len() {
            let mut lines = Lines::new(9, secrets("opensesame"));
            let out = written(text, chunk, &mut lines);
            assert_eq!(String::from_utf8(out).unwrap(), "key=[redacted]\nno newline [redacted]");
            assert_eq!(lines.last(), ["key=[redacted]", "no newline [redacted]"]);
        }
        // In a line above the limit, at each place around the cut.
        for before in LONGEST_LINE - 12..LONGEST_LINE + 2 {
            let text = ["x".repeat(before).as_str(), "opensesame", &"y".repeat(50)].concat();
            let mut lines = Lines::new(9, secrets("opensesame"));
            let out = written(text.as_bytes(), 1000, &mut lines);
            let expected = text.replace("opensesame", "[redacted]");
            assert!(out == expected.as_bytes(), "{before}");
        }
    }

    #[test]
    fn bytes_without_secrets_stay_unchanged() {
        let text: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        for chunk in [1, 1000, 200_000] {
            let mut lines = Lines::new(3, secrets("opensesame"));
            assert!(written(&text, chunk, &mut lines) == text);
        }
        let endless = vec![b'x'; 300_000];
        let mut lines = Lines::new(3, Known::default());
        assert!(written(&endless, 7000, &mut lines) == endless);
        assert!(lines.last.iter().all(|line| line.chars().count() <= SHOWN + 1));
    }

    #[test]
    fn last_lines_are_as_a_terminal_shows_them() {
        for (written, line) in [
            ("plain\n", "plain"),
            ("windows\r\n", "windows"),
            ("10%\r20%\r100%\n", "100%"),
            ("10%\r20%", "20%"),
            ("\u{1b}[1;36m(Core pid=7)\u{1b}[0;0m up", "(Core pid=7) up"),
            ("a\tb\u{7}\n", "a b\\u{7}"),
            ("cut \u{1b}[3", "cut "),
        ] {
            let mut lines = Lines::new(3, Known::default());
            lines.take(written.as_bytes(), &mut Vec::new());
            assert_eq!(lines.last(), [line], "{written:?}");
        }
        let mut lines = Lines::new(2, Known::default());
        lines.take(b"1\n2\n\n3\n\n4", &mut Vec::new());
        assert_eq!(lines.last(), ["3", "4"]);
    }

    #[test]
    fn the_latest_cause_counts_for_a_while() {
        let mut lines = Lines::new(2, Known::default());
        let mut out = Vec::new();
        lines.take(b"OSError: [Errno 98] Address already in use\n", &mut out);
        lines.take(b"torch.OutOfMemoryError: CUDA out of memory\nlater\n", &mut out);
        let hint = lines.hint().unwrap();
        assert_eq!(hint.class, Class::OutOfDeviceMemory);
        assert_eq!(hint.line, "torch.OutOfMemoryError: CUDA out of memory");
        for _ in 0..HINT_COUNTS - 2 {
            lines.take(b"request\n", &mut out);
        }
        assert!(lines.hint().is_some());
        lines.take(b"request\n", &mut out);
        assert_eq!(lines.hint().map(|hint| hint.line), None);
    }

    #[test]
    fn lines_of_engines() {
        for (line, class) in [
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
                Some(Class::OutOfDeviceMemory),
            ),
            (
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
                Some(Class::OutOfDeviceMemory),
            ),
            (
                "RuntimeError: [enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.",
                Some(Class::OutOfMemory),
            ),
            ("vllm: error: unrecognized arguments: --bogus", Some(Class::WrongOptions)),
            (
                "api_server.py: error: argument --max-num-seqs: invalid int value: 'x'",
                Some(Class::WrongOptions),
            ),
            ("OSError: [Errno 98] Address already in use", Some(Class::PortTaken)),
            ("INFO: Application startup complete.", None),
        ] {
            assert_eq!(Hint::from_line(line).map(|hint| hint.class), class, "{line}");
        }
    }
}
