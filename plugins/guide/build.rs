//! Takes the Rust code out of the guide's pages, file by file.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "blocks.rs"]
mod blocks;

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=blocks.rs");
    for page in ["backend", "dataset", "scorer"] {
        let path = format!("{page}.md");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(Path::new(&path))?;
        let blocks = blocks::blocks(&text);
        let code = blocks.iter().find(|block| {
            let path = block.path().unwrap_or_default();
            block.language() == "rust" && path.ends_with("src/lib.rs")
        });
        let code = code.unwrap_or_else(|| panic!("{path} has no Rust file"));
        // An inner doc comment cannot stand in the middle of a file.
        let code = code.text.replace("//!", "//");
        fs::write(out.join(format!("{page}.rs")), code)?;
    }
    Ok(())
}
