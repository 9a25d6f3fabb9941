//! Arrival times of rows: from the file's unit and origin to nanoseconds after the first row.

use runner_plugin::date::instant;
use serde_json::Value;

use crate::config::{Config, Unit};
use crate::row::Draft;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    number: f64,
    /// Its unit, if it does not follow from the configuration.
    unit: Option<Unit>,
}

impl Time {
    /// A number, or a date and time such as `2026-03-01T12:00:00.25Z`.
    pub fn read(value: &Value) -> Result<Self, String> {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let Some(number) = number.filter(|number| number.is_finite()) {
            return Ok(Self { number, unit: None });
        }
        let nanos = value.as_str().and_then(instant).ok_or_else(|| {
            format!(
                "the arrival time: expected a number, or a time such as `2026-03-01T12:00:00Z`, found `{value}`"
            )
        })?;
        let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        Ok(Self { number: seconds as f64 + rest as f64 / 1e9, unit: Some(Unit::Seconds) })
    }
}

#[derive(Default)]
pub struct Arrivals {
    rows: u64,
    began: Option<f64>,
    last: u64,
}

impl Arrivals {
    pub fn arrival(
        &mut self,
        config: &Config,
        draft: &Draft,
        again: bool,
    ) -> Result<Option<u64>, String> {
        self.rows += 1;
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
        if self.began.is_none() && self.rows > 1 {
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
