//! Images and audio inside JSON: base64, and the `data:` URLs that contain it.

use runner_plugin::Media;

/// The content of `data:image/png;base64,…`.
///
/// # Errors
/// The message, with the expected form, if it is another kind of URL.
pub(crate) fn from_data_url(url: &str) -> Result<Media, String> {
    let wrong = || {
        let shown: String = url.chars().take(40).collect();
        format!(
            "expected a data URL such as `data:image/png;base64,…`, found `{shown}`; nothing is fetched"
        )
    };
    let (head, data) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(',')).ok_or_else(wrong)?;
    let media_type = head.strip_suffix(";base64").ok_or_else(wrong)?;
    Ok(Media { media_type: media_type.to_owned(), bytes: from_base64(data)? })
}

/// Bytes of base64, with its padding or without.
///
/// # Errors
/// If the text is none.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let media = Media::of_base64("", text).ok_or("expected base64")?;
    Ok(media.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length_is_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm8", b"fo"),
            ("Zm9v", b"foo"),
            ("+/8A", &[0xfb, 0xff, 0]),
        ] {
            assert_eq!(from_base64(text).unwrap(), bytes, "{text}");
        }
        for text in ["Z", "Zm9vZ", "Zm9-", "Z m8"] {
            assert!(from_base64(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_data_urls_are_taken() {
        let media = from_data_url("data:image/png;base64,Zm9v").unwrap();
        assert_eq!((media.media_type.as_str(), &media.bytes[..]), ("image/png", &b"foo"[..]));
        for url in ["https://example.org/a.png", "data:text/plain,a", "data:"] {
            assert!(from_data_url(url).unwrap_err().contains("nothing is fetched"), "{url}");
        }
    }
}
