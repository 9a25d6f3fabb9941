//! Ctrl-C: the first finishes the requests in flight and reports, the second stops, the third exits
//! at once. A termination signal and a hangup count as the same. While answers are counted and
//! judged, the first gives that up and reports, the second exits at once.

use std::sync::{Arc, Mutex};
use std::{io, process};

use tokio::signal::unix::{SignalKind, signal};

use super::dashboard;
use super::failure::{Exit, Failure};
use super::print::tell;
use load::pace::Signal;

/// Prints a message, unless a dashboard is up and shows the state itself.
fn say(message: &str) {
    if !dashboard::is_up() {
        tell(message);
    }
}

/// SIGHUP: the terminal is gone.
const HANGUP: u32 = 1;
/// SIGXFSZ: a file would outgrow `ulimit -f`.
const FILE_SIZE_LIMIT: i32 = 25;

/// True if the process was started with this signal ignored, where the system tells.
fn is_ignored(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// Waits for a signal, or for ever if nothing listens for it.
pub(super) async fn received(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Listens for hangups, unless they are ignored, as behind `nohup`.
pub(super) fn hangups() -> Option<tokio::signal::unix::Signal> {
    if is_ignored(HANGUP) { None } else { signal(SignalKind::hangup()).ok() }
}

/// Passes interrupts on to the current run.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    count: u32,
    work: Work,
    /// The message of the first interrupt between runs, where it does not end the program.
    between: Option<&'static str>,
    /// The clean-up when the program ends at once; it returns a message.
    leaving: Option<Box<dyn FnOnce() -> String + Send>>,
}

/// The work that an interrupt stops.
#[derive(Default)]
enum Work {
    /// Nothing that is worth saving.
    #[default]
    Nothing,
    /// A run makes its load, or several do together.
    Load(Vec<Signal>),
    /// Samples are drawn, and nothing is sent.
    Drawing(Signal),
    /// The results of a run are assessed, since this number of interrupts.
    Assessment(u32),
}

impl Interrupt {
    pub fn listen() -> Result<Self, Failure> {
        Interrupt::begin().map_err(Failure::cannot("listen for signals"))
    }

    fn begin() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        let listener = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut hangups, [mut interrupts, mut terminations, _file_size]) = {
            let _entered = runtime.enter();
            let always = [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                // With a listener, the signal is no kill but a failed write, which is reported.
                signal(SignalKind::from_raw(FILE_SIZE_LIMIT))?,
            ];
            (hangups(), always)
        };
        let attend = async move {
            loop {
                let came = tokio::select! {
                    came = interrupts.recv() => came,
                    came = terminations.recv() => came,
                    came = received(&mut hangups) => came,
                };
                if came.is_none() {
                    return;
                }
                listener.raise();
            }
        };
        std::thread::Builder::new()
            .name("interrupt".into())
            .spawn(move || runtime.block_on(attend))?;
        Ok(interrupt)
    }

    pub fn raise(&self) {
        let mut state = self.lock();
        state.count += 1;
        match (&state.work, state.count) {
            (Work::Load(run), 1) => {
                say(
                    "\ninterrupted: waiting for the requests in flight, then reporting; interrupt again to stop at once",
                );
                run.iter().for_each(Signal::stop);
            }
            (Work::Load(run), 2) => {
                say("\nstopping: abandoning the requests in flight");
                run.iter().for_each(Signal::abort);
            }
            (Work::Drawing(drawing), 1) => {
                say("\ninterrupted: showing the samples so far; interrupt again to stop at once");
                drawing.stop();
            }
            (Work::Nothing, 1) if state.between.is_some() => {
                say(&format!(
                    "\ninterrupted: {}; interrupt again to leave at once",
                    state.between.unwrap_or_default()
                ));
            }
            (Work::Assessment(before), count) if count == before + 1 => say(
                "\ninterrupted: reporting without counting and judging the answers; interrupt again to stop at once (the records are saved)",
            ),
            _ => {
                dashboard::leave();
                if let Some(leave) = state.leaving.take() {
                    tell(format_args!("\nleaving at once: {}", leave()));
                }
                process::exit(i32::from(Exit::Interrupted as u8))
            }
        }
    }

    /// A run begins; it is stopped at once if an interrupt came earlier.
    pub fn watch(&self, run: &Signal) {
        self.watch_all(std::slice::from_ref(run));
    }

    /// Several runs begin together.
    pub fn watch_all(&self, runs: &[Signal]) {
        let mut state = self.lock();
        if state.count > 0 {
            runs.iter().for_each(Signal::stop);
        }
        state.work = Work::Load(runs.to_vec());
    }

    /// Samples are drawn; that is stopped at once if an interrupt came earlier.
    pub fn drawing(&self, signal: &Signal) {
        let mut state = self.lock();
        if state.count > 0 {
            signal.stop();
        }
        state.work = Work::Drawing(signal.clone());
    }

    pub fn assessing(&self) {
        let mut state = self.lock();
        state.work = Work::Assessment(state.count);
    }

    /// True if an interrupt came since then.
    pub fn ends_assessment(&self) -> bool {
        let state = self.lock();
        matches!(state.work, Work::Assessment(before) if state.count > before)
    }

    /// Sets the message of the first interrupt between runs; without one, it ends the program.
    pub fn between_runs(&self, message: Option<&'static str>) {
        self.lock().between = message;
    }

    /// The message of an interrupt between runs.
    pub fn between(&self) -> Option<&'static str> {
        self.lock().between
    }

    /// Sets or removes the clean-up, with its message, of an interrupt that ends the program.
    pub fn before_leaving(&self, clean_up: Option<Box<dyn FnOnce() -> String + Send>>) {
        self.lock().leaving = clean_up;
    }

    pub fn done(&self) {
        self.lock().work = Work::Nothing;
    }

    pub fn count(&self) -> u32 {
        self.lock().count
    }

    pub fn came(&self) -> bool {
        self.lock().count > 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
