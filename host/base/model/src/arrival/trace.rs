//! Recorded arrival times, from the lines of a file whose path and digest the plan holds.

use std::io::{BufRead, Read};
use std::sync::Arc;

use serde::Deserialize;

use crate::units::Nanos;

/// Times of a trace in seconds, in order; a file's times count from its first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace(Arc<[f64]>);

/// The reason why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The line of this number, from 1, has no time, for this reason.
    #[error("line {0}: {1}")]
    Line(usize, String),
    /// It has more times than memory may hold; the number of the first line too many, from 1.
    #[error("line {0}: it has more than {MOST_TIMES} times; use a part of it")]
    TooMany(usize),
    /// There is nothing in it.
    #[error("it holds no timestamps")]
    Empty,
}

/// The most times that a trace may have: they are all held in memory.
pub const MOST_TIMES: usize = 10_000_000;

/// The longest line of a trace, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Notation {
    /// A JSON object with a `timestamp` in milliseconds, as Mooncake's traces have them.
    Objects,
    Numbers,
}

#[derive(Deserialize)]
struct Object {
    timestamp: f64,
}

impl Trace {
    /// Reads a trace: on each line a JSON object with a `timestamp` in milliseconds, or a number of
    /// seconds. Its times are sorted and counted from the first. Blank lines are ignored. Fails if
    /// a line is neither, or is not written like the lines before it.
    pub fn read(mut lines: impl BufRead) -> Result<Self, TraceError> {
        let mut all = Vec::new();
        let mut notation = None;
        let (mut bytes, mut line) = (Vec::new(), 0);
        loop {
            bytes.clear();
            line += 1;
            let wrong = |mistake| TraceError::Line(line, mistake);
            let mut one = Read::take(&mut lines, LONGEST_LINE + 1);
            if one.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            if bytes.len() as u64 > LONGEST_LINE {
                let mistake = format!("it is longer than {LONGEST_LINE} bytes");
                return Err(wrong(mistake));
            }
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| wrong("it is not text in UTF-8".to_owned()))?
                .trim();
            if !text.is_empty() {
                if all.len() == MOST_TIMES {
                    return Err(TraceError::TooMany(line));
                }
                all.push(number(text, &mut notation).map_err(wrong)?);
            }
        }
        all.sort_by(f64::total_cmp);
        let first = *all.first().ok_or(TraceError::Empty)?;
        let unit = match notation {
            Some(Notation::Objects) => 1000.0,
            _ => 1.0,
        };
        // Counted from the first before milliseconds become seconds: instants of the calendar are
        // large.
        Ok(Trace(all.iter().map(|at| (at - first) / unit).collect()))
    }

    /// From times since the beginning, in order; the offset of the first is kept.
    pub fn from_instants(instants: &[Nanos]) -> Self {
        Trace(instants.iter().map(|at| at.as_secs_f64()).collect())
    }

    /// Its first time, played this many times as fast; 0 if it has none.
    pub fn first(&self, time_scale: f64) -> Nanos {
        Nanos::from_secs_f64(self.0.first().map_or(0.0, |first| first / time_scale))
    }

    /// Returns the number of its times.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if it has no times; no file is such a trace.
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

fn number(text: &str, notation: &mut Option<Notation>) -> Result<f64, String> {
    let this = if text.starts_with('{') { Notation::Objects } else { Notation::Numbers };
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
                    // serde's line number is always 1; the message names the file's line.
                    let cause = cause.to_string();
                    let message = cause.split(" at line ").next().unwrap_or_default();
                    format!("expected a JSON object with a `timestamp` in milliseconds: {message}")
                })?
                .timestamp
        }
        Notation::Numbers => text.parse().unwrap_or(f64::NAN),
    };
    if number.is_finite() {
        Ok(number)
    } else {
        Err("expected a number of seconds, or a JSON object with a `timestamp` in milliseconds"
            .to_owned())
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
        assert_eq!(trace.seconds(2.0).collect::<Vec<_>>(), [0.0, 0.5, 0.95, 2.0]);
        let peaks = [0.5, 1.0, 2.0, 8.0].map(|scale| trace.peak(scale));
        assert_eq!(peaks, [1, 2, 3, 4]);
    }

    #[test]
    fn refuses_hostile_traces_with_their_line() {
        let long = format!("1\n{}", "9".repeat(LONGEST_LINE as usize + 1));
        let nested = format!("{{\"timestamp\": 1, \"x\": {}", "[".repeat(1 << 19));
        let expects = "expected a number of seconds";
        for (bytes, line, expected) in [
            (long.as_bytes(), 2, "it is longer than 1048576 bytes"),
            (nested.as_bytes(), 1, "EOF while parsing"),
            (&b"1\n2\n\xff\xfe\n"[..], 3, "it is not text in UTF-8"),
            (b"\x7fELF\x02\x01\x01\0\0\0", 1, expects),
            (b"1\nNaN\n", 2, expects),
            (b"1\n-inf\n", 2, expects),
            (b"1\n1e400\n", 2, expects),
            (b"1\n0x10\n", 2, expects),
            (b"{\"timestamp\": 1e400}", 1, "number out of range"),
            (b"{\"timestamp\": \"1\"}", 1, "invalid type"),
            (b"{\"timestamp\": null}", 1, "invalid type"),
            (b"{\"timestamp\": [1]}", 1, "invalid type"),
            (b"{\"timestamp\": 1", 1, "EOF while parsing"),
            (b"[1]", 1, expects),
        ] {
            let error = Trace::read(bytes).unwrap_err();
            let TraceError::Line(at, mistake) = &error else { panic!("{error:?}") };
            assert_eq!(*at, line, "{mistake}");
            assert!(mistake.contains(expected), "{mistake:.300}");
        }
        // A device that never ends its first line takes no more memory than one line.
        let error = Trace::read(std::io::BufReader::new(std::io::repeat(b'1'))).unwrap_err();
        assert!(error.to_string().starts_with("line 1: it is longer"), "{error}");
    }

    struct Zeros;

    impl Read for Zeros {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let whole = buffer.len() & !1;
            for pair in buffer[..whole].chunks_exact_mut(2) {
                pair.copy_from_slice(b"0\n");
            }
            Ok(whole)
        }
    }

    #[test]
    fn a_trace_with_too_many_times_is_refused() {
        let error = Trace::read(std::io::BufReader::new(Zeros)).unwrap_err();
        let wanted = "line 10000001: it has more than 10000000 times; use a part of it";
        assert_eq!(error.to_string(), wanted);
    }

    #[test]
    fn times_far_apart_are_no_panic() {
        let trace = Trace::read("-1e308\n1e308\n".as_bytes()).unwrap();
        assert_eq!(trace.length(1.0), f64::INFINITY);
        assert_eq!(trace.peak(1.0), 1);
    }

    #[test]
    fn errors_name_a_line_without_an_instant() {
        let object = "a JSON object with a `timestamp` in milliseconds";
        for (text, expected) in [
            ("", "it holds no timestamps"),
            ("\n \n", "it holds no timestamps"),
            ("1\n\nsoon\n", &format!("line 3: expected a number of seconds, or {object}")),
            ("1\ninf\n", &format!("line 2: expected a number of seconds, or {object}")),
            (
                "1\n{\"timestamp\": 2}\n",
                "line 2: a JSON object, but the lines before are numbers of seconds",
            ),
            (
                "{\"timestamp\": 2}\n1\n",
                "line 2: not a JSON object, but the lines before are JSON objects",
            ),
            ("{\"time\": 2}\n", &format!("line 1: expected {object}: missing field `timestamp`")),
        ] {
            let error = Trace::read(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text:?}");
        }
    }
}
