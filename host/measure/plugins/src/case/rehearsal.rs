//! The calls of a case, to be repeated: for the time that a backend takes for a request and an
//! event.

use super::given::{Ask, Input, Reply};
use super::reply::{self, Cutting};
use super::{Case, Suite, backend};
use crate::PluginError;
use crate::backend::{Backend, Dialect, Fold};
use crate::sandbox::LogBook;
use model::frame::{Frames, Framing};

/// An open backend with a case's sample and the frames of its reply.
pub struct Rehearsal<'c> {
    dialect: Dialect,
    ask: &'c Ask,
    is_raw: bool,
    frames: Vec<Frames>,
}

impl Suite {
    /// The calls of a case; absent unless it has one request, whose reply has a success status.
    pub fn rehearse<'c>(&self, case: &'c Case) -> Result<Option<Rehearsal<'c>>, PluginError> {
        let Input::Ask(ask) = &case.given else { return Ok(None) };
        let success = ask.reply.as_ref().filter(|reply| reply.is_success());
        let Some(Reply { ending, body, .. }) = success else { return Ok(None) };
        let plugin: Backend = self.configured(case, None, &LogBook::default())?;
        let mut dialect = plugin.open()?;
        let is_socket = *ending == reply::MESSAGES;
        let cutting = backend::cutting(&mut dialect, ask, is_socket)?;
        // A case of a faulty reply ends in an error, whose time says nothing.
        let Ok(batches) = reply::batches(cutting, &[body]) else { return Ok(None) };
        let frames = reply::singly(&reply::together(&batches));
        let is_raw = cutting == Cutting::from(Framing::Raw);
        let mut rehearsal = Rehearsal { dialect, ask, is_raw, frames };
        let succeeds = rehearsal.encode().and_then(|()| rehearsal.decode()).is_ok();
        Ok(succeeds.then_some(rehearsal))
    }
}

impl Rehearsal<'_> {
    pub fn encode(&mut self) -> Result<(), PluginError> {
        let Ask { sample, settings, earlier, .. } = self.ask;
        self.dialect.encode(sample, settings, earlier.as_ref()).map(drop)
    }

    /// Decodes the reply, one frame in a call, as frames come that a server sends one by one.
    pub fn decode(&mut self) -> Result<(), PluginError> {
        let state = self.dialect.begin(&self.ask.head)?;
        let mut fold = Fold::new(state).framed(self.is_raw);
        for frame in &self.frames {
            self.dialect.decode(&mut fold, &mut frame.clone())?;
        }
        Ok(())
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    pub fn bytes(&self) -> usize {
        self.frames.iter().flat_map(Frames::iter).map(|frame| frame.data.len()).sum()
    }
}
