//! The flags that say in which kinds of settings two sides may differ.

use compare::Kind;

use crate::cli::words::{one_of, some_of};

/// Kinds of settings in which the sides of a comparison may differ, or must agree.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Comparability")]
pub(in crate::cli) struct Differences {
    /// Compare even though this differs
    #[arg(
        long,
        value_name = "KIND",
        env = "RUNNER_ALLOW",
        value_delimiter = ',',
        value_parser = one_of::<Kind>()
    )]
    pub(in crate::cli) allow: Vec<Kind>,
    /// Refuse to compare where this differs, which people compare on purpose elsewhere
    #[arg(
        long,
        value_name = "KIND",
        env = "RUNNER_MUST_AGREE",
        value_delimiter = ',',
        value_parser = some_of(&Kind::ON_PURPOSE)
    )]
    pub(in crate::cli) must_agree: Vec<Kind>,
}
