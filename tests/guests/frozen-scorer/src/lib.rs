//! A scorer built for exactly runner:plugin 0.1.0: the share of requested tokens that came, and of the
//! run how many answers there were. See `frozen-backend` for what it is for.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code)]

use std::cell::Cell;

use serde_json::json;

wit_bindgen::generate!({
    path: "../../../wit/frozen/0.1.0",
    world: "scorer-plugin",
    generate_all,
});

use exports::runner::plugin::about;
use exports::runner::plugin::scorer::{Exchange, Guest, GuestJudge, Judge, Score};
use runner::plugin::types::Error;

struct Frozen;

impl about::Guest for Frozen {
    fn describe() -> about::Info {
        about::Info {
            name: "frozen".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: env!("CARGO_PKG_DESCRIPTION").to_owned(),
            config_schema: json!({"type": "object", "additionalProperties": false}).to_string(),
        }
    }
}

#[derive(Default)]
struct Shares {
    judged: Cell<u32>,
}

impl Guest for Frozen {
    type Judge = Shares;
}

impl GuestJudge for Shares {
    fn open(_config: String) -> Result<Judge, Error> {
        Ok(Judge::new(Shares::default()))
    }

    fn score(&self, exchange: Exchange) -> Result<Vec<Score>, Error> {
        self.judged.set(self.judged.get() + 1);
        let (Some(count), Some(requested)) = (exchange.output_tokens, exchange.requested_tokens)
        else {
            return Ok(Vec::new());
        };
        Ok(vec![Score {
            name: "share".to_owned(),
            value: f64::from(count.tokens) / f64::from(requested),
        }])
    }

    fn finish(&self) -> Result<Vec<Score>, Error> {
        Ok(vec![Score {
            name: "judged".to_owned(),
            value: self.judged.get().into(),
        }])
    }
}

export!(Frozen);
