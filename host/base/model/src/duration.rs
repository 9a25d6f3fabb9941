//! Lengths of time as people write them in scenarios, scripts and flags: `250ms`, `1.5s`, `1h30m`.
//! Whole nanoseconds are [`crate::units::Nanos`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANOS_PER_MINUTE: u128 = 60 * 1_000_000_000;

/// The units, longest first, and the nanoseconds in each.
const UNITS: [(&str, u128); 7] = [
    ("h", 60 * NANOS_PER_MINUTE),
    ("m", NANOS_PER_MINUTE),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("ns", 1),
];

/// The reason why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing was written.
    #[error("expected a length of time, such as `250ms` or `1.5s`, but found nothing")]
    Empty,
    /// In this text a number was expected before the rest.
    #[error("`{0}`: expected a number before `{1}`, as in `250ms` or `1.5s`")]
    Number(String, String),
    /// A number without a unit.
    #[error("`{0}`: a unit is missing; write `{0}ms`, `{0}s` or another of ns us ms s m h")]
    NoUnit(String),
    /// In this text a unit that does not exist.
    #[error("`{0}`: `{1}` is not a unit; expected one of ns us ms s m h")]
    Unit(String, String),
    /// A unit that is not shorter than the unit before it.
    #[error("`{0}`: units must go from long to short, each at most once, as in `1m30s`")]
    Order(String),
    /// More digits than whole nanoseconds have.
    #[error("`{0}`: the shortest possible time is 1ns")]
    TooFine(String),
    /// More than can be held.
    #[error("`{0}`: the time is too long; at most {hours} hours are possible", hours = u64::MAX / 3_600)]
    TooLong(String),
}

/// Reads a length of time: one number with a unit or several, longest unit first.
/// Numbers may have decimals; `0` alone needs no unit.
pub fn parse(text: &str) -> Result<Duration, ParseError> {
    let whole = || text.trim().to_owned();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(ParseError::Empty);
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total: u128 = 0;
    let mut longest = u128::MAX;
    while !rest.is_empty() {
        let number_ends =
            rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_ends);
        let tail = tail.trim_start();
        let unit_ends = tail
            .find(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        if number.is_empty() {
            return Err(ParseError::Number(whole(), rest.to_owned()));
        }
        if unit.is_empty() {
            return Err(ParseError::NoUnit(whole()));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(ParseError::Unit(whole(), unit.to_owned()));
        };
        if *nanos >= longest {
            return Err(ParseError::Order(whole()));
        }
        longest = *nanos;
        total = term(number, *nanos, text)?
            .checked_add(total)
            .ok_or_else(|| ParseError::TooLong(whole()))?;
        rest = tail.trim_start();
    }
    let seconds = u64::try_from(total / 1_000_000_000).map_err(|_| ParseError::TooLong(whole()))?;
    Ok(Duration::new(seconds, (total % 1_000_000_000) as u32))
}

/// One number in one unit, in nanoseconds, without going through floating point.
fn term(number: &str, unit: u128, text: &str) -> Result<u128, ParseError> {
    let whole = || text.trim().to_owned();
    let (integer, decimals) = number.split_once('.').unwrap_or((number, ""));
    if (integer.is_empty() && decimals.is_empty()) || decimals.contains('.') {
        return Err(ParseError::Number(whole(), number.to_owned()));
    }
    let too_long = |_| ParseError::TooLong(whole());
    let digits = |digits: &str| match digits {
        "" => Ok(0),
        digits => digits.parse::<u128>().map_err(too_long),
    };
    let decimals = decimals.trim_end_matches('0');
    let scale = u32::try_from(decimals.len())
        .ok()
        .and_then(|places| 10_u128.checked_pow(places))
        .ok_or_else(|| ParseError::TooFine(whole()))?;
    let fraction =
        digits(decimals)?.checked_mul(unit).ok_or_else(|| ParseError::TooFine(whole()))?;
    if !fraction.is_multiple_of(scale) {
        return Err(ParseError::TooFine(whole()));
    }
    digits(integer)?
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(fraction / scale))
        .ok_or_else(|| ParseError::TooLong(whole()))
}

/// Writes a length of time exactly, in the notation that [`parse`] reads: `250ms`, `1.5s`, `1m30s`.
pub fn format(span: Duration) -> String {
    let mut nanos = span.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    if nanos >= NANOS_PER_MINUTE {
        for (name, unit) in &UNITS[..2] {
            if nanos >= *unit {
                text.push_str(&format!("{}{name}", nanos / unit));
                nanos %= unit;
            }
        }
        if nanos == 0 {
            return text;
        }
    }
    let plain = [UNITS[2], UNITS[3], UNITS[4], UNITS[6]];
    let (name, unit) = plain.into_iter().find(|(_, unit)| nanos >= *unit).unwrap_or(UNITS[6]);
    text.push_str(&(nanos / unit).to_string());
    if !nanos.is_multiple_of(unit) {
        let places = unit.ilog10() as usize;
        let decimals = format!("{:0places$}", nanos % unit);
        text.push('.');
        text.push_str(decimals.trim_end_matches('0'));
    }
    text + name
}

/// A length of time that people see as text: in TOML, JSON, flags and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format(self.0))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        parse(&text).map(Span).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A length of time: `250ms`, `1.5s`, `2m`, `1h30m`.",
            "pattern": r"^(0|([0-9.]+ *(h|m|s|ms|us|µs|ns) *)+)$",
        })
    }
}

/// A limit as it is written: a number of milliseconds, as in `vllm bench serve`, or a time with its
/// unit. In milliseconds. Fails if it is neither.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    if let Ok(milliseconds) = text.trim().parse::<f64>() {
        return Ok(milliseconds);
    }
    parse(text).map(|span| span.as_secs_f64() * 1000.0).map_err(|error| error.to_string())
}

/// Writes seconds as people write a time of hours: `3 h 20 min`.
pub fn roughly(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round().max(0.0);
    let (hours, rest) = ((minutes / 60.0).floor(), minutes % 60.0);
    match seconds {
        short if short < 90.0 => format!("{short:.0} s"),
        _ if hours < 1.0 => format!("{minutes:.0} min"),
        _ => format!("{hours:.0} h {rest:.0} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        let cases = [
            ("250ms", Duration::from_millis(250)),
            ("1.5s", Duration::from_millis(1500)),
            ("2m", Duration::from_secs(120)),
            ("1h30m", Duration::from_secs(5400)),
            (" 1m 30s ", Duration::from_secs(90)),
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            (".5us", Duration::from_nanos(500)),
            ("3\u{b5}s", Duration::from_nanos(3000)),
            ("0.000000001s", Duration::from_nanos(1)),
            ("20 ms", Duration::from_millis(20)),
        ];
        for (text, span) in cases {
            assert_eq!(parse(text), Ok(span), "{text}");
        }
    }

    #[test]
    fn errors_name_the_mistake() {
        let cases = [
            ("", "found nothing"),
            ("250", "a unit is missing; write `250ms`"),
            ("ms", "expected a number before `ms`"),
            ("-5ms", "expected a number before `-5ms`"),
            ("5 sec", "`sec` is not a unit; expected one of ns us ms s m h"),
            ("1.2.3s", "expected a number"),
            (".s", "expected a number"),
            ("30s1m", "units must go from long to short"),
            ("1s1s", "units must go from long to short"),
            ("0.5ns", "the shortest possible time is 1ns"),
            ("99999999999999999999h", "the time is too long"),
        ];
        for (text, message) in cases {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn writes_the_shortest_exact_form() {
        let cases = [
            (Duration::ZERO, "0s"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_secs(120), "2m"),
            (Duration::from_millis(90_500), "1m30.5s"),
            (Duration::from_nanos(1_000_001), "1.000001ms"),
            (Duration::from_nanos(7), "7ns"),
        ];
        for (span, text) in cases {
            assert_eq!(format(span), text);
        }
    }

    #[test]
    fn times_have_the_unit_that_people_plan_in() {
        for (seconds, text) in [
            (0.2, "0 s"),
            (42.4, "42 s"),
            (120.0, "2 min"),
            (315.0, "5 min"),
            (9000.0, "2 h 30 min"),
        ] {
            assert_eq!(roughly(seconds), text);
        }
    }

    #[test]
    fn durations_are_text_in_files() {
        let span: Span = serde_json::from_str("\"20ms\"").unwrap();
        assert_eq!(span, Span(Duration::from_millis(20)));
        assert_eq!(serde_json::to_string(&span).unwrap(), "\"20ms\"");
        assert!(serde_json::from_str::<Span>("20").is_err());
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(seconds in 0..=u64::MAX, nanos in 0..1_000_000_000_u32) {
            let span = Duration::new(seconds, nanos);
            prop_assert_eq!(parse(&format(span)), Ok(span));
        }

        #[test]
        fn never_panics(text in "[0-9.hmsun -]{0,40}") {
            let _ = parse(&text);
        }
    }
}
