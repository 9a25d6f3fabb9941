//! `[[route]]` tables: their keys and their mistakes.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;

use super::template::{Stage, Template};
use super::{Content, Dialect, FinishWords, Fixed, Framing, Pointers, ScriptedRoute, Stream, aws};
use reader::{Located, Place, Problem, Reader};

const JSON: &str = "application/json";

/// The error message if the script sets none.
const ERROR: &str = r#"{"error":{"message":{message}}}"#;

model::names! {
    enum FramingName {
        Lines = "lines",
        EventStream = "event-stream",
        LengthPrefixed = "length-prefixed",
        AwsEventStream = "aws-event-stream",
        Raw = "raw",
        Whole = "whole",
    }
}

const STREAMED: [(&str, Stage); 5] = [
    ("first", Stage::Before),
    ("event", Stage::During),
    ("last", Stage::After),
    ("usage", Stage::After),
    ("end", Stage::After),
];

/// The `[[route]]` tables of a script.
pub(crate) fn routes(root: &mut Reader<'_, '_>) -> Vec<ScriptedRoute> {
    let routes = root.tables("route", |t, place| {
        let route = route(t, &place)?;
        Some((route, place))
    });
    let mut all: Vec<ScriptedRoute> = Vec::new();
    for (route, place) in routes.into_iter().flatten().flatten() {
        let same =
            |other: &&ScriptedRoute| other.method == route.method && other.path == route.path;
        if all.iter().any(|other| same(&other)) {
            let message = format!("`route`: {} {} is defined twice", route.method, route.path);
            root.report(Problem::new(message).at(place, "the second"));
        } else {
            all.push(route);
        }
    }
    all
}

fn route(t: &mut Reader<'_, '_>, place: &Place) -> Option<ScriptedRoute> {
    let method = t.parsed("method", "a method such as \"GET\"", |text| {
        Method::from_bytes(text.as_bytes()).map_err(|_| format!("found {text:?}"))
    });
    let path = t.parsed("path", "a path such as \"/generate\"", |text| {
        let plain = text.starts_with('/') && !text.contains(['?', '#', ' ']);
        plain.then(|| text.to_owned()).ok_or_else(|| format!("found {text:?}"))
    });
    if !t.has("path") {
        missing(t, place, "path", "the path of the route, such as \"/generate\"");
    }
    let asks_for_key = t.boolean("key").is_none_or(|key| key.value);
    let content_type = t.parsed("content-type", "a media type", |text| {
        HeaderValue::from_str(text).map_err(|_| format!("found {text:?}"))
    });
    let body = t.parsed("body", "a text", |text| Ok(text.to_owned()));
    let status = t.integer("status");
    let keys = dialect_keys(t);
    let path = path?.value;
    let content = match body {
        Some(body) => {
            for (key, place) in keys.set_keys() {
                let message = format!(
                    "`route.{key}` has no effect in a route with a `body`, which is always the same"
                );
                t.report(Problem::new(message).at(place, ""));
            }
            Content::Fixed(Fixed {
                status: fixed_status(t, status)?,
                content_type: match (content_type, body.value.is_empty()) {
                    (Some(located), _) => Some(located.value),
                    (None, true) => None,
                    (None, false) => Some(HeaderValue::from_static(JSON)),
                },
                body: body.value.into(),
            })
        }
        None => {
            if let Some(status) = status {
                let message =
                    "`route.status` has no effect without a `body`: answers have status 200";
                t.report(Problem::new(message).at(status.place, ""));
            }
            let content_type = content_type.map(|located| located.value);
            Content::Answers(Arc::new(keys.dialect(t, place, &path, content_type)?))
        }
    };
    let default = match content {
        Content::Fixed(_) => Method::GET,
        Content::Answers(_) => Method::POST,
    };
    Some(ScriptedRoute {
        method: method.map_or(default, |located| located.value),
        path,
        asks_for_key,
        content,
    })
}

fn fixed_status(t: &Reader<'_, '_>, status: Option<Located<u64>>) -> Option<u16> {
    let Some(located) = status else {
        return Some(200);
    };
    let status = u16::try_from(located.value).ok();
    let status = status.filter(|status| (200..600).contains(status));
    if status.is_none() {
        let message =
            format!("`route.status`: expected a status from 200 to 599, found {}", located.value);
        t.report(Problem::new(message).at(located.place, ""));
    }
    status
}

fn missing(t: &Reader<'_, '_>, place: &Place, key: &str, what: &str) {
    let message = format!("`route.{key}` is missing: {what}");
    t.report(Problem::new(message).at(place.clone(), "in this route"));
}

/// The keys of a wire format, as they were written.
struct Keys {
    prompt: Option<Located<String>>,
    tokens: Option<Located<String>>,
    ignore_eos: Option<Located<String>>,
    model: Option<Located<String>>,
    stream: Option<Located<Stream>>,
    framing: Option<Located<FramingName>>,
    prefix: Option<Located<Framing>>,
    finish: Option<Located<FinishWords>>,
    /// The templates of [`STREAMED`].
    streamed: [Option<Located<Template>>; 5],
    whole: Option<Located<Template>>,
    error: Option<Located<Template>>,
    error_event: Option<Located<Template>>,
}

fn dialect_keys(t: &mut Reader<'_, '_>) -> Keys {
    let pointer = |t: &mut Reader<'_, '_>, key| {
        t.parsed(key, "a JSON pointer such as \"/parameters/max_new\"", |text| {
            is_pointer(text).then(|| text.to_owned()).ok_or_else(|| format!("found {text:?}"))
        })
    };
    let template = |t: &mut Reader<'_, '_>, key, stage: Stage| {
        t.parsed(key, "a template", |text| match text {
            "" => Err("it is empty".to_owned()),
            text => Template::read(text, stage),
        })
    };
    Keys {
        prompt: pointer(t, "prompt"),
        tokens: pointer(t, "tokens"),
        ignore_eos: pointer(t, "ignore-eos"),
        model: pointer(t, "model"),
        stream: t.parsed(
            "stream",
            "\"always\", \"never\" or a JSON pointer such as \"/stream\"",
            |text| match text {
                "always" => Ok(Stream::Always),
                "never" => Ok(Stream::Never),
                text if is_pointer(text) => Ok(Stream::Pointer(text.to_owned())),
                text => Err(format!("found {text:?}")),
            },
        ),
        framing: t.word("framing"),
        prefix: prefix(t),
        finish: finish(t),
        streamed: STREAMED.map(|(key, stage)| template(t, key, stage)),
        whole: template(t, "whole", Stage::After),
        error: template(t, "error", Stage::Error),
        error_event: template(t, "error-event", Stage::Error),
    }
}

fn is_pointer(text: &str) -> bool {
    text.starts_with('/') && text.len() > 1
}

/// `prefix`: the bytes that precede each event of a length-prefixed stream.
fn prefix(t: &mut Reader<'_, '_>) -> Option<Located<Framing>> {
    let mut place = None;
    let framing = t.table("prefix", |t| {
        let skip = t.integer("skip");
        let width = t.integer("width");
        let little_endian = t.boolean("little-endian");
        place = (skip.as_ref().map(|located| &located.place))
            .or(width.as_ref().map(|located| &located.place))
            .or(little_endian.as_ref().map(|located| &located.place))
            .cloned();
        let skip = checked(t, skip, "skip", "at most 16", |n| n <= 16);
        // A shorter length has no room for all the text so far.
        let width = checked(t, width, "width", "4 or 8", |n| n == 4 || n == 8);
        Framing::LengthPrefixed {
            skip: skip.unwrap_or(0),
            width: width.unwrap_or(4),
            little_endian: little_endian.is_some_and(|located| located.value),
        }
    });
    Some(Located::new(framing, place?))
}

/// `finish`: the engine's words for the reasons why an answer ends.
fn finish(t: &mut Reader<'_, '_>) -> Option<Located<FinishWords>> {
    let mut place = None;
    let words = t.table("finish", |t| {
        let stop = t.string("stop");
        let length = t.string("length");
        place = (stop.as_ref().map(|located| &located.place))
            .or(length.as_ref().map(|located| &located.place))
            .cloned();
        FinishWords {
            stop: stop.map(|located| located.value),
            length: length.map(|located| located.value),
        }
    });
    Some(Located::new(words, place?))
}

fn checked(
    t: &Reader<'_, '_>,
    located: Option<Located<u64>>,
    key: &str,
    expected: &str,
    possible: impl FnOnce(u64) -> bool,
) -> Option<usize> {
    let located = located?;
    if possible(located.value) {
        return usize::try_from(located.value).ok();
    }
    let message = format!("`route.prefix.{key}`: expected {expected}, found {}", located.value);
    t.report(Problem::new(message).at(located.place, format!("expected {expected}")));
    None
}

impl Keys {
    /// The templates of streamed replies that were set, by key.
    fn streamed(&self) -> impl Iterator<Item = (&'static str, &Located<Template>)> {
        let pairs = STREAMED.into_iter().zip(&self.streamed);
        pairs.filter_map(|((key, _), located)| Some((key, located.as_ref()?)))
    }

    /// All keys that were set, each with its place.
    fn set_keys(&self) -> Vec<(&'static str, Place)> {
        type SetKey = (&'static str, Place);
        fn set<T>(key: &'static str, located: &Option<Located<T>>) -> Option<SetKey> {
            located.as_ref().map(|located| (key, located.place.clone()))
        }
        let pointers = [
            set("prompt", &self.prompt),
            set("tokens", &self.tokens),
            set("ignore-eos", &self.ignore_eos),
            set("model", &self.model),
            set("stream", &self.stream),
            set("framing", &self.framing),
            set("prefix", &self.prefix),
            set("finish", &self.finish),
            set("whole", &self.whole),
            set("error", &self.error),
            set("error-event", &self.error_event),
        ];
        let streamed = self.streamed().map(|(key, located)| (key, located.place.clone()));
        pointers.into_iter().flatten().chain(streamed).collect()
    }

    /// The wire format, if no key is missing and no two contradict each other.
    fn dialect(
        self,
        t: &Reader<'_, '_>,
        place: &Place,
        path: &str,
        content_type: Option<HeaderValue>,
    ) -> Option<Dialect> {
        let cut = self.framing.as_ref().map_or(FramingName::Lines, |located| located.value);
        let stream = match (&self.stream, cut) {
            (Some(located), _) => located.value.clone(),
            (None, FramingName::Whole) => Stream::Never,
            (None, _) => Stream::Always,
        };
        let may_stream = stream != Stream::Never;
        let mut sound = true;
        let mut wrong = |message: String, place: Place| {
            sound = false;
            t.report(Problem::new(message).at(place, "in this route"));
        };
        if !t.has("prompt") {
            let message = "`route.prompt` is missing: set the JSON pointer to the prompt, or a `body` for a reply that is always the same";
            wrong(message.to_owned(), place.clone());
        }
        if may_stream && cut == FramingName::Whole {
            let message = "a route with `framing = \"whole\"` cannot stream; set `stream = \"never\"` or choose another framing";
            wrong(message.to_owned(), place.clone());
        } else if may_stream && !t.has("event") {
            let message =
                "`route.event` is missing: the template of the events of a streamed reply";
            wrong(message.to_owned(), place.clone());
        }
        for (key, located) in self.streamed() {
            if !may_stream {
                let message = format!("`route.{key}` has no effect in a route that never streams");
                wrong(message, located.place.clone());
            }
            if cut == FramingName::Lines && may_stream && located.value.has_line_end() {
                let message = format!(
                    "`route.{key}` has several lines, but with `framing = \"lines\"` an event is one line"
                );
                wrong(message, located.place.clone());
            }
        }
        if cut == FramingName::AwsEventStream {
            let error = self.error_event.as_ref().or(self.error.as_ref());
            let events = self.streamed().chain(error.map(|located| ("error-event", located)));
            for (key, located) in events.filter(|_| may_stream) {
                if !aws::is_event(&located.value.form()) {
                    let message = format!(
                        "`route.{key}`: with `framing = \"aws-event-stream\"` each line is a message: its name, a space and its payload, such as `messageStop {{}}`"
                    );
                    wrong(message, located.place.clone());
                }
            }
            if may_stream && error.is_none() {
                let message = "`route.error-event` is missing: with `framing = \"aws-event-stream\"` an error is a message too, such as `internalServerException {\"message\":{message}}`";
                wrong(message.to_owned(), place.clone());
            }
        }
        match (&self.whole, &stream) {
            (None, Stream::Never | Stream::Pointer(_)) if !t.has("whole") => {
                let message = "`route.whole` is missing: the template of a reply to a request that does not stream";
                wrong(message.to_owned(), place.clone());
            }
            (Some(located), Stream::Always) => {
                let message = "`route.whole` has no effect in a route that always streams; set with `stream` which requests get it";
                wrong(message.to_owned(), located.place.clone());
            }
            _ => {}
        }
        if let (Some(prefix), true) = (&self.prefix, cut != FramingName::LengthPrefixed) {
            let message = "`route.prefix` has no effect without `framing = \"length-prefixed\"`";
            wrong(message.to_owned(), prefix.place.clone());
        }
        let framing = match (cut, self.prefix) {
            (FramingName::Lines, _) => Framing::Lines,
            (FramingName::EventStream, _) => Framing::EventStream,
            (FramingName::AwsEventStream, _) => Framing::AwsEventStream,
            (FramingName::Raw | FramingName::Whole, _) => Framing::Raw,
            (FramingName::LengthPrefixed, Some(located)) => located.value,
            (FramingName::LengthPrefixed, None) => {
                Framing::LengthPrefixed { skip: 0, width: 4, little_endian: false }
            }
        };
        let usual = match cut {
            FramingName::Lines => "application/x-ndjson",
            FramingName::EventStream => "text/event-stream; charset=utf-8",
            FramingName::AwsEventStream => "application/vnd.amazon.eventstream",
            FramingName::LengthPrefixed | FramingName::Raw => "application/octet-stream",
            FramingName::Whole => JSON,
        };
        let json = HeaderValue::from_static(JSON);
        let streamed = content_type.clone().unwrap_or(HeaderValue::from_static(usual));
        let value = |located: Option<Located<Template>>| located.map(|located| located.value);
        let error = value(self.error).or_else(|| Template::read(ERROR, Stage::Error).ok())?;
        let prompt = self.prompt?.value;
        sound.then_some(())?;
        let pointer = |located: Option<Located<String>>| located.map(|located| located.value);
        let [first, event, last, usage, end] = self.streamed.map(value);
        Some(Dialect {
            path: Cow::Owned(path.to_owned()),
            pointers: Pointers {
                prompt,
                tokens: pointer(self.tokens),
                ignore_eos: pointer(self.ignore_eos),
                model: pointer(self.model),
                stream,
            },
            framing,
            finish: self.finish.map(|located| located.value).unwrap_or_default(),
            content_type: streamed,
            whole_content_type: content_type.filter(|_| cut == FramingName::Whole).unwrap_or(json),
            first,
            event,
            last,
            usage,
            end,
            whole: value(self.whole),
            error_event: value(self.error_event).unwrap_or_else(|| error.clone()),
            error,
        })
    }
}
