//! Numbers as texts write them, with the size of their rounding.

use super::Stated;

/// Parses the number in a word: `None` if the word states that there is none, an error for any
/// other word. For counts and rates alike; ignores commas between thousands.
pub(super) fn read(word: &str) -> Result<Option<Stated>, ()> {
    if matches!(word, "N/A" | "n/a" | "nan" | "NaN" | "None" | "none" | "null" | "-" | "--" | "") {
        return Ok(None);
    }
    let plain = word.replace(',', "");
    let value: f64 = plain.parse().map_err(|_| ())?;
    if !value.is_finite() {
        return Ok(None);
    }
    Ok(Some(Stated { value, rounding: rounding(&plain) }))
}

/// Half of the last digit that is written; the whole numbers' is half of one.
fn rounding(digits: &str) -> f64 {
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    0.5 * 10f64.powi(-(decimals.min(300) as i32))
}

/// A number out of JSON. One with seven decimals or more was written in full.
pub(super) fn in_full(value: f64) -> Stated {
    let rounding = rounding(&value.to_string());
    let rounding = if rounding < 1e-6 { 0.0 } else { rounding };
    Stated { value, rounding }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_of_the_last_digit() {
        for (word, value, rounding) in
            [("24.11", 24.11, 0.005), ("512", 512.0, 0.5), ("1,024.5", 1024.5, 0.05)]
        {
            let stated = read(word).unwrap().unwrap();
            assert_eq!((stated.value, stated.rounding), (value, rounding), "{word}");
        }
        assert_eq!(read("N/A"), Ok(None));
        assert_eq!(read("inf"), Ok(None));
        assert_eq!(read("soon"), Err(()));
        assert_eq!(in_full(0.9011198899970623).rounding, 0.0);
        assert_eq!(in_full(12.25).rounding, 0.005);
    }
}
