//! Base64 of the common alphabet, as rank files and `tokenizer.json` hold bytes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Decodes as far as it is base64.
pub(super) fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for letter in text {
        let Some(value) = value(*letter) else { break };
        held = (held << 6 | u32::from(value)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}

/// Decodes all of it; nothing where it is something else.
pub(super) fn whole(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text
        .iter()
        .rev()
        .take_while(|letter| **letter == b'=')
        .count();
    let letters = &text[..text.len() - padding];
    let is_base64 = text.len().is_multiple_of(4)
        && padding <= 2
        && letters.iter().all(|letter| value(*letter).is_some());
    is_base64.then(|| decoded(letters))
}

/// Encodes bytes, with padding.
pub(super) fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let held = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            text.push(match index <= chunk.len() {
                true => char::from(ALPHABET[(held >> (18 - 6 * index)) as usize & 0x3f]),
                false => '=',
            });
        }
    }
    text
}

fn value(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_text() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"a", "YQ=="),
            (b"ab", "YWI="),
            (b"abc", "YWJj"),
            (b"\xfb\xff\x00", "+/8A"),
        ] {
            assert_eq!(encoded(bytes), text);
            assert_eq!(whole(text.as_bytes()).unwrap(), bytes);
        }
        for wrong in ["YQ", "YQ=", "Y===", "Y-Jj", "YW=j", "===="] {
            assert_eq!(whole(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
