//! The terminal's alternate screen: entered for a dashboard, and left on every way out, so that
//! later output appears where people look for it.

use std::io::{self, IsTerminal, Stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// True while the alternate screen is shown. There is one terminal.
static UP: AtomicBool = AtomicBool::new(false);

/// The alternate screen, until dropped.
pub struct Screen {
    pub terminal: Terminal<CrosstermBackend<Stderr>>,
}

/// True if there is a terminal to draw on and to read keys from.
pub(crate) fn is_possible() -> bool {
    super::super::progress::can_be_drawn_on()
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
