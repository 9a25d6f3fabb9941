//! Text from outside, made safe to show. Servers, plugins and files choose names and messages. A
//! control character could move a terminal's cursor, recolour printed text, or write to the
//! clipboard. A mark for the direction of text could show one name as another. All of these are
//! shown as escapes, such as `\u{1b}`.

use std::borrow::Cow;
use std::fmt::Write;

/// A text of several lines, without control characters other than line breaks and tabs.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| unsafe_to_show(c) && c != '\n' && c != '\t', visible)
}

/// A text on one line: line breaks and tabs are escaped too.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, unsafe_to_show, visible)
}

/// JSON with the same meaning, in which strings hold none of these characters. JSON itself escapes
/// only characters below U+0020.
pub fn json(text: &str) -> Cow<'_, str> {
    let bad = |c| unsafe_to_show(c) && !matches!(c, '\n' | '\t' | '\r');
    escaped(text, bad, |out, c| {
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    })
}

/// True of control characters (C0, DEL, C1) and of marks that change the direction of text.
pub fn unsafe_to_show(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn visible(out: &mut String, c: char) {
    out.extend(c.escape_default());
}

fn escaped(
    text: &str,
    bad: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        // A line break as Windows writes it is one.
        let line_break = c == '\r' && letters.peek() == Some(&'\n') && !bad('\n');
        match bad(c) {
            true if line_break => {}
            true => escape(&mut clean, c),
            false => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_escapes() {
        for (given, shown, on_one_line) in [
            ("model-7b", "model-7b", "model-7b"),
            ("a\tb\nc", "a\tb\nc", "a\\tb\\nc"),
            ("a\r\nb", "a\nb", "a\\r\\nb"),
            ("a\rb", "a\\rb", "a\\rb"),
            ("\u{1b}[31mred", "\\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{9b}2J", "\\u{9b}2J", "\\u{9b}2J"),
            ("\u{7}\u{7f}\0", "\\u{7}\\u{7f}\\u{0}", "\\u{7}\\u{7f}\\u{0}"),
            ("\u{202e}abc\u{2069}", "\\u{202e}abc\\u{2069}", "\\u{202e}abc\\u{2069}"),
            ("größer 模型 🙂", "größer 模型 🙂", "größer 模型 🙂"),
        ] {
            assert_eq!(text(given), shown);
            assert_eq!(line(given), on_one_line);
        }
        let every = (0..=u32::from(char::MAX)).filter_map(char::from_u32);
        let every: String = every.collect();
        assert!(!line(&every).contains(unsafe_to_show));
    }

    #[test]
    fn json_means_what_it_meant() {
        let value = serde_json::json!({ "\u{202e}n": "\u{1b}[2J\u{9b}\u{7f}\n\u{2066}é" });
        for written in [value.to_string(), format!("{value:#}")] {
            let clean = json(&written);
            assert!(!clean.replace('\n', "").contains(unsafe_to_show), "{clean}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).unwrap(), value);
        }
    }
}
