//! Lines out of chunks of bytes: without secrets for the file, and the last lines as text for
//! messages.

use std::collections::VecDeque;

use super::LONGEST_LINE;
use super::hint::Hint;
use model::redact::Known;

/// The part of a line that is kept for messages, in characters.
const SHOWN: usize = 500;

/// The number of lines for which a line with a cause counts: later lines are a stack trace at most.
const HINT_COUNTS: u64 = 2_000;

pub(super) struct Lines {
    secrets: Known,
    /// Number of the last lines to keep.
    keep: usize,
    last: VecDeque<String>,
    /// A line that has not ended.
    pending: Vec<u8>,
    /// The number of lines that have ended.
    ended: u64,
    hint: Option<(u64, Hint)>,
}

impl Lines {
    pub fn new(keep: usize, secrets: Known) -> Self {
        Lines { secrets, keep, last: VecDeque::new(), pending: Vec::new(), ended: 0, hint: None }
    }

    /// Takes bytes, and returns the bytes that may be written.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(out);
            } else if self.pending.len() > LONGEST_LINE {
                // The end may be the start of a secret.
                let pending = std::mem::take(&mut self.pending);
                let clean = self.secrets.redact_bytes(&pending);
                let cut = clean.len().saturating_sub(self.secrets.longest());
                self.pending = clean[cut..].to_vec();
                self.keep_line(&clean[..cut]);
                out.extend_from_slice(&clean[..cut]);
            }
        }
    }

    /// Returns an unfinished line.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            self.end_line(out);
        }
    }

    pub fn last(&self) -> Vec<String> {
        let unfinished = self.secrets.redact_bytes(&self.pending);
        let unfinished = shown(&unfinished);
        let lines = self.last.iter().cloned().chain(Some(unfinished));
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(self.keep)..].to_vec()
    }

    pub fn hint(&self) -> Option<Hint> {
        let (at, hint) = self.hint.as_ref()?;
        (self.ended - at < HINT_COUNTS).then(|| hint.clone())
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        let pending = std::mem::take(&mut self.pending);
        let line = self.secrets.redact_bytes(&pending);
        self.keep_line(&line);
        out.extend_from_slice(&line);
    }

    fn keep_line(&mut self, line: &[u8]) {
        self.ended += 1;
        let line = shown(line);
        if line.is_empty() {
            return;
        }
        if let Some(hint) = Hint::from_line(&line) {
            self.hint = Some((self.ended, hint));
        }
        if self.last.len() >= self.keep {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

/// A line as a terminal shows it in the end: without colours, and with the last text at each place.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end();
    let line = line.rsplit('\r').next().unwrap_or_default();
    let line = without_colours(line);
    let mut clean = model::clean::line(&line.replace('\t', " ")).into_owned();
    if let Some((cut, _)) = clean.char_indices().nth(SHOWN) {
        clean.truncate(cut);
        clean.push('…');
    }
    clean
}

/// A text without the sequences that set colours or move a cursor: ESC, `[`, parameters, and a
/// letter.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c| ('\u{40}'..='\u{7e}').contains(&c));
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Class;
    use crate::spec::{Spec, Value};

    fn secrets(secret: &str) -> Known {
        let mut spec = Spec::new("e", Vec::new(), ("h", 1), "log");
        let secret = Value::Secret(secret.to_owned());
        spec.environment = vec![("KEY".to_owned(), secret)];
        spec.secrets()
    }

    /// Returns the output for a text that comes in chunks of one length.
    fn written(text: &[u8], chunk: usize, lines: &mut Lines) -> Vec<u8> {
        let mut out = Vec::new();
        for bytes in text.chunks(chunk) {
            lines.take(bytes, &mut out);
        }
        lines.finish(&mut out);
        out
    }

    #[test]
    fn no_cut_lets_a_secret_through() {
        let text = b"key=opensesame\nno newline opensesame";
        for chunk in 1..text.len() {
            let mut lines = Lines::new(9, secrets("opensesame"));
            let out = written(text, chunk, &mut lines);
            assert_eq!(String::from_utf8(out).unwrap(), "key=[redacted]\nno newline [redacted]");
            assert_eq!(lines.last(), ["key=[redacted]", "no newline [redacted]"]);
        }
        // In a line above the limit, at each place around the cut.
        for before in LONGEST_LINE - 12..LONGEST_LINE + 2 {
            let text = ["x".repeat(before).as_str(), "opensesame", &"y".repeat(50)].concat();
            let mut lines = Lines::new(9, secrets("opensesame"));
            let out = written(text.as_bytes(), 1000, &mut lines);
            let expected = text.replace("opensesame", "[redacted]");
            assert!(out == expected.as_bytes(), "{before}");
        }
    }

    #[test]
    fn bytes_without_secrets_stay_unchanged() {
        let text: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        for chunk in [1, 1000, 200_000] {
            let mut lines = Lines::new(3, secrets("opensesame"));
            assert!(written(&text, chunk, &mut lines) == text);
        }
        let endless = vec![b'x'; 300_000];
        let mut lines = Lines::new(3, Known::default());
        assert!(written(&endless, 7000, &mut lines) == endless);
        assert!(lines.last.iter().all(|line| line.chars().count() <= SHOWN + 1));
    }

    #[test]
    fn last_lines_are_as_a_terminal_shows_them() {
        for (written, line) in [
            ("plain\n", "plain"),
            ("windows\r\n", "windows"),
            ("10%\r20%\r100%\n", "100%"),
            ("10%\r20%", "20%"),
            ("\u{1b}[1;36m(Core pid=7)\u{1b}[0;0m up", "(Core pid=7) up"),
            ("a\tb\u{7}\n", "a b\\u{7}"),
            ("cut \u{1b}[3", "cut "),
        ] {
            let mut lines = Lines::new(3, Known::default());
            lines.take(written.as_bytes(), &mut Vec::new());
            assert_eq!(lines.last(), [line], "{written:?}");
        }
        let mut lines = Lines::new(2, Known::default());
        lines.take(b"1\n2\n\n3\n\n4", &mut Vec::new());
        assert_eq!(lines.last(), ["3", "4"]);
    }

    #[test]
    fn the_latest_cause_counts_for_a_while() {
        let mut lines = Lines::new(2, Known::default());
        let mut out = Vec::new();
        lines.take(b"OSError: [Errno 98] Address already in use\n", &mut out);
        lines.take(b"torch.OutOfMemoryError: CUDA out of memory\nlater\n", &mut out);
        let hint = lines.hint().unwrap();
        assert_eq!(hint.class, Class::OutOfDeviceMemory);
        assert_eq!(hint.line, "torch.OutOfMemoryError: CUDA out of memory");
        for _ in 0..HINT_COUNTS - 2 {
            lines.take(b"request\n", &mut out);
        }
        assert!(lines.hint().is_some());
        lines.take(b"request\n", &mut out);
        assert_eq!(lines.hint().map(|hint| hint.line), None);
    }
}
