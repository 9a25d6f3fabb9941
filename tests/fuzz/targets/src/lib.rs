//! Targets of the fuzzer: functions for readers of foreign bytes, which panic at broken promises.
//!
//! A function takes any bytes. Some of the first ones choose the meaning of the rest (a framing, a
//! backend, where a reply is cut), so that one corpus serves all of it. `cargo xtask fuzz` feeds
//! them with inputs made up by libFuzzer; the test `replay` feeds them with the committed inputs,
//! as part of the gate.
//!
//! This crate owns the checked promises. The fuzzer is in the package in the folder above.
#![forbid(unsafe_code)]

mod audits;
mod backend;
mod bytes;
mod component;
mod fleet;
mod framer;
mod http1;
mod outline;
mod pages;
mod records;
mod scenarios;
mod scripts;
mod sharegpt;
mod sounds;
mod tokenizers;
mod trace_files;
mod traces;
mod verified;
mod words;

pub use audits::audit;
pub use backend::decode;
pub use component::component;
pub use fleet::fleet;
pub use framer::framer;
pub use http1::http1;
pub use outline::outline;
pub use pages::metrics;
pub use records::records;
pub use scenarios::scenario;
pub use scripts::{mock_request, mock_script};
pub use sharegpt::sharegpt;
pub use sounds::sound;
pub use tokenizers::tokenizer;
pub use trace_files::trace_file;
pub use traces::trace;
pub use verified::{verify_case, verify_profile};
pub use words::words;

/// A target: it takes any bytes, and panics where a promise is broken.
pub type Target = fn(&[u8]);

/// Every target, by the name of its binary, its corpus and its cases.
pub const TARGETS: [(&str, Target); 20] = [
    ("audit", audit),
    ("component", component),
    ("decode", decode),
    ("fleet", fleet),
    ("framer", framer),
    ("http1", http1),
    ("metrics", metrics),
    ("mock_request", mock_request),
    ("mock_script", mock_script),
    ("outline", outline),
    ("records", records),
    ("scenario", scenario),
    ("sharegpt", sharegpt),
    ("sound", sound),
    ("tokenizer", tokenizer),
    ("trace", trace),
    ("trace_file", trace_file),
    ("verify_case", verify_case),
    ("verify_profile", verify_profile),
    ("words", words),
];
