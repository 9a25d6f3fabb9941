//! Cuts a reply's body into batches of frames and decodes them as a run does.

use std::ops::Range;

use super::dice::Dice;
use super::{format, messages};
use crate::PluginError;
use crate::backend::{Dialect, Fold, Head, Meaning};
use model::frame::{Framer, Frames, Framing};
use model::units::Nanos;

#[derive(Debug, Default)]
pub struct Reading {
    /// Events with the position of their frame in the reply.
    pub events: Vec<(usize, Meaning)>,
    /// The error that ended it, as in `error.txt`.
    pub error: Option<String>,
    /// The number of frames that were decoded before that.
    pub frames: usize,
}

impl Reading {
    /// The reading as text, for comparison. If frame boundaries are arbitrary, the events before an
    /// error depend on them.
    pub fn shown(&self, by_frame: bool) -> String {
        match &self.error {
            Some(error) if !by_frame => error.clone(),
            error => format::events(&self.events, by_frame) + error.as_deref().unwrap_or_default(),
        }
    }
}

/// A plugin's trap or breach of contract, and the frames that caused it.
#[derive(Debug)]
pub struct Misdeed {
    pub error: PluginError,
    /// Positions of the frames in the batch.
    pub on: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cutting {
    Framed(Framing),
    /// Each line is a message of a WebSocket.
    Messages,
}

impl From<Framing> for Cutting {
    fn from(framing: Framing) -> Self {
        Cutting::Framed(framing)
    }
}

/// The extension of the file with a server's messages over a WebSocket.
pub(super) const MESSAGES: &str = "ws";

/// The contract's name of a framing, and the extensions of its reply files.
pub(super) fn ending_of(framing: Framing) -> (&'static str, &'static [&'static str]) {
    match framing {
        Framing::EventStream => ("event-stream", &["sse"]),
        Framing::Lines => ("lines", &["lines"]),
        Framing::LengthPrefixed(_) => ("length-prefixed", &["bin"]),
        Framing::Grpc => ("grpc", &["grpc"]),
        Framing::Whole => ("whole", &["json", "txt", "bin"]),
        Framing::Raw => ("raw", &["bin"]),
    }
}

/// Cuts a body that arrives in these reads: the frames that each read completes are a batch.
pub fn batches(cutting: impl Into<Cutting>, reads: &[&[u8]]) -> Result<Vec<Frames>, String> {
    let framing = match cutting.into() {
        Cutting::Framed(framing) => framing,
        Cutting::Messages => {
            // The network's cuts do not change messages.
            let frames = messages::frames(&reads.concat())?;
            return Ok((!frames.is_empty()).then_some(frames).into_iter().collect());
        }
    };
    let mut framer = Framer::new(framing);
    let mut batches = Vec::new();
    for read in reads {
        let mut batch = Frames::default();
        framer.push(Nanos::ZERO, read, &mut batch).map_err(|cause| cause.to_string())?;
        batches.push(batch);
    }
    let mut last = Frames::default();
    framer.finish(Nanos::ZERO, &mut last);
    batches.push(last);
    batches.retain(|batch| !batch.is_empty());
    Ok(batches)
}

pub fn reads<'b>(body: &'b [u8], dice: &mut Dice) -> Vec<&'b [u8]> {
    let pieces = 1 + dice.below(body.len().min(24));
    let mut cuts: Vec<usize> = (0..pieces).map(|_| dice.below(body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).filter(|read| !read.is_empty()).collect()
}

pub(crate) fn singly(frames: &Frames) -> Vec<Frames> {
    frames.each().collect()
}

pub fn grouped(frames: &Frames, dice: &mut Dice) -> Vec<Frames> {
    let mut batches: Vec<Frames> = Vec::new();
    let mut room = 0;
    for frame in frames.each() {
        match batches.last_mut() {
            Some(batch) if room > 0 => batch.append(&frame),
            _ => {
                room = 1 + dice.below(7);
                batches.push(frame);
            }
        }
        room -= 1;
    }
    batches
}

pub fn together(batches: &[Frames]) -> Frames {
    let mut all = Frames::default();
    for batch in batches {
        all.append(batch);
    }
    all
}

/// Decodes a reply, whose framing is raw or not, by these instances in turn.
pub fn decode(
    dialects: &mut [Dialect],
    (head, is_raw): (&Head, bool),
    batches: &[Frames],
) -> Result<Reading, Misdeed> {
    let mut reading = Reading::default();
    let mut fold = match dialects[0].begin(head) {
        Ok(state) => Fold::new(state).framed(is_raw),
        Err(error) => match format::error(&error) {
            None => return Err(Misdeed { error, on: 0..0 }),
            Some(message) => {
                reading.error = Some(message);
                return Ok(reading);
            }
        },
    };
    let mut turn = 0;
    for batch in batches {
        if !take(dialects, &mut turn, &mut fold, batch, &mut reading)? {
            return Ok(reading);
        }
    }
    Ok(reading)
}

/// Decodes one batch; returns true if the reply continues.
fn take(
    dialects: &mut [Dialect],
    turn: &mut usize,
    fold: &mut Fold,
    batch: &Frames,
    reading: &mut Reading,
) -> Result<bool, Misdeed> {
    let start = reading.frames;
    let which = *turn % dialects.len();
    *turn += 1;
    match dialects[which].decode(fold, &mut batch.clone()) {
        Ok(events) => {
            let events = events.into_iter();
            reading.events.extend(events.map(|(frame, meaning)| (start + frame, meaning)));
            reading.frames += batch.len();
            Ok(true)
        }
        Err(error) => match format::error(&error) {
            None => Err(Misdeed { error, on: start..start + batch.len() }),
            Some(message) if batch.len() == 1 => {
                reading.error = Some(message);
                Ok(false)
            }
            // Events before the faulty frame are kept.
            Some(_) => {
                for frame in batch.each() {
                    if !take(dialects, turn, fold, &frame, reading)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        },
    }
}

/// The beginning of a frame, for messages.
pub(crate) fn excerpt(frames: &Frames, position: usize) -> String {
    const SHOWN: usize = 120;
    let Some(frame) = frames.iter().nth(position) else { return String::new() };
    let shown = String::from_utf8_lossy(&frame.data[..frame.data.len().min(SHOWN)]);
    let more = if frame.data.len() > SHOWN {
        format!("… ({} bytes)", frame.data.len())
    } else {
        String::new()
    };
    format!("{}{more}", shown.escape_debug())
}
