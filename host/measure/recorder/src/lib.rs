//! Records live traffic as an anonymous workload: a reverse proxy, and rows that the dataset
//! `trace` replays.
//!
//! `proxy` passes bytes on and `tap` copies them, on the threads of the traffic. One more thread
//! makes rows (`reading`): `form` reads a request by the form that its backend's `encode` showed,
//! `answer` the reply by `decode`, `chain` names blocks, and `sessions` finds the session. `weka`
//! makes sessions of rows afterwards, and `fit` a synthetic scenario. The traffic never waits:
//! events that the thread cannot take are dropped and counted (`counts`).
//!
//! **No word of the traffic is written**: `row` has numbers and fixed words only, ids are keyed,
//! and the key is thrown away. Errors of plugins may quote the traffic, so they are counted alone.

mod answer;
mod chain;
mod counts;
mod fit;
mod form;
mod log;
mod proxy;
mod reading;
mod row;
mod sessions;
mod tap;
mod weka;

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use hyper::header::HeaderName;
use load::transport::tls::TrustError;
use model::clock::Clock;
use model::connection::{Trust, Version};
use model::private;
use model::target::Target;
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::Backend;
use tokenizer::Tokenizer;
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub use chain::NoRandom;
pub use counts::{Count, Counts};
pub use fit::{Compared, Recorded, Workload, compare};
pub use row::RowsError;
pub use weka::sessions;

/// Keeps this process out of core dumps and debuggers: its memory has prompts, answers and keys.
pub fn stay_out_of_dumps() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from)
}

/// Lets threads of traffic go first. On Linux, `None` is the calling thread, not its process.
fn yield_to_traffic() {
    // Without the system's consent, rows only cost the traffic more time.
    let _ = rustix::process::setpriority_process(None, 19);
}

pub struct Sides {
    pub target: Target,
    pub trust: Trust,
    pub acceptor: Option<TlsAcceptor>,
}

pub struct Settings {
    /// The backends whose requests are recorded, in the order of preference.
    pub backends: Vec<Backend>,
    pub tokenizer: Option<Tokenizer>,
    /// Bytes of a token where no tokenizer counts.
    pub bytes_of_token: NonZeroUsize,
    pub coarseness: Coarseness,
    pub session_headers: Vec<HeaderName>,
    pub parent_headers: Vec<HeaderName>,
    /// The file of rows, which must not exist.
    pub file: PathBuf,
    /// Bytes after which the next file begins.
    pub most: u64,
}

/// The steps to which a recording's numbers are rounded.
#[derive(Clone, Copy, Debug)]
pub struct Coarseness {
    pub time: Nanos,
    pub tokens: NonZeroU32,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("`{path}` cannot be written: {cause}; name a new file in a folder that is there")]
    File { path: PathBuf, cause: io::Error },
    #[error("the log `{path}` cannot be read: {cause}")]
    Log { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Random(#[from] NoRandom),
    #[error(
        "no backend named here writes requests that can be read back: {0} writes none as JSON over HTTP"
    )]
    NoForm(String),
    #[error("the recorder cannot run: {0}")]
    System(#[from] io::Error),
}

/// The reading of requests and replies, and the file of rows.
fn reading(settings: &mut Settings) -> Result<reading::Reading, RecordingError> {
    let mut readers = Vec::new();
    for backend in &settings.backends {
        let mut dialect = backend.open()?;
        let forms = form::learn(&mut dialect);
        if !forms.is_empty() {
            readers.push(reading::Reader { dialect, forms });
        }
    }
    if readers.is_empty() {
        let names = settings.backends.iter().map(|backend| backend.plugin().name.clone());
        return Err(RecordingError::NoForm(names.collect::<Vec<_>>().join(", ")));
    }
    let key = chain::Key::random()?;
    let file = RowFile::begin(&settings.file, settings.most);
    let file = file.map_err(|cause| RecordingError::File { path: settings.file.clone(), cause })?;
    Ok(reading::Reading {
        readers,
        tokenizer: settings.tokenizer.take(),
        bytes_of_token: settings.bytes_of_token.get(),
        coarseness: settings.coarseness,
        key,
        counts: Arc::default(),
        file,
        state: reading::State::default(),
    })
}

/// Writes the rows of a log. `tell` gets messages for people. Returns the counts and the files.
pub fn record_log(
    log: &Path,
    mut settings: Settings,
    tell: impl FnMut(&str),
) -> Result<(Arc<Counts>, Vec<PathBuf>), RecordingError> {
    let failed = |cause| RecordingError::Log { path: log.to_owned(), cause };
    let file = File::open(log).map_err(failed)?;
    let mut reading = reading(&mut settings)?;
    reading.log(file, &settings.session_headers, tell).map_err(failed)?;
    Ok((Arc::clone(&reading.counts), reading.file.paths()))
}

pub struct Recording {
    proxy: Arc<proxy::Proxy>,
    reading: reading::Reading,
    events: std::sync::mpsc::Receiver<tap::Event>,
}

impl Recording {
    /// Learns the forms of requests and begins the file.
    pub fn prepare(sides: Sides, mut settings: Settings) -> Result<Self, RecordingError> {
        let Sides { target, trust, acceptor } = sides;
        let tls = if target.is_tls() {
            let connector =
                |version| load::transport::tls::config(&trust, version).map(TlsConnector::from);
            Some([connector(Version::Http1)?, connector(Version::Http2)?])
        } else {
            None
        };
        let reading = reading(&mut settings)?;
        let (out, events) = sync_channel(tap::WAITING);
        let tap = tap::Tap {
            clock: Clock::start(),
            budget: tap::Budget::new(tap::ALL_COPIES),
            counts: Arc::clone(&reading.counts),
            number: Arc::default(),
            out,
        };
        let proxy = proxy::Proxy {
            target,
            tls,
            acceptor,
            session_headers: settings.session_headers,
            parent_headers: settings.parent_headers,
            tap,
        };
        Ok(Recording { proxy: Arc::new(proxy), reading, events })
    }

    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.reading.counts)
    }

    /// Serves clients until `stop` changes. `tell` gets messages for people. Returns the row files.
    pub fn run(
        self,
        listener: &TcpListener,
        stop: &watch::Receiver<bool>,
        tell: impl FnMut(&str) + Send,
    ) -> io::Result<Vec<PathBuf>> {
        listener.set_nonblocking(true)?;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
        let bounds = proxy::Bounds::new(threads);
        let Recording { proxy, reading, events } = self;
        thread::scope(|scope| {
            let named = |name: &str| thread::Builder::new().name(name.to_owned());
            let rows = named("rows").spawn_scoped(scope, move || {
                yield_to_traffic();
                reading.run(&events, tell)
            })?;
            let mut serving = Vec::new();
            for _ in 0..threads {
                let (proxy, listener) = (Arc::clone(&proxy), listener.try_clone()?);
                let stop = stop.clone();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                serving.push(named("proxy").spawn_scoped(scope, move || {
                    let served = runtime.block_on(proxy.serve(listener, bounds, stop));
                    // Connections end here, and with them the exchanges that have not ended.
                    drop(runtime);
                    served
                })?);
            }
            drop(proxy);
            for served in serving {
                served.join().map_err(|_| io::Error::other("a thread of the proxy panicked"))??;
            }
            let file = rows.join();
            file.map(|file| file.paths())
                .map_err(|_| io::Error::other("the thread of rows panicked"))
        })
    }
}

// The files of a recording. Each row is written with one call, so a killed process leaves whole
// rows. After a failed write the file is cut back to its last whole row.
struct RowFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Bytes after which the next file begins.
    most: u64,
    full: u32,
}

impl RowFile {
    /// Begins a file that must not exist. Errors: the system's.
    pub(crate) fn begin(path: &Path, most: u64) -> io::Result<Self> {
        let file = private::options().create_new(true).open(path)?;
        Ok(RowFile { path: path.to_owned(), file, length: 0, most, full: 0 })
    }

    /// Writes a row, in the next file if this one is full. After an error the row is lost.
    pub(crate) fn write(&mut self, row: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + row.len() as u64 > self.most {
            self.rotate()?;
        }
        let written = self.file.write_all(row);
        if written.is_err() {
            self.file.set_len(self.length)?;
            io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.length))?;
            return written;
        }
        self.length += row.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let path = numbered(&self.path, self.full + 1);
        self.file = private::options().create_new(true).open(path)?;
        self.full += 1;
        self.length = 0;
        Ok(())
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        (0..=self.full).map(|number| numbered(&self.path, number)).collect()
    }
}

/// The path of the file of this number: `traffic.jsonl`, `traffic.1.jsonl` and so on.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number}"),
    };
    path.with_file_name(name)
}
