//! The bindings that `wit-bindgen` generates from `wit/`. The `types` interface and the host's
//! interfaces are generated once and shared. Each exported interface has its own module, so that
//! the generated export macros do not collide. Plugins should not use this module directly: the
//! crate's root re-exports the types, and the export macros do the rest.
#![allow(missing_docs, unsafe_code, clippy::all)]

/// The interfaces that the host offers, and the shared types.
pub mod host {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package runner:sdk;
            world host {
                import runner:plugin/types@1.0.0;
                import runner:plugin/log@1.0.0;
                import runner:plugin/files@1.0.0;
                import runner:plugin/tokenizer@1.0.0;
            }
        ",
        generate_all,
        additional_derives: [PartialEq],
    });
    pub use runner::plugin::*;
}

/// The plugin's description.
pub mod about {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package runner:sdk;
            world about { export runner:plugin/about@1.0.0; }
        ",
        with: { "runner:plugin/types@1.0.0": crate::bindings::host::types },
        generate_all,
        pub_export_macro: true,
    });
    pub use exports::runner::plugin::about::*;
}

/// The interface of a backend.
pub mod backend {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package runner:sdk;
            world backend { export runner:plugin/backend@1.0.0; }
        ",
        with: { "runner:plugin/types@1.0.0": crate::bindings::host::types },
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
    pub use exports::runner::plugin::backend::*;
}

/// The interface of a dataset.
pub mod dataset {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package runner:sdk;
            world dataset { export runner:plugin/dataset@1.0.0; }
        ",
        with: { "runner:plugin/types@1.0.0": crate::bindings::host::types },
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
    pub use exports::runner::plugin::dataset::*;
}

/// The interface of a scorer.
pub mod scorer {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package runner:sdk;
            world scorer { export runner:plugin/scorer@1.0.0; }
        ",
        with: { "runner:plugin/types@1.0.0": crate::bindings::host::types },
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
    });
    pub use exports::runner::plugin::scorer::*;
}
