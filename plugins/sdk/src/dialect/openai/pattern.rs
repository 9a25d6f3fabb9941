//! The pattern of a stream's chunks: the chunks of one reply differ only in a piece of text, so a
//! parsed chunk shows the place of later texts.
//!
//! Nothing is guessed. A chunk has the pattern if its bytes before and after one JSON string equal
//! a parsed chunk's; then parsing gives the same result except for that string. A chunk that does
//! not fit is parsed in full.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The longest pattern, in bytes: as state, it crosses the boundary with every batch.
const LONGEST: usize = 4 << 10;

/// The kind of a piece of text: answer or reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PieceKind {
    Text,
    Reasoning,
}

/// The bytes around the text of chunks that contain only a piece of text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pattern {
    of: PieceKind,
    before: usize,
    around: Bytes,
}

/// Bytes that the state copies in one piece, unlike a list, and without a text's checks.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;

        impl Visitor<'_> for Visit {
            type Value = Bytes;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }

        deserializer.deserialize_bytes(Visit)
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
}

impl Pattern {
    /// The pattern of a chunk that means only a piece of text of this kind. `None` if it is
    /// ambiguous which of its strings that is, or if the pattern is too long to be kept.
    pub fn from_chunk(of: PieceKind, chunk: &[u8]) -> Option<Self> {
        let parsed: Chunk = serde_json::from_slice(chunk).ok()?;
        let [choice] = &parsed.choices[..] else { return None };
        let empty = Delta::default();
        let delta = choice.delta.as_ref().unwrap_or(&empty);
        let is_string = |value: &&&RawValue| value.get().starts_with('"');
        let strings =
            |values: &[Option<&'_ RawValue>]| values.iter().flatten().filter(is_string).count();
        let texts = [choice.text, delta.content];
        let reasonings = [delta.reasoning, delta.reasoning_content];
        if strings(&texts) + strings(&reasonings) != 1 {
            return None;
        }
        let candidates = match of {
            PieceKind::Text => texts,
            PieceKind::Reasoning => reasonings,
        };
        let string = candidates.into_iter().flatten().find(|value| is_string(&value))?;
        // The value is a part of the chunk, so its place is the distance of their beginnings.
        let start = string.get().as_ptr() as usize - chunk.as_ptr() as usize + 1;
        let end = start + string.get().len() - 2;
        if chunk.len() - (end - start) > LONGEST {
            return None;
        }
        Some(Pattern {
            of,
            before: start,
            around: Bytes([chunk.get(..start)?, chunk.get(end..)?].concat()),
        })
    }

    /// The text of a chunk, and its kind, if the chunk has the pattern and the text is not empty.
    pub fn text(&self, chunk: &[u8]) -> Option<(PieceKind, String)> {
        let expected = self.around.0.split_at_checked(self.before)?;
        let length = chunk.len().checked_sub(expected.0.len() + expected.1.len())?;
        let (before, rest) = chunk.split_at(expected.0.len());
        let (string, after) = rest.split_at(length);
        if string.is_empty() || !same(before, expected.0) || !same(after, expected.1) {
            return None;
        }
        let is_plain = |byte: &u8| *byte != b'"' && *byte != b'\\' && *byte >= b' ';
        let text = if string.iter().all(is_plain) {
            String::from_utf8(string.to_vec()).ok()?
        } else {
            // Including its quotes.
            let quoted = chunk.get(before.len() - 1..before.len() + length + 1)?;
            serde_json::from_slice(quoted).ok()?
        };
        Some((self.of, text))
    }
}

/// Bytes that are compared in one turn of a loop. Each turn also costs a look at the time limit,
/// and the target's own comparison takes one byte a turn.
const TURN: usize = 32;

fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (Some(a_end), Some(b_end)) = (a.last_chunk(), b.last_chunk()) else {
        return a.iter().zip(b).all(|(a, b)| a == b);
    };
    let mut turns = a.as_chunks().0.iter().zip(b.as_chunks().0);
    // The end overlaps the last turn, so that no bytes are left over.
    same_turn(a_end, b_end) && turns.all(|(a, b)| same_turn(a, b))
}

fn same_turn(a: &[u8; TURN], b: &[u8; TURN]) -> bool {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    words.fold(0, |differs, (a, b)| differs | (word(a) ^ word(b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"one"},"logprobs":null,"finish_reason":null}]}"#;

    fn like(text: &str) -> String {
        CHUNK.replace("one", text)
    }

    #[test]
    fn a_chunk_of_the_pattern_gives_its_text() {
        let pattern = Pattern::from_chunk(PieceKind::Text, CHUNK.as_bytes()).unwrap();
        for (written, text) in
            [("two", "two"), (r#"a\n\"\u00e9"#, "a\n\"é"), ("é日", "é日"), (r"\\", "\\")]
        {
            let read = pattern.text(like(written).as_bytes());
            assert_eq!(read, Some((PieceKind::Text, text.to_owned())), "{written}");
        }
    }

    #[test]
    fn one_byte_makes_two_slices_differ_wherever_it_is() {
        for length in 0..3 * TURN + 2 {
            let a: Vec<u8> = (0..length).map(|at| at as u8).collect();
            assert!(same(&a, &a.clone()));
            for at in 0..length {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert!(!same(&a, &b), "byte {at} of {length}");
            }
            assert!(!same(&a, &[&a[..], b"x"].concat()));
        }
    }

    #[test]
    fn other_chunks_are_read_in_full() {
        let pattern = Pattern::from_chunk(PieceKind::Text, CHUNK.as_bytes()).unwrap();
        for chunk in [
            like(""),
            like("\n"),
            like(r#"x","role":"assistant"#),
            like("\\"),
            like(r"\x"),
            CHUNK.replace("c1", "c2"),
            CHUNK.replace("finish_reason\":null", "finish_reason\":\"x\""),
            CHUNK.replace("}]}", "}]} "),
            "{".to_owned(),
        ] {
            assert_eq!(pattern.text(chunk.as_bytes()), None, "{chunk}");
        }
        let mut bytes = like("x").into_bytes();
        let at = bytes.iter().position(|byte| *byte == b'x').unwrap();
        bytes[at] = 0xff;
        assert_eq!(pattern.text(&bytes), None);
    }

    #[test]
    fn only_the_string_that_was_read_is_taken() {
        let twice = CHUNK.replace(r#"{"index""#, r#"{"text":"one","index""#);
        assert!(Pattern::from_chunk(PieceKind::Text, twice.as_bytes()).is_none());
        let twin = CHUNK.replace(r#""logprobs""#, r#""twin":{"content":"one"},"logprobs""#);
        let pattern = Pattern::from_chunk(PieceKind::Text, twin.as_bytes()).unwrap();
        let other = twin.replacen("one", "two", 1);
        assert_eq!(pattern.text(other.as_bytes()), Some((PieceKind::Text, "two".to_owned())));
        let both =
            CHUNK.replace("one", "two").replace(r#""index""#, r#""reasoning":"one","index""#);
        assert!(Pattern::from_chunk(PieceKind::Reasoning, both.as_bytes()).is_none());
    }
}
