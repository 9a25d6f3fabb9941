//! Dates and times of traces, as RFC 3339 writes them and Azure's files almost do.

/// Nanoseconds from 1970 on. `T` or a space may stand between date and time, a fraction may have
/// any number of digits, and without an offset it is UTC.
pub(super) fn instant(text: &str) -> Option<i64> {
    let (date, rest) = text.trim().split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (
        number(date.next()?, 1970..=2200)?,
        number(date.next()?, 1..=12)?,
        number(date.next()?, 1..=31)?,
    );
    if day > days_of(year, month) {
        return None;
    }
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone);
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (number(clock.next()?, 0..=23)?, number(clock.next()?, 0..=59)?);
    let (second, fraction) = match clock.next().unwrap_or("0").split_once('.') {
        Some((second, fraction)) => (second.to_owned(), fraction.to_owned()),
        None => (text_second(rest), String::new()),
    };
    let second = number(&second, 0..=60)?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos = number(&digits, 0..=999_999_999)?;
    let offset = match zone {
        "" | "Z" | "z" => 0,
        _ => {
            let (sign, zone) = zone.split_at(1);
            let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
            let offset = number(hours, 0..=23)? * 3600 + number(minutes, 0..=59)? * 60;
            if sign == "-" { -offset } else { offset }
        }
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// The seconds of a clock without a fraction.
fn text_second(rest: &str) -> String {
    let clock = rest.split(['Z', 'z', '+', '-']).next().unwrap_or_default();
    clock.split(':').nth(2).unwrap_or("0").to_owned()
}

fn number(digits: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = all.then(|| digits.parse().ok()).flatten()?;
    range.contains(&number).then_some(number)
}

/// The number of days that a month has.
fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 on, after Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::instant;

    #[test]
    fn dates_are_read_as_the_traces_write_them() {
        for (text, nanos) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-02T00:00:01Z", 86_401_000_000_000),
            ("2023-11-16 18:17:03.9799600", 1_700_158_623_979_960_000),
            ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200_009_930_000),
            ("2024-02-29T12:00:00.5+02:00", 1_709_200_800_500_000_000),
        ] {
            assert_eq!(instant(text), Some(nanos), "{text}");
        }
        for text in [
            "",
            "today",
            "2024-13-01 00:00:00",
            "2024-01-01",
            "2024-01-01 25:00:00",
            "2024-02-30 00:00:00",
            "2023-02-29 00:00:00",
            "2100-02-29 00:00:00",
            "2024-02-31 00:00:00",
            "2024-06-31 00:00:00",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
