//! A request's form with files: `multipart/form-data` (RFC 7578), as browsers and Python's clients
//! write it.
//!
//! The boundary is chosen from the content alone, so that the same form gives the same bytes, and
//! no part contains it.

use memchr::memmem;
use serde_json::Value;

use crate::{Body, Media, Request};

/// The beginning of a boundary; 16 hexadecimal digits follow.
const BOUNDARY: &str = "runner-form-";
const DIGITS: usize = 16;

/// A form under construction. Its fields keep the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Form {
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    /// The file's name and media type, if it is one.
    file: Option<(String, String)>,
    bytes: Vec<u8>,
}

impl Form {
    /// An empty form.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field of text.
    pub fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.fields.push(Field {
            name: name.to_owned(),
            file: None,
            bytes: value.as_bytes().to_vec(),
        });
        self
    }

    /// Adds a file, with the name that the server sees.
    pub fn file(&mut self, name: &str, file_name: &str, content: &Media) -> &mut Self {
        let media_type = content.media_type.replace(['\r', '\n'], "");
        self.fields.push(Field {
            name: name.to_owned(),
            file: Some((file_name.to_owned(), media_type)),
            bytes: content.bytes.clone(),
        });
        self
    }

    /// Adds a JSON object's fields as text, as OpenAI's own client does: a text without quotation
    /// marks, each item of a list under `NAME[]`, no `null`, and other values as JSON.
    pub fn fields(&mut self, body: &Body) -> &mut Self {
        for (name, value) in body.fields() {
            match serde_json::from_str(value) {
                Ok(Value::Array(items)) => {
                    let name =
                        if name.ends_with("[]") { name.to_owned() } else { format!("{name}[]") };
                    for item in items {
                        self.value(&name, item);
                    }
                }
                Ok(value) => self.value(name, value),
                Err(_) => {
                    self.text(name, value);
                }
            }
        }
        self
    }

    fn value(&mut self, name: &str, value: Value) {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.text(name, &text);
    }

    /// A POST request with this form.
    pub fn request(&self, path: impl Into<String>) -> Request {
        let boundary = self.boundary();
        Request {
            headers: vec![(
                "content-type".to_owned(),
                format!("multipart/form-data; boundary={boundary}"),
            )],
            body: self.written(&boundary),
            ..Request::post(path)
        }
    }

    fn written(&self, boundary: &str) -> Vec<u8> {
        let content: usize = self.fields.iter().map(|field| field.bytes.len()).sum();
        let mut bytes = Vec::with_capacity(content + 256 * (self.fields.len() + 1));
        for field in &self.fields {
            let name = quoted(&field.name);
            bytes.extend(format!("--{boundary}\r\n").bytes());
            bytes.extend(format!("Content-Disposition: form-data; name=\"{name}\"").bytes());
            if let Some((file_name, media_type)) = &field.file {
                let file_name = quoted(file_name);
                bytes.extend(format!("; filename=\"{file_name}\"\r\n").bytes());
                bytes.extend(format!("Content-Type: {media_type}").bytes());
            }
            bytes.extend(b"\r\n\r\n");
            bytes.extend(&field.bytes);
            bytes.extend(b"\r\n");
        }
        bytes.extend(format!("--{boundary}--\r\n").bytes());
        bytes
    }

    /// The first boundary, in the order of its numbers, that no content and no name contains. One
    /// look at the content finds all that it has.
    fn boundary(&self) -> String {
        let mut taken = Vec::new();
        for field in &self.fields {
            let (file_name, media_type) =
                field.file.as_ref().map_or(("", ""), |(name, kind)| (name.as_str(), kind.as_str()));
            let texts = [&field.name, file_name, media_type].map(str::as_bytes);
            for bytes in texts.into_iter().chain([field.bytes.as_slice()]) {
                taken.extend(numbers(bytes));
            }
        }
        taken.sort_unstable();
        taken.dedup();
        let free = (0_u64..).zip(&taken).find(|(number, taken)| number != *taken);
        let number = free.map_or(taken.len() as u64, |(number, _)| number);
        format!("{BOUNDARY}{number:0width$x}", width = DIGITS)
    }
}

/// The numbers of the boundaries in some bytes.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    memmem::find_iter(bytes, BOUNDARY).filter_map(|at| {
        let digits = bytes.get(at + BOUNDARY.len()..)?.get(..DIGITS)?;
        u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    })
}

/// A name within quotation marks, as the HTML standard escapes it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn media(bytes: &[u8]) -> Media {
        Media { media_type: "audio/wav".to_owned(), bytes: bytes.to_vec() }
    }

    #[test]
    fn a_form_has_its_fields_in_order() {
        let mut body = Body::new();
        body.set("temperature", 0.5).set("stream", true).set("language", None::<String>);
        body.set("include", ["logprobs", "x"]).set("more", json!({"a": [1]}));
        let mut form = Form::new();
        form.file("file", "a\"\r\n.wav", &media(b"RIFF\r\n\0\xff")).fields(&body);
        let request = form.request("/v1/audio/transcriptions");
        let media_type = "multipart/form-data; boundary=runner-form-0000000000000000";
        assert_eq!(request.headers, [("content-type".to_owned(), media_type.to_owned())]);
        let expected = concat!(
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22%0D%0A.wav\"\r\n",
            "Content-Type: audio/wav\r\n\r\nRIFF\r\n\0\u{ff}",
            "\r\n--B\r\nContent-Disposition: form-data; name=\"temperature\"\r\n\r\n0.5",
            "\r\n--B\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue",
            "\r\n--B\r\nContent-Disposition: form-data; name=\"include[]\"\r\n\r\nlogprobs",
            "\r\n--B\r\nContent-Disposition: form-data; name=\"include[]\"\r\n\r\nx",
            "\r\n--B\r\nContent-Disposition: form-data; name=\"more\"\r\n\r\n{\"a\":[1]}",
            "\r\n--B--\r\n",
        )
        .replace("--B", "--runner-form-0000000000000000");
        // Each character is a byte.
        let expected: Vec<u8> = expected.chars().map(|byte| byte as u8).collect();
        assert_eq!(request.body, expected);
    }

    #[test]
    fn no_content_contains_the_boundary() {
        let boundary = |contents: &[&str]| {
            let mut form = Form::new();
            for content in contents {
                form.text("x", content);
            }
            let boundary = form.boundary();
            assert!(contents.iter().all(|content| !content.contains(&boundary)));
            assert_eq!(boundary, form.clone().boundary());
            boundary
        };
        assert_eq!(boundary(&["a"]), "runner-form-0000000000000000");
        assert_eq!(
            boundary(&["runner-form-0000000000000000--", "runner-form-0000000000000002"]),
            "runner-form-0000000000000001"
        );
        let first = "runner-form-0000000000000000runner-form-0000000000000001";
        assert_eq!(boundary(&[first, "x"]), "runner-form-0000000000000002");
        // Capital digits are another text, but their number is left free all the same.
        boundary(&["runner-form-000000000000000A", "runner-form-", "runner-form-00"]);
        let mut form = Form::new();
        form.file("file", "runner-form-0000000000000000", &media(b""));
        assert!(form.boundary().ends_with('1'));
    }
}
