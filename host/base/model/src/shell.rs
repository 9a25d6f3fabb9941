//! Words of a command line, as people copy them.

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A command line as a POSIX shell reads it back.
pub fn line<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_words_that_are_not_plain() {
        for (word, quoted_word) in [
            ("a-b_c.d/e:f=g@h%i+j,k", "a-b_c.d/e:f=g@h%i+j,k"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("ü", "'ü'"),
        ] {
            assert_eq!(quoted(word), quoted_word);
        }
        assert_eq!(line(&["a", "b c"]), "a 'b c'");
    }
}
