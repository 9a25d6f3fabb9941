//! The built binary as its users meet it: help, wrong input, exit codes, reports.
