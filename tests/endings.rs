//! However a run ends, what was measured is on disk: real processes, interrupted, killed, starved.
