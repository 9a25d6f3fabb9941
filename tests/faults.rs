//! The fault matrix, on real processes and sockets: faults outside the runner, in tables by area.
//! After every fault the same is checked (`check`): classes, counts against the engine's own log,
//! files on disk, the exit code, and that nothing else changed. Plugins are not here:
//! `hostile_guests` has a guest for each of their faults.

pub mod check;
mod clock;
mod cuts;
mod disk;
mod engine;
mod hostile;
mod kills;
mod limits;
mod network;
mod signals;
mod wire;
