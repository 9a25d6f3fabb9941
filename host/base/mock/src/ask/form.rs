//! Forms with files: `multipart/form-data` of RFC 7578, strictly. Notation that neither browsers
//! nor Python's libraries write is refused, so that this engine shows mistakes.

use memchr::memmem::find;

/// The most parts of a form, and the most bytes of a part's head.
const MOST_PARTS: usize = 100;
const MOST_HEAD: usize = 8 << 10;
/// The longest boundary, by RFC 2046.
const MOST_BOUNDARY: usize = 70;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part<'b> {
    pub name: String,
    pub file_name: Option<String>,
    pub bytes: &'b [u8],
}

pub(super) fn parts<'b>(content_type: &str, body: &'b [u8]) -> Result<Vec<Part<'b>>, String> {
    let boundary = boundary(content_type)?;
    let opening = format!("--{boundary}");
    let delimiter = format!("\r\n{opening}");
    let Some(mut rest) = body.strip_prefix(opening.as_bytes()) else {
        return Err(format!("the body does not begin with `{opening}`"));
    };
    let mut parts = Vec::new();
    loop {
        if let Some(end) = rest.strip_prefix(b"--") {
            return match end {
                b"" | b"\r\n" => Ok(parts),
                more => Err(format!("{} bytes come after the end", more.len())),
            };
        }
        if parts.len() == MOST_PARTS {
            return Err(format!("it has more than {MOST_PARTS} parts"));
        }
        let Some(after) = rest.strip_prefix(b"\r\n") else {
            return Err("a boundary is not followed by the end of its line".to_owned());
        };
        let looked_at = &after[..after.len().min(MOST_HEAD)];
        let Some(end) = find(looked_at, b"\r\n\r\n") else {
            return Err("the head of a part has no end".to_owned());
        };
        let (name, file_name) = named(&after[..end])?;
        let content = &after[end + 4..];
        let Some(end) = find(content, delimiter.as_bytes()) else {
            return Err(format!("the part `{name}` has no end: the body is cut off"));
        };
        parts.push(Part { name, file_name, bytes: &content[..end] });
        rest = &content[end + delimiter.len()..];
    }
}

fn boundary(content_type: &str) -> Result<String, String> {
    let mut pieces = content_type.split(';').map(str::trim);
    let kind = pieces.next().unwrap_or_default();
    if !kind.eq_ignore_ascii_case("multipart/form-data") {
        return Err(format!("expected multipart/form-data, got `{kind}`"));
    }
    let mut values = pieces.filter_map(|piece| {
        let (key, value) = piece.split_once('=')?;
        key.eq_ignore_ascii_case("boundary").then_some(value)
    });
    let value = values.next().unwrap_or_default();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    match value.len() {
        1..=MOST_BOUNDARY if value.bytes().all(is_allowed) => Ok(value.to_owned()),
        _ => Err(format!("`{value}` is no boundary")),
    }
}

fn named(head: &[u8]) -> Result<(String, Option<String>), String> {
    let head = str::from_utf8(head).map_err(|_| "the head of a part is not UTF-8".to_owned())?;
    let disposition = head.split("\r\n").find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_it = key.eq_ignore_ascii_case("content-disposition");
        is_it.then_some(value.trim())
    });
    let Some(values) = disposition.and_then(|value| value.strip_prefix("form-data;")) else {
        return Err("a part has no content-disposition of form-data".to_owned());
    };
    let (mut name, mut file_name) = (None, None);
    let mut rest = values.trim_start();
    while !rest.is_empty() {
        let quoted = rest.split_once("=\"").and_then(|(key, rest)| {
            let (value, rest) = rest.split_once('"')?;
            Some((key, value, rest))
        });
        let Some((key, value, after)) = quoted else {
            return Err(format!("expected NAME=\"VALUE\", got `{rest}`"));
        };
        let value = value.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n");
        match key {
            "name" => name = Some(value),
            "filename" => file_name = Some(value),
            _ => {}
        }
        rest = after.trim_start_matches(';').trim_start();
    }
    let name = name.ok_or_else(|| "a part has no name".to_owned())?;
    Ok((name, file_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTPX: &[u8] = include_bytes!("../captures/form-httpx.bin");
    const CURL: &[u8] = include_bytes!("../captures/form-curl.bin");

    fn captured(capture: &'static [u8]) -> (&'static str, &'static [u8]) {
        let end = find(capture, b"\n").unwrap();
        (str::from_utf8(&capture[..end]).unwrap(), &capture[end + 1..])
    }

    /// Forms as httpx 0.28 (the library of OpenAI's own client) and as curl 7.88 wrote them.
    #[test]
    fn forms_of_other_clients_are_read() {
        for (capture, file_name) in [(HTTPX, "a \"b\".wav"), (CURL, "sound.wav")] {
            let (content_type, body) = captured(capture);
            let mut parts = parts(content_type, body).unwrap();
            parts.sort_by(|one, other| one.name.cmp(&other.name));
            let fields =
                |part: &Part<'_>| (part.name.clone(), part.file_name.clone(), part.bytes.to_vec());
            let sound = b"RIFF\r\n--\r\n\0\xff\r\n".to_vec();
            assert_eq!(
                parts.iter().map(fields).collect::<Vec<_>>(),
                [
                    ("file".to_owned(), Some(file_name.to_owned()), sound),
                    ("model".to_owned(), None, b"whisper-1".to_vec()),
                    ("prompt".to_owned(), None, "Grüße".as_bytes().to_vec()),
                ]
            );
        }
    }

    #[test]
    fn a_form_that_is_cut_off_is_refused() {
        let (content_type, body) = captured(HTTPX);
        for end in 0..body.len() - 2 {
            assert!(parts(content_type, &body[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn errors_name_the_fault_of_a_form() {
        let form = "multipart/form-data; boundary=b";
        for (content_type, body, wanted) in [
            ("application/json", "{}", "expected multipart/form-data, got `application/json`"),
            ("multipart/form-data", "--b--", "`` is no boundary"),
            ("multipart/form-data; boundary=\"a\u{e9}\"", "--b--", "is no boundary"),
            (form, "--c--", "does not begin with `--b`"),
            (form, "--b\r\n\r\n\r\nx\r\n--b--", "no content-disposition"),
            (
                form,
                "--b\r\ncontent-disposition: form-data; name=x\r\n\r\nx\r\n--b--",
                "expected NAME=\"VALUE\"",
            ),
            (form, "--b--\r\nmore", "6 bytes come after the end"),
            (form, "--bx", "not followed by the end of its line"),
        ] {
            let message = parts(content_type, body.as_bytes()).unwrap_err();
            assert!(message.contains(wanted), "{message}");
        }
        let many =
            "--b\r\ncontent-disposition: form-data; name=\"x\"\r\n\r\n\r\n".repeat(101) + "--b--";
        assert!(parts(form, many.as_bytes()).unwrap_err().contains("more than 100 parts"));
        assert_eq!(parts(form, b"--b--"), Ok(Vec::new()));
    }
}
