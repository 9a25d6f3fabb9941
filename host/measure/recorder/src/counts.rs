//! Counts of a recording: every request that passed has one of them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $name:ident => $text:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count {
            $($(#[doc = $doc])* $name,)+
        }

        const TEXTS: &[&str] = &[$($text),+];
    };
}

counts! {
    Rows => "rows written",
    Refused => "  of them with an error status",
    /// Of these, the reply broke off, or the client left.
    Broken => "  of them without the end of their reply",
    Uncounted => "  of them without token counts of the server",
    Differs => "  of them whose prompt the tokenizer counts differently",
    UnknownRoute => "requests on other routes",
    /// A line of a log is no JSON, or lacks its time, its request or its reply.
    UnknownLine => "lines of the log without a time, a request or a reply",
    UnknownForm => "requests whose body no backend could read",
    UnknownReply => "replies that the backend could not read",
    /// The connection became another protocol's.
    Upgraded => "connections that became WebSockets",
    /// The server could not be reached or closed the connection, or the client left.
    Unreachable => "requests without a reply",
    /// The copy was given up at its bound.
    TooLarge => "exchanges larger than the recorder's memory",
    Behind => "exchanges dropped because the recorder was behind",
    Unwritten => "rows lost because the file could not be written",
}

/// The counts of a recording so far.
#[derive(Debug)]
pub struct Counts([AtomicU64; TEXTS.len()]);

impl Default for Counts {
    fn default() -> Self {
        Counts(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counts {
    pub(crate) fn add(&self, count: Count) {
        self.0[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of requests with this fate.
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    /// A line for each count that is not zero; the rows always have theirs.
    pub fn lines(&self) -> Vec<String> {
        let numbers = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        let lines = numbers.zip(TEXTS).enumerate();
        let lines = lines.filter(|(place, (number, _))| *place == 0 || *number > 0);
        lines.map(|(_, (number, text))| format!("{number:>9} {text}")).collect()
    }
}
