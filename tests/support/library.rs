//! Shared libraries that stand in for a system's, compiled by this program's compiler.

use std::path::PathBuf;
use std::process::Command;

/// Compiles this source to a library of this name, in a folder of its own.
pub fn compile(source: &str, name: &str) -> PathBuf {
    let folder = tempfile::Builder::new()
        .prefix("library-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .unwrap()
        .keep();
    let file = folder.join("source.rs");
    std::fs::write(&file, source).unwrap();
    let library = folder.join(name);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib"])
        .args(["--crate-name", "stand_in", "-C", "panic=abort"])
        .args(["-A", "warnings"])
        .arg("-o")
        .args([&library, &file])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    library
}
