//! Arrival times of rows: from the file's unit and origin to nanoseconds after the first row.

use serde_json::Value;

use crate::config::{Config, Unit};
use crate::row::Draft;

/// A time as a row has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    number: f64,
    /// Its unit, if it does not follow from the configuration.
    unit: Option<Unit>,
}

impl Time {
    /// A number, or a date and time such as `2026-03-01T12:00:00.25Z`.
    ///
    /// # Errors
    /// The message, with the expected form.
    pub fn read(value: &Value) -> Result<Self, String> {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let Some(number) = number.filter(|number| number.is_finite()) {
            return Ok(Self { number, unit: None });
        }
        let seconds = value.as_str().and_then(seconds).ok_or_else(|| {
            format!(
                "the arrival time: expected a number, or a time such as `2026-03-01T12:00:00Z`, found `{value}`"
            )
        })?;
        Ok(Self { number: seconds, unit: Some(Unit::Seconds) })
    }
}

/// Seconds from the beginning of 1970 to a time in the format of ISO 8601; without an offset, in
/// UTC.
fn seconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1..=9999).contains(&year) {
        return None;
    }
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?, time.next()?);
    let second: f64 = time.next().unwrap_or("0").parse().ok()?;
    let clock = |hour: &str, minute: &str| {
        Some(hour.parse::<f64>().ok()? * 3600.0 + minute.parse::<f64>().ok()? * 60.0)
    };
    let offset = match offset.strip_prefix(['+', '-']) {
        Some(own) => {
            let own = own.replace(':', "");
            let (hour, minute) = own.split_at_checked(2)?;
            let ahead = clock(hour, if minute.is_empty() { "0" } else { minute })?;
            if offset.starts_with('-') { -ahead } else { ahead }
        }
        None => 0.0,
    };
    // Days by Howard Hinnant's `days_from_civil`, whose years begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = days as f64 * 86_400.0 + clock(hour, minute)? + second - offset;
    seconds.is_finite().then_some(seconds)
}

/// Arrival times of the rows so far.
#[derive(Default)]
pub struct Arrivals {
    rows: u64,
    began: Option<f64>,
    last: u64,
}

impl Arrivals {
    /// Returns the arrival of a row, in nanoseconds after the first.
    ///
    /// # Errors
    /// If the time cannot be read.
    pub fn arrival(
        &mut self,
        config: &Config,
        draft: &Draft,
        again: bool,
    ) -> Result<Option<u64>, String> {
        let due = self.due(config, draft, again)?;
        self.rows += 1;
        Ok(due)
    }

    fn due(&mut self, config: &Config, draft: &Draft, again: bool) -> Result<Option<u64>, String> {
        let Some(time) = draft.arrival else {
            return match self.began {
                None => Ok(None),
                Some(_) => Err("the arrival time is missing; earlier rows have one".to_owned()),
            };
        };
        if config.shuffle || again {
            // Shuffled rows are not in the order of their times, and a time does not come again.
            return Ok(None);
        }
        if self.began.is_none() && self.rows > 0 {
            return Err("this row has an arrival time, and earlier rows have none".to_owned());
        }
        let unit = time.unit.or(config.arrival_unit);
        let unit = unit.unwrap_or(if draft.recorded { Unit::Seconds } else { Unit::Milliseconds });
        let began = *self.began.get_or_insert(time.number);
        let due = ((time.number - began) * unit.nanoseconds()).round();
        if due < self.last as f64 {
            return Err(format!("the arrival time {} is before the previous row's", time.number));
        }
        self.last = due as u64;
        Ok(Some(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected numbers come from Python's `datetime.fromisoformat(text).timestamp()`.
    #[test]
    fn dates_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2026-03-01T12:00:00.25Z", 1_772_366_400.25),
            ("2024-02-29 23:59:59+02:00", 1_709_243_999.0),
            ("2000-01-01T00:00-0530", 946_704_600.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "2026-03-01", "2026-13-01T00:00:00Z", "noon", "T:"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
