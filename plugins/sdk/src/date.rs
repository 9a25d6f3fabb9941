//! Dates and times as files have them, after RFC 3339 and ISO 8601.

use std::ops::RangeInclusive;

/// Nanoseconds from the beginning of 1970. `T` or a space may stand between date and time, the
/// seconds may be missing, a fraction may have any number of digits, and without an offset it is
/// UTC. `None` if the text is no such time, or not of the years 1678 to 2261.
pub fn instant(text: &str) -> Option<i64> {
    let (date, rest) = text.trim().split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-');
    let (year, month) = (number(date.next()?, 1..=9999)?, number(date.next()?, 1..=12)?);
    let day = number(date.next()?, 1..=days_of(year, month))?;
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (number(clock.next()?, 0..=23)?, number(clock.next()?, 0..=59)?);
    let second = number(clock.next().unwrap_or("0"), 0..=60)?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos = number(&digits, 0..=999_999_999)?;
    let offset = match zone.split_at_checked(1) {
        None | Some(("Z" | "z", "")) => 0,
        Some((sign @ ("+" | "-"), zone)) => {
            let (hours, minutes) = zone.split_once(':').or_else(|| zone.split_at_checked(2))?;
            let minutes = if minutes.is_empty() { 0 } else { number(minutes, 0..=59)? };
            let offset = number(hours, 0..=23)? * 3600 + minutes * 60;
            if sign == "-" { -offset } else { offset }
        }
        Some(_) => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

fn number(digits: &str, range: RangeInclusive<i64>) -> Option<i64> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = all.then(|| digits.parse().ok()).flatten()?;
    range.contains(&number).then_some(number)
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 on, after Howard Hinnant's `days_from_civil`, whose years begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::instant;

    /// Expected numbers come from Python's `datetime.fromisoformat(text).timestamp()`.
    #[test]
    fn dates_are_read_as_files_write_them() {
        for (text, nanos) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-02T00:00:01Z", 86_401_000_000_000),
            ("2023-11-16 18:17:03.9799600", 1_700_158_623_979_960_000),
            ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200_009_930_000),
            ("2024-02-29T12:00:00.5+02:00", 1_709_200_800_500_000_000),
            ("2026-03-01T12:00:00.25Z", 1_772_366_400_250_000_000),
            ("2024-02-29 23:59:59+02:00", 1_709_243_999_000_000_000),
            ("2000-01-01T00:00-0530", 946_704_600_000_000_000),
        ] {
            assert_eq!(instant(text), Some(nanos), "{text}");
        }
        for text in [
            "",
            "T:",
            "noon",
            "2024-01-01",
            "2024-13-01 00:00:00",
            "2024-01-01 25:00:00",
            "2024-02-30 00:00:00",
            "2023-02-29 00:00:00",
            "2100-02-29 00:00:00",
            "2024-02-31 00:00:00",
            "2024-06-31 00:00:00",
            "2026-01-01T00:00:00+x",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
