//! Percent-encoding of bytes in addresses and forms.

/// Text with `%XX` for every byte that is no ASCII letter, no digit and none of `plain`.
pub fn percent_encoded(bytes: &[u8], plain: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || plain.contains(byte) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}
