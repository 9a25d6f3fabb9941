//! Skips old text and ids where every chunk repeats the whole answer.
//!
//! An answer of n tokens comes as n chunks whose text and ids grow, so reading all of each takes
//! time that grows with n². If a chunk begins like the previous chunk, only the new bytes are read:
//! the state holds the lengths of the old text and ids in the chunk's own bytes, and their last
//! bytes, which must come again at the same place. A chunk for which any of this fails is read in
//! full.

use memchr::{memchr, memchr2};
use serde::{Deserialize, Serialize};

const TAIL: usize = 32;
/// The longest piece of a chunk's frame that is remembered.
const FIXED: usize = 64;

/// The parts of a chunk that are kept for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// The bytes before the text: `{"text":"`.
    head: Vec<u8>,
    text: Prefix,
    /// The bytes from the end of the text to the first id, and the ids; absent if no list follows.
    ids: Option<(Vec<u8>, Prefix)>,
}

/// A value that grows at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Prefix {
    length: u32,
    tail: Vec<u8>,
}

/// Everything that a chunk adds to the previous one.
#[derive(Debug, PartialEq, Eq)]
pub struct New<'c> {
    /// The new text, escaped as it is.
    pub text: &'c [u8],
    /// The members after text and ids, as an object without its opening brace.
    pub rest: &'c [u8],
}

impl Pattern {
    /// Remembers a whole chunk, if it begins with its text.
    pub fn from_chunk(chunk: &[u8]) -> Option<Pattern> {
        let head = after(chunk, &[b"{", b"\"text\"", b":", b"\""])?;
        let text = &chunk[head..];
        let end = end_of_string(text)?;
        let mut seen = Pattern {
            head: chunk[..head].to_vec(),
            text: Prefix::from_bytes(&text[..end])?,
            ids: None,
        };
        let rest = &text[end..];
        if let Some(begin) = after(rest, &[b"\"", b",", b"\"output_ids\"", b":", b"["]) {
            let ids = &rest[begin..];
            let ids = Prefix::from_bytes(&ids[..memchr(b']', ids)?])?;
            seen.ids = Some((rest[..begin].to_vec(), ids));
        }
        let fixed = seen.ids.as_ref().map_or(0, |(between, _)| between.len());
        (seen.head.len() <= FIXED && fixed <= FIXED).then_some(seen)
    }

    /// Returns the new part of the next chunk, which is then kept; nothing if it is another.
    pub fn step<'c>(&mut self, chunk: &'c [u8]) -> Option<New<'c>> {
        let value = chunk.strip_prefix(&*self.head)?;
        let old = self.text.prefix_of(value)?;
        let end = old + end_of_string(&value[old..])?;
        let mut rest = &value[end..];
        let mut ids_now = None;
        match &self.ids {
            Some((between, ids)) => {
                let list = rest.strip_prefix(&**between)?;
                let old = ids.prefix_of(list)?;
                let end = old + memchr(b']', &list[old..])?;
                ids_now = Some(Prefix::from_bytes(&list[..end])?);
                rest = &list[end + 1..];
            }
            None => rest = &rest[1..],
        }
        let rest = rest.trim_ascii_start();
        let rest = match rest.first()? {
            b',' => &rest[1..],
            b'}' => rest,
            _ => return None,
        };
        self.text = Prefix::from_bytes(&value[..end])?;
        if let (Some((_, ids)), Some(now)) = (&mut self.ids, ids_now) {
            *ids = now;
        }
        Some(New { text: &value[old..end], rest })
    }
}

impl Prefix {
    fn from_bytes(bytes: &[u8]) -> Option<Prefix> {
        Some(Prefix {
            length: u32::try_from(bytes.len()).ok()?,
            tail: bytes[bytes.len().saturating_sub(TAIL)..].to_vec(),
        })
    }

    fn prefix_of(&self, value: &[u8]) -> Option<usize> {
        let old = value.get(..self.length as usize)?;
        old.ends_with(&self.tail).then_some(old.len())
    }
}

/// Returns the end of these pieces, with white space between them or not.
fn after(bytes: &[u8], pieces: &[&[u8]]) -> Option<usize> {
    let mut rest = bytes;
    for piece in pieces {
        rest = rest.trim_ascii_start().strip_prefix(*piece)?;
    }
    Some(bytes.len() - rest.len())
}

/// The place where the quote is that ends a string which these bytes are in.
fn end_of_string(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(first: &str, next: &str) -> Option<(String, String)> {
        let mut seen = Pattern::from_chunk(first.as_bytes())?;
        let new = seen.step(next.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found = (text(new.text), text(new.rest));
        assert_eq!(Some(seen), Pattern::from_chunk(next.as_bytes()), "as if it were read in full");
        Some(found)
    }

    fn pair(text: &str, rest: &str) -> Option<(String, String)> {
        Some((text.to_owned(), rest.to_owned()))
    }

    #[test]
    fn only_new_bytes_are_read() {
        let first = r#"{"text":"a\"b","output_ids":[1,22],"meta_info":{"x":1}}"#;
        let next = r#"{"text":"a\"b\\ c","output_ids":[1,22,3],"meta_info":{"x":2}}"#;
        assert_eq!(step(first, next), pair(r"\\ c", r#""meta_info":{"x":2}}"#));
        let first = r#"{"text": "", "meta_info": {}}"#;
        let next = r#"{"text": " a", "meta_info": {}}"#;
        assert_eq!(step(first, next), pair(" a", r#" "meta_info": {}}"#));
        assert_eq!(step(r#"{"text":"a"}"#, r#"{"text":"ab"}"#), pair("b", "}"));
        assert_eq!(step(r#"{"text":"a"}"#, r#"{"text":"a"}"#), pair("", "}"));
    }

    #[test]
    fn a_chunk_that_does_not_continue_is_read_in_full() {
        let first = r#"{"text":"abc","output_ids":[1,2],"meta_info":{}}"#;
        for next in [
            "",
            "{",
            r#"{"text":"ab","output_ids":[1,2]}"#,
            r#"{"text":"abd","output_ids":[1,2]}"#,
            r#"{"text":"abcd"}"#,
            r#"{"text":"abcd","output_ids":[1]}"#,
            r#"{"text":"abcd","output_ids":[2,2,3]}"#,
            r#"{"text":"abcd","output_ids":[1,2,3"#,
            r#"{"text":"abcd"#,
            r#"{"text":"abcd\"#,
            r#"{"text":"abcd","output_ids":[1,2,3]x"#,
            r#"{"id":1,"text":"abcd","output_ids":[1,2,3]}"#,
            r#"{"text": "abcd","output_ids":[1,2,3]}"#,
        ] {
            assert_eq!(step(first, next), None, "{next}");
        }
    }

    #[test]
    fn a_chunk_without_text_first_is_not_remembered() {
        for chunk in [r#"{"id":1,"text":"a"}"#, r#"{"text":null}"#, "[1]", "", r#"{"text":"a"#] {
            assert_eq!(Pattern::from_chunk(chunk.as_bytes()), None, "{chunk}");
        }
    }
}
