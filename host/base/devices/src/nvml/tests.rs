//! Tests against a shared library with NVML's symbols, compiled from `stand_in.rs`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// The stand-in, with these flags.
fn stand_in(flags: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("stand_in.rs");
    std::fs::write(&source, include_str!("stand_in.rs")).unwrap();
    let library = folder.path().join("libnvidia-ml.so.1");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "stand_in"]);
    command.args(["-A", "warnings", "-C", "opt-level=0"]);
    for flag in flags {
        command.args(["--cfg", flag]);
    }
    let compiled = command.arg("-o").arg(&library).arg(&source).output().unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    (folder, library)
}

#[test]
fn two_devices() {
    let (_folder, library) = stand_in(&[]);
    let mut nvml = Nvml::open_at(&library, &Choice::All).unwrap();
    let device = |index, uuid: &str| Device {
        index: Some(index),
        name: Some("NVIDIA H100 80GB HBM3".to_owned()),
        uuid: Some(uuid.to_owned()),
        machine: None,
    };
    let facts = Facts {
        source: "nvml".to_owned(),
        driver: Some("575.57.08".to_owned()),
        devices: vec![device(0, "GPU-aaaaaaaa"), device(1, "GPU-bbbbbbbb")],
    };
    assert_eq!(*nvml.facts(), facts);
    let first = Reading {
        power_w: Some(350.5),
        power_limit_w: Some(700.0),
        energy_j: Some(5_000.0),
        temperature_c: Some(61.0),
        sm_clock_mhz: Some(1_980.0),
        memory_clock_mhz: Some(2_619.0),
        memory_used: Some(71 << 30),
        memory_total: Some(80 << 30),
        utilization: Some(0.97),
        throttle: Some(0x24),
    };
    let second = Reading { power_w: Some(351.5), energy_j: None, ..first };
    assert_eq!(nvml.read().unwrap(), [Some(first), Some(second)]);
    let again = nvml.read().unwrap()[0].unwrap();
    assert_eq!(again.energy_j, Some(5_002.0));
    drop(nvml);
    // It can be opened again after it was shut down.
    let choice = Choice::parse("GPU-b");
    let mut one = Nvml::open_at(&library, &choice).unwrap();
    assert_eq!(one.facts().devices, facts.devices[1..]);
    assert_eq!(one.read().unwrap(), [Some(second)]);
    drop(one);
    let none = Nvml::open_at(&library, &Choice::parse("7")).err().unwrap();
    assert_eq!(none.to_string(), "NVML knows 2 devices, and none of them is chosen");
}

#[test]
fn functions_that_an_old_driver_lacks_are_absent_values() {
    let (_folder, library) = stand_in(&["old"]);
    let mut nvml = Nvml::open_at(&library, &Choice::All).unwrap();
    let reading = nvml.read().unwrap()[0].unwrap();
    assert_eq!(reading.energy_j, None);
    assert_eq!(reading.throttle, Some(0x40), "it has another name");
    assert_eq!(reading.power_w, Some(350.5));
}

#[test]
fn a_lost_device_does_not_affect_the_others() {
    let (_folder, library) = stand_in(&["one_lost"]);
    let mut nvml = Nvml::open_at(&library, &Choice::All).unwrap();
    let readings = nvml.read().unwrap();
    assert_eq!(readings[0].unwrap().power_w, Some(350.5));
    assert_eq!(readings[1], None);

    let (_folder, library) = stand_in(&["all_lost"]);
    let mut nvml = Nvml::open_at(&library, &Choice::All).unwrap();
    let expected = "NVML's `nvmlDeviceGetPowerUsage` failed: GPU is lost (error 15)";
    assert_eq!(nvml.read().unwrap_err(), expected);
}

#[test]
fn no_driver_no_library_and_no_function() {
    let (_folder, library) = stand_in(&["no_driver"]);
    let error = Nvml::open_at(&library, &Choice::All).err().unwrap();
    assert_eq!(error.to_string(), "NVML's `nvmlInit_v2` failed: Driver Not Loaded (error 9)");
    let (_folder, library) = stand_in(&["no_driver", "old"]);
    let error = Nvml::open_at(&library, &Choice::All).err().unwrap();
    assert_eq!(error.to_string(), "NVML's `nvmlInit_v2` failed: error 9");
    let (folder, library) = stand_in(&["no_count"]);
    let error = Nvml::open_at(&library, &Choice::All).err().unwrap();
    assert_eq!(error, NvmlError::NoFunction("nvmlDeviceGetCount_v2"));
    let missing = folder.path().join("none.so");
    let error = Nvml::open_at(&missing, &Choice::All).err().unwrap().to_string();
    assert!(error.starts_with("NVML cannot be loaded ("), "{error}");
    assert!(error.ends_with("; is NVIDIA's driver installed?"), "{error}");
}

/// On a machine with NVIDIA's driver: its figures are plausible.
#[test]
fn the_real_library() {
    let mut nvml = match Nvml::open(&Choice::All) {
        Ok(nvml) => nvml,
        Err(error) => {
            assert!(!matches!(error, NvmlError::NoFunction(_)), "{error}");
            return;
        }
    };
    assert!(nvml.facts().driver.is_some());
    let readings = nvml.read().unwrap();
    assert_eq!(readings.len(), nvml.facts().devices.len());
    for reading in readings.into_iter().flatten() {
        assert!(reading.temperature_c.is_none_or(|it| (0.0..120.0).contains(&it)));
        assert!(reading.power_w.is_none_or(|it| (0.0..3_000.0).contains(&it)));
        assert!(reading.utilization.is_none_or(|it| (0.0..=1.0).contains(&it)));
        let within = reading.memory_used.zip(reading.memory_total);
        assert!(within.is_none_or(|(used, total)| used <= total));
    }
}
