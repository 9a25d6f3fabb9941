//! C: generates the contract's bindings; clang compiles them together with the project's files.

use std::env;
use std::path::{Path, PathBuf};

use wit_bindgen_core::Files;
use wit_parser::{Resolve, WorldId, WorldItem};

use super::AuthorError;
use super::project::Project;
use super::tool::{self, Shell, ShowOutput};
use model::plugin::Kind;

/// The versions of clang to look for by name, after plain `clang`.
const VERSIONS: std::ops::RangeInclusive<u32> = 14..=24;

/// A program that links only if target, headers, library and built-ins are all installed.
const PROBE: &str =
    "#include <stdlib.h>\nvoid *probe(void);\nvoid *probe(void) { return malloc(1); }\n";

const MISSING: &str = "no installed clang can compile for WebAssembly. On Debian and Ubuntu: `apt-get install clang-19 \
    lld-19 wasi-libc libclang-rt-19-dev-wasm32` (or another version of these); elsewhere unpack the WASI SDK and \
    set WASI_SDK_PATH to its folder, or set CLANG to a clang";

const TARGET: [&str; 2] = ["--target=wasm32-wasi", "-mexec-model=reactor"];

pub fn compile(
    project: &Project,
    kind: Kind,
    entry: &str,
    shell: Shell<'_>,
) -> Result<PathBuf, AuthorError> {
    let work = bindings(project, kind)?;
    let clang = find(&work)?;
    let sources = sources(&project.folder, entry)?;
    let module = work.join(format!("{}.core.wasm", project.name));
    let mut command = tool::command(&clang, &project.folder);
    command
        .args(TARGET)
        .args("-std=c17 -O2 -Wall -Wextra -Wno-unused-parameter -I.".split(' '))
        .arg(format!("-I{}", work.display()))
        // With the stack first, an overflow traps instead of writing over data.
        .args("-Wl,--strip-debug -Wl,--stack-first -Wl,-z,stack-size=262144".split(' '))
        .arg("-o")
        .arg(&module)
        .args(sources)
        .args([work.join("plugin.c"), work.join("plugin_component_type.o")]);
    tool::call(shell, "clang", &mut command, ShowOutput::Always)?;
    Ok(module)
}

/// Writes `plugin.h`, `plugin.c` and the object with the world's types; returns their folder.
/// Editors read the header, which the project's code includes.
pub fn bindings(project: &Project, kind: Kind) -> Result<PathBuf, AuthorError> {
    let work = tool::absolute(project.work())?;
    tool::make_folder(&work)?;
    let wit = tool::contract(project)?;
    let files =
        generate(&wit, kind).map_err(|mistake| AuthorError::Bindings { folder: wit, mistake })?;
    for (name, content) in files.iter() {
        tool::write(&work.join(name), content)?;
    }
    Ok(work)
}

/// The contract in a folder, and the world of a kind.
pub fn resolved(wit: &Path, kind: Kind) -> Result<(Resolve, WorldId), String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|error| format!("{error:#}"))?;
    let world = format!("{}-plugin", kind.name());
    let world =
        (resolve.select_world(&[package], Some(&world))).map_err(|error| format!("{error:#}"))?;
    Ok((resolve, world))
}

fn generate(wit: &Path, kind: Kind) -> Result<Files, String> {
    let (mut resolve, world) = resolved(wit, kind)?;
    // Short names, the same for every kind and version: `types_sample_t`, not
    // `runner_plugin_types_sample_t`.
    let items =
        resolve.worlds[world].imports.values().chain(resolve.worlds[world].exports.values());
    let rename = items.filter_map(|item| match item {
        WorldItem::Interface { id, .. } => {
            let short = resolve.interfaces[*id].name.clone()?;
            Some((resolve.id_of(*id)?, short))
        }
        _ => None,
    });
    let options = wit_bindgen_c::Opts {
        rename: rename.collect(),
        rename_world: Some("plugin".to_owned()),
        ..wit_bindgen_c::Opts::default()
    };
    let mut files = Files::default();
    (options.build().generate(&mut resolve, world, &mut files))
        .map_err(|error| format!("{error:#}"))?;
    Ok(files)
}

fn sources(folder: &Path, entry: &str) -> Result<Vec<String>, AuthorError> {
    let entries = std::fs::read_dir(folder).map_err(AuthorError::system("read", folder))?;
    let mut sources: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".c") && !name.starts_with('-'))
        .collect();
    sources.sort();
    if !folder.join(entry).is_file() {
        return Err(AuthorError::Project {
            file: folder.join(super::project::MANIFEST),
            mistake: format!("its `entry` is `{entry}`, but there is no such file"),
        });
    }
    if !sources.iter().any(|name| name == entry) {
        sources.insert(0, entry.to_owned());
    }
    Ok(sources)
}

/// A clang that links for the target. A named one is not probed, so its own errors are shown.
fn find(work: &Path) -> Result<PathBuf, AuthorError> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = variable("CLANG") {
        return Ok(named.into());
    }
    if let Some(sdk) = variable("WASI_SDK_PATH") {
        return Ok(PathBuf::from(sdk).join("bin/clang"));
    }
    let sdk = PathBuf::from("/opt/wasi-sdk/bin/clang");
    let by_version = VERSIONS.rev().map(|version| format!("clang-{version}"));
    let names = std::iter::once("clang".to_owned()).chain(by_version);
    std::iter::once(sdk)
        .chain(names.filter_map(|name| tool::on_path(&name)))
        .find(|clang| links(clang, work))
        .ok_or_else(|| AuthorError::Missing(MISSING.to_owned()))
}

fn links(clang: &Path, work: &Path) -> bool {
    let source = work.join("probe.c");
    if std::fs::write(&source, PROBE).is_err() {
        return false;
    }
    let mut command = tool::command(clang, work);
    command.args(TARGET).arg("-o").arg(work.join("probe.wasm"));
    let output = command.arg(&source).output();
    output.is_ok_and(|output| output.status.success())
}
