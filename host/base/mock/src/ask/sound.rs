//! Requests for the text of a sound. This engine does not transcribe: it reads the length of a WAV
//! file, and answers as its script says.

use super::PromptSummary;
use super::form::{Part, parts};
use super::types::{Ask, Refusal, ReplyForm, Route, Sound};

/// Tokens of a second of sound, as Whisper has them.
const EACH_SECOND: f64 = 50.0;

pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Ask, Refusal> {
    let invalid = |message: String, param: &str| Refusal::invalid(&message, param);
    let parts = parts(content_type, body).map_err(|what| invalid(what, "body"))?;
    let mut names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1] && !pair[0].ends_with("[]"));
    if let Some([name, _]) = twice {
        return Err(invalid(format!("the field `{name}` is there twice"), name));
    }
    let part = |name: &str| parts.iter().find(|part| part.name == name);
    let text = |name: &str| match part(name) {
        None => Ok(None),
        Some(Part { bytes, .. }) => match str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(invalid(format!("the field `{name}` is not UTF-8"), name)),
        },
    };
    let truth = |name: &str| match text(name)? {
        None | Some("false" | "False" | "0") => Ok(false),
        Some("true" | "True" | "1") => Ok(true),
        Some(other) => Err(invalid(format!("`{name}`: expected a boolean, got `{other}`"), name)),
    };
    let file = match part("file") {
        Some(file) if file.file_name.is_some() && !file.bytes.is_empty() => file.bytes,
        Some(Part { file_name: None, .. }) => {
            let message = "Expected 'file' to be a file-like object, not 'str'.".to_owned();
            return Err(invalid(message, "file"));
        }
        Some(_) => return Err(invalid("the file is empty".to_owned(), "file")),
        None => return Err(invalid("Field required: file".to_owned(), "file")),
    };
    if let Some(temperature) = text("temperature")?
        && temperature.parse::<f64>().is_err()
    {
        let message = format!("`temperature`: expected a number, got `{temperature}`");
        return Err(invalid(message, "temperature"));
    }
    let form = match text("response_format")? {
        None | Some("json") => ReplyForm::Json,
        Some("verbose_json") => ReplyForm::VerboseJson,
        Some("text") => ReplyForm::Text,
        Some(_) => {
            let message =
                "Currently only support response_format: `text`, `json` or `verbose_json`";
            return Err(Refusal::bad(message, Some("response_format")));
        }
    };
    let stream = truth("stream")?;
    if stream && form == ReplyForm::VerboseJson {
        let message = "verbose_json format doesn't support streaming case";
        return Err(Refusal::bad(message, Some("response_format")));
    }
    let include_usage = truth("stream_include_usage")?;
    let continuous_usage = truth("stream_continuous_usage_stats")?;
    if (include_usage || continuous_usage) && !stream {
        let message = "Stream options can only be defined when `stream=True`.";
        return Err(Refusal::bad(message, Some("stream_include_usage")));
    }
    let max_tokens = match text("max_completion_tokens")? {
        None => None,
        Some(text) => match text.parse::<u32>() {
            Ok(most @ 1..) => Some(most),
            _ => {
                let message =
                    format!("`max_completion_tokens`: expected a number from 1 on, got `{text}`");
                return Err(invalid(message, "max_completion_tokens"));
            }
        },
    };
    let seconds = seconds(file);
    let prompt = text("prompt")?.unwrap_or_default();
    let mut summary = PromptSummary::default();
    summary.add_text(prompt.to_owned());
    // The same sound gives the same words.
    summary.add_sound(file);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of at most 256 MiB"
    )]
    let tokens = (seconds * EACH_SECOND).ceil() as u32;
    let ask = Ask::new(Route::Transcriptions, summary);
    Ok(Ask {
        stream,
        model: text("model")?.filter(|model| !model.is_empty()).map(str::to_owned),
        prompt_tokens: ask.prompt_tokens.saturating_add(tokens),
        max_tokens,
        include_usage,
        continuous_usage,
        sound: Some(Sound { seconds, tokens, form }),
        ..ask
    })
}

/// The length in seconds of a WAV file with the usual header of 44 bytes; 1 for other files.
fn seconds(file: &[u8]) -> f64 {
    let number = |at: usize| {
        let bytes = file.get(at..at + 4)?.try_into().ok()?;
        Some(f64::from(u32::from_le_bytes(bytes)))
    };
    let is_wav = file.starts_with(b"RIFF") && file.get(36..40) == Some(b"data");
    match (is_wav, number(28), number(40)) {
        (true, Some(each), Some(bytes)) if each > 0.0 => bytes / each,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=b";

    fn form(fields: &[(&str, &str)]) -> Vec<u8> {
        let part = |(name, value): &(&str, &str)| {
            let file = if *name == "file" { "; filename=\"a.wav\"" } else { "" };
            format!(
                "--b\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
            )
        };
        let parts: String = fields.iter().map(part).collect();
        (parts + "--b--\r\n").into_bytes()
    }

    #[test]
    fn reads_the_fields_of_a_form() {
        let wav = "RIFF....WAVEfmt ....\u{1}\0\u{1}\0....\u{4}\0\0\0\u{2}\0\u{10}\0data\u{8}\0\0\0........";
        let body = form(&[
            ("file", wav),
            ("model", "m"),
            ("prompt", "ab"),
            ("stream", "true"),
            ("stream_include_usage", "true"),
            ("temperature", "0.5"),
        ]);
        let ask = read(TYPE, &body).unwrap();
        assert_eq!((ask.model.as_deref(), ask.echo.as_str()), (Some("m"), "ab"));
        assert!(ask.stream && ask.include_usage);
        let sound = ask.sound.unwrap();
        assert_eq!((sound.seconds, sound.tokens, ask.prompt_tokens), (2.0, 100, 102));
        let other = read(TYPE, &form(&[("file", "fLaC")])).unwrap();
        assert_eq!(other.sound.unwrap().seconds, 1.0);
        assert_ne!(other.prompt_hash, ask.prompt_hash);
    }

    #[test]
    fn refuses_the_requests_that_engines_refuse() {
        let file = ("file", "x");
        for (fields, wanted) in [
            (&[("model", "m")][..], "Field required: file"),
            (&[("file", "")], "the file is empty"),
            (&[file, ("stream", "maybe")], "expected a boolean, got `maybe`"),
            (&[file, ("temperature", "warm")], "expected a number, got `warm`"),
            (&[file, ("response_format", "srt")], "Currently only support"),
            (
                &[file, ("response_format", "verbose_json"), ("stream", "true")],
                "doesn't support streaming",
            ),
            (&[file, ("stream_include_usage", "true")], "only be defined when `stream=True`"),
            (&[file, ("max_completion_tokens", "0")], "from 1 on, got `0`"),
            (&[file, ("model", "a"), ("model", "b")], "`model` is there twice"),
        ] {
            let refusal = read(TYPE, &form(fields)).unwrap_err();
            assert!(refusal.message.contains(wanted), "{}", refusal.message);
            assert_eq!(refusal.status, 400);
        }
        let text = b"--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--";
        assert!(read(TYPE, text).unwrap_err().message.contains("not 'str'"));
    }
}
