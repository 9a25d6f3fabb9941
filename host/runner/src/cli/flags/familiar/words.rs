//! Lists of words after one flag, as Python's argparse reads them: `--header A=1 B=2`.
//!
//! A flag of this program that takes every word after it would take scenarios too. So such a list
//! is written out before the command line is read: `--header A=1 --header B=2`.

use std::ffi::OsString;
use std::path::Path;

/// Flags after which other tools read a list of `NAME=VALUE`.
const LISTS: [&str; 2] = ["--header", "--metadata"];

/// A command line with such lists written out. A word without `=`, and one that names a file, ends
/// a list.
pub fn spread(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut spread = Vec::new();
    let mut list: Option<(&str, bool)> = None;
    for word in words {
        let text = word.to_string_lossy();
        if let Some(flag) = LISTS.iter().find(|flag| **flag == text) {
            list = Some((flag, false));
        } else if let Some((flag, begun)) = list {
            let ends = text.starts_with('-')
                || begun && (!text.contains('=') || Path::new(&word).exists());
            if begun && !ends {
                spread.push(OsString::from(flag));
            }
            list = (!ends).then_some((flag, true));
        }
        spread.push(word);
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_out(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let spread = spread(words).into_iter();
        let spread: Vec<_> = spread.map(|word| word.into_string().unwrap()).collect();
        spread.join(" ")
    }

    #[test]
    fn lists_of_pairs_get_a_flag_each() {
        for (line, expected) in [
            ("--header a=1 b=2 c=3 --seed 1", "--header a=1 --header b=2 --header c=3 --seed 1"),
            ("--metadata a=1 b=2 chat.toml x=3", "--metadata a=1 --metadata b=2 chat.toml x=3"),
            ("--header a: 1", "--header a: 1"),
            ("--header --metadata a=1", "--header --metadata a=1"),
            ("--set a=1 b=2", "--set a=1 b=2"),
            ("--header=a=1 b=2", "--header=a=1 b=2"),
        ] {
            assert_eq!(written_out(line), expected);
        }
    }
}
