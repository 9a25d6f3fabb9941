//! Many load machines that make one run.
//!
//! This crate owns how the processes of a fleet find each other, prove that they belong together, agree on one start
//! instant, and bring their records to one place. It leaves what a run is to others: scenarios, figures and endings pass
//! through as JSON. Nothing of it is in the path of a request.
//!
//! Pure: the place of a process ([`place`]), what is said ([`wire`]), clocks ([`clock`]), who decides what
//! ([`rendezvous`]), and what starts the processes ([`manifest`]). With keys, disks and sockets: the run's secret
//! ([`token`], [`identity`]), files by digest ([`files`]), records ([`records`]), and the connections that carry all of
//! it ([`link`]), which is where to begin: [`link::Coordinator`] and [`link::Agent`].
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests write files and read clocks"
    )
)]
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
