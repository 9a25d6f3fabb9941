//! The built binary as its users meet it: help, wrong input, exit codes, reports.
//!
//! Transcripts are in `command_line/snapshots`; `INSTA_UPDATE=always` writes them again; read them
//! as a user would before you keep them.

mod accuracy;
mod after;
mod audit;
mod authentication;
mod authors;
mod ci;
mod comparisons;
mod completions;
mod cookies;
mod damaged;
mod explain;
mod exports;
mod familiar;
mod fetch;
mod help;
mod hostile;
mod judge;
mod judged;
mod lease;
mod manual;
mod numbers;
mod plan;
mod plugins;
mod probe;
mod reports;
mod scenarios;
mod scores;
mod secrets;
mod store;
mod strangers;
mod trend;
mod versus;
mod wrong_input;

#[track_caller]
pub fn transcript(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/command_line/snapshots"
    ));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
