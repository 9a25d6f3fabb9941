//! Shares of a whole, as users write them: `0.2` or `20%`.

/// A share: a number as it is, or a percentage. Fails if it is neither.
pub fn parse(text: &str) -> Result<f64, String> {
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
            assert_eq!(parse(text), Ok(share), "{text}");
        }
        for text in ["", "%", "a fifth", "20%%", "nan", "inf%", "1e400%"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
