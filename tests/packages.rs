//! Packages of the program under test, installed where nothing of it was before. Each is made
//! twice, with the same bytes, and the installed program measures a mock engine.
//!
//! The program is the static one where `cargo xtask package` compiled it after this one; else this
//! one without its debugging information, which needs this machine's C library.
//!
//! - `archives`: unpacked anywhere, and their use in formulas.
//! - `wheels`: in an environment of Python.
//! - `debian`: in an empty root.
//! - `npm`: below an empty prefix, with the signals that pass through it.
//! - `images`: in a container.
//! - `targets`: the programs that are not this machine's static one, where they were compiled.

mod archives;
mod debian;
mod images;
mod npm;
mod targets;
mod wheels;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use package::date::Date;
use package::project::Project;
use package::texts::Texts;
use package::tree::Level;
use package::{Kind, Product};
use tempfile::TempDir;

use crate::support::process::{Mock, run};

const TESTED: &str = env!("CARGO_BIN_EXE_runner");

/// The program that is packaged, in a folder that lasts as long as the tests.
fn program() -> PathBuf {
    let machine = std::env::consts::ARCH;
    packaged(&format!("{machine}-unknown-linux-musl")).unwrap_or_else(|| {
        let stripped = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaged-runner");
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&stripped).arg(TESTED);
        run(&mut strip).with_code(0);
        stripped
    })
}

/// The program that `cargo xtask package` compiled for a target, if it is not older than the
/// program under test.
fn packaged(target: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let packaged = folder.join(target).join("packaged/runner");
    let made = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    (made(&packaged) >= made(Path::new(TESTED))).then_some(packaged)
}

/// Ingredients of the packages here.
fn product() -> &'static Product {
    static PRODUCT: OnceLock<Product> = OnceLock::new();
    PRODUCT.get_or_init(|| {
        let program = program();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let project = Project::read(&root).unwrap();
        let date = Date::of(&root).unwrap();
        let texts = Texts::of(&program, date).unwrap();
        let product = Product::new(project, &program, None, texts, date).unwrap();
        let sbom = br#"{ "bomFormat": "CycloneDX", "components": [] }"#.to_vec();
        let mut product = product.with_sbom(sbom).unwrap();
        product.level = Level(1);
        product
    })
}

/// Makes the packages of a kind in an empty folder, and checks that they come out the same again.
fn made(kind: Kind) -> (TempDir, Vec<PathBuf>) {
    let folder = TempDir::new().unwrap();
    let again = TempDir::new().unwrap();
    let packages = kind.make(product(), folder.path()).unwrap();
    let packages_again = kind.make(product(), again.path()).unwrap();
    for (one, other) in packages.iter().zip(&packages_again) {
        assert_eq!(one.file_name(), other.file_name());
        let is_same = std::fs::read(one).unwrap() == std::fs::read(other).unwrap();
        assert!(is_same, "{} differs when it is made again", one.display());
    }
    assert_eq!(packages.len(), packages_again.len());
    (folder, packages)
}

/// A command with nothing of this process's environment but the way to programs.
fn bare(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    // A run's validity also depends on the machine's load.
    command.env("RUNNER_ALLOW_INVALID", "1");
    // Shared by all tests: a short run mostly compiles plugins.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    command.env("XDG_CACHE_HOME", cache);
    command
}

/// Arguments that measure a mock engine and leave the run in a folder.
fn measuring(mock: &Mock, runs: &str) -> Vec<String> {
    let line = format!(
        "--backend openai --base-url {} --dataset-name random --random-input-len 16 \
         --random-output-len 4 --num-prompts 4 --output-dir {runs}",
        mock.url
    );
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs a command that measures, and checks that it did.
#[track_caller]
fn measures(command: &mut Command) {
    let ended = run(command).with_code(0);
    let successes = ended.stdout.lines().find_map(|line| {
        let count = line.strip_prefix("Successful requests:")?;
        Some(count.trim().to_owned())
    });
    assert_eq!(successes.as_deref(), Some("4"), "{ended:#?}");
}

/// The libraries of a program that is not static, by path.
fn libraries() -> Vec<PathBuf> {
    if product().target.is_static {
        return Vec::new();
    }
    let ended = run(Command::new("ldd").arg(&product().path)).with_code(0);
    let words = ended.stdout.split_whitespace();
    let paths = words.filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

#[test]
fn a_program_of_another_version_or_target_is_refused() {
    let known = product();
    let of = |project: &Project, target| {
        let product =
            Product::new(project.clone(), &known.path, target, known.texts.clone(), known.date);
        format!("{:#}", product.map(|_| ()).unwrap_err())
    };
    let mut later = known.project.clone();
    later.version = "99.0.0".to_owned();
    let error = of(&later, None);
    assert!(error.contains("build it again"), "{error}");
    let error = of(&known.project, Some("riscv64gc-unknown-linux-musl"));
    assert!(error.contains("the binary is for"), "{error}");
}
