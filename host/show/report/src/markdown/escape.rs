//! Escapes foreign text for Markdown: it shows verbatim, without effect.

use minijinja::value::Value;

/// Characters with a meaning within a line, in Markdown or in extensions of sites.
const MARKS: &str = "\\`*_{}[]#|~$!^";

/// Text within a line: on one line, without marks.
pub(crate) fn inline(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c if c.is_control() => safe.push(' '),
            c => {
                if MARKS.contains(c) {
                    safe.push('\\');
                }
                safe.push(c);
            }
        }
    }
    safe
}

/// Text in a fence, which is longer than any row of backticks in the text, with a newline after it.
pub(crate) fn fence(language: &str, text: &str) -> Value {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    let text: String = text
        .trim_end()
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    Value::from_safe_string(format!("{fence}{language}\n{text}\n{fence}\n"))
}

/// A command line as a shell reads it.
pub(super) fn shell(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+./:,@%[]".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_within_a_line_means_anything() {
        for (text, safe) in [
            ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
            ("a|b", "a\\|b"),
            ("<script>&amp;", "&lt;script&gt;&amp;amp;"),
            ("[x](y) *z* _w_ `v`", "\\[x\\](y) \\*z\\* \\_w\\_ \\`v\\`"),
            ("two\r\nlines\u{1b}[31m", "two  lines \\[31m"),
            ("# $x$ ~~y~~", "\\# \\$x\\$ \\~\\~y\\~\\~"),
        ] {
            assert_eq!(inline(text), safe);
        }
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let fence = |text| fence("text", text).to_string();
        assert_eq!(fence("a\n"), "```text\na\n```\n");
        assert_eq!(fence("a\n````\n# b"), "`````text\na\n````\n# b\n`````\n");
        assert_eq!(fence("a\u{1b}[0m\tb"), "```text\na [0m\tb\n```\n");
    }

    #[test]
    fn a_command_line_can_be_pasted() {
        let words = [
            "runner",
            "--model",
            "Qwen/Qwen3-8B",
            "it's",
            "a b",
            "",
            "$x",
        ];
        assert_eq!(
            shell(&words.map(str::to_owned)),
            r"runner --model Qwen/Qwen3-8B 'it'\''s' 'a b' '' '$x'"
        );
    }
}
