//! What several engines have in common, so that their backends stay short: the OpenAI API, the reply of the
//! native `/generate` routes, and the shapes of error bodies.

pub mod explain;
pub mod generate;
pub mod openai;
