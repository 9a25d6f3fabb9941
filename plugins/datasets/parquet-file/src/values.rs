//! The encodings of levels and values within a page.
//! <https://github.com/apache/parquet-format/blob/master/Encodings.md>

use runner_plugin::Media;
use serde_json::Value;

use crate::schema::{Leaf, Meaning, Storage};
use crate::thrift::Input;

/// `count` numbers below two to the power of `width`, as runs of one and as packed bits.
pub fn hybrid(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
    if width == 0 {
        return Some(vec![0; count]);
    }
    if width > 32 {
        return None;
    }
    let mut input = Input { bytes, at: 0 };
    let mut numbers = Vec::with_capacity(count);
    while numbers.len() < count {
        let head = input.varint()?;
        let length = usize::try_from(head >> 1).ok()?;
        let missing = count - numbers.len();
        if head & 1 == 1 {
            let packed =
                input.take(length.checked_mul(width as usize)?.min(bytes.len() - input.at))?;
            let unpacked = unpack(packed, width, length.checked_mul(8)?.min(missing))?;
            numbers.extend(unpacked.into_iter().map(|number| number as u32));
        } else {
            let mut number = 0;
            for (place, byte) in input.take(width.div_ceil(8) as usize)?.iter().enumerate() {
                number |= u32::from(*byte) << (8 * place);
            }
            if length == 0 {
                return None;
            }
            numbers.extend(std::iter::repeat_n(number, length.min(missing)));
        }
    }
    Some(numbers)
}

/// Numbers of `width` bits, the lowest bit of a byte first.
fn unpack(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u64>> {
    if bytes.len() * 8 < count * width as usize {
        return None;
    }
    let mut numbers = Vec::with_capacity(count);
    let (mut held, mut bits, mut bytes) = (0_u128, 0, bytes.iter());
    for _ in 0..count {
        while bits < width {
            held |= u128::from(*bytes.next()?) << bits;
            bits += 8;
        }
        numbers.push((held & ((1_u128 << width) - 1)) as u64);
        held >>= width;
        bits -= width;
    }
    Some(numbers)
}

/// Numbers as differences in blocks; at most `most` of them.
fn deltas(input: &mut Input<'_>, most: usize) -> Option<Vec<i64>> {
    let block = usize::try_from(input.varint()?).ok()?;
    let parts = usize::try_from(input.varint()?).ok()?;
    let count = usize::try_from(input.varint()?).ok()?;
    let mut number = input.zigzag()?;
    if count > most || parts == 0 || block % parts != 0 || (block / parts) % 8 != 0 {
        return None;
    }
    let each = block / parts;
    let mut numbers = Vec::with_capacity(count);
    if count > 0 {
        numbers.push(number);
    }
    while numbers.len() < count {
        let least = input.zigzag()?;
        let widths = input.take(parts)?;
        for width in widths {
            // The parts of the last block that are not needed are left out.
            if numbers.len() >= count {
                break;
            }
            if *width > 64 {
                return None;
            }
            let packed = input.take(each / 8 * usize::from(*width))?;
            let missing = (count - numbers.len()).min(each);
            for delta in unpack(packed, (*width).into(), missing)? {
                number = number.wrapping_add(least).wrapping_add(delta as i64);
                numbers.push(number);
            }
        }
    }
    Some(numbers)
}

/// Texts: all their lengths, and then their bytes.
fn lengths_first<'a>(input: &mut Input<'a>, most: usize) -> Option<Vec<&'a [u8]>> {
    let lengths = deltas(input, most)?;
    let texts = lengths.into_iter();
    texts.map(|length| input.take(usize::try_from(length).ok()?)).collect()
}

/// `count` values of a column.
pub fn values(
    leaf: &Leaf,
    encoding: i64,
    bytes: &[u8],
    count: usize,
    dictionary: &[Value],
) -> Result<Vec<Value>, String> {
    let damaged = || "a page is damaged".to_owned();
    let mut input = Input { bytes, at: 0 };
    match (encoding, leaf.stored) {
        (0, Storage::Bool) => {
            let bits = unpack(bytes, 1, count).ok_or_else(damaged)?.into_iter();
            Ok(bits.map(|bit| Value::from(bit == 1)).collect())
        }
        (0, _) => (0..count)
            .map(|_| {
                let bytes = match leaf.stored {
                    Storage::Int32 | Storage::Float => input.take(4),
                    Storage::Int64 | Storage::Double => input.take(8),
                    Storage::Int96 => input.take(12),
                    Storage::Fixed(length) => input.take(length),
                    Storage::Bytes | Storage::Bool => {
                        let length = input.take(4).and_then(|length| length.try_into().ok());
                        length.and_then(|length| input.take(u32::from_le_bytes(length) as usize))
                    }
                };
                value(leaf, bytes.ok_or_else(damaged)?)
            })
            .collect(),
        (2 | 8, _) => {
            if count == 0 {
                return Ok(Vec::new());
            }
            let width = input.byte().ok_or_else(damaged)?;
            let places = hybrid(&bytes[1..], width.into(), count).ok_or_else(damaged)?;
            let found = places.into_iter().map(|at| dictionary.get(at as usize));
            found.map(|value| value.cloned().ok_or_else(damaged)).collect()
        }
        (3, Storage::Bool) => {
            // After the length of the whole.
            let bits = bytes.get(4..).and_then(|bytes| hybrid(bytes, 1, count));
            Ok(bits.ok_or_else(damaged)?.into_iter().map(|bit| Value::from(bit == 1)).collect())
        }
        (5, Storage::Int32 | Storage::Int64) => {
            let numbers = deltas(&mut input, count).ok_or_else(damaged)?;
            let number = |number: i64| match leaf.stored {
                Storage::Int32 => value(leaf, &(number as i32).to_le_bytes()),
                _ => value(leaf, &number.to_le_bytes()),
            };
            numbers.into_iter().map(number).collect()
        }
        (6, Storage::Bytes) => {
            let texts = lengths_first(&mut input, count).ok_or_else(damaged)?;
            texts.into_iter().map(|text| value(leaf, text)).collect()
        }
        (7, Storage::Bytes | Storage::Fixed(_)) => {
            let shared = deltas(&mut input, count).ok_or_else(damaged)?;
            let ends = lengths_first(&mut input, count).ok_or_else(damaged)?;
            let mut text = Vec::new();
            let mut texts = Vec::with_capacity(count);
            for (shared, end) in shared.into_iter().zip(ends) {
                let shared = usize::try_from(shared).ok();
                let shared = shared.filter(|shared| *shared <= text.len());
                text.truncate(shared.ok_or_else(damaged)?);
                text.extend_from_slice(end);
                texts.push(value(leaf, &text)?);
            }
            Ok(texts)
        }
        (9, Storage::Int32 | Storage::Float | Storage::Int64 | Storage::Double) => {
            let width = if matches!(leaf.stored, Storage::Int32 | Storage::Float) { 4 } else { 8 };
            if bytes.len() != count * width {
                return Err(damaged());
            }
            let number = |at: usize| -> Vec<u8> {
                (0..width).map(|place| bytes[place * count + at]).collect()
            };
            (0..count).map(|at| value(leaf, &number(at))).collect()
        }
        (other, stored) => Err(format!(
            "values of type {stored:?} in encoding {other} of the format are not supported"
        )),
    }
}

/// A value from its bytes. Bytes that are neither number nor text become a `data:` URL.
fn value(leaf: &Leaf, bytes: &[u8]) -> Result<Value, String> {
    let whole = |number: i64| match leaf.means {
        Meaning::Decimal(scale) => Value::from(number as f64 / 10_f64.powi(scale)),
        Meaning::Unsigned if leaf.stored == Storage::Int32 => Value::from(number as u32),
        Meaning::Unsigned => Value::from(number as u64),
        _ => Value::from(number),
    };
    Ok(match (leaf.stored, bytes) {
        (Storage::Int32, &[a, b, c, d]) => whole(i32::from_le_bytes([a, b, c, d]).into()),
        (Storage::Float, &[a, b, c, d]) => Value::from(f32::from_le_bytes([a, b, c, d])),
        (Storage::Int64, &[a, b, c, d, e, f, g, h]) => {
            whole(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        (Storage::Double, &[a, b, c, d, e, f, g, h]) => {
            Value::from(f64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        (Storage::Int96, &[a, b, c, d, e, f, g, h, i, j, k, l]) => {
            // Nanoseconds of a day, and the day from noon of 1 January 4713 BC on.
            let day = i64::from(i32::from_le_bytes([i, j, k, l])) - 2_440_588;
            let within = i64::from_le_bytes([a, b, c, d, e, f, g, h]);
            Value::from(day.wrapping_mul(86_400_000_000_000).wrapping_add(within))
        }
        (_, bytes) => match str::from_utf8(bytes) {
            Ok(text) => Value::from(text),
            Err(_) if leaf.means == Meaning::Text => {
                return Err("a text is not UTF-8".to_owned());
            }
            Err(_) => {
                let media = Media {
                    media_type: "application/octet-stream".to_owned(),
                    bytes: bytes.to_vec(),
                };
                Value::from(media.data_url())
            }
        },
    })
}
