//! A SentencePiece model as its file holds it: the few fields of the protocol buffer that
//! tokenizing needs.
//!
//! Fields and their defaults are from `sentencepiece_model.proto`, and the encoding from
//! protobuf.dev/programming-guides/encoding.

use super::read::MOST_IDS;
use super::shape::TOKEN;

pub(super) struct Proto {
    pub(super) pieces: Vec<Piece>,
    pub(super) kind: u64,
    pub(super) whitespace_is_suffix: bool,
    pub(super) byte_fallback: bool,
    /// The ids of the tokens that begin and end a text. Negative where the model has none.
    pub(super) bos: i64,
    pub(super) eos: i64,
    /// A compiled table of characters and their replacements. Empty where nothing changes.
    pub(super) charsmap: Vec<u8>,
    pub(super) adds_prefix: bool,
    pub(super) removes_spaces: bool,
    pub(super) escapes_spaces: bool,
}

/// A token, whose id is its place.
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Normal,
    /// The piece for unknown characters.
    Unknown,
    /// A mark that is no part of texts.
    Control,
    /// A text that is one token wherever it stands.
    UserDefined,
    /// A place that nothing takes.
    Unused,
    /// A byte of a character without a token of its own.
    Byte,
}

/// `TrainerSpec.ModelType`.
pub(super) const UNIGRAM: u64 = 1;
pub(super) const BPE: u64 = 2;

impl Proto {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut proto = Proto {
            pieces: Vec::new(),
            kind: UNIGRAM,
            whitespace_is_suffix: false,
            byte_fallback: false,
            bos: 1,
            eos: 2,
            charsmap: Vec::new(),
            adds_prefix: true,
            removes_spaces: true,
            escapes_spaces: true,
        };
        each(bytes, |number, value| {
            match (number, value) {
                (1, Field::Bytes(piece)) => proto.add(piece)?,
                (2, Field::Bytes(spec)) => proto.trainer(spec)?,
                (3, Field::Bytes(spec)) => proto.normalizer(spec)?,
                _ => {}
            }
            Ok(())
        })?;
        if proto.pieces.is_empty() { Err("it holds no pieces".to_owned()) } else { Ok(proto) }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let id = self.pieces.len();
        if id >= MOST_IDS as usize {
            return Err(format!("it has more than {MOST_IDS} pieces"));
        }
        let mut piece = Piece { text: String::new(), score: 0.0, role: Role::Normal };
        each(bytes, |number, value| {
            match (number, value) {
                (1, Field::Bytes(text)) => {
                    let text = std::str::from_utf8(text);
                    piece.text = text.map_err(|_| format!("piece {id} is no UTF-8"))?.to_owned();
                }
                (2, Field::Four(bits)) => piece.score = f32::from_bits(bits),
                (3, Field::Number(role)) => {
                    piece.role = match role {
                        1 => Role::Normal,
                        2 => Role::Unknown,
                        3 => Role::Control,
                        4 => Role::UserDefined,
                        5 => Role::Unused,
                        6 => Role::Byte,
                        other => return Err(format!("piece {id} is of the unknown type {other}")),
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        match piece.text.len() {
            1..=TOKEN if piece.score.is_finite() => {
                self.pieces.push(piece);
                Ok(())
            }
            1..=TOKEN => Err(format!("piece {id} has the score {}", piece.score)),
            bytes => Err(format!("piece {id} has {bytes} bytes; from 1 to {TOKEN} are supported")),
        }
    }

    fn trainer(&mut self, bytes: &[u8]) -> Result<(), String> {
        each(bytes, |number, value| {
            if let Field::Number(value) = value {
                match number {
                    3 => self.kind = value,
                    24 => self.whitespace_is_suffix = value != 0,
                    35 => self.byte_fallback = value != 0,
                    // A negative number is written as the 64 bits of its complement.
                    41 => self.bos = value as i64,
                    42 => self.eos = value as i64,
                    _ => {}
                }
            }
            Ok(())
        })
    }

    fn normalizer(&mut self, bytes: &[u8]) -> Result<(), String> {
        each(bytes, |number, value| {
            match (number, value) {
                (2, Field::Bytes(charsmap)) => self.charsmap = charsmap.to_vec(),
                (3, Field::Number(value)) => self.adds_prefix = value != 0,
                (4, Field::Number(value)) => self.removes_spaces = value != 0,
                (5, Field::Number(value)) => self.escapes_spaces = value != 0,
                _ => {}
            }
            Ok(())
        })
    }
}

enum Field<'b> {
    Number(u64),
    Four(u32),
    Eight,
    Bytes(&'b [u8]),
}

/// Calls `visit` with the number and the value of each field of a message.
fn each<'b>(
    bytes: &'b [u8],
    mut visit: impl FnMut(u64, Field<'b>) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (number, value) = field(&mut rest)
            .ok_or_else(|| "it is cut off, or no SentencePiece model".to_owned())?;
        visit(number, value)?;
    }
    Ok(())
}

fn field<'b>(rest: &mut &'b [u8]) -> Option<(u64, Field<'b>)> {
    let key = number(rest)?;
    let value = match key & 7 {
        0 => Field::Number(number(rest)?),
        1 => {
            rest.split_off(..8)?;
            Field::Eight
        }
        2 => {
            let length = usize::try_from(number(rest)?).ok()?;
            Field::Bytes(rest.split_off(..length)?)
        }
        5 => Field::Four(u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?)),
        // Groups, which no such message has.
        _ => return None,
    };
    Some((key >> 3, value))
}

/// A number in groups of seven bits, the lowest first.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..10 {
        let byte = *rest.split_off_first()?;
        number |= u64::from(byte & 0x7f).checked_shl(7 * at)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
