//! Images, audio and videos of a row: inside it as `data:` URLs or base64, or in files that the
//! scenario names. Nothing is fetched.

use std::rc::Rc;

use runner_plugin::{Files, Media};
use serde_json::Value;

/// The longest file of an image, of audio or of a video, in bytes.
const LONGEST: u64 = 64 << 20;

#[derive(Clone)]
pub struct Finder(pub Rc<dyn Files>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Image,
    Audio,
    Video,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Image => "image",
            Kind::Audio => "audio",
            Kind::Video => "video",
        }
    }
}

impl Finder {
    /// All media of a column: one, or a list.
    pub fn all(&self, value: &Value, kind: Kind) -> Result<Vec<Media>, String> {
        match value {
            Value::Array(items) => items.iter().map(|item| self.one(item, kind)).collect(),
            value => Ok(vec![self.one(value, kind)?]),
        }
    }

    /// One of a column: a text, or an object that has it in `bytes`, `data`, `url` or `path`.
    pub fn one(&self, value: &Value, kind: Kind) -> Result<Media, String> {
        match value {
            Value::String(text) => self.named(text, kind),
            Value::Object(fields) => {
                let texts = ["bytes", "data", "url", "path"].into_iter();
                let text = texts.filter_map(|key| fields.get(key)?.as_str()).next();
                self.named(text.unwrap_or(""), kind)
            }
            _ => self.named("", kind),
        }
    }

    /// A text: a `data:` URL, the name of a file, or base64.
    pub fn named(&self, text: &str, kind: Kind) -> Result<Media, String> {
        let wrong = || {
            let name = kind.name();
            let shown: String = text.chars().take(40).collect();
            format!(
                "expected {name} data: a data URL such as `data:{name}/…;base64,…`, base64, or the name of a file \
                 under [dataset.files]; found `{shown}`; nothing is fetched"
            )
        };
        if text.is_empty() {
            return Err(wrong());
        }
        if text.starts_with("data:") {
            let media = Media::of_data_url(text).ok_or_else(wrong)?;
            return match media.media_type.as_str() {
                "" | "application/octet-stream" => typed(media.bytes, kind).ok_or_else(wrong),
                _ => Ok(media),
            };
        }
        let base = text.rsplit('/').next().unwrap_or(text);
        for name in [text, base] {
            if let Some(file) = self.0.open(name) {
                let size = file.size();
                if size > LONGEST {
                    return Err(format!(
                        "the file `{name}` has {size} bytes; expected at most {LONGEST}"
                    ));
                }
                let bytes = file.read_all(0, size);
                let bytes = bytes.map_err(|cause| format!("the file `{name}`: {cause}"))?;
                return typed(bytes, kind).ok_or_else(|| {
                    format!("the file `{name}` has no known {} format", kind.name())
                });
            }
        }
        let decoded = Media::of_base64("", text).and_then(|media| typed(media.bytes, kind));
        // A file's bytes that happen to be text, as Parquet gives them.
        decoded.or_else(|| typed(text.as_bytes().to_vec(), kind)).ok_or_else(wrong)
    }
}

/// Media of these bytes, with the type that they begin like.
fn typed(bytes: Vec<u8>, kind: Kind) -> Option<Media> {
    let at = |start: usize, mark: &[u8]| bytes.get(start..start + mark.len()) == Some(mark);
    let media_type = match kind {
        Kind::Image if at(0, b"\x89PNG") => "image/png",
        Kind::Image if at(0, b"\xff\xd8\xff") => "image/jpeg",
        Kind::Image if at(0, b"GIF8") => "image/gif",
        Kind::Image if at(0, b"BM") => "image/bmp",
        Kind::Image if at(0, b"RIFF") && at(8, b"WEBP") => "image/webp",
        Kind::Audio if at(0, b"RIFF") && at(8, b"WAVE") => "audio/wav",
        Kind::Audio if at(0, b"ID3") || at(0, b"\xff\xfb") || at(0, b"\xff\xf3") => "audio/mpeg",
        Kind::Audio if at(0, b"fLaC") => "audio/flac",
        Kind::Audio if at(0, b"OggS") => "audio/ogg",
        Kind::Video if at(4, b"ftypqt") => "video/quicktime",
        Kind::Video if at(4, b"ftyp") => "video/mp4",
        Kind::Video if at(0, b"\x1a\x45\xdf\xa3") => "video/webm",
        Kind::Video if at(0, b"RIFF") && at(8, b"AVI ") => "video/x-msvideo",
        _ => return None,
    };
    Some(Media { media_type: media_type.to_owned(), bytes })
}
