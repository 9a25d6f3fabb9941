//! Damaged compiled plugins: the run goes on as if nothing were kept, and says so.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::runs::{mock, run_with};
use crate::support::process::Mock;

/// Returns the messages of a run about compiled plugins; it must end well.
fn warnings(mock: &Mock, kept: &Path) -> Vec<String> {
    let ran = run_with(&mock.url, kept);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
}

fn artifacts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn changed_artifacts_are_reported_and_replaced() {
    let mock = mock(&[]);
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("kept");
    assert_eq!(warnings(&mock, &kept), [""; 0], "nothing is there, which is no news");
    assert_eq!(warnings(&mock, &kept), [""; 0]);
    let paths = artifacts(&kept);
    assert_eq!(paths.len(), 2, "{paths:?}");
    let assert_warning = |lines: &[String], path: &Path, what: &str| {
        let line = format!("was recompiled: its cached form {} {what}", path.display());
        assert_eq!(lines.iter().filter(|warning| warning.ends_with(&line)).count(), 1, "{lines:?}");
    };

    let mut bytes = fs::read(&paths[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&paths[0], bytes).unwrap();
    let lines = warnings(&mock, &kept);
    assert_eq!(lines.len(), 1);
    assert_warning(&lines, &paths[0], "was changed after it was written, or is truncated");
    assert_eq!(warnings(&mock, &kept), [""; 0], "it was replaced");

    let aside = home.path().join("aside");
    fs::rename(&paths[0], &aside).unwrap();
    fs::rename(&paths[1], &paths[0]).unwrap();
    fs::rename(&aside, &paths[1]).unwrap();
    let lines = warnings(&mock, &kept);
    assert_eq!(lines.len(), 2);
    for path in &paths {
        assert_warning(&lines, path, "belongs to another component");
    }
    assert_eq!(warnings(&mock, &kept), [""; 0]);

    fs::set_permissions(&paths[1], Permissions::from_mode(0o606)).unwrap();
    let lines = warnings(&mock, &kept);
    assert_warning(&lines, &paths[1], "is not used: other users may write to it (mode 606)");

    fs::set_permissions(&kept, Permissions::from_mode(0o770)).unwrap();
    let lines = warnings(&mock, &kept);
    assert!(
        lines
            .iter()
            .all(|line| line.contains("(mode 770); name a folder of your own with --cache-dir")),
        "{lines:?}"
    );
    assert!(!lines.is_empty());
}
