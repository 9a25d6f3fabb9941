//! Rust types and traits generated from `wit/frozen/0.2.0`.

/// The dataset world, and with it every shared interface.
pub mod dataset_world {
    wasmtime::component::bindgen!({
        path: "../../wit/frozen/0.2.0",
        world: "dataset-plugin",
        imports: { default: trappable },
        with: { "runner:plugin/files.file": crate::sandbox::OpenFile },
    });
}

/// The backend world.
pub mod backend_world {
    wasmtime::component::bindgen!({
        path: "../../wit/frozen/0.2.0",
        world: "backend-plugin",
        imports: { default: trappable },
        with: {
            "runner:plugin/types": super::dataset_world::runner::plugin::types,
            "runner:plugin/log": super::dataset_world::runner::plugin::log,
        },
    });
}

/// The scorer world.
pub mod scorer_world {
    wasmtime::component::bindgen!({
        path: "../../wit/frozen/0.2.0",
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
