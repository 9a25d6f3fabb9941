//! The columns of a record's events, read from its line directly: they are most of a line, and a
//! summary reads every line. `serde_json` reads all else of the line, and the whole line if the
//! columns differ from the exact form of [`Recorder`](super::Recorder).

use memchr::memmem;

use model::exchange::{Events, Exchange, Kind};
use model::units::Nanos;

const BEGIN: &[u8] = br#""events":{"at":["#;
/// The text in their place in the rest of the line, with an instant that no event has.
const STAND_IN: &[u8] = br#""events":{"at":[18446744073709551615],"kind":"","bytes":[]}"#;
const STAND_IN_AT: Nanos = Nanos(u64::MAX);
/// Most digits of a number: any number of this length fits.
const DIGITS: usize = 19;

/// Reads lines; holds buffers for use with the next line.
#[derive(Default)]
pub(super) struct Columns {
    rest: Vec<u8>,
}

impl Columns {
    /// The record in a line; absent if its columns have another form, or it is not a record.
    pub(super) fn parsed(&mut self, line: &[u8]) -> Option<Exchange> {
        let begin = memmem::find(line, BEGIN)?;
        let mut from = Reader(&line[begin + BEGIN.len()..]);
        let events = from.events()?;
        self.rest.clear();
        self.rest.extend_from_slice(&line[..begin]);
        self.rest.extend_from_slice(STAND_IN);
        self.rest.extend_from_slice(from.0);
        // Once for all of it takes less time than for each of its texts.
        let rest = std::str::from_utf8(&self.rest).ok()?;
        let mut exchange: Exchange = serde_json::from_str(rest).ok()?;
        // The match may have been part of something else, such as a reference.
        if exchange.events.at != [STAND_IN_AT] {
            return None;
        }
        exchange.events = events;
        Some(exchange)
    }
}

struct Reader<'l>(&'l [u8]);

impl Reader<'_> {
    /// The columns, from the first instant on.
    fn events(&mut self) -> Option<Events> {
        let at = self.column(|from| from.number().map(Nanos))?;
        self.skip(br#","kind":""#)?;
        let length = memchr::memchr(b'"', self.0)?;
        let letters = self.0.get(..length)?;
        let mut kind = Vec::with_capacity(length);
        for letter in letters {
            kind.push(Kind::from_letter(*letter)?);
        }
        self.0 = &self.0[length + 1..];
        let tokens = match self.skip(br#","tokens":["#) {
            Some(()) => self.column(Self::tokens)?,
            None => Vec::new(),
        };
        self.skip(br#","bytes":["#)?;
        let bytes = self.column(|from| u32::try_from(from.number()?).ok())?;
        self.skip(b"}")?;
        Some(Events { at, kind, tokens, bytes })
    }

    /// Values up to the bracket that ends them.
    #[inline]
    fn column<T>(&mut self, value: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut values = Vec::new();
        if self.skip(b"]").is_some() {
            return Some(values);
        }
        loop {
            values.push(value(self)?);
            let (next, rest) = self.0.split_first()?;
            self.0 = rest;
            match next {
                b',' => {}
                b']' => return Some(values),
                _ => return None,
            }
        }
    }

    fn tokens(&mut self) -> Option<Option<u32>> {
        match self.skip(b"null") {
            Some(()) => Some(None),
            None => u32::try_from(self.number()?).ok().map(Some),
        }
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut length) = (0, 0);
        if let Some(first) = self.0.first_chunk()
            && let Some(eight) = eight_digits(u64::from_le_bytes(*first))
        {
            (number, length) = (eight, 8);
        }
        while let Some(byte) = self.0.get(length)
            && byte.is_ascii_digit()
        {
            if length == DIGITS {
                return None;
            }
            number = 10 * number + u64::from(byte - b'0');
            length += 1;
        }
        let is_number = length == 1 || length > 1 && self.0[0] != b'0';
        self.0 = &self.0[length..];
        is_number.then_some(number)
    }

    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }
}

/// The number of eight digits, the first lowest (Daniel Lemire, "Quickly parsing eight digits").
#[inline]
fn eight_digits(bytes: u64) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const SIX: u64 = 0x0606_0606_0606_0606;
    let is_digits = bytes & HIGH == ZEROS && bytes.wrapping_add(SIX) & HIGH == ZEROS;
    is_digits.then(|| {
        let digits = bytes - ZEROS;
        let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
        (fours & 0xffff) * 10_000 + (fours >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges;
    use proptest::prelude::*;

    fn line(events: &str) -> String {
        let mut exchange = exchanges::reply(3, 1_000, &[]);
        exchange.sample.reference = Some(serde_json::json!({"a": [1, "]"]}));
        exchange.output = "an answer with \"events\":{\"at\":[".to_owned();
        let text = serde_json::to_string(&exchange).unwrap();
        let empty = r#""events":{"at":[],"kind":"","bytes":[]}"#;
        assert_eq!(text.matches(empty).count(), 1);
        text.replace(empty, events) + "\n"
    }

    /// Reads a line with both readers, whose results must be the same.
    #[track_caller]
    fn read(line: &str) -> Option<Exchange> {
        let fast = Columns::default().parsed(line.as_bytes());
        let slow: Result<Exchange, _> = serde_json::from_str(line);
        if let Some(fast) = &fast {
            assert_eq!(fast, slow.as_ref().expect(line), "{line}");
        }
        fast
    }

    #[test]
    fn numbers_follow_json() {
        for (at, is_read) in [
            ("0", true),
            ("7", true),
            ("12345678", true),
            ("123456789", true),
            ("1234567890123456789", true),
            ("9999999999999999999", true),
            ("12345678901234567890", false),
            ("01", false),
            ("00000000", false),
            ("1.5", false),
            ("1e5", false),
            ("-1", false),
            (" 1", false),
            ("", true),
            ("1234567a", false),
            ("123456/8", false),
            ("1234567:", false),
        ] {
            let events = format!(r#""events":{{"at":[{at}],"kind":"t","bytes":[1]}}"#);
            assert_eq!(read(&line(&events)).is_some(), is_read, "{at}");
        }
        let bytes = |bytes: &str| {
            let events = format!(r#""events":{{"at":[1],"kind":"t","bytes":[{bytes}]}}"#);
            read(&line(&events)).is_some()
        };
        assert!(bytes("4294967295") && !bytes("4294967296"));
    }

    #[test]
    fn unusual_lines_fall_back_to_serde() {
        for (events, is_read) in [
            (r#""events":{"at":[1],"kind":"t","tokens":[null],"bytes":[1]}"#, true),
            (r#""events":{"at":[1,2],"kind":"tu","tokens":[3,null],"bytes":[1,0]}"#, true),
            (r#""events":{"at":[1,2],"kind":"t","bytes":[]}"#, true),
            (r#""events":{"at":[1],"kind":"z","bytes":[1]}"#, false),
            (r#""events":{"at":[1],"kind":"\u0074","bytes":[1]}"#, false),
            (r#""events":{"at":[1],"bytes":[1],"kind":"t"}"#, false),
            (r#""events":{"at":[1], "kind":"t","bytes":[1]}"#, false),
            (r#""events":{"at":[1],"kind":"t","bytes":[1],"more":1}"#, false),
            (r#""events": {"at":[1],"kind":"t","bytes":[1]}"#, false),
            (r#""events":{"at":[1"#, false),
        ] {
            assert_eq!(read(&line(events)).is_some(), is_read, "{events}");
        }
        // The columns of something else: the record's own columns are written in another way.
        let elsewhere = r#""events":{"at":[1],"kind":"t","bytes":[1]}"#;
        let own = line(r#""events":{"kind":"","at":[],"bytes":[]}"#);
        let text = own.replace(r#"{"a":[1,"]"]}"#, &format!("{{{elsewhere}}}"));
        assert_ne!(own, text);
        assert_eq!(read(&text), None);
        assert_eq!(read(&text.replace(r#""kind":"","at":[]"#, r#""at":[],"kind":"""#)), None);
        let exchange: Exchange = serde_json::from_str(&text).unwrap();
        assert!(exchange.events.at.is_empty());
    }

    proptest! {
        #[test]
        fn every_record_reads_as_it_was_written(exchange in exchanges::any_exchange(7)) {
            let text = serde_json::to_string(&exchange).unwrap() + "\n";
            prop_assert_eq!(read(&text), Some(exchange));
        }

        #[test]
        fn damage_makes_no_difference(exchange in exchanges::any_exchange(7), at in any::<prop::sample::Index>(), byte in 0x20..0x7fu8) {
            let mut text = serde_json::to_string(&exchange).unwrap().into_bytes();
            let at = at.index(text.len());
            if text[at].is_ascii() {
                text[at] = byte;
            }
            read(&String::from_utf8(text).unwrap());
        }
    }
}
