//! Devices over a run: power, energy, clocks, temperature, throttling, memory and utilisation,
//! sampled; and the energy of the host's processors.
//!
//! This crate owns the sources of these figures (NVML, DCGM's exporter, RAPL), the times of
//! sampling, and the figures over an interval. It leaves to others the fetching of an exporter's
//! page, the interval of a run, and the meaning of the figures for the run.
//!
//! 1. A [`Source`] of devices is [`nvml::Nvml`] or [`dcgm::Exporter`]; the host's is
//!    [`rapl::Rapl`].
//! 2. A [`Watch`] reads them at an interval on a thread of its own, and gives a [`Recording`],
//!    entry by entry while it goes on and as a whole at its end.
//! 3. [`Recording::over`] makes figures of an interval, and [`Devices::for_tokens`] figures for a
//!    million tokens.
//!
//! A figure that is not measured is absent. It is never zero.
//!
//! Energy is the difference of a counter between two changes, because an exporter repeats values
//! for half a minute; without a counter it is the area below the power. A figure needs samples over
//! nine tenths of its interval. The host's energy is never added to the devices': it lacks fans,
//! disks and power supplies, and often cannot be read. `nvml/library.rs` has all the unsafe code;
//! its tests compile a stand-in with NVML's symbols, because most machines have no driver.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![deny(unsafe_code)]

pub mod dcgm;
mod entry;
mod fold;
pub mod nvml;
pub mod rapl;
mod reading;
mod watch;

pub use entry::{Entry, Failed, Head, Recording, Sample};
pub use fold::{Devices, EnergyFrom, Figures, HostEnergy, SteadyEnergy, Throttled};
pub use reading::{Choice, Device, Facts, Reading, Reason, Source, held};
pub use watch::{Monitor, Watch};
