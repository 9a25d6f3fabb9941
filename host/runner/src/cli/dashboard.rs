//! The dashboard: shows a run live on the whole terminal, and takes keys that stop it.
//! [`view`] draws it; [`screen`] handles the terminal itself.

pub mod screen;
pub mod view;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::interrupt::Interrupt;
use load::thread_group::{GroupThread, ThreadGroup};
use load::vitals::{WatchedThread, yield_to_others};
use scenario::plan::Plan;
use screen::Screen;
use session::live::{History, Live, Snapshot};
use view::{Subject, View};

pub(crate) use screen::is_possible;

/// Time between two drawings: four a second.
const REDRAW: Duration = Duration::from_millis(250);

/// Draws until dropped.
pub struct Dashboard {
    finished: Arc<AtomicBool>,
    thread: Option<GroupThread<()>>,
}

impl Dashboard {
    /// Begins to show a run.
    ///
    /// # Errors
    /// If the terminal refuses, or no thread can be started.
    pub fn show(
        plan: &Plan,
        live: &Arc<Live>,
        threads: &ThreadGroup,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let finished = Arc::new(AtomicBool::new(false));
        let screen = Screen::enter()?;
        let looking = Looking {
            subject: Subject::from_plan(plan),
            live: Arc::clone(live),
            interrupt: interrupt.clone(),
            finished: Arc::clone(&finished),
            keys: Keys::default(),
        };
        let thread = threads.start("dashboard", None, move || {
            yield_to_others();
            looking.look(screen);
        })?;
        Ok(Dashboard { finished, thread: Some(thread) })
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.finished.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

struct Looking {
    subject: Subject,
    live: Arc<Live>,
    interrupt: Interrupt,
    finished: Arc<AtomicBool>,
    keys: Keys,
}

/// Settings of the display that keys change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Keys {
    paused: bool,
    help: bool,
}

/// A key's command beyond the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Nothing,
    Stop,
}

impl Looking {
    fn look(mut self, mut screen: Screen) {
        if let Some(watched) = WatchedThread::this_thread("dashboard") {
            self.live.enlist(watched);
        }
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut history = History::default();
        let mut last: Option<(Snapshot, History)> = None;
        // Do not draw on a screen that something else has left.
        while !self.finished.load(Ordering::Acquire) && screen::is_up() {
            let next = Instant::now() + REDRAW;
            let now = self.live.snapshot();
            history.note(&now);
            let shown = match last.take() {
                Some(last) if self.keys.paused => last,
                _ => (now, history.clone()),
            };
            let view = View {
                subject: &self.subject,
                snapshot: &shown.0,
                history: &shown.1,
                paused: self.keys.paused,
                help: self.keys.help,
                colours,
            };
            if screen.terminal.draw(|frame| view.draw(frame)).is_err() {
                return;
            }
            last = Some(shown);
            self.listen_until(next);
        }
    }

    /// Takes keys until it is time to draw again.
    fn listen_until(&mut self, next: Instant) {
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match event::poll(left) {
                Ok(true) => {}
                Ok(false) => return,
                // Without keys, the display still works.
                Err(_) => return std::thread::sleep(left),
            }
            if let Ok(Event::Key(key)) = event::read()
                && self.keys.press(&key) == Wish::Stop
            {
                self.interrupt.raise();
            }
            if next <= Instant::now() {
                return;
            }
        }
    }
}

impl Keys {
    fn press(&mut self, key: &KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') if !control => return Wish::Stop,
            KeyCode::Char('c') if control => return Wish::Stop,
            KeyCode::Char('?' | 'h') if !control => self.help = !self.help,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('p') if !control => self.paused = !self.paused,
            _ => {}
        }
        Wish::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let mut keys = Keys::default();
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        let plain = |letter| key(KeyCode::Char(letter), KeyModifiers::NONE);
        let stops = [plain('q'), key(KeyCode::Char('c'), KeyModifiers::CONTROL)];
        for stop in stops {
            assert_eq!(keys.press(&stop), Wish::Stop);
        }
        assert_eq!(keys.press(&plain('c')), Wish::Nothing);
        assert_eq!(keys, Keys::default());
        keys.press(&plain('p'));
        keys.press(&key(KeyCode::Char('?'), KeyModifiers::SHIFT));
        assert_eq!((keys.paused, keys.help), (true, true));
        keys.press(&key(KeyCode::Esc, KeyModifiers::NONE));
        keys.press(&plain('p'));
        assert_eq!(keys, Keys::default());
    }
}
