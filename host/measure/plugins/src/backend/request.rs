//! The limits on a backend's requests, so that they stay below the target's URL.

use crate::bindings::backend_world::exports::runner::plugin::backend::Request;
use crate::error::clean_text;

/// Header fields that belong to the host.
pub(super) const HOST_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "authorization",
    "proxy-authorization",
    "upgrade",
    "te",
];

const LONGEST: usize = 8 << 10;

/// Describes the fault of a path: it does not begin with one `/`, leads anywhere but down, or is
/// ambiguous. Servers differ in the moment at which they decode escapes, in their separators, and
/// in their treatment of a semicolon. So an escape must not hide another escape, a delimiter or a
/// control character. An escaped slash may stand in a name, such as a model's.
pub fn fault(path: &str) -> Option<&'static str> {
    const UPWARD: &str =
        "leads upwards, or to the folder itself (`..`, `.` or a name that begins with `;`)";
    let visible = |byte: u8| byte.is_ascii_graphic() && !b"\\#".contains(&byte);
    if path.len() > LONGEST {
        return Some("is longer than 8 KiB");
    }
    if !path.bytes().all(visible) {
        return Some(
            "contains a character that a path must escape (a space, a control character, `\\`, `#` or one beyond ASCII)",
        );
    }
    let (below, query) = path.split_once('?').unwrap_or((path, ""));
    let Some(segments) = below.strip_prefix('/') else { return Some("does not begin with `/`") };
    let mut segments = segments.split('/').peekable();
    while let Some(segment) = segments.next() {
        // Only the last segment may be empty: that is a slash at the end.
        if segment.is_empty() && segments.peek().is_some() {
            return Some("has an empty segment (`//`)");
        }
        match decoded(segment, b"\\%;?#") {
            None => return Some(ESCAPE),
            Some(name) if !is_downward(&name) => return Some(UPWARD),
            Some(_) => {}
        }
    }
    let Some(query) = decoded(query, b"") else { return Some(ESCAPE) };
    let mut parts = query.split(|byte| b"/?".contains(byte));
    parts.any(|part| part == b"..").then_some(UPWARD)
}

const ESCAPE: &str = "has a `%` that is no escape, or an escape that hides a control character, `%`, `?`, `#`, `;` or `\\`";

/// True if a segment leads down, with each slash in it taken for a separator.
fn is_downward(segment: &[u8]) -> bool {
    let mut names = segment.split(|byte| *byte == b'/');
    let whole = !segment.contains(&b'/');
    names.all(|name| (whole || !name.is_empty()) && !leads_astray(name))
}

/// True if a segment means the folder itself or its parent, with or without a parameter.
fn leads_astray(segment: &[u8]) -> bool {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    name == b"." || name == b".." || (name.is_empty() && !segment.is_empty())
}

/// The bytes that escapes stand for; absent if one is broken, or hides a byte of `hidden`.
fn decoded(text: &str, hidden: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&digits)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        let byte = u8::from_str_radix(digits, 16).ok()?;
        if byte.is_ascii_control() || hidden.contains(&byte) {
            return None;
        }
        decoded.push(byte);
    }
    Some(decoded)
}

/// Describes the fault of the path of a request that must stay below the target's URL.
pub(super) fn fault_of_path(path: &str) -> Option<String> {
    if !path.starts_with('/') || path.starts_with("//") {
        return Some(format!("the path `{}` must begin with one `/`", path.escape_debug()));
    }
    let fault = fault(path)?;
    Some(format!("the path `{}` {fault}", clean_text(path).escape_debug()))
}

pub(super) fn fault_of_method(method: &str) -> Option<String> {
    (!matches!(method, "GET" | "POST" | "PUT" | "DELETE")).then(|| {
        format!(
            "the method `{}` is not allowed; a backend may use GET, POST, PUT and DELETE",
            method.escape_debug()
        )
    })
}

/// Describes the fault of a request's method or header fields.
pub(super) fn fault_of_fields(request: &Request) -> Option<String> {
    let fault = fault_of_method(&request.method);
    if fault.is_some() {
        return fault;
    }
    request.headers.iter().find_map(|(name, value)| {
        if HOST_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            Some(format!("the header `{name}` belongs to the host"))
        } else if name.is_empty()
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            || value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f)
        {
            Some(format!(
                "the header `{}` contains characters that are not allowed in a header",
                name.escape_debug()
            ))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_paths_are_plain() {
        for path in [
            "/",
            "/v1/completions",
            "/v1/chat/completions/",
            "/generate?stream=true&x=a%20b",
            "/v2/models/llama-3.1_8b/versions/1/infer",
            "/openai/deployments/gpt%204/chat/completions?api-version=2024-06-01",
            "/model/anthropic.claude-3:0/converse-stream",
            "/a..b/...c/.well-known/x..",
            "/models/m;v=2",
            "/v2/models/my%20model%2F%C3%A4/generate_stream",
            "/model/arn:aws:bedrock:inference-profile%2fus.claude/converse-stream",
            "/a?model=org%2Fname%23x&next=%3Fy%25",
            "/caf%C3%A9",
            "/find?redirect=/a/b?c",
        ] {
            assert_eq!(fault(path), None, "{path}");
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for path in [
            "",
            "v1",
            "http://host/",
            "//host/x",
            "/v1//x",
            "/..",
            "/../admin",
            "/v1/../admin",
            "/v1/..",
            "/./x",
            "/v1/.",
            "/%2e%2e/admin",
            "/.%2E/admin",
            "/%2e/x",
            "/..%2fadmin",
            "/..%2Fadmin",
            "/a%2f..%2fb",
            "/a%2f%2e%2e",
            "/a%2f..;x%2fb",
            "/%2fa",
            "/a%2f",
            "/a%2f%2fb",
            "/..%5cadmin",
            "/..\\admin",
            "/%252e%252e/admin",
            "/..;/admin",
            "/..;a=b/admin",
            "/%2e%2e;x/admin",
            "/..%3b/admin",
            "/;/admin",
            "/;x=1/admin",
            "/a%00b",
            "/a%0d%0aX-Admin:1",
            "/a%7fb",
            "/a\r\nX-Admin: 1",
            "/a b",
            "/a\tb",
            "/a\0b",
            "/a#b",
            "/a%23b",
            "/a%3fb",
            "/%",
            "/%2",
            "/%zz",
            "/%+2",
            "/a?b=%0a",
            "/a?b=%",
            "/a?../../x",
            "/a?%2e%2e/x",
            "/a?..%2fx",
            "/a?b#c",
            "/é",
        ] {
            assert!(fault(path).is_some(), "{path:?}");
        }
        assert!(fault(&format!("/{}", "a".repeat(LONGEST))).is_some());
        assert_eq!(fault("/v1//models"), Some("has an empty segment (`//`)"));
    }
}
