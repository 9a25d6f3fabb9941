//! Text from plugins and component files as it may be shown: nothing in it steers a terminal.

use std::fmt;

/// A text from outside, with what would steer a terminal spelled out.
pub(super) struct Clean<'t>(pub(super) &'t str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' | '\t' => fmt::Write::write_char(out, c)?,
                c if steers(c) => write!(out, "{}", c.escape_unicode())?,
                c => fmt::Write::write_char(out, c)?,
            }
        }
        Ok(())
    }
}

/// Whether a character moves the cursor, starts an escape sequence, or changes the order of what is read.
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_spelled_out_and_the_rest_stays() {
        let text = "a\u{1b}[2J\u{9b}b\r\u{202e}é\n\u{2028}中";
        assert_eq!(
            Clean(text).to_string(),
            "a\\u{1b}[2J\\u{9b}b\\u{d}\\u{202e}é\n\\u{2028}中"
        );
    }
}
