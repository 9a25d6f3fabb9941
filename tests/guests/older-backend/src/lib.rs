//! A backend built for exactly runner:plugin 0.2.0, without the SDK: it reads bytes as they come, and keeps them in its
//! state until a blank line, as the contract had it before bytes could be left unread.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code)]

wit_bindgen::generate!({
    path: "../../../wit/frozen/0.2.0",
    world: "backend-plugin",
    generate_all,
});

use exports::runner::plugin::about;
use exports::runner::plugin::backend::{
    Codec, Control, Decoded, Event, Frames, Framing, Guest, GuestCodec, Meaning, Output, Reading,
    Reason, Refusal, Request,
};
use runner::plugin::types::{Error, Sample, Settings};

struct Older;

impl about::Guest for Older {
    fn describe() -> about::Info {
        about::Info {
            name: "older".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: env!("CARGO_PKG_DESCRIPTION").to_owned(),
            config_schema: r#"{"type": "object", "additionalProperties": false}"#.to_owned(),
        }
    }
}

impl Guest for Older {
    type Codec = Older;
}

impl GuestCodec for Older {
    fn open(_config: String) -> Result<Codec, Error> {
        Ok(Codec::new(Older))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn control(&self, _what: Control) -> Option<Request> {
        None
    }

    fn read_models(&self, _body: Vec<u8>) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn read_metrics(&self, _body: Vec<u8>) -> Result<Vec<Reading>, Error> {
        Ok(Vec::new())
    }

    fn encode(&self, sample: Sample, _settings: Settings) -> Result<Request, Error> {
        Ok(Request {
            method: "POST".to_owned(),
            path: "/raw".to_owned(),
            headers: Vec::new(),
            body: sample.id.into_bytes(),
        })
    }

    fn framing(&self, _streaming: bool) -> Framing {
        Framing::Raw
    }

    fn decode(&self, mut state: Vec<u8>, frames: Frames) -> Result<Decoded, Error> {
        state.extend_from_slice(&frames.bytes);
        let mut events = Vec::new();
        if state.ends_with(b"\n\n") {
            let frame = frames.ends.len() as u32 - 1;
            let said = Output {
                text: state.len().to_string(),
                tokens: None,
            };
            events.extend([Meaning::Text(said), Meaning::End].map(|what| Event { frame, what }));
            state.clear();
        }
        Ok(Decoded { events, state })
    }

    fn explain(&self, status: u16, _body: Vec<u8>) -> Refusal {
        Refusal {
            reason: Reason::Other,
            message: format!("status {status}"),
        }
    }
}

export!(Older);
