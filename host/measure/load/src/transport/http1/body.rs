//! The extent of a reply's body: chunked, of a stated length, or up to the connection's end. RFC
//! 9112, 6 and 7. A head that states its body's length in two ways is refused.

use hyper::HeaderMap;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

use crate::transport::Broke;

/// The longest line of a chunk's size, in bytes.
const LINE_BYTES: usize = 16 << 10;
/// The longest trailer, in bytes: as a head.
const TRAILER_BYTES: usize = 64 << 10;

/// The body of one reply, as far as it was read.
#[derive(Debug)]
pub enum Body {
    /// This many bytes are left.
    Length(u64),
    /// As long as the connection.
    UntilClose,
    /// In a line that says the next chunk's size, or in its extensions.
    Size(SizeLine),
    /// In a chunk's content; the number is the bytes left.
    Chunk(u64),
    /// After a chunk's content: CR LF; CR may have come.
    AfterChunk {
        cr: bool,
    },
    /// In the trailer: whether the line is still empty, and how long the trailer is so far.
    Trailer {
        empty: bool,
        length: usize,
    },
    Over,
}

/// A line with a chunk's size, as far as it was read.
#[derive(Debug, Default)]
pub struct SizeLine {
    size: u64,
    digits: usize,
    /// True after the digits: blanks or an extension follow.
    ended: bool,
    length: usize,
}

impl Body {
    /// The body that this head announces. Fails if it contradicts itself, or cannot be read.
    pub fn from_head(status: u16, headers: &HeaderMap) -> Result<Self, String> {
        if matches!(status, 204 | 304) {
            return Ok(Body::Over);
        }
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter().peekable();
        if codings.peek().is_some() {
            if headers.contains_key(CONTENT_LENGTH) {
                return Err(
                    "the reply states both a content-length and a transfer-encoding".to_owned()
                );
            }
            let codings: Vec<_> =
                codings.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
            return match codings.join(",").trim() {
                coding if coding.eq_ignore_ascii_case("chunked") => {
                    Ok(Body::Size(SizeLine::default()))
                }
                coding => Err(format!(
                    "the reply has the transfer coding `{coding}`, which was not requested"
                )),
            };
        }
        let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
        let Some(first) = lengths.next() else { return Ok(Body::UntilClose) };
        match number(first.as_bytes()).filter(|_| lengths.all(|other| other == first)) {
            Some(0) => Ok(Body::Over),
            Some(length) => Ok(Body::Length(length)),
            None => {
                Err("the reply's content-length is not a number, or there are several".to_owned())
            }
        }
    }

    /// True if its end can be seen without the connection's.
    pub(crate) fn has_own_end(&self) -> bool {
        !matches!(self, Body::UntilClose)
    }

    /// True if it was read to its end.
    pub fn is_over(&self) -> bool {
        matches!(self, Body::Over)
    }

    /// Reads the part at the beginning of these bytes; returns its content, if any, and its length.
    pub fn next<'b>(&mut self, bytes: &'b [u8]) -> Result<(Option<&'b [u8]>, usize), String> {
        match self {
            Body::Over => return Ok((None, 0)),
            Body::UntilClose => return Ok((Some(bytes), bytes.len())),
            Body::Length(left) | Body::Chunk(left) => {
                let content = up_to(bytes, *left);
                *left -= content.len() as u64;
                if *left == 0 {
                    *self = match self {
                        Body::Chunk(_) => Body::AfterChunk { cr: false },
                        _ => Body::Over,
                    };
                }
                return Ok((Some(content), content.len()));
            }
            Body::Size(line) => {
                if line.length == 0
                    && let Some((size, used)) = SizeLine::plain(bytes)
                {
                    *self = Body::Chunk(size);
                    return Ok((None, used));
                }
                for (index, byte) in bytes.iter().enumerate() {
                    if let Some(size) = line.take(*byte)? {
                        *self = match size {
                            0 => Body::Trailer { empty: true, length: 0 },
                            size => Body::Chunk(size),
                        };
                        return Ok((None, index + 1));
                    }
                }
            }
            Body::AfterChunk { cr: false } if bytes.starts_with(b"\r\n") => {
                *self = Body::Size(SizeLine::default());
                return Ok((None, 2));
            }
            Body::AfterChunk { cr } => {
                for (index, byte) in bytes.iter().enumerate() {
                    match byte {
                        b'\n' => {
                            *self = Body::Size(SizeLine::default());
                            return Ok((None, index + 1));
                        }
                        b'\r' if !*cr => *cr = true,
                        _ => return Err("a chunk of the reply is longer than stated".to_owned()),
                    }
                }
            }
            Body::Trailer { empty, length } => {
                for (index, byte) in bytes.iter().enumerate() {
                    *length += 1;
                    match byte {
                        b'\n' if *empty => {
                            *self = Body::Over;
                            return Ok((None, index + 1));
                        }
                        _ if *length > TRAILER_BYTES => {
                            return Err(format!(
                                "the reply's trailer is longer than {} KiB",
                                TRAILER_BYTES >> 10
                            ));
                        }
                        b'\n' => *empty = true,
                        b'\r' => {}
                        _ => *empty = false,
                    }
                }
            }
        }
        Ok((None, bytes.len()))
    }

    /// The connection is over: fails if a part of the body was still to come.
    pub(crate) fn end_of_connection(&mut self) -> Result<(), Broke> {
        Err(Broke::Connection(match std::mem::replace(self, Body::Over) {
            Body::Over | Body::UntilClose => return Ok(()),
            Body::Length(left) => {
                format!("the connection was closed {left} bytes before the reply's stated end")
            }
            _ => "the connection was closed before the reply's last chunk".to_owned(),
        }))
    }
}

/// A number in digits, and nothing else: other readers would not agree on a sign.
fn number(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn up_to(bytes: &[u8], most: u64) -> &[u8] {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    &bytes[..bytes.len().min(most)]
}

impl SizeLine {
    /// The size in a whole line without anything else, and the line's length; zero is not handled.
    fn plain(bytes: &[u8]) -> Option<(u64, usize)> {
        let mut size = 0;
        for (index, byte) in bytes.iter().take(8).enumerate() {
            match char::from(*byte).to_digit(16) {
                Some(digit) => size = size << 4 | u64::from(digit),
                None => {
                    let is_whole = size > 0 && bytes[index..].starts_with(b"\r\n");
                    return is_whole.then_some((size, index + 2));
                }
            }
        }
        None
    }

    /// Takes one byte; gives the size when the line is whole.
    fn take(&mut self, byte: u8) -> Result<Option<u64>, String> {
        let malformed = || Err("a chunk of the reply has no valid size".to_owned());
        self.length += 1;
        if self.length > LINE_BYTES {
            return Err("the line with a chunk's size is too long".to_owned());
        }
        match (byte, char::from(byte).to_digit(16)) {
            (b'\n', _) if self.digits == 0 => return malformed(),
            (b'\n', _) => return Ok(Some(self.size)),
            (b'\r' | b' ' | b'\t' | b';', _) if self.digits > 0 => self.ended = true,
            _ if self.ended => {}
            (_, Some(digit)) if self.digits < 16 => {
                self.size = self.size << 4 | u64::from(digit);
                self.digits += 1;
            }
            _ => return malformed(),
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    fn chunked() -> Body {
        let mut headers = HeaderMap::new();
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        Body::from_head(200, &headers).unwrap()
    }

    /// Content, and how many bytes are left over after the end; the reads are given as they are.
    fn read(mut body: Body, reads: &[&[u8]]) -> Result<(Vec<u8>, usize), String> {
        let mut content = Vec::new();
        for (number, read) in reads.iter().enumerate() {
            let mut bytes = *read;
            while !bytes.is_empty() {
                let (part, used) = body.next(bytes)?;
                content.extend_from_slice(part.unwrap_or_default());
                bytes = &bytes[used..];
                if body.is_over() {
                    let later: usize = reads[number + 1..].iter().map(|read| read.len()).sum();
                    return Ok((content, bytes.len() + later));
                }
            }
        }
        Err("not over".to_owned())
    }

    const WHOLE: &[u8] =
        b"3\r\nabc\r\n00A;name=\"v;\r\";x \r\n0123456789\r\n0;last\r\nx-t: 1\r\n\r\nmore";

    #[test]
    fn malformed_chunk_is_refused() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "-3\r\nabc\r\n",
            "2\r\nabc\r\n0\r\n\r\n",
            "11111111111111111\r\n",
            "+3\r\nabc\r\n",
            " 3\r\nabc\r\n",
            "0x3\r\nabc\r\n",
            "3\r\nabc\r\r\n0\r\n\r\n",
        ] {
            let refused = read(chunked(), &[wrong.as_bytes()]);
            assert!(refused.is_err_and(|what| what != "not over"), "{wrong:?}");
        }
    }

    #[test]
    fn lengths_must_be_one_number() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            Body::from_head(200, &headers)
        };
        assert_eq!(read(of(&["3"]).unwrap(), &[b"ab", b"cd"]), Ok((b"abc".to_vec(), 1)));
        assert!(of(&["0"]).unwrap().is_over());
        assert!(of(&["3", "3"]).is_ok());
        for wrong in [
            &["3", "4"][..],
            &["x"],
            &["-1"],
            &["+5"],
            &[" 5"],
            &[""],
            &["5, 5"],
            &["0x5"],
            &["18446744073709551616"],
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        assert!(!of(&[]).unwrap().has_own_end());
    }

    /// Anything that can be sent without end is refused at some length.
    #[test]
    fn chunk_lines_and_trailers_are_bounded() {
        let endless = |begin: &str, again: &str| {
            let mut body = chunked();
            let mut bytes = begin.as_bytes().to_vec();
            while bytes.len() < 1 << 20 {
                bytes.extend_from_slice(again.as_bytes());
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                match body.next(rest) {
                    Ok((_, used)) => rest = &rest[used..],
                    Err(what) => return what,
                }
            }
            panic!("a megabyte of it was read")
        };
        assert!(endless("3;", "x").contains("too long"));
        assert!(endless("3;", "\r").contains("too long"));
        assert!(endless("0\r\n", "x").contains("trailer"));
        assert!(endless("0\r\n", "x: 1\r\n").contains("trailer"));
        assert!(endless("0\r\n", "\r").contains("trailer"));
        assert!(endless("1\r\na", "\r").contains("longer than stated"));
    }

    #[test]
    fn early_close_is_an_error() {
        assert!(chunked().end_of_connection().is_err());
        assert!(Body::Length(1).end_of_connection().is_err());
        assert!(Body::UntilClose.end_of_connection().is_ok());
    }

    proptest! {
        /// Extensions and trailers are not content, wherever the bytes are cut on their way.
        #[test]
        fn cuts_make_no_difference(cuts in prop::collection::vec(0..WHOLE.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, WHOLE.len()]);
            cuts.sort_unstable();
            let reads: Vec<&[u8]> = cuts.windows(2).map(|w| &WHOLE[w[0]..w[1]]).collect();
            prop_assert_eq!(read(chunked(), &reads), Ok((b"abc0123456789".to_vec(), 4)));
        }
    }
}
