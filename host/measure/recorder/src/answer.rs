//! A reply as its backend reads it: token counts, the first output, the id.

use std::io::Read;

use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use model::frame::{Framer, Frames};
use model::units::Nanos;
use plugins::backend::{Dialect, Fold, Head, Meaning};
use serde_json::Value;

use crate::tap::BodyCopy;

const DECOMPRESSED: u64 = 256 << 20;
/// Bytes that are decoded in one call.
const BATCH: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) input_tokens: Option<u32>,
    pub(crate) cached_tokens: Option<u32>,
    pub(crate) output_tokens: Option<u32>,
    /// The text of the answer, reasoning and tool calls included; never written.
    pub(crate) text: String,
    /// The part that clients repeat in their next request; never written.
    pub(crate) content: String,
    pub(crate) has_reasoning: bool,
    pub(crate) first: Option<Nanos>,
    /// The reply's id; never written.
    pub(crate) id: Option<String>,
    /// True if the server reported an error inside the reply.
    pub(crate) is_failure: bool,
    pub(crate) is_complete: bool,
}

/// The body as it was before compression, if that is possible.
pub(crate) fn plain(encoding: Option<&str>, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let mut all = |reader: &mut dyn Read| {
        // A body that broke off is read up to its end.
        let _ = reader.take(DECOMPRESSED).read_to_end(&mut plain);
    };
    match encoding.map(str::trim) {
        None | Some("identity" | "") => return Some(bytes.to_vec()),
        Some("gzip" | "x-gzip") => all(&mut flate2::read::MultiGzDecoder::new(bytes)),
        Some("deflate") => all(&mut flate2::read::ZlibDecoder::new(bytes)),
        Some("zstd") => all(&mut zstd::stream::read::Decoder::new(bytes).ok()?),
        Some(_) => return None,
    }
    (!plain.is_empty() || bytes.is_empty()).then_some(plain)
}

/// Reads a reply with a success status. Absent if the backend cannot.
pub(crate) fn read(
    dialect: &mut Dialect,
    (status, headers): (u16, &HeaderMap),
    body: &BodyCopy,
    is_streaming: bool,
) -> Option<Answer> {
    let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let is_plain = encoding.is_none();
    let bytes = plain(encoding, &body.bytes)?;
    let fields = headers.iter().filter(|(name, _)| *name != hyper::header::SET_COOKIE);
    let fields = fields.filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let head =
        Head { status, headers: fields.collect(), streaming: is_streaming, context: Vec::new() };
    let framing: model::frame::Framing = dialect.framing(is_streaming).ok()?.into();
    let mut fold = Fold::new(dialect.begin(&head).ok()?);
    let mut framer = Framer::new(framing);
    let mut answer = Answer::default();
    let whole = matches!(framing, model::frame::Framing::Whole);
    let mut end = 0;
    for piece in pieces(&bytes, body, is_plain) {
        end += piece.len();
        let at = if is_plain { body.instant_of(end) } else { None };
        let mut frames = Frames::default();
        framer.push(at.unwrap_or_default(), piece, &mut frames).ok()?;
        answer.take(dialect, &mut fold, &mut frames, at)?;
    }
    let mut last = Frames::default();
    let at = body.reads.last().map(|(_, at)| *at);
    framer.finish(at.unwrap_or_default(), &mut last);
    answer.take(dialect, &mut fold, &mut last, at)?;
    answer.is_complete = body.is_whole && (answer.is_complete || whole);
    Some(answer)
}

/// The first reads one by one, since one of them has the first output; then pieces of a batch.
fn pieces<'b>(bytes: &'b [u8], body: &BodyCopy, is_plain: bool) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    let mut start = 0;
    if is_plain {
        for (end, _) in &body.reads {
            pieces.push(&bytes[start..*end]);
            start = *end;
        }
    }
    pieces.extend(bytes[start..].chunks(BATCH));
    pieces
}

impl Answer {
    fn take(
        &mut self,
        dialect: &mut Dialect,
        fold: &mut Fold,
        frames: &mut Frames,
        at: Option<Nanos>,
    ) -> Option<()> {
        if frames.is_empty() {
            return Some(());
        }
        if self.id.is_none() {
            self.id = frames.iter().find_map(|frame| reply_id(frame.data));
        }
        for (_, meaning) in dialect.decode(fold, frames).ok()? {
            if let Meaning::Text(output) = &meaning {
                self.content.push_str(&output.text);
            }
            self.has_reasoning |= matches!(meaning, Meaning::Reasoning(_));
            match meaning {
                Meaning::Text(output) | Meaning::Reasoning(output) | Meaning::ToolCall(output) => {
                    self.first = self.first.or(at);
                    self.text.push_str(&output.text);
                }
                Meaning::Usage(usage) => {
                    self.input_tokens = usage.input_tokens.or(self.input_tokens);
                    self.cached_tokens = usage.cached_input_tokens.or(self.cached_tokens);
                    self.output_tokens = usage.output_tokens.or(self.output_tokens);
                }
                Meaning::Failure(_) => self.is_failure = true,
                Meaning::End | Meaning::EndsWithBody | Meaning::Finish(_) => {
                    self.is_complete = true;
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// The id of a reply that a later request may name: OpenAI's `responses` alone have one.
fn reply_id(frame: &[u8]) -> Option<String> {
    let start = &frame[..frame.len().min(4096)];
    memchr::memmem::find(start, b"\"resp_")?;
    let reply: Value = serde_json::from_slice(frame).ok()?;
    let id = reply.pointer("/response/id").or_else(|| reply.get("id"))?;
    id.as_str().map(str::to_owned)
}
