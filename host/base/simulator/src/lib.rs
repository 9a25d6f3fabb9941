//! A continuous-batching engine in virtual time, from a seed.
//!
//! Many runs with a known truth can be drawn from it. They show the coverage of intervals, the rate
//! of false findings and the accuracy of comparisons. The mock engine plays the same model over
//! real sockets.
//!
//! This crate owns the engine's model, the loads it is put under, and the exchanges that a client
//! would record of them. It leaves every figure of these exchanges to `result`, and sockets and
//! clocks to `mock`.

#![forbid(unsafe_code)]

mod case;
mod engine;
mod exchanges;
mod load;
pub mod parameters;
mod random;
mod workload;

pub use case::{Case, Draw, Effects, Load, label};
pub use engine::{Engine, Work};
pub use exchanges::{delay, exchanges};
pub use load::{
    ServedRequest, all_at_once, capacity, closed, gamma, open, open_ends, open_slowing, poisson,
};
pub use parameters::Parameters;
pub use random::Random;
pub use workload::{
    BIMODAL, CHAT, FIXED, Lengths, REASONING, SHAREGPT, TEMPLATES, THOUSAND, Workload,
};
