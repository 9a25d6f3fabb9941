//! The step `examples`: builds the examples in `plugins/examples`, and the shipped plugins that are
//! not in Rust, as an author would, and runs their cases.
//!
//! Responsible for the tools of other languages: they go into `target/example-tools`, from the
//! package registries of pip and npm. Without its tool an example is skipped, and the reason
//! printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::gate;
use crate::left_out::Lack;
use crate::steps;

/// The other target of Rust, whose components import WASI.
const WASIP2: &str = "wasm32-wasip2";

const WASIP2_LIBRARY: Lack = Lack {
    key: "wasip2",
    name: "Rust's library for wasm32-wasip2",
    remedy: "rustup target add wasm32-wasip2",
};

/// The tools that compile a language.
fn lack(language: &str) -> Lack {
    let (key, name, remedy) = match language {
        "python" => (
            "python",
            "componentize-py",
            "apt-get install python3-venv, and a package index that pip reaches",
        ),
        "javascript" => (
            "javascript",
            "componentize-qjs",
            "apt-get install npm, and a registry that npm reaches",
        ),
        _ => (
            "clang",
            "a clang that links WebAssembly",
            "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32",
        ),
    };
    Lack { key, name, remedy }
}

/// The path of a tool, or the reason why it is not available.
type Tool = std::result::Result<PathBuf, String>;

/// The folder for the tools of other languages.
fn tools(root: &Path) -> Result<PathBuf> {
    let tools = root.join("target/example-tools");
    fs::create_dir_all(&tools)?;
    Ok(tools)
}

/// Installs the tools of other languages. The examples report a tool that cannot be installed.
pub fn install(root: &Path) -> Result<()> {
    let tools = tools(root)?;
    for folder in folders(root)? {
        let tool = match language(&folder)?.as_str() {
            "python" => python(&tools, &folder),
            "javascript" => javascript(&tools, &folder),
            _ => continue,
        };
        match tool {
            Ok(tool) => println!("{}", tool.display()),
            Err(reason) => println!("{}: {reason}", folder.display()),
        }
    }
    Ok(())
}

/// Tests all examples with this runner.
pub fn test(root: &Path, runner: &Path) -> Result<()> {
    let tools = tools(root)?;
    let mut failed = Vec::new();
    for folder in folders(root)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let language = language(&folder)?;
        let mut build = built_by(runner, &folder);
        let tool = match language.as_str() {
            "python" => python(&tools, &folder).map(|tool| build.env("COMPONENTIZE_PY", tool)),
            "javascript" => {
                javascript(&tools, &folder).map(|tool| build.env("COMPONENTIZE_QJS", tool))
            }
            "c" => clang().map(|tool| build.env("CLANG", tool)),
            _ => Ok(&mut build),
        };
        if let Err(reason) = tool {
            eprintln!("{name}: {reason}");
            let lack = lack(&language);
            gate::leave_out(root, &lack, &format!("example {name}"))?;
            continue;
        }
        if language == "rust" {
            // The step `plugins` builds it as a module, and the tests of the whole run its cases.
            match wasip2() {
                Ok(()) => {
                    let mut build = built_by(runner, &folder);
                    build.args(["--target", WASIP2]);
                    // A distribution's Rust has no library for it.
                    build.env("RUNNER_WASM_TOOLCHAIN", "rustup");
                    failed.extend(tested(runner, &folder, build).err());
                }
                Err(reason) => {
                    eprintln!("{name} for {WASIP2}: {reason}");
                    let who = format!("example {name} for {WASIP2}");
                    gate::leave_out(root, &WASIP2_LIBRARY, &who)?;
                }
            }
        } else {
            failed.extend(tested(runner, &folder, build).err());
        }
    }
    let failed: Vec<_> = failed.iter().map(|cause| format!("{cause:#}")).collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn built_by(runner: &Path, example: &Path) -> Command {
    let mut build = Command::new(runner);
    build.args(["plugin", "build"]).arg(example);
    build
}

/// Builds an example with this command, and runs its cases.
fn tested(runner: &Path, example: &Path, mut build: Command) -> Result<()> {
    let cases = || steps::run(Command::new(runner).args(["plugin", "test"]).arg(example));
    steps::run(&mut build).and_then(|()| cases()).with_context(|| example.display().to_string())
}

/// Has rustup add the target, if rustup is installed and the target is not.
fn wasip2() -> std::result::Result<(), String> {
    output(Command::new("rustup").args(["target", "add", WASIP2]))
}

/// The examples, by name, then the scorers in other languages, which are not embedded.
fn folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (all, wanted) in [("plugins/examples", "cases"), ("plugins/scorers", "runner-plugin.toml")]
    {
        let all = root.join(all);
        let mut found = Vec::new();
        for entry in fs::read_dir(&all).with_context(|| format!("reading {}", all.display()))? {
            let path = entry?.path();
            if path.join(wanted).exists() {
                found.push(path);
            }
        }
        found.sort();
        folders.extend(found);
    }
    Ok(folders)
}

/// The language that an example is written in.
fn language(folder: &Path) -> Result<String> {
    let manifest = folder.join("runner-plugin.toml");
    if !manifest.is_file() {
        return Ok("rust".to_owned());
    }
    let text = fs::read_to_string(&manifest)?;
    let manifest: toml::Table = text.parse().context("runner-plugin.toml")?;
    let language = manifest.get("language").and_then(toml::Value::as_str);
    Ok(language.context("runner-plugin.toml has no `language`")?.to_owned())
}

/// componentize-py in an environment of its own, at the version that the example asks for.
fn python(tools: &Path, example: &Path) -> Tool {
    let environment = tools.join("python");
    let requirements = example.join("requirements.txt");
    let tool = environment.join("bin/componentize-py");
    prepared(&environment, &requirements, &tool, || {
        output(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        output(
            Command::new(environment.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(&requirements),
        )
    })
}

/// componentize-qjs in a folder of its own, at the version that the example asks for.
fn javascript(tools: &Path, example: &Path) -> Tool {
    let folder = tools.join("javascript");
    let manifest = example.join("package.json");
    let tool = folder.join("node_modules/.bin/componentize-qjs");
    prepared(&folder, &manifest, &tool, || {
        fs::create_dir_all(&folder).map_err(|cause| cause.to_string())?;
        fs::copy(&manifest, folder.join("package.json")).map_err(|cause| cause.to_string())?;
        output(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
                .current_dir(&folder),
        )
    })
}

/// A tool that is installed once for each set of requirements.
fn prepared(
    folder: &Path,
    manifest: &Path,
    tool: &Path,
    install: impl FnOnce() -> std::result::Result<(), String>,
) -> Tool {
    let requirements =
        fs::read(manifest).map_err(|cause| format!("{}: {cause}", manifest.display()))?;
    let stamp = folder.join("asked");
    if !(tool.is_file() && fs::read(&stamp).is_ok_and(|known| known == requirements)) {
        let _ = fs::remove_dir_all(folder);
        install()?;
        if !tool.is_file() {
            return Err(format!("{} was not installed", tool.display()));
        }
        fs::write(&stamp, requirements).map_err(|cause| cause.to_string())?;
    }
    Ok(tool.to_owned())
}

/// The first clang that links a WebAssembly module with a C library.
fn clang() -> Tool {
    let own = std::env::var_os("CLANG").map(PathBuf::from);
    let sdk = std::env::var_os("WASI_SDK_PATH").map(|sdk| PathBuf::from(sdk).join("bin/clang"));
    let numbered = (14..=22).rev().map(|version| PathBuf::from(format!("clang-{version}")));
    let named = [own, sdk, Some(PathBuf::from("clang"))];
    named.into_iter().flatten().chain(numbered).find(|clang| links(clang)).ok_or_else(|| {
        "no clang links WebAssembly modules; on Debian: apt-get install clang-19 lld-19 wasi-libc \
             libclang-rt-19-dev-wasm32"
            .to_owned()
    })
}

fn links(clang: &Path) -> bool {
    let mut command = Command::new("sh");
    // Compilers need an output file; this one disturbs nothing.
    let script = "printf '#include <stdlib.h>\\nvoid *f(void) { return malloc(1); }\\n' \
                  | \"$0\" --target=wasm32-wasi -mexec-model=reactor -x c - -o /dev/null";
    command.args(["-c", script]).arg(clang);
    output(&mut command).is_ok()
}

/// Runs a command; returns its output if it fails.
fn output(command: &mut Command) -> std::result::Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } =
        command.output().map_err(|cause| format!("{name} does not start: {cause}"))?;
    if status.success() {
        return Ok(());
    }
    let printed = [stderr, stdout].concat();
    let printed = String::from_utf8_lossy(&printed);
    let last = printed.lines().rev().find(|line| !line.trim().is_empty());
    Err(format!("{name} failed: {}", last.unwrap_or("it printed nothing").trim()))
}
