//! Archives, their digests, and the formulas that install them.

use std::process::Command;

use package::elf::Elf;
use package::kinds::{Kind, formula};
use package::target::{Machine, Target};
use package::{Product, sums};
use serde_json::Value;
use tempfile::TempDir;

use super::{bare, made, measures, measuring, product};
use crate::support::lacking::{self, NIX, RUBY};
use crate::support::process::{Mock, run};

#[test]
fn an_archive_is_unpacked_and_measures() {
    let (folder, packages) = made(Kind::Archive);
    sums::write(folder.path()).unwrap();
    let mut check = bare("sha256sum");
    check.current_dir(folder.path()).args(["--check", "--strict", sums::FILE]);
    let name = packages[0].file_name().unwrap().to_str().unwrap();
    let bill = name.replace(".tar.gz", ".cdx.json");
    let checked = run(&mut check).with_code(0).stdout;
    assert_eq!(checked, format!("{bill}: OK\n{name}: OK\n"));
    let mut unpack = bare("tar");
    unpack.current_dir(folder.path()).arg("-xzf").arg(name);
    run(&mut unpack).with_code(0);
    let release = folder.path().join(name.strip_suffix(".tar.gz").unwrap());
    for file in [
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "runner.cyclonedx.json",
        "THIRD-PARTY.txt",
        "man/runner.1",
        "completions/runner.bash",
        "completions/runner.fish",
        "completions/_runner",
    ] {
        let size = release.join(file).metadata().map(|file| file.len());
        assert!(size.is_ok_and(|size| size > 0), "{file}");
    }
    let mock = Mock::start(&[]);
    let mut command = bare("./runner");
    measures(command.current_dir(release).args(measuring(&mock, "runs")));
}

/// The product with a few bytes for its program, static, for this machine.
fn made_up(machine: Machine, number: u16) -> Product {
    let mut program = vec![0; 64];
    program[..6].copy_from_slice(b"\x7fELF\x02\x01");
    program[18..20].copy_from_slice(&number.to_le_bytes());
    let mut product = product().clone();
    product.elf = Elf::read(&program).unwrap();
    product.target = Target::of(&product.elf, None).unwrap();
    assert_eq!(product.target, Target { machine, is_static: true });
    product.program = program;
    product.project.repository = Some("https://example.org/team/runner".to_owned());
    product
}

#[test]
fn formulas_install_the_archives_that_are_there() {
    let folder = TempDir::new().unwrap();
    let intel = made_up(Machine::X86_64, 62);
    let none = formula::make(&intel.project, folder.path()).unwrap_err();
    assert!(none.to_string().contains("make the archive"), "{none:#}");
    let mut archives = Kind::Archive.make(&intel, folder.path()).unwrap();
    let arm = made_up(Machine::Aarch64, 183);
    archives.extend(Kind::Archive.make(&arm, folder.path()).unwrap());
    formula::make(&intel.project, folder.path()).unwrap();
    let archives = archives.iter().filter(|path| path.to_str().unwrap().ends_with(".tar.gz"));
    let digests: Vec<String> =
        archives.map(|path| sums::sha256(&std::fs::read(path).unwrap())).collect();
    let ruby = std::fs::read_to_string(folder.path().join("runner-llm.rb")).unwrap();
    let at = |text: &str| ruby.find(text).unwrap_or_else(|| panic!("{text}: {ruby}"));
    assert!(at("on_intel") < at(&digests[0]) && at(&digests[0]) < at("on_arm"));
    assert!(at("on_arm") < at(&digests[1]));
    if lacking::has("ruby", &RUBY) {
        let mut check = bare("ruby");
        run(check.arg("-wc").arg(folder.path().join("runner-llm.rb"))).with_code(0);
    }
    if lacking::has("nix-instantiate", &NIX) {
        for (machine, digest) in [("x86_64", &digests[0]), ("aarch64", &digests[1])] {
            check_nix(folder.path(), machine, digest, &intel.project.version);
        }
    }
}

/// The addresses of archives in the manifest equal the formulas' addresses.
#[test]
fn binstall_finds_the_archives() {
    let project = &product().project;
    let manifest = std::fs::read_to_string(project.root.join("host/runner/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let told = &manifest["package"]["metadata"]["binstall"];
    let name = format!("runner-{}-x86_64-unknown-linux-musl", project.version);
    let filled = |key: &str| {
        let text = told[key].as_str().unwrap().replace("{ version }", &project.version);
        let text = text.replace("{ repo }", "REPOSITORY").replace("{ name }", "runner");
        text.replace("{ target }", "x86_64-unknown-linux-musl").replace("{ bin }", "runner")
    };
    let folder = format!("REPOSITORY/releases/download/v{}", project.version);
    assert_eq!(filled("pkg-url"), format!("{folder}/{name}.tar.gz"));
    assert_eq!(filled("bin-dir"), format!("{name}/runner"));
}

/// Evaluates the flake of the sources, with functions that print their arguments.
#[test]
fn the_flake_has_a_package_and_an_app() {
    if !lacking::has("nix-instantiate", &NIX) {
        return;
    }
    let folder = TempDir::new().unwrap();
    let root = product().project.root.canonicalize().unwrap();
    let expression = format!(
        "let made = (import {}/flake.nix).outputs {{ self = made; nixpkgs = {{ \
           lib.genAttrs = names: make: {{ system = make \"system\"; }}; \
           legacyPackages.system = {{ lld = null; lib.licenses.asl20 = null; \
             rustPlatform.buildRustPackage = it: {{ outPath = it.version + it.buildPhase; }}; }}; \
         }}; }}; in made.apps.system.default.program",
        root.display()
    );
    let text = nix(folder.path(), &["--eval", "--json", "--expr", &expression]);
    let version = &product().project.version;
    assert!(text.contains(version) && text.contains("cargo xtask dist"), "{text}");
}

/// Runs Nix in a folder, with a store below it.
fn nix(folder: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = bare("nix-instantiate");
    let home = folder.join("nix");
    command.env("HOME", &home).env("NIX_STATE_DIR", home.join("state"));
    command.env("NIX_STORE_DIR", home.join("store"));
    run(command.current_dir(folder).args(arguments)).with_code(0).stdout
}

/// Evaluates the package for Nix with functions that print their arguments.
fn check_nix(folder: &std::path::Path, machine: &str, digest: &str, version: &str) {
    nix(folder, &["--parse", "flake.nix"]);
    let expression = format!(
        "(import ./package.nix {{ \
           lib = {{ licenses.asl20 = \"asl20\"; sourceTypes.binaryNativeCode = 1; }}; \
           stdenvNoCC = {{ hostPlatform.system = \"{machine}-linux\"; mkDerivation = it: it; }}; \
           fetchurl = it: it; installShellFiles = null; \
         }})"
    );
    let text = nix(folder, &["--eval", "--strict", "--json", "--expr", &expression]);
    let package: Value = serde_json::from_str(&text).unwrap();
    let name = format!("runner-{version}-{machine}-unknown-linux-musl");
    assert_eq!(package["sourceRoot"], name);
    let url = format!("https://example.org/team/runner/releases/download/v{version}/{name}.tar.gz");
    assert_eq!(package["src"]["url"], url);
    let mut convert = Command::new("sh");
    let hash = package["src"]["hash"].as_str().unwrap();
    let hash = hash.strip_prefix("sha256-").unwrap();
    convert.args(["-c", "printf %s \"$0\" | base64 -d | od -An -v -tx1 | tr -d ' \\n'", hash]);
    assert_eq!(run(&mut convert).with_code(0).stdout, digest);
}
