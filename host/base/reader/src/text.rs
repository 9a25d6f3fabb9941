//! Reads text that people write, which is never long.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest text, in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// The text of a file. Fails if it cannot be read, is too large, or is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    read_text_from(File::open(path)?)
}

/// A text to its end. Errors: as [`read_text`].
pub fn read_text_from(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A byte more shows that there is more; a device may have no end.
    source.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, too_large()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let words = format!("line {line} is not text in UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, words)
    })
}

pub(crate) fn too_large() -> String {
    format!("it is larger than {} MiB, the most that is read", MOST_BYTES >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_largest_size() {
        let fits = vec![b'#'; MOST_BYTES];
        assert_eq!(read_text_from(&fits[..]).unwrap().len(), MOST_BYTES);
        let error = read_text_from(io::repeat(b'#')).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1 MiB, the most that is read");
        let error = read_text_from(&b"a = 1\nb = \"\xff\"\n"[..]).unwrap_err();
        assert_eq!(error.to_string(), "line 2 is not text in UTF-8");
    }
}
