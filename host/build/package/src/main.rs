//! The command behind `cargo xtask package`: reads its arguments, and has the library make packages.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use package::date::Date;
use package::kinds::{Kind, formula};
use package::project::Project;
use package::texts::Texts;
use package::{Product, binary, sbom, sums};

const HELP: &str = "\
cargo xtask package KIND... [FLAG...]

Kinds:
  archive  runner-VERSION-TARGET.tar.gz: the program, man pages, completions, documents; and a bill of materials
  wheel    a wheel for Python
  deb      a package for Debian and Ubuntu
  npm      a package that everybody installs, and one with the program
  image    a container image, as an archive of the OCI's layout
  formula  a formula for Homebrew and a package for Nix, of the archives that the output folder has
  all      all of these; formula only where the project has a repository

Flags:
  --binary PATH        the program to package; the default is one that is compiled now
  --target TRIPLE      what the program is for; the default is what the binary is for, or a static program for this
                       machine's processor. One that ends in `-gnu` needs glibc 2.17 or newer, and can load NVML
  --output FOLDER      where packages go; the default is target/packages
  --texts-from PATH    a program of this machine and of the same version, which prints man pages and completions;
                       the default is the program itself
  --repository URL     where the project is, for links and formulas; the default is Cargo.toml's
                       `workspace.package.repository`
  --certificates FILE  the authorities that an image trusts; the default is this machine's

SHA256SUMS lists everything in the output folder. The date of every file is SOURCE_DATE_EPOCH, else that of the last
commit.
";

/// The arguments of the command line.
#[derive(Debug, Default, PartialEq)]
struct Arguments {
    kinds: Vec<Kind>,
    formula: bool,
    /// True if formulas were asked for by `all` only.
    all: bool,
    binary: Option<PathBuf>,
    target: Option<String>,
    output: Option<PathBuf>,
    texts_from: Option<PathBuf>,
    repository: Option<String>,
    certificates: Option<PathBuf>,
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
    let mut project = Project::read(&root)?;
    if let Some(repository) = &asked.repository {
        project.repository = Some(repository.trim_end_matches('/').to_owned());
    }
    let folder = asked.output.clone();
    let folder = folder.unwrap_or_else(|| root.join("target/packages"));
    if !asked.kinds.is_empty() {
        let product = product(&asked, project.clone())?;
        for kind in &asked.kinds {
            let made = kind.make(&product, &folder);
            show(&root, &made.with_context(|| kind.name())?)?;
        }
    }
    if asked.all && !asked.formula && project.repository.is_none() {
        eprintln!(
            "package: no formula, because the project has no repository: give --repository URL"
        );
    } else if asked.all || asked.formula {
        let made = formula::make(&project, &folder);
        show(&root, &made.context("formula")?)?;
    }
    sums::write(&folder)
}

/// Puts together the inputs of packages.
fn product(asked: &Arguments, project: Project) -> Result<Product> {
    let target = asked.target.as_deref();
    let binary = match &asked.binary {
        Some(binary) => binary.clone(),
        None => binary::build(&project.root, target)?,
    };
    let date = Date::of(&project.root)?;
    let texts = Texts::of(asked.texts_from.as_ref().unwrap_or(&binary), date)?;
    let mut product = Product::new(project, &binary, target, texts, date)?;
    let sbom = sbom::sbom(&product.project.root, &product.target.to_string())?;
    product = product.with_sbom(sbom)?;
    if let Some(certificates) = &asked.certificates {
        product.certificates.clone_from(certificates);
    }
    Ok(product)
}

/// Prints a line for each file.
fn show(root: &Path, files: &[PathBuf]) -> Result<()> {
    for path in files {
        let bytes = fs::read(path)?;
        println!(
            "{}  {:.1} MiB  sha256:{}",
            path.strip_prefix(root).unwrap_or(path).display(),
            bytes.len() as f64 / f64::from(1 << 20),
            sums::sha256(&bytes)
        );
    }
    Ok(())
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
            "--target" => asked.target = Some(text(word, value()?)?),
            "--output" => asked.output = Some(value()?.into()),
            "--texts-from" => asked.texts_from = Some(value()?.into()),
            "--repository" => asked.repository = Some(text(word, value()?)?),
            "--certificates" => asked.certificates = Some(value()?.into()),
            "all" => {
                asked.kinds = Kind::ALL.to_vec();
                asked.all = true;
            }
            "formula" => asked.formula = true,
            flag if flag.starts_with('-') => bail!("no flag {flag}; --help lists them"),
            kind => {
                let kind = kind.parse()?;
                if !asked.kinds.contains(&kind) {
                    asked.kinds.push(kind);
                }
            }
        }
    }
    ensure!(asked.formula || !asked.kinds.is_empty(), "no kind of package; --help lists them");
    Ok(Some(asked))
}

fn text(flag: &str, value: &OsStr) -> Result<String> {
    let text = value.to_str().map(str::to_owned);
    text.with_context(|| format!("{flag} {value:?}: expected text"))
}

/// The repository's root: this crate is three folders below it.
fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .map(Path::to_owned)
        .context("package does not lie in host/build/package")
}

#[cfg(test)]
mod tests {
    use super::{Kind, read_arguments};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn arguments_are_kinds_and_flags_in_any_order() {
        let read = |line| read_arguments(&words(line)).unwrap();
        let asked = read("--binary b wheel formula deb wheel --target t").unwrap();
        assert_eq!(asked.kinds, [Kind::Wheel, Kind::Deb]);
        assert!(asked.formula && !asked.all);
        assert_eq!(asked.target.as_deref(), Some("t"));
        assert_eq!(read("all").unwrap().kinds, Kind::ALL);
        assert_eq!(read("wheel --help"), None);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let wrong = [
            ("", "no kind of package"),
            ("whale", "`whale`; expected all, formula, archive, wheel"),
            ("wheel --binary", "--binary has no value"),
            ("wheel --fast", "no flag --fast"),
        ];
        for (line, part) in wrong {
            let error = read_arguments(&words(line)).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
