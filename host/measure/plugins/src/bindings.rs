//! Rust types and traits generated from `wit/`. All worlds share the types of the dataset world,
//! which imports everything that a plugin can import.

/// The dataset world, and with it every shared interface.
pub mod dataset_world {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "dataset-plugin",
        imports: { default: trappable },
        with: { "runner:plugin/files.file": crate::file::OpenFile },
    });
}

pub mod backend_world {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "backend-plugin",
        imports: { default: trappable },
        with: {
            "runner:plugin/types": super::dataset_world::runner::plugin::types,
            "runner:plugin/log": super::dataset_world::runner::plugin::log,
        },
    });
}

pub mod scorer_world {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "scorer-plugin",
        imports: { default: trappable },
        with: {
            "runner:plugin/types": super::dataset_world::runner::plugin::types,
            "runner:plugin/log": super::dataset_world::runner::plugin::log,
            "runner:plugin/tokenizer": super::dataset_world::runner::plugin::tokenizer,
        },
    });
}

pub use dataset_world::runner::plugin::{files, log, tokenizer, types};
