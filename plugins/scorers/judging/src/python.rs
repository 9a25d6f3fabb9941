//! What Python calls white space and punctuation. Scorers that follow a tool in Python use this module where Rust
//! draws the line elsewhere; for lower case, `str::to_lowercase` does what Python's `str.lower` does.

mod punctuation;

pub use punctuation::is_punctuation;

/// Whether `str.isspace` holds for the character: Unicode's white space, and the four separators U+001C to U+001F.
#[must_use]
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
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
        assert_eq!(
            split(" a\u{1f}b\u{3000}c ").collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }

    #[test]
    fn symbols_are_no_punctuation_of_unicode() {
        // `$`, `+`, `<` and `|` are symbols, which `string.punctuation` has all the same.
        assert_eq!(without_punctuation("a$b+c<d|e-f—g。h"), "a$b+c<d|efgh");
        assert_eq!(without_ascii_punctuation("a$b+c<d|e-f—g。h"), "abcdef—g。h");
    }

    #[test]
    fn the_ends_of_the_table() {
        let is = |code| is_punctuation(char::from_u32(code).unwrap());
        assert!(is(0x21) && is(0x23) && !is(0x24) && is(0x1E95F) && !is(0x1E960));
    }
}
