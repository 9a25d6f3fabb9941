//! Reads files of the ShareGPT format: a JSON array of
//! `{"conversations": [{"from": …, "value": …}, …]}`.
//!
//! Such files are hundreds of megabytes, and a plugin has tens. So the file is read once, piece by
//! piece, to keep the places of its conversations, twelve bytes each. A conversation is read at its
//! use. Responsible for the format and for saying where a file breaks it; which conversations a run
//! is made of is the plugin's to decide.
#![forbid(unsafe_code)]

mod scan;
#[cfg(test)]
mod tests;

use runner_plugin::json::LONGEST;
use runner_plugin::random::Python;
use runner_plugin::report::Remarks;
use runner_plugin::{Error, File, Files};
use scan::{Fault, Scanner};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The tool whose reading of the file is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Like {
    /// LMDeploy's `profile_restful_api.py`: every entry must have `conversations`.
    #[default]
    Lmdeploy,
    /// vLLM's `vllm bench serve`: entries without `conversations` are passed over.
    Vllm,
    /// SGLang's `bench_serving`: the key may be `conversation`; entries without it are ignored.
    Sglang,
}

/// The first two turns of a conversation, from any speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub prompt: String,
    pub completion: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Utterance {
    /// The speaker, as the file names it, such as `human`; absent if it does not say.
    #[serde(default)]
    pub from: Option<String>,
    pub value: String,
}

/// The part of a conversation that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Pair,
    Whole,
}

/// The place in the file of the first two turns of a conversation, or of all of them. Two halves of
/// an offset, so that a place takes twelve bytes and not sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    offset: [u32; 2],
    length: u32,
}

impl Span {
    fn offset(self) -> u64 {
        u64::from(self.offset[1]) << 32 | u64::from(self.offset[0])
    }
}

/// The conversations of a file that have at least two turns.
pub struct Conversations {
    name: String,
    file: Box<dyn File>,
    spans: Vec<Span>,
    remarks: Remarks,
}

impl Conversations {
    /// Passes over the file that the scenario calls `name`; `None` where it names no such file.
    /// With `keep_empty` false, conversations whose first turn is an empty string are left out.
    /// Errors: [`Error::InvalidInput`] where the file is not of the format, with place and advice.
    pub fn open(
        files: &dyn Files,
        name: &str,
        like: Like,
        keep_empty: bool,
    ) -> Result<Option<Self>, Error> {
        Self::open_extent(files, name, like, keep_empty, Extent::Pair)
    }

    /// Passes over the file that the scenario calls `name`, for the whole of its conversations,
    /// which [`read_whole`](Self::read_whole) reads; `None` where it names no such file. Entries
    /// without `conversations` or `conversation` are passed over.
    pub fn open_whole(files: &dyn Files, name: &str) -> Result<Option<Self>, Error> {
        Self::open_extent(files, name, Like::Sglang, true, Extent::Whole)
    }

    fn open_extent(
        files: &dyn Files,
        name: &str,
        like: Like,
        keep_empty: bool,
        extent: Extent,
    ) -> Result<Option<Self>, Error> {
        let Some(file) = files.open(name) else { return Ok(None) };
        let mut remarks = Remarks::default();
        let spans = index(&*file, like, keep_empty, &mut remarks, extent)
            .map_err(|fault| fault.explain(&*file, name))?;
        Ok(Some(Self { name: name.to_owned(), file, spans, remarks }))
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns remarks on the parts of the file that were left out, and the reasons.
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Describes the place in the file of the conversation at `position`, for people.
    pub fn place(&self, position: usize) -> String {
        self.spans
            .get(position)
            .map_or_else(String::new, |span| format!("the conversation at byte {}", span.offset()))
    }

    /// Puts them into another order.
    pub fn shuffle(&mut self, random: &mut Python) {
        random.shuffle(&mut self.spans);
    }

    /// Reads the first two turns of the conversation at `position`; `None` past the last.
    pub fn read(&self, position: usize) -> Result<Option<Pair>, Error> {
        #[derive(Deserialize)]
        struct Turn {
            value: String,
        }
        let turns: Option<(Turn, Turn)> = self.turns(position)?;
        Ok(turns.map(|(first, second)| Pair { prompt: first.value, completion: second.value }))
    }

    /// All turns of the conversation at `position`, in a file of [`open_whole`](Self::open_whole).
    pub fn read_whole(&self, position: usize) -> Result<Option<Vec<Utterance>>, Error> {
        self.turns(position)
    }

    fn turns<T: DeserializeOwned>(&self, position: usize) -> Result<Option<T>, Error> {
        let Some(span) = self.spans.get(position).copied() else { return Ok(None) };
        let turns = self.file.read_all(span.offset(), span.length.into()).map_err(|cause| {
            Error::InvalidInput(format!(
                "the file `{}` cannot be read at byte {}: {cause}",
                self.name,
                span.offset()
            ))
        })?;
        // Brackets around make an array of the turns and of the commas between them.
        let text = [b"[", &turns[..], b"]"].concat();
        let turns = serde_json::from_slice(&text).map_err(|error| {
            let within = scan::offset_of(&text, error.line(), error.column()).saturating_sub(2);
            let cause = error.to_string();
            let cause = cause.split(" at line ").next().unwrap_or_default();
            scan::Fault::shape(
                span.offset() + within as u64,
                format!("a turn that cannot be read: {cause}"),
            )
            .explain(&*self.file, &self.name)
        })?;
        Ok(Some(turns))
    }
}

/// The part of a list of turns that was seen.
#[derive(Default)]
struct Turns {
    count: u64,
    /// From the first byte of the first turn to behind the last of the second, or of the last.
    start: u64,
    end: u64,
    /// True if the first turn says nothing.
    empty: bool,
    /// The mistake in the turns that count; ignored where there are not two.
    fault: Option<Fault>,
}

/// Passes over the whole file; counts in `remarks` the conversations that are left out.
fn index(
    file: &dyn File,
    like: Like,
    keep_empty: bool,
    remarks: &mut Remarks,
    extent: Extent,
) -> Result<Vec<Span>, Fault> {
    let mut spans = Vec::new();
    let mut scanner = Scanner::new(file);
    let scanner = &mut scanner;
    scanner.mark()?;
    if scanner.after_space()? != Some(b'[') {
        return Err(scanner.unexpected("`[`, the beginning of an array of conversations"));
    }
    scanner.array(|scanner, number| {
        scanner.conversation = number + 1;
        let left_out = match entry(scanner, like, extent)? {
            None => Some("entry without a conversation"),
            Some(turns) if turns.count < 2 => Some("conversation of fewer than two turns"),
            Some(turns) => {
                if let Some(fault) = turns.fault {
                    return Err(fault);
                }
                if keep_empty || !turns.empty {
                    spans.push(span(scanner, &turns)?);
                    None
                } else {
                    Some("conversation whose first turn is empty")
                }
            }
        };
        if let Some(reason) = left_out {
            remarks.dropped(reason, || format!("conversation {}", number + 1));
        }
        scanner.conversation = 0;
        Ok(())
    })?;
    if scanner.after_space()?.is_some() {
        return Err(scanner.unexpected("nothing after the array of conversations"));
    }
    Ok(spans)
}

fn span(scanner: &Scanner<'_>, turns: &Turns) -> Result<Span, Fault> {
    let length = turns.end - turns.start;
    if length > LONGEST as u64 {
        let cause = format!("turns of more than {} MiB", LONGEST >> 20);
        return Err(scanner.misshapen(turns.start, &cause));
    }
    Ok(Span { offset: [turns.start as u32, (turns.start >> 32) as u32], length: length as u32 })
}

/// Passes over one entry; `None` where it has no turns and needs none.
fn entry(scanner: &mut Scanner<'_>, like: Like, extent: Extent) -> Result<Option<Turns>, Fault> {
    let start = scanner.offset();
    match scanner.peek()? {
        Some(b'{') => {}
        Some(b'"' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
            return Err(scanner.misshapen(start, "something else than an object"));
        }
        _ => return Err(scanner.unexpected("`{`, the beginning of a conversation")),
    }
    let mut plural = None;
    let mut singular = None;
    scanner.object(|scanner, key| match key {
        b"conversations" => {
            plural = Some(turns(scanner, extent)?);
            Ok(())
        }
        b"conversation" if like == Like::Sglang => {
            singular = Some(turns(scanner, extent)?);
            Ok(())
        }
        _ => scanner.value(),
    })?;
    match plural.or(singular) {
        None if like == Like::Lmdeploy => {
            Err(scanner.misshapen(start, "an entry without the key `conversations`"))
        }
        found => Ok(found),
    }
}

fn turns(scanner: &mut Scanner<'_>, extent: Extent) -> Result<Turns, Fault> {
    let mut seen = Turns::default();
    if scanner.after_space()? != Some(b'[') {
        let start = scanner.offset();
        scanner.value()?;
        return Err(scanner.misshapen(start, "something else than a list of turns"));
    }
    scanner.array(|scanner, index| {
        seen.count = index + 1;
        if index >= 2 && extent == Extent::Pair {
            return scanner.value();
        }
        let start = scanner.offset();
        let (says, wrong) = turn(scanner)?;
        if index == 0 {
            seen.start = start;
            seen.empty = says == Some(0);
        }
        seen.end = scanner.offset();
        if let Some(wrong) = wrong {
            seen.fault.get_or_insert_with(|| scanner.misshapen(start, wrong));
        }
        Ok(())
    })?;
    Ok(seen)
}

/// Passes over one turn: the number of bytes of its text, or its mistake.
fn turn(scanner: &mut Scanner<'_>) -> Result<(Option<u64>, Option<&'static str>), Fault> {
    if scanner.peek()? != Some(b'{') {
        scanner.value()?;
        return Ok((None, Some("a turn that is not an object")));
    }
    let mut says = None;
    let mut wrong = Some("a turn without the key `value`");
    scanner.object(|scanner, key| {
        if key != b"value" {
            return scanner.value();
        }
        if scanner.after_space()? == Some(b'"') {
            scanner.step();
            says = Some(scanner.string()?);
            wrong = None;
            return Ok(());
        }
        wrong = Some("a turn whose `value` is not a string");
        scanner.value()
    })?;
    Ok((says, wrong))
}
