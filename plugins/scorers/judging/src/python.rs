//! White space and punctuation as Python defines them. Scorers that follow a tool in Python use
//! this module where Rust draws the line elsewhere; for lower case, `str::to_lowercase` does the
//! same as Python's `str.lower`.

mod punctuation;
mod words;

pub use punctuation::is_punctuation;
pub use words::{is_digit, is_word};

/// True if `str.isspace` holds: Unicode's white space, and U+001C to U+001F.
#[must_use]
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// True if `str.isupper` holds: there are letters with a case, and all of them are upper case.
#[must_use]
pub fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(|c| c.is_lowercase() || is_title(c))
}

/// True if `str.islower` holds: there are letters with a case, and all of them are lower case.
#[must_use]
pub fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(|c| c.is_uppercase() || is_title(c))
}

/// True if a character is in title case, such as the single `ǅ`.
fn is_title(character: char) -> bool {
    !character.is_uppercase() && !character.to_lowercase().eq([character])
}

/// `str.strip`.
#[must_use]
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.split`: the words between white space.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The text without the 32 characters of `string.punctuation`.
#[must_use]
pub fn without_ascii_punctuation(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_punctuation()).collect()
}

/// The text without the characters of Unicode's categories of punctuation (P).
#[must_use]
pub fn without_punctuation(text: &str) -> String {
    text.chars().filter(|c| !is_punctuation(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_white_space() {
        assert_eq!(strip("\u{1c} a b\u{a0}\n"), "a b");
        assert_eq!(split(" a\u{1f}b\u{3000}c ").collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn only_letters_with_a_case_count() {
        for (text, upper, lower) in [
            ("A 1", true, false),
            ("a!", false, true),
            ("Aa", false, false),
            ("你 1", false, false),
            ("ǅ", false, false),
            ("ÀǄ", true, false),
        ] {
            assert_eq!((is_upper(text), is_lower(text)), (upper, lower), "{text}");
        }
    }

    #[test]
    fn symbols_are_no_punctuation_of_unicode() {
        // `$`, `+`, `<` and `|` are symbols, which `string.punctuation` has all the same.
        assert_eq!(without_punctuation("a$b+c<d|e-f—g。h"), "a$b+c<d|efgh");
        assert_eq!(without_ascii_punctuation("a$b+c<d|e-f—g。h"), "abcdef—g。h");
    }

    #[test]
    fn marks_and_circled_letters_are_no_words() {
        for word in ['a', 'Z', '_', '7', 'é', 'न', '你', '²', 'Ⅷ', '٣'] {
            assert!(is_word(word), "{word}");
        }
        for other in ['-', ' ', '\u{301}', '\u{93e}', 'Ⓐ', '🄰', '—'] {
            assert!(!is_word(other), "{other}");
        }
        for digit in ['0', '9', '٠', '٩', '９'] {
            assert!(is_digit(digit), "{digit}");
        }
        for other in ['a', '/', ':', '²', 'Ⅷ', '\u{66a}'] {
            assert!(!is_digit(other), "{other}");
        }
    }

    #[test]
    fn the_ends_of_the_table() {
        let is = |code| is_punctuation(char::from_u32(code).unwrap());
        assert!(is(0x21) && is(0x23) && !is(0x24) && is(0x1E95F) && !is(0x1E960));
    }
}
