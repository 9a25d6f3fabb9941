//! The sandbox of plugins: one engine with a ticker for deadlines, and a store for each instance,
//! with limits on memory, time, returned data and log lines. `wasi` provides an empty WASI.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock};
use std::time::Duration;

use wasmtime::component::{HasSelf, Instance, Resource, ResourceTable};
use wasmtime::{Config, Engine, Store, Trap, WasmBacktrace};

use super::bindings::{files, log, types};
use super::error::PluginError;
use super::file::OpenFile;
use super::limits::{ExceededLimit, Tally, mebibytes};
use ::tokenizer::Tokenizer;
use model::clean::unsafe_to_show;
use model::clock;
use model::plugin::Kind;
use model::random::SplitMix64;
use model::units::Nanos;

pub use model::plugin::Limits;

/// The interval at which deadlines are checked; a call may exceed its limit by this much.
const TICK: Duration = Duration::from_millis(10);
/// Log lines kept of one plugin, all its instances together; the rest are counted.
const LOG_LINES: usize = 1000;
/// Longest log line kept, in bytes.
const LOG_LINE_BYTES: usize = 4096;
/// Most host resources that an instance may hold at the same time.
const HANDLES: usize = 64;
/// The error of a call that waits.
pub(super) const NEVER: &str = "it waits for something that never happens in the sandbox";
/// Most bytes a plugin may read from a file in one call.
const READ_BYTES: u32 = 4 << 20;

/// The engine that runs components with these imports. All share one, but components of WASI 0.3.
pub fn engine(imports: &[String]) -> &'static Engine {
    if imports.iter().any(|name| name.starts_with("wasi:") && name.contains("@0.3.")) {
        concurrent_engine()
    } else {
        plain_engine()
    }
}

/// Exists once there is a component whose imports may be asynchronous.
static CONCURRENT: OnceLock<Engine> = OnceLock::new();

/// The engine of components without asynchronous functions.
pub(super) fn plain_engine() -> &'static Engine {
    static PLAIN: OnceLock<Engine> = OnceLock::new();
    static TICKER: Once = Once::new();
    let plain = PLAIN.get_or_init(|| made(false));
    TICKER.call_once(|| {
        std::thread::Builder::new()
            .name("sandbox-ticker".into())
            .spawn(move || {
                loop {
                    plain.increment_epoch();
                    if let Some(concurrent) = CONCURRENT.get() {
                        concurrent.increment_epoch();
                    }
                    std::thread::sleep(TICK);
                }
            })
            .expect("a thread can be started");
    });
    plain
}

fn concurrent_engine() -> &'static Engine {
    // It has the ticker.
    plain_engine();
    CONCURRENT.get_or_init(|| made(true))
}

/// True for the engine whose components are called as futures.
pub(super) fn is_concurrent(engine: &Engine) -> bool {
    CONCURRENT.get().is_some_and(|concurrent| Engine::same(engine, concurrent))
}

fn made(concurrent: bool) -> Engine {
    let mut config = Config::new();
    config
        .concurrency_support(concurrent)
        .epoch_interruption(true)
        .max_wasm_stack(512 << 10)
        .cranelift_nan_canonicalization(true);
    Engine::new(&config).expect("a fixed configuration is valid or never was")
}

/// Collects the log lines of plugins, a limited number per plugin.
#[derive(Clone, Debug, Default)]
pub struct LogBook(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    kept: Vec<String>,
    /// Number of lines that each plugin wrote.
    written: BTreeMap<String, usize>,
    overruns: BTreeMap<String, Overruns>,
}

/// Calls of a plugin that were stopped because they ran too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overruns {
    pub calls: u64,
    /// Time that they ran, all together.
    pub time: Duration,
}

impl LogBook {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Counts a line of a plugin, and keeps it unless there are too many.
    fn write(&self, plugin: &str, line: impl FnOnce() -> String) {
        let mut lines = self.lines();
        let written = match lines.written.get_mut(plugin) {
            Some(written) => written,
            None => lines.written.entry(plugin.to_owned()).or_default(),
        };
        *written += 1;
        if *written <= LOG_LINES {
            lines.kept.push(line());
        }
    }

    fn overran(&self, plugin: &str, limit: Duration) {
        let mut lines = self.lines();
        let overruns = lines.overruns.entry(plugin.to_owned()).or_default();
        overruns.calls += 1;
        overruns.time = overruns.time.saturating_add(limit);
    }

    /// The calls so far that were stopped because they ran too long, by plugin.
    pub fn overruns(&self) -> BTreeMap<String, Overruns> {
        self.lines().overruns.clone()
    }

    /// Takes the lines written so far, and adds the number of dropped ones.
    pub fn drain(&self) -> Vec<String> {
        let Lines { mut kept, written, .. } = std::mem::take(&mut *self.lines());
        for (plugin, written) in written {
            if let Some(more @ 1..) = written.checked_sub(LOG_LINES) {
                kept.push(format!("warn {plugin}: it wrote {more} more lines, which were dropped"));
            }
        }
        kept
    }
}

/// The resources that one instance can use.
#[derive(Clone)]
pub struct Grants {
    pub limits: Limits,
    pub log: LogBook,
    /// The files it may open, by the names the scenario gives them.
    pub files: Arc<BTreeMap<String, PathBuf>>,
    pub tokenizer: Arc<Tokenizer>,
    /// The run's seed, from which its random numbers are derived. Each instance gets the same.
    pub seed: u64,
}

impl Grants {
    /// These limits, no files, and a tokenizer of bytes.
    pub fn bare(limits: Limits) -> Self {
        Grants {
            limits,
            log: LogBook::default(),
            files: Arc::default(),
            tokenizer: Arc::new(Tokenizer::bytes()),
            seed: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// To the log, as information.
    Standard,
    /// To the log, as errors; its contents when a call aborts are the reason.
    Error,
}

pub struct Guest {
    plugin: String,
    pub(super) grants: Grants,
    tally: Tally,
    /// The instant at which this call's time is up; absent if nothing checks it.
    deadline: Option<Nanos>,
    table: ResourceTable,
    /// The error that it logged during this call: a panic's or an exception's message.
    last_error: Option<String>,
    /// The text that it printed to standard error during this call.
    printed: Option<String>,
    /// Incomplete lines that it wrote to standard output and error.
    unfinished: [Vec<u8>; 2],
    random: SplitMix64,
    /// The instance, if its component is called as a future.
    pub(super) concurrent: Option<Instance>,
}

impl Guest {
    pub(super) fn memory_bytes(&self) -> u64 {
        self.tally.memory_bytes()
    }

    /// True if this call's time is up. Epochs interrupt the guest, but not the host's work for it.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| clock::since_process_began() > deadline)
    }

    pub(super) fn random(&mut self) -> u64 {
        self.random.draw()
    }

    pub(super) fn print(&mut self, to: Output, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = &mut self.unfinished[to as usize];
            // One more than is kept, so that a longer line is detected.
            let room = (LOG_LINE_BYTES + 1).saturating_sub(line.len());
            line.extend(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.finish_line(to);
            }
        }
    }

    fn finish_line(&mut self, to: Output) {
        let line = std::mem::take(&mut self.unfinished[to as usize]);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let name = match to {
            Output::Standard => "info",
            Output::Error => "error",
        };
        if to == Output::Error {
            let printed = self.printed.get_or_insert_default();
            if printed.len() < LOG_LINE_BYTES {
                printed.push_str(if printed.is_empty() { "" } else { " | " });
                printed.push_str(&one_line(line));
            }
        }
        self.grants
            .log
            .write(&self.plugin, || format!("{name} {}: {}", self.plugin, one_line(line)));
    }

    /// Returns why it aborted, in its own words. A line of the log comes first: interpreters print
    /// a traceback, and then a panic of their own.
    fn last_words(&self) -> Option<&str> {
        self.last_error.as_deref().or(self.printed.as_deref())
    }

    fn finish_lines(&mut self) {
        for to in [Output::Standard, Output::Error] {
            if !self.unfinished[to as usize].is_empty() {
                self.finish_line(to);
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.finish_lines();
    }
}

/// A store for one instance of the plugin of this name and kind.
pub fn store(engine: &Engine, plugin: &str, kind: Kind, grants: &Grants) -> Store<Guest> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(HANDLES);
    let guest = Guest {
        plugin: plugin.to_owned(),
        grants: grants.clone(),
        tally: Tally::new(&grants.limits),
        // The host does nothing long for a backend, whose calls are many and short.
        deadline: (kind != Kind::Backend).then_some(Nanos::ZERO),
        table,
        last_error: None,
        printed: None,
        unfinished: Default::default(),
        random: SplitMix64::new(grants.seed),
        concurrent: None,
    };
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.tally);
    store
}

pub(crate) fn arm(store: &mut Store<Guest>, limit_ms: u64) {
    let ticks = Duration::from_millis(limit_ms).as_millis().div_ceil(TICK.as_millis());
    store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX / 2) + 1);
    let guest = store.data_mut();
    guest.finish_lines();
    guest.last_error = None;
    guest.printed = None;
    if let Some(deadline) = &mut guest.deadline {
        let left = limit_ms.saturating_mul(1_000_000);
        *deadline = Nanos(clock::since_process_began().0.saturating_add(left));
    }
    let returned = guest.grants.limits.returned_bytes;
    store.set_hostcall_fuel(usize::try_from(returned).unwrap_or(usize::MAX));
}

/// Describes the end of a call that was stopped.
pub fn trapped(
    store: &mut Store<Guest>,
    call: &'static str,
    limit_ms: u64,
    error: &wasmtime::Error,
) -> PluginError {
    store.data_mut().finish_lines();
    let guest = store.data();
    let limits = &guest.grants.limits;
    if let Some(Trap::Interrupt) = error.downcast_ref::<Trap>() {
        let limit = Duration::from_millis(limit_ms);
        guest.grants.log.overran(&guest.plugin, limit);
    }
    let cause = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => format!(
            "it ran longer than the {limit_ms} ms allowed for a call (fix the endless loop, or raise the limit under [sandbox])"
        ),
        Some(Trap::UnreachableCodeReached) => match guest.last_words() {
            Some(message) => format!("it panicked: {message}"),
            None => format!("it aborted without a message{}", place(error)),
        },
        Some(Trap::CannotBlockSyncTask) => NEVER.to_owned(),
        Some(Trap::StackOverflow) => "its stack overflowed (endless recursion)".to_owned(),
        Some(trap @ Trap::MemoryOutOfBounds) => {
            format!("it trapped: {trap}{} (a wrong pointer, or endless recursion)", place(error))
        }
        Some(trap) => format!("it trapped: {trap}{}", place(error)),
        None => {
            let text = error.root_cause().to_string();
            if let Some(exceeded) = error.downcast_ref::<ExceededLimit>() {
                exceeded.to_string()
            } else if text.contains("too much data") {
                format!(
                    "it returned more data than the {} allowed in one call",
                    mebibytes(limits.returned_bytes)
                )
            } else if text.contains("handle limit exceeded") {
                "it holds more handles than any plugin needs (a leak)".to_owned()
            } else if text.contains("unknown handle index") {
                // An interpreter that shuts down gives back handles that its snapshot never had.
                format!(
                    "{text}; an interpreter that shuts down does this, as with `sys.exit`: a plugin must return a result or an error"
                )
            } else {
                text
            }
        }
    };
    PluginError::Trapped { plugin: guest.plugin.clone(), call, cause }
}

/// The innermost functions of a trap, where the component has their names.
fn place(error: &wasmtime::Error) -> String {
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames);
    let names = frames.into_iter().flatten().filter_map(|frame| frame.func_name());
    // Rust's own are mangled, and its panics have a place.
    let names = names.filter(|name| !name.starts_with("_R") && !name.starts_with("_ZN"));
    let names: Vec<String> = names.take(3).map(|name| format!("`{}`", one_line(name))).collect();
    if names.is_empty() { String::new() } else { format!(", in {}", names.join(", called by ")) }
}

/// For `add_to_linker`: the guest itself is the data.
pub type GuestData = HasSelf<Guest>;

impl types::Host for Guest {}

impl log::Host for Guest {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let name = match level {
            log::Level::Debug => "debug",
            log::Level::Info => "info",
            log::Level::Warn => "warn",
            log::Level::Error => "error",
        };
        if level == log::Level::Error {
            self.last_error = Some(one_line(&message));
        }
        self.grants
            .log
            .write(&self.plugin, || format!("{name} {}: {}", self.plugin, one_line(&message)));
        Ok(())
    }
}

/// A message as a line of the log: no control characters, and not too long.
fn one_line(message: &str) -> String {
    let end = message.floor_char_boundary(LOG_LINE_BYTES.min(message.len()));
    let mut line: String =
        message[..end].chars().map(|c| if unsafe_to_show(c) { ' ' } else { c }).collect();
    if end < message.len() {
        line.push('…');
    }
    line
}

impl files::Host for Guest {}

impl files::HostFile for Guest {
    fn open(&mut self, name: String) -> wasmtime::Result<Option<Resource<OpenFile>>> {
        let files = &self.grants.files;
        let file = match files.get(&name) {
            Some(path) => OpenFile::open(path)
                .map_err(|cause| wasmtime::Error::msg(format!("the file `{name}`: {cause}")))?,
            None if name.ends_with('/') => match OpenFile::list(&name, files) {
                Some(list) => list,
                None => return Ok(None),
            },
            None if OpenFile::list(&format!("{name}/"), files).is_some() => {
                let words = format!("it reads a file, and `{name}` is a folder; name a file of it");
                return Err(wasmtime::Error::msg(words));
            }
            None => return Ok(None),
        };
        let handle = (self.table.push(file)).map_err(|_| {
            let words = format!("it has more than {HANDLES} files open");
            wasmtime::Error::msg(words)
        })?;
        Ok(Some(handle))
    }

    fn size(&mut self, file: Resource<OpenFile>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&file)?.size)
    }

    fn read(
        &mut self,
        file: Resource<OpenFile>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        let open = self.table.get(&file)?;
        Ok(open
            .read_at(offset, length.min(READ_BYTES))
            .map_err(|cause| format!("reading at byte {offset}: {cause}")))
    }

    fn drop(&mut self, file: Resource<OpenFile>) -> wasmtime::Result<()> {
        self.table.delete(file)?;
        Ok(())
    }
}
