//! `[[route]]` tables: their keys and their mistakes.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use serde::de::IgnoredAny;

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

/// The keys of a wire format, without the keys of [`STREAMED`].
const KEYS: [&str; 11] = [
    "prompt",
    "tokens",
    "ignore-eos",
    "model",
    "stream",
    "framing",
    "prefix",
    "finish",
    "whole",
    "error",
    "error-event",
];

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
        let message = "`route.path` is missing: the path of the route, such as \"/generate\"";
        t.report(Problem::new(message).at(place.clone(), "in this route"));
    }
    let path = path.map(|located| located.value);
    let asks_for_key = t.boolean("key").is_none_or(|key| key.value);
    let content_type = t.parsed("content-type", "a media type", |text| {
        HeaderValue::from_str(text).map_err(|_| format!("found {text:?}"))
    });
    let content_type = content_type.map(|located| located.value);
    let status = t.integer("status");
    let (usual_method, content) = match t.parsed("body", "a text", |text| Ok(text.to_owned())) {
        Some(Located { value: body, .. }) => {
            for key in KEYS.into_iter().chain(STREAMED.map(|(key, _)| key)) {
                if let Some(set) = t.own::<IgnoredAny>(key) {
                    let message = format!(
                        "`route.{key}` has no effect in a route with a `body`, which is always the same"
                    );
                    t.report(Problem::new(message).at(set.place, ""));
                }
            }
            let usual = (!body.is_empty()).then_some(HeaderValue::from_static(JSON));
            let content_type = content_type.or(usual);
            let status = fixed_status(t, status)?;
            (Method::GET, Content::Fixed(Fixed { status, content_type, body: body.into() }))
        }
        None => {
            if let Some(status) = status {
                let message =
                    "`route.status` has no effect without a `body`: answers have status 200";
                t.report(Problem::new(message).at(status.place, ""));
            }
            let dialect = dialect(t, place, path.clone(), content_type)?;
            (Method::POST, Content::Answers(Arc::new(dialect)))
        }
    };
    let method = method.map_or(usual_method, |located| located.value);
    Some(ScriptedRoute { method, path: path?, asks_for_key, content })
}

fn fixed_status(t: &Reader<'_, '_>, status: Option<Located<u64>>) -> Option<u16> {
    let Some(located) = status else { return Some(200) };
    let status = u16::try_from(located.value).ok();
    let status = status.filter(|status| (200..600).contains(status));
    if status.is_none() {
        let message =
            format!("`route.status`: expected a status from 200 to 599, found {}", located.value);
        t.report(Problem::new(message).at(located.place, ""));
    }
    status
}

/// Reads a wire format. Returns it if no key is missing and no two contradict each other.
fn dialect(
    t: &mut Reader<'_, '_>,
    place: &Place,
    path: Option<String>,
    content_type: Option<HeaderValue>,
) -> Option<Dialect> {
    let pointer = |t: &mut Reader<'_, '_>, key| {
        let pointer = t.parsed(key, "a JSON pointer such as \"/parameters/max_new\"", |text| {
            is_pointer(text).then(|| text.to_owned()).ok_or_else(|| format!("found {text:?}"))
        });
        pointer.map(|located| located.value)
    };
    let template = |t: &mut Reader<'_, '_>, key, stage: Stage| {
        t.parsed(key, "a template", |text| match text {
            "" => Err("it is empty".to_owned()),
            text => Template::read(text, stage),
        })
    };
    let prompt = pointer(t, "prompt");
    let (tokens, ignore_eos) = (pointer(t, "tokens"), pointer(t, "ignore-eos"));
    let model = pointer(t, "model");
    let cut = t.word("framing").map_or(FramingName::Lines, |located| located.value);
    let expected = "\"always\", \"never\" or a JSON pointer such as \"/stream\"";
    let stream = t.parsed("stream", expected, |text| match text {
        "always" => Ok(Stream::Always),
        "never" => Ok(Stream::Never),
        text if is_pointer(text) => Ok(Stream::Pointer(text.to_owned())),
        text => Err(format!("found {text:?}")),
    });
    let stream = match (stream, cut) {
        (Some(located), _) => located.value,
        (None, FramingName::Whole) => Stream::Never,
        (None, _) => Stream::Always,
    };
    let prefix = prefix(t);
    let finish = t.table("finish", |t| {
        let mut word = |key| t.string(key).map(|located| located.value);
        FinishWords { stop: word("stop"), length: word("length") }
    });
    let streamed = STREAMED.map(|(key, stage)| template(t, key, stage));
    let whole = template(t, "whole", Stage::After);
    let error = template(t, "error", Stage::Error);
    let error_event = template(t, "error-event", Stage::Error);

    let may_stream = stream != Stream::Never;
    let mut sound = true;
    let mut wrong = |message: &str, place: &Place| {
        sound = false;
        t.report(Problem::new(message).at(place.clone(), "in this route"));
    };
    if !t.has("prompt") {
        wrong(
            "`route.prompt` is missing: set the JSON pointer to the prompt, or a `body` for a reply that is always the same",
            place,
        );
    }
    if may_stream && cut == FramingName::Whole {
        wrong(
            "a route with `framing = \"whole\"` cannot stream; set `stream = \"never\"` or choose another framing",
            place,
        );
    } else if may_stream && !t.has("event") {
        wrong("`route.event` is missing: the template of the events of a streamed reply", place);
    }
    let set = STREAMED.iter().zip(&streamed);
    let set = set.filter_map(|((key, _), located)| Some((*key, located.as_ref()?)));
    for (key, located) in set.clone() {
        if !may_stream {
            let message = format!("`route.{key}` has no effect in a route that never streams");
            wrong(&message, &located.place);
        }
        if cut == FramingName::Lines && may_stream && located.value.has_line_end() {
            let message = format!(
                "`route.{key}` has several lines, but with `framing = \"lines\"` an event is one line"
            );
            wrong(&message, &located.place);
        }
    }
    if cut == FramingName::AwsEventStream && may_stream {
        let error = error_event.as_ref().or(error.as_ref());
        for (key, located) in set.chain(error.map(|located| ("error-event", located))) {
            if !aws::is_event(&located.value.form()) {
                let message = format!(
                    "`route.{key}`: with `framing = \"aws-event-stream\"` each line is a message: its name, a space and its payload, such as `messageStop {{}}`"
                );
                wrong(&message, &located.place);
            }
        }
        if error.is_none() {
            wrong(
                "`route.error-event` is missing: with `framing = \"aws-event-stream\"` an error is a message too, such as `internalServerException {\"message\":{message}}`",
                place,
            );
        }
    }
    match (&whole, &stream) {
        (None, Stream::Never | Stream::Pointer(_)) if !t.has("whole") => wrong(
            "`route.whole` is missing: the template of a reply to a request that does not stream",
            place,
        ),
        (Some(located), Stream::Always) => wrong(
            "`route.whole` has no effect in a route that always streams; set with `stream` which requests get it",
            &located.place,
        ),
        _ => {}
    }
    if let (Some(prefix), true) = (&prefix, cut != FramingName::LengthPrefixed) {
        let message = "`route.prefix` has no effect without `framing = \"length-prefixed\"`";
        wrong(message, &prefix.place);
    }
    let (framing, usual) = match cut {
        FramingName::Lines => (Framing::Lines, "application/x-ndjson"),
        FramingName::EventStream => (Framing::EventStream, "text/event-stream; charset=utf-8"),
        FramingName::AwsEventStream => {
            (Framing::AwsEventStream, "application/vnd.amazon.eventstream")
        }
        FramingName::Raw => (Framing::Raw, "application/octet-stream"),
        FramingName::Whole => (Framing::Raw, JSON),
        FramingName::LengthPrefixed => {
            let usual = Framing::LengthPrefixed { skip: 0, width: 4, little_endian: false };
            (prefix.map_or(usual, |located| located.value), "application/octet-stream")
        }
    };
    let streamed_type = content_type.clone().unwrap_or(HeaderValue::from_static(usual));
    let whole_type = content_type.filter(|_| cut == FramingName::Whole);
    let value = |located: Option<Located<Template>>| located.map(|located| located.value);
    let error = value(error).or_else(|| Template::read(ERROR, Stage::Error).ok())?;
    sound.then_some(())?;
    let [first, event, last, usage, end] = streamed.map(value);
    Some(Dialect {
        path: Cow::Owned(path?),
        pointers: Pointers { prompt: prompt?, tokens, ignore_eos, model, stream },
        framing,
        finish,
        content_type: streamed_type,
        whole_content_type: whole_type.unwrap_or(HeaderValue::from_static(JSON)),
        first,
        event,
        last,
        usage,
        end,
        whole: value(whole),
        error_event: value(error_event).unwrap_or_else(|| error.clone()),
        error,
    })
}

fn is_pointer(text: &str) -> bool {
    text.starts_with('/') && text.len() > 1
}

/// `prefix`: the bytes that precede each event of a length-prefixed stream.
fn prefix(t: &mut Reader<'_, '_>) -> Option<Located<Framing>> {
    t.table("prefix", |t| {
        let (skip, width) = (t.integer("skip"), t.integer("width"));
        let little_endian = t.boolean("little-endian");
        let place_of = |number: &Option<Located<u64>>| Some(number.as_ref()?.place.clone());
        let place = place_of(&skip).or(place_of(&width));
        let place = place.or_else(|| Some(little_endian.as_ref()?.place.clone()))?;
        let skip = checked(t, skip, "skip", "at most 16", |n| n <= 16);
        // A shorter length has no room for all the text so far.
        let width = checked(t, width, "width", "4 or 8", |n| n == 4 || n == 8);
        let framing = Framing::LengthPrefixed {
            skip: skip.unwrap_or(0),
            width: width.unwrap_or(4),
            little_endian: little_endian.is_some_and(|located| located.value),
        };
        Some(Located::new(framing, place))
    })
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
