//! Searches in texts that others wrote. A page may have any repetitions and lines of any length, so
//! a search from the start for each part takes the square of its length. The searches here look at
//! each byte of a text a fixed number of times, and tests count it ([`did`]).

/// Counts a piece of work, in bytes or steps, for tests. Otherwise it does nothing.
#[cfg(not(test))]
#[inline]
pub(super) fn did(_steps: usize) {}

#[cfg(test)]
pub(super) use counted::did;

/// The place where a text has a pattern first.
pub(super) fn find(text: &str, pattern: &str) -> Option<usize> {
    let found = text.find(pattern);
    did(found.unwrap_or(text.len()) + 1);
    found
}

/// The next occurrence of a pattern, for places that only grow.
#[derive(Default)]
pub(super) struct Ahead<'a> {
    text: &'a str,
    pattern: &'static str,
    /// The next place, if there is one; absent before the first search.
    next: Option<Option<usize>>,
}

impl<'a> Ahead<'a> {
    pub fn new(text: &'a str, pattern: &'static str) -> Self {
        Ahead { text, pattern, next: None }
    }

    /// Finds the first occurrence from a place on. No place may be before an earlier call's place.
    pub fn from(&mut self, at: usize) -> Option<usize> {
        // Nobody has looked yet, or only before this place.
        if self.next.is_none_or(|next| next.is_some_and(|next| next < at)) {
            self.next = Some(find(&self.text[at..], self.pattern).map(|offset| at + offset));
        }
        self.next.flatten()
    }
}

/// Lines and columns of places that only grow.
pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// The place where the line begins.
    begun: usize,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        Lines { text, at: 0, line: 1, begun: 0 }
    }

    /// The line of a place, and the byte of the line, both from 1.
    pub fn place(&mut self, at: usize) -> (usize, usize) {
        did(at - self.at);
        for (offset, _) in self.text[self.at..at].match_indices('\n') {
            self.line += 1;
            self.begun = self.at + offset + 1;
        }
        self.at = at;
        (self.line, at - self.begun + 1)
    }
}

/// True if a place is in one of several ranges, which are in order and do not overlap.
pub(super) fn inside<T>(ranges: &[T], at: usize, ends: impl Fn(&T) -> (usize, usize)) -> bool {
    let index = ranges.partition_point(|range| {
        did(1);
        ends(range).1 <= at
    });
    ranges.get(index).is_some_and(|range| ends(range).0 <= at)
}

/// The beginning of a text, with a mark where more follows.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
pub(super) mod counted {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub fn did(steps: usize) {
        STEPS.with(|all| all.set(all.get() + steps as u64));
    }

    pub fn steps<T>(of: impl FnOnce() -> T) -> u64 {
        let before = STEPS.with(Cell::get);
        drop(of());
        STEPS.with(Cell::get) - before
    }
}
