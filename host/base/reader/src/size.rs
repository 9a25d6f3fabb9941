//! Sizes of memory as people write them: `64MiB`.

use std::fmt;

use serde::{Serialize, Serializer};

/// Units, largest first, and the bytes in each.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// Reads a whole number and a unit; the error is a message for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(format!("`{text}` does not begin with a whole number"));
        }
        let unit = unit.trim_start();
        if unit.is_empty() {
            return Err(format!(
                "`{text}` has no unit; write `{text}MiB` or another of B KiB MiB GiB"
            ));
        }
        let (_, bytes) =
            UNITS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(
                || format!("`{unit}` is not a unit; expected one of B KiB MiB GiB kB MB GB"),
            )?;
        number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(bytes))
            .map(Size)
            .ok_or_else(|| format!("`{text}` is too large"))
    }
}

/// In the largest binary unit that divides it.
impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = UNITS
            .into_iter()
            .find(|(name, bytes)| name.contains('i') && self.0 > 0 && self.0.is_multiple_of(*bytes))
            .unwrap_or(("B", 1));
        write!(out, "{}{name}", self.0 / bytes)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write_and_writes_it_back() {
        let cases = [
            ("64MiB", 64 << 20, "64MiB"),
            (" 1 gib ", 1 << 30, "1GiB"),
            ("1500B", 1500, "1500B"),
            ("2048 B", 2048, "2KiB"),
            ("1MB", 1_000_000, "1000000B"),
            ("0B", 0, "0B"),
        ];
        for (text, bytes, written) in cases {
            assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string(), written);
        }
    }

    #[test]
    fn errors_name_the_mistake() {
        let cases = [
            ("", "does not begin with a whole number"),
            ("-1MiB", "does not begin with a whole number"),
            ("1.5GiB", "`.5GiB` is not a unit"),
            ("64", "has no unit; write `64MiB`"),
            ("64 megs", "`megs` is not a unit"),
            ("99999999999GiB", "is too large"),
        ];
        for (text, message) in cases {
            let error = Size::parse(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
