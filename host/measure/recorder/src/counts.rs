//! Counts of a recording: every request that passed has one of them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident => $text:literal,)+) => {
        /// A fate of a request, or a fact of a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count {
            $($(#[doc = $doc])+ $name,)+
        }

        const TEXTS: &[&str] = &[$($text),+];
    };
}

counts! {
    /// A row was written.
    Rows => "rows written",
    /// Of these, the server answered with an error status.
    Refused => "  of them with an error status",
    /// Of these, the reply broke off, or the client left.
    Broken => "  of them without the end of their reply",
    /// Of these, the server did not report its token counts.
    Uncounted => "  of them without token counts of the server",
    /// Of these, the tokenizer and the server count differently.
    Differs => "  of them whose prompt the tokenizer counts differently",
    /// No backend knows the route.
    UnknownRoute => "requests on other routes",
    /// A line of a log is no JSON, or lacks its time, its request or its reply.
    UnknownLine => "lines of the log without a time, a request or a reply",
    /// The body is not as the backend writes one.
    UnknownForm => "requests whose body no backend could read",
    /// The backend could not read the reply.
    UnknownReply => "replies that the backend could not read",
    /// The connection became another protocol's.
    Upgraded => "connections that became WebSockets",
    /// The server could not be reached or closed the connection, or the client left.
    Unreachable => "requests without a reply",
    /// The copy was given up at its bound.
    TooLarge => "exchanges larger than the recorder's memory",
    /// The reader of exchanges was behind.
    Behind => "exchanges dropped because the recorder was behind",
    /// The row could not be written.
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
