//! Bytes in hexadecimal.

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that hexadecimal digits of either case stand for; nothing of anything else.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let bytes = pairs.iter().map(|[high, low]| {
        let byte = value(*high)? << 4 | value(*low)?;
        u8::try_from(byte).ok()
    });
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let digits = hex(&bytes);
        assert_eq!(unhex(&digits), Some(bytes.clone()));
        assert_eq!(unhex(&digits.to_uppercase()), Some(bytes));
        assert_eq!(unhex(""), Some(Vec::new()));
        for digits in ["a", "0g", "+1", " 1", "é"] {
            assert_eq!(unhex(digits), None, "{digits}");
        }
    }
}
