//! Replies by the route that a backend configures.

use serde::{Deserialize, Serialize};

use super::{Reply, Route, decode, responses, speech, transcriptions};
use crate::{Error, Frame, Meaning};

/// State of decoding a reply, of the route in use. It crosses to the host and back with each call,
/// so it is no larger than it has to be.
#[derive(Debug, Serialize, Deserialize)]
pub enum RouteReply {
    /// Of completions, chat, vectors and orders.
    OpenAi(Reply),
    /// Of the newer API.
    Responses(responses::Reply),
    /// Of speech to text.
    Transcriptions(transcriptions::Reply),
    /// Of text to speech.
    Speech(speech::Reply),
}

impl Default for RouteReply {
    fn default() -> Self {
        Self::OpenAi(Reply::default())
    }
}

impl RouteReply {
    /// The state before the first frame.
    pub fn begin(route: Route, streaming: bool) -> Self {
        match route {
            Route::Responses => Self::Responses(responses::Reply::default()),
            Route::Transcriptions => Self::Transcriptions(transcriptions::Reply::begin(streaming)),
            Route::Speech => Self::Speech(speech::Reply::begin(streaming)),
            Route::Completions | Route::Chat => Self::default(),
        }
    }

    /// Appends the events of a frame. `store` belongs to responses, `format` to transcriptions and
    /// `options` to speech.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the frame is not of the route's API.
    pub fn decode(
        &mut self,
        store: bool,
        format: transcriptions::Format,
        options: &speech::Options,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        match self {
            Self::OpenAi(state) => decode(state, frame, events),
            Self::Responses(state) => responses::decode(state, store, frame, events),
            Self::Transcriptions(state) => transcriptions::decode(state, format, frame, events),
            Self::Speech(state) => speech::decode(state, options, frame, events),
        }
    }
}
