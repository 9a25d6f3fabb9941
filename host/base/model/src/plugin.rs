//! The kinds of plugins, and the limits on the resources that they may use.

crate::words! {
    /// The work that a plugin does.
    pub enum Kind {
        /// Generates samples.
        Dataset = "dataset",
        /// Writes requests and reads replies.
        Backend = "backend",
        /// Scores answers.
        Scorer = "scorer",
    }
}

impl Kind {
    /// The folder such plugins ship in.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Dataset => "datasets",
            Kind::Backend => "backends",
            Kind::Scorer => "scorers",
        }
    }
}

/// The resources that a plugin may use, at most.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Size of the component's file, in bytes.
    pub component_bytes: u64,
    /// Functions in the component, in all its modules together.
    pub functions: u64,
    /// Elements of all tables of one instance together.
    pub table_elements: u64,
    /// Maximum nesting depth of modules and components.
    pub nesting: u64,
    /// Time to compile the component, in milliseconds.
    pub compile_ms: u64,
    /// Linear memory of one instance, in all its memories together, in bytes.
    pub memory_bytes: u64,
    /// Data that may cross the boundary in one call, in bytes.
    pub returned_bytes: u64,
    /// Time of one call to a backend, in milliseconds.
    pub backend_call_ms: u64,
    /// Time of one call to a dataset, in milliseconds.
    pub dataset_call_ms: u64,
    /// Time of one call to a scorer, in milliseconds.
    pub scorer_call_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            component_bytes: 64 << 20,
            functions: 200_000,
            table_elements: 100_000,
            nesting: 8,
            compile_ms: 120_000,
            memory_bytes: 256 << 20,
            returned_bytes: 64 << 20,
            backend_call_ms: 1_000,
            dataset_call_ms: 120_000,
            scorer_call_ms: 10_000,
        }
    }
}
