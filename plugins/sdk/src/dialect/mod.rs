//! What several engines have in common, so that their backends stay short: the OpenAI API, the reply of the
//! native `/generate` routes, the shapes of error bodies, and metrics in the Prometheus text format.

pub mod explain;
pub mod generate;
pub mod openai;
pub mod prometheus;
