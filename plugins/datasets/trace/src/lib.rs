//! The plugin of recorded traces, which `trace-file` reads and replays.
#![deny(unsafe_code)]

runner_plugin::export_dataset!(trace_file::Trace);
