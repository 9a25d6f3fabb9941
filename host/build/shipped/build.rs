//! Embeds the files that ship inside the runner: the scenarios of the repository, the components
//! that `cargo xtask plugins` has built, and the files for `runner plugin new`. Builds nothing
//! itself, so checking and linting stay quick. Without built components the runner has no plugins,
//! and reports that on use. Components and all texts but scenarios are compressed, most tightly for
//! a release.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
#[path = "script/kit.rs"]
mod kit;

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = (manifest.ancestors().nth(3)).expect("the workspace holds this package");
    let packed = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let level = match env::var("PROFILE").as_deref() {
        Ok("release") => 19,
        _ => 1,
    };
    // Statics, not constants: the bytes of a constant are in the program once for each use.
    let tables =
        [components(root, &packed, level)?, scenarios(root)?, texts(root, &packed, level)?];
    fs::write(packed.join("shipped.rs"), tables.concat())?;
    Ok(())
}

/// Compresses the components against their largest ones' text; their table, in Rust.
fn components(root: &Path, packed: &Path, level: i32) -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=RUNNER_COMPONENTS");
    let components = env::var_os("RUNNER_COMPONENTS")
        .map_or_else(|| root.join("target/components"), PathBuf::from);
    let mut table = String::from(
        "/// The components that ship, by name, with the functions that unpack them.\n\
         pub static PLUGINS: &[Plugin] = &[\n",
    );
    let mut shared = Vec::new();
    let mut each = Vec::new();
    for kind in ["backends", "datasets", "scorers"] {
        fs::create_dir_all(packed.join(kind))?;
        let mut largest = Vec::new();
        for (name, path) in files(&components.join(kind), kind, Some("wasm"))? {
            let component = fs::read(path)?;
            if component.len() > largest.len() {
                largest.clone_from(&component);
            }
            each.push((name, component));
        }
        shared.extend(largest);
    }
    // Such as `cargo install --path host/runner`. In development, missing plugins are no mistake.
    if each.is_empty() && env::var("PROFILE").as_deref() == Ok("release") {
        println!(
            "cargo::warning=the program has no plugins inside; \
             `cargo xtask install` builds and installs one that has them"
        );
    }
    let mut compressor = zstd::bulk::Compressor::with_dictionary(level, &shared)?;
    for (name, component) in each {
        let to = packed.join(&name).with_extension("wasm.zst");
        fs::write(&to, compressor.compress(&component)?)?;
        let size = component.len();
        writeln!(table, "    ({name:?}, || unpacked(include_bytes!({to:?}), {size})),")?;
    }
    let to = packed.join("shared.zst");
    fs::write(&to, zstd::encode_all(&shared[..], level)?)?;
    writeln!(
        table,
        "];\nstatic SHARED: (&[u8], usize) = (include_bytes!({to:?}), {});",
        shared.len()
    )?;
    Ok(table)
}

/// The tables of scenarios and labs, in Rust: uncompressed, as nearly every command reads one.
fn scenarios(root: &Path) -> Result<String, Box<dyn Error>> {
    let all = files(&root.join("scenarios"), "scenarios", Some("toml"))?;
    // Cases and clients to verify are texts.
    let (labs, scenarios): (Vec<_>, Vec<_>) = (all.into_iter())
        .filter(|(name, _): &(String, PathBuf)| !name.starts_with("scenarios/conformance/"))
        .partition(|(name, _): &(String, PathBuf)| name.starts_with("scenarios/labs/"));
    let mut tables = String::new();
    for (name, files) in [("SCENARIOS", scenarios), ("LABS", labs)] {
        writeln!(tables, "static {name}: &[(&str, &str)] = &[")?;
        for (name, path) in files {
            writeln!(tables, "    ({name:?}, include_str!({path:?})),")?;
        }
        tables.push_str("];\n");
    }
    Ok(tables)
}

/// Compresses the texts as one; the table of them, in Rust.
fn texts(root: &Path, packed: &Path, level: i32) -> Result<String, Box<dyn Error>> {
    let mut texts = kit::texts(root)?;
    for (place, folder, extension) in [
        ("guide", "host/guide/src", "md"),
        ("plugins/guide", "plugins/guide", "md"),
        ("plugins/guide/exercise", "plugins/guide/exercise", "toml"),
        ("schemas", "host/show/report/schemas", "json"),
        ("schemas", "host/study/lab/schemas", "json"),
        ("schemas", "host/analysis/verify/schemas", "json"),
        ("conformance", "scenarios/conformance", "toml"),
        ("conformance/tokenizer", "scenarios/conformance/tokenizer", "json"),
    ] {
        for (name, path) in files(&root.join(folder), place, Some(extension))? {
            // The tables of measured statistics are on the site alone.
            if !name.ends_with("statistics.md") {
                texts.push((name, fs::read_to_string(path)?));
            }
        }
    }
    let mut table = String::from(
        "/// The texts, one after the other: each one's name and length in bytes.\n\
         static TEXTS: &[(&str, usize)] = &[\n",
    );
    let mut whole = String::new();
    for (name, text) in texts {
        writeln!(table, "    ({name:?}, {}),", text.len())?;
        whole.push_str(&text);
    }
    let to = packed.join("texts.zst");
    fs::write(&to, zstd::encode_all(whole.as_bytes(), level)?)?;
    writeln!(table, "];\nstatic PACKED_TEXTS: &[u8] = include_bytes!({to:?});")?;
    Ok(table)
}

/// The files below `folder`, all or with that extension, each with its name below `prefix`.
fn files(
    folder: &Path,
    prefix: &str,
    extension: Option<&str>,
) -> io::Result<Vec<(String, PathBuf)>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = match prefix {
            "" => name.into_owned(),
            prefix => format!("{prefix}/{name}"),
        };
        if path.is_dir() {
            found.extend(files(&path, &name, extension)?);
        } else if extension.is_none_or(|wanted| path.extension().is_some_and(|own| own == wanted)) {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}
