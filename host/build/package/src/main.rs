//! The command behind `cargo xtask package`: reads its arguments, and has the library make packages.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program of its own"
)]
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use package::kinds::Kind;
use package::project::Project;
use package::texts::Texts;
use package::{Product, sums};

const HELP: &str = "\
cargo xtask package KIND... [--binary PATH] [--target TRIPLE] [--output FOLDER] [--texts-from PATH]

  KIND               archive, or all
  --binary PATH      the program to package
  --target TRIPLE    what the program must be for; the default is what it is for
  --output FOLDER    where packages go; the default is target/packages
  --texts-from PATH  a program of this machine, of the same version, that prints man pages and completions; the
                     default is the program itself

The date of every file is SOURCE_DATE_EPOCH, else that of the last commit.
";

/// The arguments of the command line.
#[derive(Debug, Default, PartialEq)]
struct Arguments {
    kinds: Vec<Kind>,
    binary: Option<PathBuf>,
    target: Option<String>,
    output: Option<PathBuf>,
    texts_from: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("package: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[OsString]) -> Result<()> {
    let Some(asked) = read_arguments(arguments)? else {
        print!("{HELP}");
        return Ok(());
    };
    let root = root()?;
    let binary = asked.binary.context("no program: give --binary PATH")?;
    let texts = Texts::of(asked.texts_from.as_ref().unwrap_or(&binary))?;
    let project = Project::read(&root)?;
    let product = Product::new(project, &binary, asked.target.as_deref(), texts, Vec::new())?;
    let folder = asked.output.unwrap_or_else(|| root.join("target/packages"));
    for kind in asked.kinds {
        let made = kind.make(&product, &folder);
        for path in made.with_context(|| kind.name())? {
            let bytes = fs::read(&path)?;
            println!(
                "{}  {:.1} MiB  sha256:{}",
                path.strip_prefix(&root).unwrap_or(&path).display(),
                bytes.len() as f64 / f64::from(1 << 20),
                sums::sha256(&bytes)
            );
        }
    }
    sums::write(&folder)
}

/// Reads the arguments; nothing if they ask for help.
fn read_arguments(arguments: &[OsString]) -> Result<Option<Arguments>> {
    let mut asked = Arguments::default();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(word) = word.to_str() else {
            bail!("{word:?} is neither a kind of package nor a flag");
        };
        let mut value = || rest.next().with_context(|| format!("{word} has no value"));
        match word {
            "--help" | "-h" => return Ok(None),
            "--binary" => asked.binary = Some(value()?.into()),
            "--output" => asked.output = Some(value()?.into()),
            "--texts-from" => asked.texts_from = Some(value()?.into()),
            "--target" => {
                let value = value()?.to_str();
                asked.target = Some(value.context("--target is no text")?.to_owned());
            }
            "all" => asked.kinds.extend(Kind::ALL),
            flag if flag.starts_with('-') => bail!("no flag {flag}; --help lists them"),
            kind => asked.kinds.push(kind.parse()?),
        }
    }
    ensure!(
        !asked.kinds.is_empty(),
        "no kind of package; --help lists them"
    );
    Ok(Some(asked))
}

/// The repository's root: this crate is three folders below it.
fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .map(Path::to_owned)
        .context("package does not lie in host/build/package")
}
