//! Pages of results in a real browser: the reader's view, pointer, keyboard steps and prints. The
//! pages are made by the built binary, of made-up runs and of real ones of the mock engine.
//!
//! - `drawn`: pages load without a complaint, and everything is drawn and named.
//! - `used`: crosshair, keyboard, series, scales, colours, definitions.
//! - `laid_out`: telephones, paper, dark.

mod drawn;
mod laid_out;
mod used;

use std::path::{Path, PathBuf};

use crate::support::process::{run, runner};

/// The page of these runs, in a file of that folder.
fn page(runs: &[PathBuf], folder: &Path) -> PathBuf {
    let path = folder.join("page.html");
    let mut command = runner();
    command.arg("report").args(runs);
    command.args(["--format", "html", "--output"]).arg(&path);
    assert_eq!(run(&mut command).with_code(0).stdout, "");
    path
}
