//! Replies that no server should send. A plugin may return an error or events; it must not trap.

use super::dice::Dice;
use super::reply::{self, Cutting};
use model::frame::Frames;
use model::units::Nanos;

/// The depth to which brackets are nested, beyond a recursive parser's stack.
const DEPTH: usize = 10_000;

/// Numbers beyond the range of common types.
const NUMBERS: [&str; 7] = [
    "1e999",
    "-1",
    "4294967296",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e-400",
    "99999999999999999999999999999999999999999",
];

/// Bytes that are not UTF-8: an invalid byte, a lone continuation, an overlong form, a surrogate,
/// an end too early.
const NO_TEXT: [&[u8]; 5] = [b"\xff\xfe", b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf0\x9f\x98"];

/// A reply's beginning, cut at a random byte.
pub fn cut(framing: impl Into<Cutting>, body: &[u8], dice: &mut Dice) -> Option<(String, Frames)> {
    let end = dice.below(body.len());
    let frames = framed(framing, &body[..end])?;
    Some((format!("cut after {end} bytes"), frames))
}

/// A damaged reply, and a description of the damage.
pub fn reply(
    framing: impl Into<Cutting>,
    body: &[u8],
    frames: &Frames,
    dice: &mut Dice,
) -> Option<(String, Frames)> {
    match dice.below(3) {
        // The framer sees it too.
        0 => {
            let (what, body) = bytes(body, dice);
            Some((what, framed(framing, &body)?))
        }
        // One frame's content.
        1 => {
            let at = dice.below(frames.len());
            let mut all = list(frames);
            let (what, data) = bytes(all.get(at)?.1, dice);
            all[at].1 = &data;
            Some((format!("frame {at} with {what}"), rebuilt(&all)))
        }
        _ => Some(order(frames, dice)),
    }
}

/// A body of another kind, damaged.
pub fn body(body: &[u8], dice: &mut Dice) -> (String, Vec<u8>) {
    match dice.below(4) {
        0 => {
            let end = dice.below(body.len());
            (format!("cut after {end} bytes"), body[..end].to_vec())
        }
        _ => bytes(body, dice),
    }
}

fn framed(framing: impl Into<Cutting>, body: &[u8]) -> Option<Frames> {
    let batches = reply::batches(framing, &[body]).ok()?;
    Some(reply::together(&batches))
}

fn order(frames: &Frames, dice: &mut Dice) -> (String, Frames) {
    let (one, other) = (dice.below(frames.len()), dice.below(frames.len()));
    let mut all = list(frames);
    let what = match dice.below(4) {
        0 => {
            all.remove(one);
            format!("frame {one} lost")
        }
        1 => {
            all.insert(one, all[one]);
            format!("frame {one} twice")
        }
        2 => {
            (all[one].1, all[other].1) = (all[other].1, all[one].1);
            format!("frames {one} and {other} swapped")
        }
        _ => {
            all[one].1 = b"";
            format!("frame {one} empty")
        }
    };
    (what, rebuilt(&all))
}

/// The name and the data of each frame.
fn list(frames: &Frames) -> Vec<(Option<&str>, &[u8])> {
    frames.iter().map(|frame| (frame.name, frame.data)).collect()
}

fn rebuilt(list: &[(Option<&str>, &[u8])]) -> Frames {
    let mut frames = Frames::default();
    for (name, data) in list {
        frames.push(Nanos::ZERO, name.map(str::to_owned), data);
    }
    frames
}

/// Bytes, damaged in one way.
fn bytes(bytes: &[u8], dice: &mut Dice) -> (String, Vec<u8>) {
    let at = dice.below(bytes.len());
    match dice.below(7) {
        0 => {
            let mut flipped = bytes.to_vec();
            let flips = 1 + dice.below(4);
            for _ in 0..flips {
                let at = dice.below(bytes.len());
                if let Some(byte) = flipped.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
            (format!("{flips} bits flipped"), flipped)
        }
        1 => {
            let garbage: Vec<u8> = (0..1 + dice.below(48)).map(|_| dice.draw() as u8).collect();
            let what = format!("{} bytes of garbage at byte {at}", garbage.len());
            (what, spliced(bytes, at..at, &garbage))
        }
        2 => {
            let end = (at + 1 + dice.below(64)).min(bytes.len());
            let what = format!("bytes {at} to {end} lost");
            (what, spliced(bytes, at..end, b""))
        }
        3 => {
            let none = dice.pick(&NO_TEXT).copied().unwrap_or_default();
            let what = format!("bytes that are not UTF-8 at byte {at}");
            (what, spliced(bytes, at..at, none))
        }
        4 | 5 => {
            let number = dice.pick(&NUMBERS).copied().unwrap_or_default();
            let Some(digits) = digits(bytes, at) else {
                return (format!("only {number}"), number.as_bytes().to_vec());
            };
            let what = format!("{number} in place of the number at byte {}", digits.start);
            (what, spliced(bytes, digits, number.as_bytes()))
        }
        _ => {
            let (open, close) =
                *dice.pick(&[("[", "]"), ("{\"a\":", "}"), ("[", "")]).unwrap_or(&("[", "]"));
            let nest = open.repeat(DEPTH) + "1" + &close.repeat(DEPTH);
            let what = format!("{DEPTH} nested brackets");
            match digits(bytes, at).filter(|_| dice.below(2) == 0) {
                Some(digits) => (what, spliced(bytes, digits, nest.as_bytes())),
                None => (format!("only {what}"), nest.into_bytes()),
            }
        }
    }
}

/// The next run of digits from a byte on, or else the first.
fn digits(bytes: &[u8], from: usize) -> Option<std::ops::Range<usize>> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let start = match bytes[from..].iter().position(is_digit) {
        Some(offset) => from + offset,
        None => bytes.iter().position(is_digit)?,
    };
    let length =
        bytes[start..].iter().position(|byte| !is_digit(byte)).unwrap_or(bytes.len() - start);
    Some(start..start + length)
}

fn spliced(bytes: &[u8], range: std::ops::Range<usize>, with: &[u8]) -> Vec<u8> {
    [&bytes[..range.start], with, &bytes[range.end..]].concat()
}
