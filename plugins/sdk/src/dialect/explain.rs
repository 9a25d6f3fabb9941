//! What went wrong, in a server's own words: the message out of an error body, whatever its shape, cut to a
//! length that fits a line.

use serde_json::Value;

/// The longest message that is worth a reader's time, in characters.
const LONGEST: usize = 400;

/// What a reply with an error status says.
///
/// Reads `{"error": {"message": …}}` (OpenAI, vLLM), `{"object": "error", "message": …}` (SGLang, LMDeploy),
/// `{"error": "…"}` (TGI, Ollama), `{"detail": …}` (FastAPI), a page of HTML (a proxy), and plain text.
pub fn body(status: u16, body: &[u8]) -> String {
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(value) => message(&value).unwrap_or_else(|| excerpt(body, LONGEST)),
        Err(_) => plain(&String::from_utf8_lossy(body)),
    };
    let hint = match status {
        401 | 403 if !said.to_lowercase().contains("key") => " (check the API key)",
        // FastAPI's answer where it has no such route, as against a model it does not have.
        404 if said.is_empty() || said == "Not Found" => " (check the URL and the backend's route)",
        _ => "",
    };
    if said.is_empty() {
        format!("the server gave no reason{hint}")
    } else {
        format!("{said}{hint}")
    }
}

/// The message in an error value; `None` where it holds none.
pub fn message(value: &Value) -> Option<String> {
    let said = match value {
        Value::String(text) => tidy(text, LONGEST),
        Value::Array(items) => {
            let said: Vec<_> = items.iter().filter_map(message).collect();
            tidy(&said.join("; "), LONGEST)
        }
        Value::Object(fields) => {
            let said = ["error", "message", "msg", "detail"]
                .iter()
                .find_map(|key| fields.get(*key).and_then(message))?;
            // FastAPI says where in the request the fault is.
            match fields.get("loc").and_then(Value::as_array) {
                Some(place) => {
                    let place: Vec<_> = place.iter().map(|step| tidy(&text(step), 60)).collect();
                    format!("{}: {said}", place.join("."))
                }
                None => said,
            }
        }
        _ => return None,
    };
    (!said.is_empty()).then_some(said)
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
            // A title says what the heading says again.
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
    let mut tidy = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !tidy.is_empty() {
            tidy.push(' ');
        }
        tidy.push_str(word);
    }
    match tidy.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &tidy[..end]),
        None => tidy,
    }
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
            (
                404,
                r#"{"detail":"Not Found"}"#,
                "Not Found (check the URL and the backend's route)",
            ),
            (
                401,
                r#"{"error":"Unauthorized"}"#,
                "Unauthorized (check the API key)",
            ),
            (500, "Internal Server Error", "Internal Server Error"),
            (
                502,
                "<html>\n<head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1>\n<hr>nginx</body></html>",
                "502 Bad Gateway nginx",
            ),
            (503, "", "the server gave no reason"),
            (500, r#"{"code":7}"#, r#"{"code":7}"#),
        ];
        for (status, text, said) in cases {
            assert_eq!(body(status, text.as_bytes()), said);
        }
    }

    #[test]
    fn what_is_said_fits_a_line_of_a_terminal() {
        let said = body(
            500,
            format!("a\n\u{1b}[2Jb {}", "x".repeat(1000)).as_bytes(),
        );
        assert!(said.starts_with("a [2Jb x"));
        assert_eq!(said.chars().count(), LONGEST + 1);
    }

    #[test]
    fn pages_that_break_off_are_read_as_far_as_they_go() {
        for page in [
            "<",
            "<html",
            "<é",
            "<script>x",
            "<title>x</title",
            "<p>said",
        ] {
            body(500, page.as_bytes());
        }
        assert_eq!(body(500, b"<p>said"), "said");
    }
}
