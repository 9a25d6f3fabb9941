//! The identity of requests: the ids that a request carries as header fields. They join a server's
//! log and a router's decisions with the records of a run.
//!
//! This module owns the content and the spelling of ids. Every id is a function of the run's own
//! random identity, of the phase, and of numbers that the plan gives to requests and sessions. So
//! ids need neither a clock nor state: they are made when a request is written, ahead of need. The
//! processes of a fleet have different identities, so their ids do not collide. `session` decides
//! when a request is written, and names the header fields that override ids.

use std::fmt::{self, Write};

use http::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exchange::Phase;
use crate::random::mix;

crate::words! {
    /// The spelling of ids.
    pub enum Form {
        /// The prefix and a number, as in `bench-17`.
        Numbered = "numbered",
        /// A UUID, for servers that accept nothing else.
        Uuid = "uuid",
        /// For a session its name in the dataset, if the name is printable ASCII without spaces.
        /// Other ids are `numbered`.
        Named = "named",
    }
    default Numbered
}

crate::words! {
    /// The scope of a routing key.
    pub enum Routing {
        /// The requests of a session.
        Session = "session",
        /// Requests whose prompts begin alike, in their first 64 characters or 16 tokens.
        Prefix = "prefix",
    }
    default Session
}

/// Characters at the beginning of a prompt that decide a routing key.
pub const ROUTING_CHARS: usize = 64;
/// Tokens at the beginning of a prompt that decide a routing key.
pub const ROUTING_TOKENS: usize = 16;
/// The longest prefix of ids, in bytes.
pub const LONGEST_PREFIX: usize = 64;
/// The word of scenarios for no header field.
pub const OFF: &str = "off";
/// The header that trace contexts are sent in (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// The ids that requests carry: the names of their header fields, and their spelling.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct RequestIds {
    /// Header fields with the request's id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<String>,
    /// Header fields with the id of its session: of its conversation, or else its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
    /// Header fields with the id of the session that began its session, if there is one: for the
    /// requests of a sub-agent, the agent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent: Vec<String>,
    /// Header fields with a key for routers, which send requests with the same key to the same
    /// server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routing_key: Vec<String>,
    /// The scope of a routing key.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub routing_by: Routing,
    /// The text that ids begin with; absent if it is a random one for each run.
    pub prefix: Option<String>,
    /// The spelling of ids.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub form: Form,
    /// True if requests carry a trace context, `traceparent` of the W3C.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub traceparent: bool,
}

/// The identity of a run, or of a process of a fleet: random bits that no other has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunId {
    high: u64,
    low: u64,
}

/// The ids that a request carried; an id that it did not carry is absent.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Ids {
    /// The request's own.
    pub request: Option<String>,
    /// The id of its session: of its conversation, or else its own.
    pub session: Option<String>,
    /// The id of the session that began its session: for a sub-agent, the agent's.
    pub parent: Option<String>,
    /// The key for routers.
    pub routing_key: Option<String>,
    /// The trace that it belongs to.
    pub trace: Option<TraceId>,
    /// Its span in the trace.
    pub span: Option<SpanId>,
}

/// The id of a trace: 32 hexadecimal digits, not all of them zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// The id of a span: 16 hexadecimal digits, not all of them zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

/// The place of a request in its run, from which its ids follow.
#[derive(Clone, Copy, Debug)]
pub struct Member<'s> {
    /// The part of the run.
    pub phase: Phase,
    /// Its number in the phase.
    pub index: u64,
    /// The number of the independent request that it depends on, directly or through others; its
    /// own if it depends on none.
    pub root: u64,
    /// The name of its conversation, if it is a turn of one.
    pub session: Option<&'s str>,
    /// The name of the conversation that began its conversation, if one did.
    pub parent: Option<&'s str>,
    /// The beginning of its prompt, where routing keys are made of it.
    pub beginning: Option<u64>,
}

/// The kind of an id. The numbers keep the ids of different kinds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdKind {
    Request = 0x72_65_71,
    Session = 0x73_65_73,
    Key = 0x6b_65_79,
    Trace = 0x74_72_61,
    Span = 0x73_70_61,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Request,
    Session,
    Parent,
    RoutingKey,
    Trace,
}

/// Makes the ids of a run's requests.
#[derive(Clone, Debug)]
pub struct Identities {
    run: RunId,
    prefix: String,
    form: Form,
    routing_by: Routing,
    fields: Vec<(HeaderName, Header)>,
}

/// A field of a request's head.
pub type Field = (HeaderName, HeaderValue);

impl RunId {
    /// Of these random bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        RunId { high: (number >> 64) as u64, low: number as u64 }
    }

    fn bits(self, kind: IdKind, phase: Phase, number: u64) -> u64 {
        let phase = u64::from(phase == Phase::Warmup);
        let kind = mix(self.low ^ (kind as u64) << 1 ^ phase);
        mix(kind.wrapping_add(number) ^ self.high)
    }

    /// 128 bits for this number of this kind.
    fn wide(self, kind: IdKind, phase: Phase, number: u64) -> u128 {
        let high = self.bits(kind, phase, number);
        let low = mix(high ^ self.low ^ number);
        u128::from(high) << 64 | u128::from(low)
    }

    /// The trace and the span of a request. `root` has the same meaning as in [`Member`].
    pub fn ids_of(self, phase: Phase, index: u64, root: u64) -> (TraceId, SpanId) {
        let trace = TraceId(self.wide(IdKind::Trace, phase, root).max(1));
        (trace, SpanId(self.bits(IdKind::Span, phase, index).max(1)))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

impl TraceId {
    /// The span of its session, which holds the spans of its requests.
    pub fn session(self) -> SpanId {
        let (high, low) = ((self.0 >> 64) as u64, self.0 as u64);
        SpanId(mix(high ^ mix(low)).max(1))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Forms of an id in JSON: its digits.
macro_rules! digits {
    ($Id:ident, $Number:ident, $digits:literal, $pattern:literal) => {
        impl Serialize for $Id {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $Id {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                let is_id = text.len() == $digits
                    && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                let number = $Number::from_str_radix(&text, 16).ok().filter(|_| is_id);
                number.filter(|number| *number > 0).map($Id).ok_or_else(|| {
                    Error::custom(concat!("expected ", $digits, " hexadecimal digits, not all zero"))
                })
            }
        }

        impl JsonSchema for $Id {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Id).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

digits!(TraceId, u128, 32, "^[0-9a-f]{32}$");
digits!(SpanId, u64, 16, "^[0-9a-f]{16}$");

impl RequestIds {
    /// True if a text can be the prefix of ids: up to 64 letters, digits and `-_.:/`.
    pub fn is_prefix(text: &str) -> bool {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/".contains(&b);
        !text.is_empty() && text.len() <= LONGEST_PREFIX && text.bytes().all(fits)
    }

    /// The names of the header fields of every id.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let lists = [&self.request, &self.session, &self.parent, &self.routing_key];
        lists.into_iter().flatten().map(String::as_str)
    }
}

impl Identities {
    /// The ids of a run. Fields of the names in `taken` are the user's own and override ids.
    pub fn new<'n>(
        run: RunId,
        ids: &RequestIds,
        taken: impl Iterator<Item = &'n str> + Clone,
    ) -> Self {
        let named = [
            (&ids.request, Header::Request),
            (&ids.session, Header::Session),
            (&ids.parent, Header::Parent),
            (&ids.routing_key, Header::RoutingKey),
        ];
        let named = named
            .into_iter()
            .flat_map(|(names, header)| names.iter().map(move |name| (name.as_str(), header)));
        let trace = ids.traceparent.then_some((TRACEPARENT, Header::Trace));
        let free = named.chain(trace).filter(|(name, _)| {
            let mut taken = taken.clone();
            !taken.any(|other| other.eq_ignore_ascii_case(name))
        });
        // A plan from elsewhere may have an invalid header name; scenarios were checked.
        let fields: Vec<_> = free
            .filter_map(|(name, header)| Some((HeaderName::try_from(name).ok()?, header)))
            .collect();
        Identities {
            run,
            prefix: match &ids.prefix {
                Some(prefix) => prefix.clone(),
                None => format!("{:016x}-", mix(run.high ^ mix(run.low))),
            },
            form: ids.form,
            routing_by: ids.routing_by,
            fields,
        }
    }

    /// True if routing keys are made of the beginnings of prompts.
    pub fn routes_by_prefix(&self) -> bool {
        self.routing_by == Routing::Prefix && self.sends(Header::RoutingKey)
    }

    fn sends(&self, id: Header) -> bool {
        self.fields.iter().any(|(_, header)| *header == id)
    }

    /// The ids of a request; nothing if it has none.
    pub fn ids(&self, member: &Member<'_>) -> Option<Box<Ids>> {
        if self.fields.is_empty() {
            return None;
        }
        let mut ids = Box::<Ids>::default();
        for (_, header) in &self.fields {
            let Some(text) = ids.text(*header).filter(|text| text.is_none()) else { continue };
            *text = match header {
                Header::Request => Some(self.request(member)),
                Header::Session => Some(self.session(member)),
                Header::Parent => member.parent.map(|name| self.by_name(member, name)),
                Header::RoutingKey => Some(match (self.routing_by, member.beginning) {
                    (Routing::Prefix, Some(beginning)) => {
                        self.text(IdKind::Key, Phase::Measure, beginning, true)
                    }
                    // A prompt without a beginning that could be shared has a key of its own.
                    (Routing::Prefix, None) | (Routing::Session, _) => self.session(member),
                }),
                Header::Trace => None,
            };
        }
        if self.sends(Header::Trace) {
            let (trace, span) = self.run.ids_of(member.phase, member.index, member.root);
            (ids.trace, ids.span) = (Some(trace), Some(span));
        }
        (*ids != Ids::default()).then_some(ids)
    }

    fn request(&self, member: &Member<'_>) -> String {
        self.text(IdKind::Request, member.phase, member.index, false)
    }

    fn by_name(&self, member: &Member<'_>, name: &str) -> String {
        if self.form == Form::Named && name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return name.to_owned();
        }
        self.text(IdKind::Session, member.phase, named(name), true)
    }

    fn session(&self, member: &Member<'_>) -> String {
        match member.session {
            Some(name) => self.by_name(member, name),
            None => self.text(IdKind::Session, member.phase, member.root, false),
        }
    }

    /// An id; `hashed` if the number may be any 64-bit number, and is not counted from 0.
    fn text(&self, kind: IdKind, phase: Phase, number: u64, hashed: bool) -> String {
        if self.form == Form::Uuid {
            return uuid(self.run.wide(kind, phase, number ^ u64::from(hashed) << 63));
        }
        // Room for the longest number.
        let mut text = String::with_capacity(self.prefix.len() + 22);
        text.push_str(&self.prefix);
        if phase == Phase::Warmup {
            text.push('w');
        }
        match kind {
            IdKind::Session => text.push('s'),
            IdKind::Key => text.push('k'),
            IdKind::Request | IdKind::Trace | IdKind::Span => {}
        }
        let _ = if hashed { write!(text, "{number:016x}") } else { write!(text, "{number}") };
        text
    }

    /// The header fields of ids. A field that the request has already (`has`) overrides the id. The
    /// record then leaves the id out as well, if no other field has it.
    pub fn fields(
        &self,
        ids: &mut Option<Box<Ids>>,
        has: impl Fn(&HeaderName) -> bool,
    ) -> Vec<Field> {
        let Some(own) = ids else { return Vec::new() };
        let mut fields = Vec::with_capacity(self.fields.len());
        let mut left_out = Vec::new();
        for (name, header) in &self.fields {
            let value = match (header, own.trace, own.span) {
                (Header::Trace, Some(trace), Some(span)) => Some(traceparent(trace, span)),
                _ => own.text(*header).and_then(|text| text.clone()),
            };
            let Some(value) = value.map(HeaderValue::try_from) else { continue };
            if has(name) {
                left_out.push(*header);
                continue;
            }
            if let Ok(mut value) = value {
                // No secret, but of this request alone: nothing for the tables of HTTP/2.
                value.set_sensitive(true);
                fields.push((name.clone(), value));
            }
        }
        for header in left_out {
            let is_sent = |(name, kind): &(HeaderName, Header)| {
                *kind == header && fields.iter().any(|(sent, _)| sent == name)
            };
            if !self.fields.iter().any(is_sent)
                && let Some(text) = own.text(header)
            {
                *text = None;
            }
        }
        if **own == Ids::default() {
            *ids = None;
        }
        fields
    }
}

impl Ids {
    /// The text in such a field; absent for a trace, whose field has two ids.
    fn text(&mut self, header: Header) -> Option<&mut Option<String>> {
        match header {
            Header::Request => Some(&mut self.request),
            Header::Session => Some(&mut self.session),
            Header::Parent => Some(&mut self.parent),
            Header::RoutingKey => Some(&mut self.routing_key),
            Header::Trace => None,
        }
    }

    /// The memory of its texts, in bytes.
    pub fn memory(&self) -> usize {
        let texts = [&self.request, &self.session, &self.parent, &self.routing_key];
        let texts = texts.into_iter().flatten().map(String::len);
        size_of::<Ids>() + texts.sum::<usize>()
    }
}

/// A number for the beginning of a prompt, of all 64-bit numbers.
pub fn beginning(bytes: impl Iterator<Item = u8>) -> u64 {
    /// The parameters of FNV-1a for 64 bits (RFC 9923).
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    mix(hash)
}

/// The number of a conversation, of all 64-bit numbers. Names themselves may be long, private, or
/// no text that a header could have.
fn named(name: &str) -> u64 {
    beginning(name.bytes())
}

/// A UUID of random bits (RFC 9562, version 4).
fn uuid(bits: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let part = |from: u32, digits: u32| bits >> from & ((1 << (4 * digits)) - 1);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        part(96, 8),
        part(80, 4),
        part(64, 4),
        part(48, 4),
        part(0, 12)
    )
}

/// A trace context that is sampled (W3C Trace Context, 3.2).
fn traceparent(trace: TraceId, span: SpanId) -> String {
    format!("00-{trace}-{span}-01")
}

#[cfg(test)]
mod tests;
