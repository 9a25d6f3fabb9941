//! The programs that are not this machine's static one: that for 64-bit Arm, in an emulator, and
//! that for glibc, which loads libraries.

use std::fs;

use devices::nvml::VARIABLE;
use package::elf::Elf;
use package::{Kind, Product};
use result::summary::Summary;
use tempfile::TempDir;

use super::{bare, measures, measuring, packaged, product};
use crate::devices::stand_in;
use crate::support::lacking::{self, ARM, GLIBC, QEMU};
use crate::support::process::{Mock, Process, only_run, run};

#[test]
fn an_archive_for_arm_measures_in_an_emulator() {
    let target = "aarch64-unknown-linux-musl";
    let Some(program) = packaged(target) else {
        lacking::leave_out(&ARM);
        return;
    };
    if !lacking::has("qemu-aarch64", &QEMU) {
        return;
    }
    let known = product();
    let mut product = Product::new(
        known.project.clone(),
        &program,
        Some(target),
        known.texts.clone(),
        known.date,
    )
    .unwrap();
    product.level = known.level;
    let folder = TempDir::new().unwrap();
    let packages = Kind::Archive.make(&product, folder.path()).unwrap();
    let name = format!("runner-{}-{target}", product.project.version);
    let archive = folder.path().join(format!("{name}.tar.gz"));
    assert_eq!(packages, [archive.as_path()]);
    let mut unpack = bare("tar");
    run(unpack.arg("-xzf").arg(&archive).current_dir(&folder)).with_code(0);
    let emulated = || {
        let mut command = bare("qemu-aarch64");
        command.arg("./runner").current_dir(folder.path().join(&name));
        command
    };
    let version = run(emulated().arg("--version")).with_code(0).stdout;
    assert_eq!(version, format!("runner {}\n", product.project.version));
    let mock = Mock::start(&[]);
    measures(emulated().args(measuring(&mock, "runs")));
    let mut process = Process::start(emulated().args(["mock", "--port", "0"]));
    process.until("the mock engine listens", |it| it.stdout().contains('\n'));
    process.signal("INT");
    process.end().with_code(0);
}

#[test]
fn the_program_for_glibc_loads_nvml() {
    let machine = std::env::consts::ARCH;
    let Some(program) = packaged(&format!("{machine}-unknown-linux-gnu")) else {
        lacking::leave_out(&GLIBC);
        return;
    };
    let elf = Elf::read(&fs::read(&program).unwrap()).unwrap();
    assert!(elf.glibc.unwrap() <= (2, 17), "{elf:?}");
    let has_unwinder = elf.needed.iter().any(|name| name.starts_with("libgcc_s"));
    assert!(!has_unwinder, "{elf:?}");
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&[]));
    let mut command = bare(&program);
    command.env(VARIABLE, stand_in()).args(measuring(&mock, "runs")).args([
        "--device-metrics",
        "nvml",
        "--device-interval",
        "20ms",
    ]);
    measures(command.current_dir(&folder));
    let run = only_run(&folder.path().join("runs")).unwrap();
    let summary = fs::read(run.join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_slice(&summary).unwrap();
    let devices = summary.devices.unwrap();
    assert_eq!(devices.source.as_deref(), Some("nvml"));
    assert_eq!(devices.driver.as_deref(), Some("575.57.08"));
}
