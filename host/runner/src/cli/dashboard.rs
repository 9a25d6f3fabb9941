//! The dashboard: shows a run live on the whole terminal, and takes keys that stop it. [`view`]
//! draws the run; [`screen`] handles the terminal itself.

pub mod view;

use std::io::{self, IsTerminal, Stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::interrupt::Interrupt;
use super::progress::Progress;
use load::thread_group::ThreadGroup;
use scenario::plan::Plan;
use session::live::{History, Live, Snapshot};
use view::{Subject, View};

const REDRAW: Duration = Duration::from_millis(250);

/// Shows a run until the returned value is dropped.
pub fn show(
    plan: &Plan,
    live: &Arc<Live>,
    threads: &ThreadGroup,
    interrupt: &Interrupt,
) -> io::Result<Progress> {
    let screen = Screen::enter()?;
    let drawing = Drawing {
        subject: Subject::from_plan(plan),
        live: Arc::clone(live),
        interrupt: interrupt.clone(),
        keys: Keys::default(),
    };
    Progress::start("dashboard", live, threads, |finished| drawing.draw(screen, finished))
}

struct Drawing {
    subject: Subject,
    live: Arc<Live>,
    interrupt: Interrupt,
    keys: Keys,
}

/// Settings of the display that keys change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Keys {
    paused: bool,
    help: bool,
}

impl Drawing {
    fn draw(mut self, mut screen: Screen, finished: &AtomicBool) {
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut history = History::default();
        let mut last: Option<(Snapshot, History)> = None;
        // Do not draw on a screen that something else has left.
        while !finished.load(Ordering::Acquire) && is_up() {
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
                && self.keys.press(&key)
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
    /// Changes the display as a key says, and returns true if the key stops the run.
    fn press(&mut self, key: &KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') if !control => return true,
            KeyCode::Char('c') if control => return true,
            KeyCode::Char('?' | 'h') if !control => self.help = !self.help,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('p') if !control => self.paused = !self.paused,
            _ => {}
        }
        false
    }
}

/// True while the alternate screen is shown. There is one terminal.
static UP: AtomicBool = AtomicBool::new(false);

/// The alternate screen, until dropped.
pub struct Screen {
    pub terminal: Terminal<CrosstermBackend<Stderr>>,
}

/// True if there is a terminal to draw on and to read keys from.
pub(crate) fn is_possible() -> bool {
    super::progress::can_be_drawn_on()
        && (io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok())
}

impl Screen {
    /// Changes to the alternate screen. Keys are not echoed there, and Ctrl-C arrives as a key.
    pub fn enter() -> io::Result<Self> {
        UP.store(true, Ordering::Release);
        let entered = enable_raw_mode()
            .and_then(|()| execute!(io::stderr(), EnterAlternateScreen))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        match entered {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(cause) => {
                leave();
                Err(cause)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// True if the alternate screen is shown, so that nothing else may be printed.
pub(crate) fn is_up() -> bool {
    UP.load(Ordering::Acquire)
}

/// Changes back. Does nothing if that has been done.
pub fn leave() {
    if UP.swap(false, Ordering::AcqRel) {
        // A terminal that has gone away needs no cleanup.
        let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
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
            assert!(keys.press(&stop));
        }
        assert!(!keys.press(&plain('c')));
        assert_eq!(keys, Keys::default());
        keys.press(&plain('p'));
        keys.press(&key(KeyCode::Char('?'), KeyModifiers::SHIFT));
        assert_eq!((keys.paused, keys.help), (true, true));
        keys.press(&key(KeyCode::Esc, KeyModifiers::NONE));
        keys.press(&plain('p'));
        assert_eq!(keys, Keys::default());
    }
}
