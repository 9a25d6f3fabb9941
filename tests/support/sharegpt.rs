//! A file in ShareGPT's format with conversations of known lengths.

use std::io::{BufWriter, Write};

use tempfile::NamedTempFile;

/// Bytes of the prompt of a conversation, 10 to 1000.
pub fn prompt_bytes(number: u32) -> u32 {
    10 + number * 37 % 991
}

/// Bytes of its answer, 10 to 1000.
pub fn answer_bytes(number: u32) -> u32 {
    10 + number * 53 % 991
}

/// Writes this many conversations of two turns; no two prompts are the same.
pub fn file(conversations: u32) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    let mut out = BufWriter::new(&file);
    out.write_all(b"[").unwrap();
    for number in 0..conversations {
        let comma = if number == 0 { "" } else { "," };
        let prompt = text(number, prompt_bytes(number));
        let answer = text(number, answer_bytes(number));
        write!(
            out,
            r#"{comma}{{"id":"c{number}","conversations":[{{"from":"human","value":"{prompt}"}},{{"from":"gpt","value":"{answer}"}}]}}"#
        )
        .unwrap();
        out.write_all(b"\n").unwrap();
    }
    out.write_all(b"]").unwrap();
    out.flush().unwrap();
    drop(out);
    file
}

/// This many bytes, beginning with the number.
fn text(number: u32, bytes: u32) -> String {
    let mut text = format!("{number:08}. ");
    while text.len() < bytes as usize {
        text.push_str("Tell me more. ");
    }
    text.truncate(bytes as usize);
    // White space at the end might be trimmed, and the lengths would be wrong.
    text.truncate(text.trim_end().len());
    while text.len() < bytes as usize {
        text.push('.');
    }
    text
}
