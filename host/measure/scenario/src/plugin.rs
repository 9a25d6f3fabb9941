//! `[backend]`, `[dataset]`, `[[scorers]]` and `[sandbox]`: plugins and their limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::Fate::{May, Must, Silent};
use crate::Kind;
use crate::field::Maybe;
use crate::key::plan;
use crate::table::table;
use model::duration::Span;
use model::plugin::Limits;
use reader::{ConfigTable, Located, Size};

table! {
    /// `[backend]`: a plugin and its configuration.
    pub struct Backend {
        /// The component, such as backends/openai.wasm.
        plugin: Maybe<String> => plan("backend", May).otherwise("the flags name one");
        /// Its configuration, in its own terms; `runner plugin info` prints the possible keys.
        config: ConfigTable => plan("backend.config", May);
    }
}

table! {
    /// `[dataset]`: a plugin, its configuration and the files it may read.
    pub struct Dataset {
        /// The component, such as datasets/random.wasm.
        plugin: Maybe<String> => plan("dataset", Must(Kind::Prompts)).otherwise("the flags name one");
        /// Its configuration, in its own terms; `runner plugin info` prints the possible keys.
        config: ConfigTable => plan("dataset.config", Must(Kind::Prompts));
        /// The files it may read, by the names that the plugin uses for them.
        files: BTreeMap<String, Located<PathBuf>> => plan("dataset.files", Must(Kind::Prompts));
    }
}

table! {
    /// One of `[[scorers]]`: a plugin and its configuration.
    pub struct Scorer {
        /// The component, such as scorers/exact-match.wasm.
        plugin: Maybe<String> => plan("scorers", Silent);
        /// Its configuration, in its own terms; `runner plugin info` prints the possible keys.
        config: ConfigTable => plan("scorers", Silent);
    }
}

/// The limits that hold where a scenario sets none.
fn usual() -> Limits {
    Limits::default()
}

fn milliseconds(limit: u64) -> Span {
    Span(Duration::from_millis(limit))
}

table! {
    /// `[sandbox]`: the resource limits of plugins.
    pub struct Sandbox {
        /// Size of a component's file.
        component: Maybe<Size> = Size(usual().component_bytes) => plan("sandbox.component-bytes", Silent);
        /// Number of functions of a component.
        functions: Maybe<u64> = usual().functions => plan("sandbox.functions", Silent);
        /// Number of elements of all tables of one instance.
        table: Maybe<u64> = usual().table_elements => plan("sandbox.table-elements", Silent);
        /// Depth to which modules and components may be nested.
        nesting: Maybe<u64> = usual().nesting => plan("sandbox.nesting", Silent);
        /// Time to compile a component.
        compile: Maybe<Span> = milliseconds(usual().compile_ms) => plan("sandbox.compile-ms", Silent);
        /// Memory of one instance.
        memory: Maybe<Size> = Size(usual().memory_bytes) => plan("sandbox.memory-bytes", Silent);
        /// Time of one call of a backend.
        backend_call: Maybe<Span> = milliseconds(usual().backend_call_ms)
            => plan("sandbox.backend-call-ms", Silent);
        /// Time of one call of a dataset.
        dataset_call: Maybe<Span> = milliseconds(usual().dataset_call_ms)
            => plan("sandbox.dataset-call-ms", Silent);
        /// Time of one call of a scorer.
        scorer_call: Maybe<Span> = milliseconds(usual().scorer_call_ms)
            => plan("sandbox.scorer-call-ms", Silent);
        /// The maximum size of the value that one call returns.
        returned: Maybe<Size> = Size(usual().returned_bytes) => plan("sandbox.returned-bytes", Silent);
    }
}
