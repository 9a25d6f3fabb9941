//! Recorded arrival times: reads them from the lines of a file.
//!
//! The plan holds which file it is, and its digest; `resolve` opens it.

use std::io::BufRead;
use std::sync::Arc;

use serde::Deserialize;

use crate::units::Nanos;

/// Times of a trace in seconds, in order; those of a file count from its first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace(Arc<[f64]>);

/// Why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// A line without a time.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// There is nothing in it.
    #[error("it holds no timestamps")]
    Empty,
}

/// How a trace's lines are written.
#[derive(Clone, Copy, PartialEq)]
enum Notation {
    /// A JSON object with a `timestamp` in milliseconds, as Mooncake's traces have them.
    Objects,
    /// A number of seconds.
    Numbers,
}

#[derive(Deserialize)]
struct Object {
    timestamp: f64,
}

impl Trace {
    /// Reads a trace: on each line a JSON object with a `timestamp` in milliseconds, or a number of
    /// seconds. Its times are sorted and counted from the first. Blank lines are ignored.
    ///
    /// # Errors
    /// The first line that is neither, or not written like the lines before it.
    pub fn read(mut lines: impl BufRead) -> Result<Self, TraceError> {
        let mut all = Vec::new();
        let mut notation = None;
        let (mut text, mut line) = (String::new(), 0);
        loop {
            text.clear();
            line += 1;
            if lines.read_line(&mut text)? == 0 {
                break;
            }
            if !text.trim().is_empty() {
                let number = number(text.trim(), &mut notation);
                all.push(number.map_err(|what| TraceError::Line { line, what })?);
            }
        }
        all.sort_by(f64::total_cmp);
        let first = *all.first().ok_or(TraceError::Empty)?;
        let unit = match notation {
            Some(Notation::Objects) => 1000.0,
            _ => 1.0,
        };
        // Counted from the first before milliseconds become seconds: instants of the calendar are large.
        Ok(Trace(all.iter().map(|at| (at - first) / unit).collect()))
    }

    /// From times since the beginning, in order; the offset of the first is kept.
    pub fn of(instants: &[Nanos]) -> Self {
        Trace(instants.iter().map(|at| at.as_secs_f64()).collect())
    }

    /// Its first time, played this many times as fast; 0 if it has none.
    pub fn first(&self, time_scale: f64) -> Nanos {
        Nanos::from_secs_f64(self.0.first().map_or(0.0, |first| first / time_scale))
    }

    /// How many times it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none; no file is such a trace.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its times, played this many times as fast, in seconds.
    pub(super) fn seconds(&self, time_scale: f64) -> impl Iterator<Item = f64> + Send + use<> {
        let all = Arc::clone(&self.0);
        (0..all.len()).map(move |index| all[index] / time_scale)
    }

    /// Seconds from the beginning to its last time, played this many times as fast.
    pub fn length(&self, time_scale: f64) -> f64 {
        self.0.last().map_or(0.0, |last| last / time_scale)
    }

    /// The most times within a second, played this many times as fast.
    pub fn peak(&self, time_scale: f64) -> u64 {
        let mut begin = 0;
        let mut most = 0;
        for (end, at) in self.0.iter().enumerate() {
            while (at - self.0[begin]) / time_scale >= 1.0 {
                begin += 1;
            }
            most = most.max(end + 1 - begin);
        }
        most as u64
    }
}

/// The time on a line.
fn number(text: &str, notation: &mut Option<Notation>) -> Result<f64, String> {
    let this = match text.starts_with('{') {
        true => Notation::Objects,
        false => Notation::Numbers,
    };
    if *notation.get_or_insert(this) != this {
        let (before, here) = match this {
            Notation::Objects => ("numbers of seconds", "a JSON object"),
            Notation::Numbers => ("JSON objects", "not a JSON object"),
        };
        return Err(format!("{here}, but the lines before are {before}"));
    }
    let number = match this {
        Notation::Objects => {
            serde_json::from_str::<Object>(text)
                .map_err(|cause| {
                    // Its line is the first of one; the file's is told before.
                    let cause = cause.to_string();
                    let what = cause.split(" at line ").next().unwrap_or_default();
                    format!("expected a JSON object with a `timestamp` in milliseconds: {what}")
                })?
                .timestamp
        }
        Notation::Numbers => text.parse().unwrap_or(f64::NAN),
    };
    match number.is_finite() {
        true => Ok(number),
        false => Err(
            "expected a number of seconds, or a JSON object with a `timestamp` in milliseconds"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Vec<f64> {
        Trace::read(text.as_bytes()).unwrap().seconds(1.0).collect()
    }

    #[test]
    fn instants_are_counted_from_the_first_in_order() {
        assert_eq!(seconds("3.5\n\n 1.5 \n2e0\n"), [0.0, 0.5, 2.0]);
        let objects = "{\"timestamp\": 1766000003000, \"input_length\": 7}\n\
                       {\"hash_ids\": [1], \"timestamp\": 1766000000250}";
        assert_eq!(seconds(objects), [0.0, 2.75]);
        assert_eq!(seconds("-1\r\n+1\r\n"), [0.0, 2.0]);
    }

    #[test]
    fn a_time_scale_plays_it_faster() {
        let trace = Trace::read("0\n1\n1.9\n4\n".as_bytes()).unwrap();
        assert_eq!((trace.len(), trace.length(2.0)), (4, 2.0));
        assert_eq!(
            trace.seconds(2.0).collect::<Vec<_>>(),
            [0.0, 0.5, 0.95, 2.0]
        );
        let peaks = [0.5, 1.0, 2.0, 8.0].map(|scale| trace.peak(scale));
        assert_eq!(peaks, [1, 2, 3, 4]);
    }

    #[test]
    fn a_line_that_says_no_instant_is_named() {
        let cases = [
            ("", "it holds no timestamps"),
            ("\n \n", "it holds no timestamps"),
            (
                "1\n\nsoon\n",
                "line 3: expected a number of seconds, or a JSON object with a `timestamp` in milliseconds",
            ),
            (
                "1\ninf\n",
                "line 2: expected a number of seconds, or a JSON object with a `timestamp` in milliseconds",
            ),
            (
                "1\n{\"timestamp\": 2}\n",
                "line 2: a JSON object, but the lines before are numbers of seconds",
            ),
            (
                "{\"timestamp\": 2}\n1\n",
                "line 2: not a JSON object, but the lines before are JSON objects",
            ),
            (
                "{\"time\": 2}\n",
                "line 1: expected a JSON object with a `timestamp` in milliseconds: missing field `timestamp`",
            ),
        ];
        for (text, expected) in cases {
            let error = Trace::read(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text:?}");
        }
    }
}
