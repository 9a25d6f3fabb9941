//! The run's clock: the only place that reads it. Its origin is the run's own.
//!
//! On a runtime whose time is paused it returns virtual time, so that whole runs can be tested
//! with exact numbers.

use std::sync::OnceLock;
use std::time::SystemTime;

use tokio::time::Instant;

use crate::units::Nanos;

static PROCESS_BEGAN: OnceLock<std::time::Instant> = OnceLock::new();

/// Time since the first call: `main` calls it before everything else.
pub fn since_process_began() -> Nanos {
    PROCESS_BEGAN.get_or_init(std::time::Instant::now).elapsed().into()
}

/// A date of the system.
pub type Date = SystemTime;

/// The system's date, for dates in files and signatures.
pub fn date() -> Date {
    SystemTime::now()
}

/// Time since the run's origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Clock { origin: Instant::now() }
    }

    /// The present instant.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.origin.elapsed().into()
    }

    /// The same instant as the timers of the runtime know it.
    pub fn instant(&self, at: Nanos) -> Instant {
        self.origin + at.into()
    }

    /// Returns the lead of the system's clock over this clock, in nanoseconds, until somebody sets
    /// the system's clock. Absent if the two could not be read at the same instant.
    pub fn behind_system_time(&self) -> Option<i128> {
        /// Two readings further apart are not of one instant.
        const APART: Nanos = Nanos(100_000);
        let before = self.now();
        let system = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let after = self.now();
        let system = i128::try_from(system.ok()?.as_nanos()).ok()?;
        (after.since(before) <= APART).then(|| system - i128::from(before.0))
    }

    /// Returns the time since an instant of the system's time, given since 1970. Absent if the
    /// instant is in the future, because the system's clock was set back.
    #[inline]
    pub fn since_system_time(&self, at: Nanos) -> Option<Nanos> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = Nanos::from(now.ok()?);
        (now >= at).then(|| now.since(at))
    }
}
