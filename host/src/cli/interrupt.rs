//! Ctrl-C: once finishes what is in flight and reports, twice stops, three times leaves at once.
//! A termination signal counts as the same.

use std::io;
use std::process;
use std::sync::{Arc, Mutex};

use super::failure::Exit;
use crate::pace::Signal;

/// Passes interrupts on to the run that is under way.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    count: u32,
    run: Option<Signal>,
}

impl Interrupt {
    /// Listens from now on.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        let heard = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("interrupt".into())
            .spawn(move || runtime.block_on(heard.attend()))?;
        Ok(interrupt)
    }

    async fn attend(self) {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else {
            return;
        };
        loop {
            let heard = tokio::select! {
                heard = tokio::signal::ctrl_c() => heard.is_ok(),
                heard = terminate.recv() => heard.is_some(),
            };
            if !heard {
                return;
            }
            self.heard();
        }
    }

    fn heard(&self) {
        let mut state = self.lock();
        state.count += 1;
        match (&state.run, state.count) {
            (Some(run), 1) => {
                eprintln!(
                    "\ninterrupted: waiting for what is in flight, then reporting; once more stops at once"
                );
                run.stop();
            }
            (Some(run), 2) => {
                eprintln!("\nstopping");
                run.abort();
            }
            _ => process::exit(i32::from(Exit::Interrupted as u8)),
        }
    }

    /// A run begins; it is stopped at once if an interrupt came before.
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
