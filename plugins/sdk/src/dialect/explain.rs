//! Errors in a server's own words: the message from an error body of any known shape, cut to a
//! length that fits a line, and the kind of error.

use serde_json::Value;

use crate::report::shortened;
use crate::{Reason, Refusal};

/// The longest message to show, in characters.
const LONGEST: usize = 400;

/// The message in a reply with an error status, and the kind of error.
pub fn refusal(status: u16, body: &[u8]) -> Refusal {
    let message = status_message(status, body);
    Refusal { reason: reason(Some(status), &message), message }
}

/// The error inside a successful reply. Its JSON may hold a status: `code` or `status_code`.
pub fn in_band(error: &[u8]) -> Refusal {
    let value: Option<Value> = serde_json::from_slice(error).ok();
    let found = value.as_ref().and_then(message);
    let message = found.unwrap_or_else(|| excerpt(error, 200));
    let status = value.as_ref().and_then(status_in);
    Refusal { reason: reason(status, &message), message }
}

fn status_in(value: &Value) -> Option<u16> {
    let own = ["code", "status_code"].iter().find_map(|key| {
        let status = match value.get(*key)? {
            Value::String(text) => text.parse().ok()?,
            other => other.as_u64()?,
        };
        u16::try_from(status).ok()
    });
    own.or_else(|| status_in(value.get("error")?))
}

/// The kind of error, from a status and from words that engines use. The words decide if a status
/// is used for several kinds: prompts that are too long come with 400, 413, 422 and 500.
fn reason(status: Option<u16>, message: &str) -> Reason {
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let model = says(&["model", "adapter", "lora"])
        && says(&["not found", "does not exist", "not exist", "unknown", "no such"]);
    let long = says(&[
        "context length",
        "context window",
        "context size",
        "maximum context",
        "max_model_len",
        "too long",
        "longer than",
        "input length",
        "session_len",
        "session length",
    ]);
    let busy = says(&[
        "overload",
        "queue is full",
        "queue full",
        "too many requests",
        "rate limit",
        "capacity",
        "try again later",
    ]);
    match status {
        Some(401 | 403) => Reason::Unauthorised,
        Some(429 | 529) => Reason::Overloaded,
        Some(413) => Reason::TooLong,
        Some(503) if busy => Reason::Overloaded,
        Some(502..=504) => Reason::Unavailable,
        _ if long => Reason::TooLong,
        Some(404) if model => Reason::UnknownModel,
        None | Some(400 | 422) if model => Reason::UnknownModel,
        _ if busy => Reason::Overloaded,
        Some(400..=499) => Reason::Invalid,
        Some(500..=599) => Reason::Internal,
        _ => Reason::Other,
    }
}

/// The message in a reply with an error status.
///
/// Reads `{"error": {"message": …}}` (OpenAI, vLLM), `{"object": "error", "message": …}` (SGLang,
/// LMDeploy), `{"error": "…"}` (TGI, Ollama), `{"detail": …}` (FastAPI), a page of HTML (a proxy),
/// and plain text.
fn status_message(status: u16, body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(value) => message(&value).unwrap_or_else(|| excerpt(body, LONGEST)),
        Err(_) => plain(&String::from_utf8_lossy(body)),
    };
    let hint = match status {
        401 | 403 if !text.to_lowercase().contains("key") => " (check the API key)",
        // FastAPI's answer if it has no such route, as opposed to no such model.
        404 if text.is_empty() || text == "Not Found" => " (check the URL and the backend's route)",
        _ => "",
    };
    if text.is_empty() {
        format!("the server gave no reason{hint}")
    } else {
        format!("{text}{hint}")
    }
}

/// The message in an error value; `None` if it contains none.
pub fn message(value: &Value) -> Option<String> {
    let found = match value {
        Value::String(text) => tidy(text, LONGEST),
        Value::Array(items) => {
            let messages: Vec<_> = items.iter().filter_map(message).collect();
            tidy(&messages.join("; "), LONGEST)
        }
        Value::Object(fields) => {
            let inner = ["error", "message", "msg", "detail"]
                .iter()
                .find_map(|key| fields.get(*key).and_then(message))?;
            // FastAPI reports where in the request the error is.
            match fields.get("loc").and_then(Value::as_array) {
                Some(place) => {
                    let place: Vec<_> = place.iter().map(|step| tidy(&text(step), 60)).collect();
                    format!("{}: {inner}", place.join("."))
                }
                None => inner,
            }
        }
        _ => return None,
    };
    (!found.is_empty()).then_some(found)
}

/// The beginning of some bytes, on one line.
pub fn excerpt(bytes: &[u8], longest: usize) -> String {
    // A character has at most four bytes, so this much is enough.
    let head = &bytes[..bytes.len().min(4 * longest + 4)];
    tidy(&String::from_utf8_lossy(head), longest)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Plain text, or the text of a page of HTML.
fn plain(body: &str) -> String {
    if !body.trim_start().starts_with('<') {
        return tidy(body, LONGEST);
    }
    let mut shown = String::new();
    let mut rest = body;
    while let Some(open) = rest.find('<') {
        shown.push_str(&rest[..open]);
        shown.push(' ');
        let tag = &rest[open..];
        let lower: String = tag.chars().take(8).collect::<String>().to_lowercase();
        let end = ["script", "style", "title"]
            .iter()
            .find(|name| lower[1..].starts_with(**name))
            // The title repeats the heading.
            .and_then(|name| tag.find(&format!("</{name}")))
            .unwrap_or(0);
        rest = match tag[end..].find('>') {
            Some(close) => &tag[end + close + 1..],
            None => "",
        };
    }
    shown.push_str(rest);
    tidy(&shown, LONGEST)
}

/// One line without control characters, at most `longest` characters long.
fn tidy(text: &str, longest: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    shortened(&words.join(" "), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engines_error_shape_is_read() {
        let cases = [
            (
                400,
                r#"{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}"#,
                "too long",
            ),
            (
                400,
                r#"{"object":"error","message":"too long","type":"x","param":null,"code":400}"#,
                "too long",
            ),
            (
                422,
                r#"{"error":"Input validation error","error_type":"validation"}"#,
                "Input validation error",
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","n",0],"msg":"must be > 0"}]}"#,
                "body.n.0: must be > 0",
            ),
            (404, r#"{"detail":"Not Found"}"#, "Not Found (check the URL and the backend's route)"),
            (401, r#"{"error":"Unauthorized"}"#, "Unauthorized (check the API key)"),
            (500, "Internal Server Error", "Internal Server Error"),
            (
                502,
                "<html>\n<head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1>\n<hr>nginx</body></html>",
                "502 Bad Gateway nginx",
            ),
            (503, "", "the server gave no reason"),
            (500, r#"{"code":7}"#, r#"{"code":7}"#),
        ];
        for (status, text, expected) in cases {
            assert_eq!(refusal(status, text.as_bytes()).message, expected);
        }
    }

    #[test]
    fn status_and_words_decide_the_reason() {
        let cases = [
            (429, "slow down", Reason::Overloaded),
            (503, "The request queue is full.", Reason::Overloaded),
            (503, "", Reason::Unavailable),
            (502, "Bad Gateway", Reason::Unavailable),
            (401, "no", Reason::Unauthorised),
            (400, "This model's maximum context length is 64 tokens.", Reason::TooLong),
            (500, "the prompt is too long", Reason::TooLong),
            (
                400,
                "request (64 tokens) exceeds the available context size (32 tokens), try increasing it",
                Reason::TooLong,
            ),
            (413, "", Reason::TooLong),
            (404, "The model `x` does not exist.", Reason::UnknownModel),
            (404, "Not Found", Reason::Invalid),
            (400, "The model x does not exist", Reason::UnknownModel),
            (422, "must be > 0", Reason::Invalid),
            (500, "CUDA error", Reason::Internal),
            (302, "", Reason::Other),
        ];
        for (status, text, reason) in cases {
            assert_eq!(refusal(status, text.as_bytes()).reason, reason, "{status} {text}");
        }
        let cases = [
            (r#"{"message":"out of memory","code":500}"#, Reason::Internal),
            (r#"{"error":{"message":"slow down","code":"429"}}"#, Reason::Overloaded),
            (r#"{"message":"aborted","status_code":503}"#, Reason::Unavailable),
            (r#"{"message":"aborted"}"#, Reason::Other),
            ("garbage", Reason::Other),
        ];
        for (text, reason) in cases {
            assert_eq!(in_band(text.as_bytes()).reason, reason, "{text}");
        }
    }

    #[test]
    fn a_message_fits_a_line_of_a_terminal() {
        let message = status_message(500, format!("a\n\u{1b}[2Jb {}", "x".repeat(1000)).as_bytes());
        assert!(message.starts_with("a [2Jb x"));
        assert_eq!(message.chars().count(), LONGEST + 1);
    }

    #[test]
    fn pages_that_break_off_are_read_as_far_as_they_go() {
        for page in ["<", "<html", "<é", "<script>x", "<title>x</title", "<p>said"] {
            refusal(500, page.as_bytes());
        }
        assert_eq!(refusal(500, b"<p>said").message, "said");
    }
}
