//! Many load machines that make one run.
//!
//! This crate owns how the processes of a fleet find each other, prove that they belong together, agree on one start
//! instant, and bring their records to one place: the place of a process ([`place`]), the run's secret ([`token`],
//! [`identity`]), messages ([`wire`]), clocks ([`clock`]), and the manifests that start the processes. It leaves what
//! a run is to others: scenarios, figures and endings pass through as JSON. Nothing of it is in the path of a request.
#![forbid(unsafe_code)]

pub mod clock;
pub mod files;
pub mod identity;
pub mod link;
pub mod manifest;
pub mod place;
pub mod records;
pub mod rendezvous;
pub mod token;
pub mod wire;
