//! Figures as text, with few digits and thousands separators, and steps of round size.

/// A measured figure with a number of significant digits, and always with all digits before the
/// point: `1,234`, `9.000`. A whole number has no decimals.
pub fn significant(value: f64, digits: i32) -> String {
    if value.fract() == 0.0 || !value.is_finite() {
        return fixed(value, 0);
    }
    let before = value.abs().log10().floor() as i32 + 1;
    fixed(value, (digits - before).clamp(0, 9) as usize)
}

/// A chosen figure, with no more digits than it needs and at most a given number: `0.02`, `12.5`.
pub fn short(value: f64, digits: i32) -> String {
    trimmed(&significant(value, digits))
}

/// A figure with a number of decimals: `1,234.50`.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) if rest.bytes().any(|c| c.is_ascii_digit() && c != b'0') => ("-", rest),
        Some(rest) => ("", rest),
        None => ("", text.as_str()),
    };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{sign}{}{rest}", grouped(whole))
}

/// A whole number: `12,345`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// A change in percent, with its sign unless it rounds to zero: `+1.2 %`, `-3.0 %`, `0.0 %`.
pub fn change(percent: f64) -> String {
    let text = format!("{percent:+.1} %");
    match text.as_str() {
        "+0.0 %" | "-0.0 %" => "0.0 %".to_owned(),
        _ => text,
    }
}

/// A share as percent, to the digit that matters: `0.06 %`, `42.3 %`, `99.98 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        percent if percent == percent.round() => 0,
        percent if (1.0..99.0).contains(&percent) => 1,
        _ => 2,
    };
    format!("{} %", fixed(percent, decimals))
}

/// A number of things: `1 request`, `2 requests`.
pub fn plural(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Bytes in the largest unit that they reach: `15.6 GiB`.
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", short(value, 3), units[unit])
}

/// A number as short as it can be on an axis that steps by `step`: `0.25`, `1,500`, `20k`, `3M`.
pub fn tick(value: f64, step: f64) -> String {
    let large = value.abs().max(step.abs());
    let (divisor, suffix) = match large {
        large if large >= 1e6 => (1e6, "M"),
        large if large >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    let step = step / divisor;
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    // A step such as 2.5 has one digit more than its size tells.
    let finer = (step * 10f64.powi(decimals as i32)).fract().abs() > 1e-9;
    let text = fixed(value / divisor, decimals + usize::from(finer));
    format!("{}{suffix}", trimmed(&text))
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn trimmed(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

/// A step of 1, 2, 2.5 or 5 times a power of ten that fits the span about a given number of times.
pub fn round_step(span: f64, about: usize) -> f64 {
    let raw = span / about.max(1) as f64;
    if !(raw.is_finite() && raw > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = steps.into_iter().find(|step| step * power >= raw * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A share: a number as it is, or a percentage. Fails if it is neither.
pub fn share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => hundredths(percent),
        None => text.parse().ok().filter(|share: &f64| share.is_finite()),
    };
    share.ok_or_else(|| format!("expected a share such as 0.2 or 20%, found `{text}`"))
}

/// A percentage as a share, to the nearest number: 99.9 % is 0.999, and not 0.9990000000000001.
pub fn hundredths(percent: &str) -> Option<f64> {
    let percent = percent.trim();
    let shifted = format!("{percent}e-2").parse::<f64>();
    let share = shifted.or_else(|_| percent.parse::<f64>().map(|percent| percent / 100.0));
    share.ok().filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_matter() {
        let cases = [
            (1234.6, "1,235"),
            (-1_234_567.0, "-1,234,567"),
            (12.34, "12.3"),
            (0.012_34, "0.0123"),
            (0.0, "0"),
            (999.96, "1,000"),
            (100.0, "100"),
            (9.000_4, "9.00"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 3), text);
        }
        assert_eq!(fixed(1234.5, 2), "1,234.50");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(short(0.02, 4), "0.02");
        assert_eq!(short(12.5, 4), "12.5");
        let wanted = ["99.25 %", "42.3 %", "100 %", "0.06 %"];
        assert_eq!([0.9925, 0.423, 1.0, 0.000_6].map(percent), wanted);
        assert_eq!([1, 2].map(|n| plural(n, "request")), ["1 request", "2 requests"]);
        assert_eq!(bytes(16_777_216_000), "15.6 GiB");
        assert_eq!(bytes(100), "100 B");
    }

    #[test]
    fn ticks_are_short() {
        let cases = [
            ((0.25, 0.25), "0.25"),
            ((0.5, 0.25), "0.5"),
            ((1500.0, 500.0), "1,500"),
            ((20_000.0, 5000.0), "20k"),
            ((12_500.0, 2500.0), "12.5k"),
            ((3_000_000.0, 1e6), "3M"),
            ((0.0, 20.0), "0"),
            ((0.001, 0.001), "0.001"),
        ];
        for ((value, step), text) in cases {
            assert_eq!(tick(value, step), text);
        }
    }

    #[test]
    fn shares_are_numbers_or_percentages() {
        for (text, share) in [
            ("0.2", 0.2),
            ("20%", 0.2),
            (" 20 % ", 0.2),
            ("99.9%", 0.999),
            ("1e1%", 0.1),
            ("-5%", -0.05),
            ("1", 1.0),
        ] {
            assert_eq!(super::share(text), Ok(share), "{text}");
        }
        for text in ["", "%", "a fifth", "20%%", "nan", "inf%", "1e400%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
