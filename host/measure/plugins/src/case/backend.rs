//! Checks of a backend: its request is written repeatedly, and its reply is decoded in every way in
//! which a run can deliver it, and damaged.

mod steps;

use super::dice::Dice;
use super::given::{Ask, Reply};
use super::reply::{self, Cutting, MESSAGES, Misdeed, Reading, ending_of};
use super::{Observations, TOLERATED, damage, format};
use crate::PluginError;
use crate::backend::{Aside, Backend, Call, Control, Dialect, Head, Meaning};
use model::frame::{Frames, Framing};
use model::units::Nanos;

/// The number of ways of batching, and of cutting, that are tried.
const ROUNDS: u64 = 8;
/// The number of prefixes of a reply that are decoded separately.
const PREFIXES: usize = 32;
const CUTS: u64 = 24;
const DAMAGED: u64 = 120;
/// Other bodies damaged at random.
const DAMAGED_BODIES: u64 = 40;
/// Bytes of damaged replies per case; larger replies are damaged fewer times.
const DAMAGED_BYTES: usize = 16 << 20;
/// Instances among which a reply's batches are distributed.
const INSTANCES: usize = 3;

pub fn ask(plugin: &Backend, ask: &Ask, seen: &mut Observations) {
    let Some(mut dialect) = open(plugin, seen) else { return };
    let doing = "writing the request";
    let call = |dialect: &mut Dialect, seen: &mut Observations| {
        seen.checks.requests += 1;
        dialect.encode(&ask.sample, &ask.settings, ask.earlier.as_ref())
    };
    let request = |dialect: &mut Dialect, seen: &mut Observations| {
        call(dialect, seen).map(|call| format::call(&call))
    };
    let called = match call(&mut dialect, seen) {
        Ok(called) => called,
        Err(error) => return seen.ended(doing, &error),
    };
    let first = format::call(&called);
    if !again(plugin, &mut dialect, seen, doing, &first, request) {
        return;
    }
    seen.found("request.http", first);
    seen.keep_log();
    let is_socket = matches!(called, Call::Socket(_));
    if let Call::Steps(step) = called {
        return steps::ask(plugin, step, ask, seen);
    }
    if !ask.steps.is_empty() {
        return seen.misfit(
            "the backend sends one request for this sample, so a case has one reply, such as reply.sse, and none with a number"
                .to_owned(),
        );
    }
    let Some(reply @ Reply { status, ending, body }) = &ask.reply else { return };
    if !reply.is_success() {
        return explain(plugin, dialect, *status, body, seen);
    }
    let cutting = match cutting(&mut dialect, ask, is_socket) {
        Ok(cutting) => cutting,
        Err(error) => return seen.ended("asking for the framing", &error),
    };
    if let Some(what) = misnamed(cutting, "reply", ending) {
        return seen.misfit(what);
    }
    let by_frame = cutting != Framing::Raw.into();
    let one = (cutting, false);
    let Some(first) = read(plugin, dialect, (one, &ask.head), body, seen) else { return };
    seen.endless = is_endless(cutting, &first);
    seen.found("events.json", format::events(&first.events, by_frame));
    if let Some(error) = first.error {
        seen.found("error.txt", error);
    }
}

/// Describes a mismatch of the extension of a reply's file and its framing.
fn misnamed(cutting: impl Into<Cutting>, name: &str, ending: &str) -> Option<String> {
    let (act, expected) = match cutting.into() {
        Cutting::Framed(framing) => {
            let (framing, expected) = ending_of(framing);
            (format!("uses the framing {framing}"), expected)
        }
        Cutting::Messages => ("opens a WebSocket".to_owned(), &[MESSAGES][..]),
    };
    (!expected.contains(&ending)).then(|| {
        format!(
            "the backend {act}, so this reply belongs in {name}.{}, not in {name}.{ending}; or the framing is wrong",
            expected[0]
        )
    })
}

/// True if a reply does not state its end, although its framing has no end of its own.
fn is_endless(cutting: impl Into<Cutting>, reading: &Reading) -> bool {
    let mut events = reading.events.iter();
    cutting.into() != Framing::Whole.into()
        && reading.error.is_none()
        && !events.any(|(_, meaning)| settles(meaning))
}

pub(super) fn cutting(
    dialect: &mut Dialect,
    ask: &Ask,
    is_socket: bool,
) -> Result<Cutting, PluginError> {
    if is_socket {
        return Ok(Cutting::Messages);
    }
    let framing = dialect.framing(ask.settings.streaming)?;
    Ok(Framing::from(framing).into())
}

pub fn control(plugin: &Backend, what: Aside, body: Option<&[u8]>, seen: &mut Observations) {
    let Some(mut dialect) = open(plugin, seen) else { return };
    let doing = "writing the request";
    let request = |dialect: &mut Dialect, seen: &mut Observations| {
        seen.checks.requests += 1;
        let request = dialect.aside(what)?;
        Ok(request.as_ref().map(format::request).unwrap_or_default())
    };
    let first = match request(&mut dialect, seen) {
        Ok(request) => request,
        Err(error) => return seen.ended(doing, &error),
    };
    if !again(plugin, &mut dialect, seen, doing, &first, request) {
        return;
    }
    if !first.is_empty() {
        seen.found("request.http", first);
    }
    seen.keep_log();
    let Some(body) = body else { return };
    if let Err(error) = dialect.control_message(body) {
        match error {
            PluginError::Protocol { message, .. } => seen.misfit(format!(
                "the reply beside control.txt: {message}; `runner plugin record` writes such a file"
            )),
            error => seen.ended("asking for the framing", &error),
        }
        return;
    }
    let (file, doing) = match what {
        Aside::Control(Control::Metrics) => ("metrics.json", "reading the metrics"),
        Aside::Prepare => ("prepared.json", "reading the prepared values"),
        _ => ("models.json", "reading the models"),
    };
    let read = |dialect: &mut Dialect, seen: &mut Observations, body: &[u8]| {
        seen.checks.decodings += 1;
        match what {
            Aside::Prepare => dialect.read_prepared(body).map(|it| format::prepared(&it)),
            Aside::Control(Control::Metrics) => {
                dialect.read_metrics(body).map(|readings| format::readings(&readings))
            }
            _ => dialect.read_models(body).map(|models| format::models(&models)),
        }
    };
    let first = match read(&mut dialect, seen, body) {
        Ok(read) => read,
        Err(error) => {
            seen.ended(doing, &error);
            return damaged_bodies(&mut dialect, seen, doing, body, read);
        }
    };
    let mut whole = |dialect: &mut Dialect, seen: &mut Observations| read(dialect, seen, body);
    if again(plugin, &mut dialect, seen, doing, &first, &mut whole) {
        seen.found(file, first);
    }
    damaged_bodies(&mut dialect, seen, doing, body, read);
}

fn open(plugin: &Backend, seen: &mut Observations) -> Option<Dialect> {
    let mut dialect = match plugin.open() {
        Ok(dialect) => dialect,
        Err(error) => {
            seen.ended("opening it with the configuration", &error);
            return None;
        }
    };
    // A run asks for these before it sends anything.
    if let Err(error) = dialect.outside() {
        seen.misbehaved("asking for its server and its key", &error);
        return None;
    }
    Some(dialect)
}

/// Checks that the same call gives the same result in the same instance and in a fresh one.
fn again(
    plugin: &Backend,
    dialect: &mut Dialect,
    seen: &mut Observations,
    doing: &str,
    first: &str,
    mut call: impl FnMut(&mut Dialect, &mut Observations) -> Result<String, PluginError>,
) -> bool {
    let second = call(dialect, seen);
    let fresh = plugin.open().and_then(|mut fresh| call(&mut fresh, seen));
    for (result, place) in [(second, "the same instance"), (fresh, "a fresh instance")] {
        match result {
            Ok(text) => {
                let what = || format!("{doing} again in {place} gave a different result");
                if !seen.same(what, first, &text) {
                    return false;
                }
            }
            Err(error) => {
                let doing = format!("{doing} a second time, in {place}");
                seen.misbehaved(&doing, &error);
                return false;
            }
        }
    }
    true
}

fn explain(
    plugin: &Backend,
    mut dialect: Dialect,
    status: u16,
    body: &[u8],
    seen: &mut Observations,
) {
    let doing = "explaining the error reply";
    let explain = |dialect: &mut Dialect, seen: &mut Observations, body: &[u8]| {
        seen.checks.decodings += 1;
        dialect.explain(status, body).map(|refusal| format::refusal(&refusal))
    };
    let first = match explain(&mut dialect, seen, body) {
        Ok(text) => text,
        Err(error) => return seen.ended(doing, &error),
    };
    let mut whole = |dialect: &mut Dialect, seen: &mut Observations| explain(dialect, seen, body);
    if again(plugin, &mut dialect, seen, doing, &first, &mut whole) {
        seen.found("explained.json", first);
    }
    damaged_bodies(&mut dialect, seen, doing, body, explain);
}

/// Passes damaged bodies; an error is acceptable, a trap is not.
fn damaged_bodies(
    dialect: &mut Dialect,
    seen: &mut Observations,
    doing: &str,
    body: &[u8],
    mut call: impl FnMut(&mut Dialect, &mut Observations, &[u8]) -> Result<String, PluginError>,
) {
    seen.keep_log();
    let mut spoilt = 0;
    for seed in 0..DAMAGED_BODIES {
        let (what, body) = damage::body(body, &mut Dice::new(seed));
        seen.checks.damaged += 1;
        if let Err(error) = call(dialect, seen, &body)
            && error.is_misbehaviour()
        {
            seen.misbehaved(&format!("{doing}, damaged ({what})"), &error);
            spoilt += 1;
            if spoilt == TOLERATED {
                return;
            }
        }
    }
}

/// True if an event says how a reply ended.
fn settles(meaning: &Meaning) -> bool {
    matches!(meaning, Meaning::End | Meaning::EndsWithBody | Meaning::Failure(_) | Meaning::Next(_))
}

/// True if a plugin finds the end of the reply of a case.
pub fn ends(plugin: &Backend, ask: &Ask) -> bool {
    let Some(Reply { body, .. }) = ask.reply.as_ref().filter(|reply| reply.is_success()) else {
        return false;
    };
    let reading = plugin.open().ok().and_then(|mut dialect| {
        let call = dialect.encode(&ask.sample, &ask.settings, ask.earlier.as_ref());
        let is_socket = matches!(call, Ok(Call::Socket(_)));
        let cutting = cutting(&mut dialect, ask, is_socket).ok()?;
        let batches = reply::batches(cutting, &[body]).ok()?;
        let is_raw = cutting == Framing::Raw.into();
        reply::decode(&mut [dialect], (&ask.head, is_raw), &batches).ok()
    });
    reading.is_some_and(|reading| {
        (reading.events.iter())
            .any(|(_, meaning)| matches!(meaning, Meaning::End | Meaning::EndsWithBody))
    })
}

/// A reply, and the instances that read it.
struct Trial<'a> {
    plugin: &'a Backend,
    cutting: Cutting,
    /// True if it is one of several of its exchange.
    is_step: bool,
    head: &'a Head,
    body: &'a [u8],
    frames: Frames,
    /// True if the server defines the frames, so that events can be assigned to them.
    by_frame: bool,
    seen: &'a mut Observations,
}

/// Reads a reply in every way; returns its meanings, unless they depend on the way.
fn read(
    plugin: &Backend,
    dialect: Dialect,
    ((cutting, is_step), head): ((Cutting, bool), &Head),
    body: &[u8],
    seen: &mut Observations,
) -> Option<Reading> {
    let frames = match batches(cutting, is_step, &[body]) {
        Ok(batches) => reply::together(&batches),
        Err(what) => {
            seen.misfit(what);
            return None;
        }
    };
    let mut trial = Trial {
        plugin,
        cutting,
        is_step,
        head,
        body,
        frames,
        by_frame: cutting != Framing::Raw.into(),
        seen,
    };
    let mut one = [dialect];
    let whole = [trial.frames.clone()];
    let whole = if trial.frames.is_empty() { &[][..] } else { &whole };
    let first = trial.decode(&mut one, "in one batch", whole)?;
    let is_sound = trial.is_stable(&mut one, &first, whole) && trial.prefixes(&mut one, &first);
    trial.damaged(&mut one);
    is_sound.then_some(first)
}

/// Cuts a body as a run does: an empty one is a frame as the reply to one of several requests.
fn batches(cutting: Cutting, is_step: bool, reads: &[&[u8]]) -> Result<Vec<Frames>, String> {
    let mut batches = reply::batches(cutting, reads)?;
    if is_step && cutting == Framing::Whole.into() && batches.is_empty() {
        let mut empty = Frames::default();
        empty.push(Nanos::ZERO, None, b"");
        batches.push(empty);
    }
    Ok(batches)
}

impl Trial<'_> {
    fn decode(
        &mut self,
        dialects: &mut [Dialect],
        how: &str,
        batches: &[Frames],
    ) -> Option<Reading> {
        self.seen.checks.decodings += 1;
        let start = (self.head, self.cutting == Framing::Raw.into());
        match reply::decode(dialects, start, batches) {
            Ok(reading) => Some(reading),
            Err(mut misdeed) => {
                let all = reply::together(batches);
                // Decoding frame by frame may show which frame causes it.
                if misdeed.on.len() > 1
                    && let Err(closer) = reply::decode(dialects, start, &reply::singly(&all))
                {
                    misdeed = closer;
                }
                self.misdeed(&format!("decoding the reply {how}"), &all, &misdeed);
                None
            }
        }
    }

    fn misdeed(&mut self, doing: &str, frames: &Frames, misdeed: &Misdeed) {
        let on = &misdeed.on;
        let place = match on.len() {
            1 => format!("frame {}: `{}`", on.start, reply::excerpt(frames, on.start)),
            _ => format!("frames {} to {}", on.start, on.end.saturating_sub(1)),
        };
        self.seen.misbehaved(&format!("{doing}, at {place}"), &misdeed.error);
    }

    /// True if the reply means the same however it is batched, and in whichever instance.
    fn is_stable(&mut self, one: &mut [Dialect], first: &Reading, whole: &[Frames]) -> bool {
        let singly = reply::singly(&self.frames);
        let mut pool = Vec::new();
        for _ in 0..INSTANCES {
            match self.plugin.open() {
                Ok(dialect) => pool.push(dialect),
                Err(error) => {
                    self.seen.misbehaved("opening it once more", &error);
                    return false;
                }
            }
        }
        if !(self.agrees(one, first, "in one batch a second time", whole)
            && self.agrees(one, first, "frame by frame", &singly)
            && self.agrees(&mut pool[..1], first, "in a fresh instance", whole))
        {
            return false;
        }
        let round = "frame by frame, each frame in a different instance than the previous one";
        if !self.agrees(&mut pool, first, round, &singly) {
            return false;
        }
        for seed in 0..ROUNDS {
            let dice = &mut Dice::new(seed);
            let grouped = reply::grouped(&self.frames, dice);
            let reads = reply::reads(self.body, dice);
            let Ok(read) = batches(self.cutting, self.is_step, &reads) else { return false };
            let sizes: Vec<String> = grouped.iter().map(|batch| batch.len().to_string()).collect();
            let batched = format!("in batches of {} frames", sizes.join(", "));
            let cut = "as a network that cuts it at random bytes would deliver it";
            if !(self.agrees(one, first, &batched, &grouped)
                && self.agrees(one, first, cut, &read)
                && self.agrees(
                    &mut pool,
                    first,
                    &format!("{batched}, each batch in a different instance"),
                    &grouped,
                ))
            {
                return false;
            }
        }
        true
    }

    fn agrees(
        &mut self,
        dialects: &mut [Dialect],
        first: &Reading,
        how: &str,
        batches: &[Frames],
    ) -> bool {
        let Some(reading) = self.decode(dialects, how, batches) else { return false };
        let what = || format!("decoding the reply {how} gives different events than in one batch");
        let (first, second) = (first.shown(self.by_frame), reading.shown(self.by_frame));
        self.seen.same(what, &first, &second)
    }

    /// True if a prefix of the reply means the same as within the whole reply.
    fn prefixes(&mut self, one: &mut [Dialect], first: &Reading) -> bool {
        if !self.by_frame {
            return true;
        }
        let singly = reply::singly(&self.frames);
        let step = singly.len().div_ceil(PREFIXES).max(1);
        for end in (1..singly.len()).step_by(step) {
            self.seen.checks.damaged += 1;
            let beginning = [reply::together(&singly[..end])];
            let how = format!("up to frame {}", end - 1);
            let Some(reading) = self.decode(one, &how, &beginning) else { return false };
            let expected = Reading {
                events: first.events.iter().filter(|(frame, _)| *frame < end).cloned().collect(),
                error: first.error.clone().filter(|_| first.frames < end),
                frames: end,
            };
            let what = || {
                format!(
                    "decoding the reply {how} gives different events than the same frames in the whole reply"
                )
            };
            if !self.seen.same(what, &expected.shown(true), &reading.shown(true)) {
                return false;
            }
        }
        true
    }

    /// Passes truncated and damaged replies: the result must be an error or events, and stable.
    fn damaged(&mut self, one: &mut [Dialect]) {
        self.seen.keep_log();
        if self.frames.is_empty() || self.body.is_empty() {
            return;
        }
        let affordable = (DAMAGED_BYTES / self.body.len().max(1)).max(8) as u64;
        let seeds = |count: u64| 0..count.min(affordable);
        let mut damaged = Vec::new();
        for seed in seeds(CUTS) {
            damaged.extend(damage::cut(self.cutting, self.body, &mut Dice::new(seed)));
        }
        for seed in seeds(DAMAGED) {
            let dice = &mut Dice::new(seed);
            damaged.extend(damage::reply(self.cutting, self.body, &self.frames, dice));
        }
        let mut spoilt = 0;
        for (what, frames) in damaged {
            if frames.is_empty() {
                continue;
            }
            self.seen.checks.damaged += 1;
            let how = format!("damaged ({what})");
            let singly = reply::singly(&frames);
            let by_frame = self.decode(one, &how, &singly);
            let same = by_frame.is_some_and(|by_frame| {
                let Some(whole) = self.decode(one, &how, &[frames]) else { return false };
                let what = || {
                    format!("decoding the reply {how} gives different events frame by frame than in one batch")
                };
                let (whole, by_frame) = (whole.shown(self.by_frame), by_frame.shown(self.by_frame));
                self.seen.same(what, &whole, &by_frame)
            });
            if !same {
                spoilt += 1;
                if spoilt == TOLERATED {
                    return;
                }
            }
        }
    }
}
