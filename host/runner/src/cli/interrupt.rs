//! Ctrl-C: the first finishes the requests in flight and reports, the second stops, the third exits at once.
//! A termination signal counts as the same.

use std::io;
use std::process;
use std::sync::{Arc, Mutex};

use tokio::signal::unix::{SignalKind, signal};

use super::dashboard::screen;
use super::failure::{Exit, tell};
use load::pace::Signal;

/// Prints a message, unless a dashboard is up and shows the state itself.
fn say(words: &str) {
    if !screen::is_up() {
        tell(words);
    }
}

/// SIGXFSZ: a file would outgrow `ulimit -f`.
const FILE_SIZE_LIMIT: i32 = 25;

/// Passes interrupts on to the current run.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    count: u32,
    run: Option<Signal>,
}

impl Interrupt {
    /// Starts to listen.
    ///
    /// # Errors
    /// If signals cannot be listened to, or no thread can be started.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        let heard = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let [mut interrupts, mut terminations, _file_size] = {
            let _entered = runtime.enter();
            [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                // With a listener, the signal is no kill but a failed write, which is reported.
                signal(SignalKind::from_raw(FILE_SIZE_LIMIT))?,
            ]
        };
        let attend = async move {
            loop {
                let came = tokio::select! {
                    came = interrupts.recv() => came,
                    came = terminations.recv() => came,
                };
                if came.is_none() {
                    return;
                }
                heard.raise();
            }
        };
        std::thread::Builder::new()
            .name("interrupt".into())
            .spawn(move || runtime.block_on(attend))?;
        Ok(interrupt)
    }

    /// Acts as if the signal had come.
    pub fn raise(&self) {
        let mut state = self.lock();
        state.count += 1;
        match (&state.run, state.count) {
            (Some(run), 1) => {
                say(
                    "\ninterrupted: waiting for the requests in flight, then reporting; interrupt again to stop at once",
                );
                run.stop();
            }
            (Some(run), 2) => {
                say("\nstopping: abandoning the requests in flight");
                run.abort();
            }
            _ => {
                screen::leave();
                process::exit(i32::from(Exit::Interrupted as u8))
            }
        }
    }

    /// A run begins; it is stopped at once if an interrupt came earlier.
    pub fn watch(&self, run: &Signal) {
        let mut state = self.lock();
        if state.count > 0 {
            run.stop();
        }
        state.run = Some(run.clone());
    }

    /// Whether an interrupt came.
    pub fn came(&self) -> bool {
        self.lock().count > 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
