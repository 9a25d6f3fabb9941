//! The date of a package: the time of each of its files, and of the format's other dates.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use jiff::{Timestamp, tz::TimeZone};

/// The variable that sets the date, as reproducible-builds.org defines it.
pub const VARIABLE: &str = "SOURCE_DATE_EPOCH";
/// The first second that ZIP can store: the start of 1980.
const FIRST: i64 = 315_532_800;

/// A second since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(Timestamp);

impl Date {
    /// Reads the variable, else the date of the last commit.
    ///
    /// # Errors
    /// If the variable is no date, or there is neither a variable nor a commit.
    pub fn of(root: &Path) -> Result<Self> {
        if let Ok(text) = std::env::var(VARIABLE) {
            return Date::read(&text).with_context(|| format!("{VARIABLE}={text}"));
        }
        let git =
            Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]).output();
        match git {
            Ok(output) if output.status.success() => {
                Date::read(String::from_utf8_lossy(&output.stdout).trim())
            }
            _ => bail!(
                "{} is no git repository: set {VARIABLE} to the date of the packages, in seconds since 1970",
                root.display()
            ),
        }
    }

    /// Reads seconds since 1970.
    ///
    /// # Errors
    /// If it is no number, or before 1980.
    pub fn read(text: &str) -> Result<Self> {
        let expected = "expected seconds since 1970, from 1980 on";
        let seconds: i64 = text.parse().context(expected)?;
        ensure!(seconds >= FIRST, "{expected}, found {seconds}");
        Ok(Date(Timestamp::from_second(seconds)?))
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.as_second()
    }

    /// The date as JSON has it: RFC 3339, in UTC.
    pub fn rfc3339(self) -> String {
        self.0.to_string()
    }

    /// The date as Debian's changelogs have it: RFC 2822, in UTC.
    pub fn rfc2822(self) -> String {
        let zoned = self.0.to_zoned(TimeZone::UTC);
        zoned.strftime("%a, %d %b %Y %H:%M:%S %z").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn a_date_has_the_forms_that_formats_want() {
        let date = Date::read("1767323045").unwrap();
        assert_eq!(date.rfc3339(), "2026-01-02T03:04:05Z");
        assert_eq!(date.rfc2822(), "Fri, 02 Jan 2026 03:04:05 +0000");
        for wrong in ["", "yesterday", "0", "-1", "315532799"] {
            assert!(Date::read(wrong).is_err(), "{wrong}");
        }
    }
}
