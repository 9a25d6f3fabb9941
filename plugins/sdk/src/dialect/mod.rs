//! Code that backends of several engines share, so that they stay short: the OpenAI API, the reply
//! of the native `/generate` routes, the shapes of error bodies, and metrics in the Prometheus text
//! format. For other APIs it has conversations and tools, and calls of gRPC.

pub mod conversation;
pub mod explain;
pub mod frames;
pub mod generate;
pub mod grpc;
pub mod openai;
pub mod prometheus;
pub mod tools;
