//! Tests that `cargo xtask test` skips because this machine lacks a browser, another language's
//! tools, or a right that only root has. The tests of the whole program share this module.
//!
//! A list has the skipped tests, and the summary prints it with the commands that install the
//! missing tools. If `RUNNER_LEAVE_OUT` is set, only tests of the tools that it names may be
//! skipped; `.ci/run` sets it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

pub const LIST: &str = "RUNNER_TESTS_LEFT_OUT";

/// A tool or a right that a machine may lack.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    /// Its name in `RUNNER_LEAVE_OUT`.
    pub key: &'static str,
    pub name: &'static str,
    /// The way to get it: a command, or a sentence.
    pub remedy: &'static str,
}

/// Notes a skipped test in this list. Fails if `RUNNER_LEAVE_OUT` is set and does not name this.
pub fn leave_out(lack: &Lack, who: &str, list: Option<&Path>) -> Result<(), String> {
    let allowed = std::env::var("RUNNER_LEAVE_OUT").ok();
    may_leave_out(allowed.as_deref(), lack, who)?;
    let Lack { name, remedy, .. } = lack;
    eprintln!("{who} is left out, because this machine lacks {name}: {remedy}");
    if let Some(list) = list {
        let list = std::fs::OpenOptions::new().append(true).create(true).open(list);
        // One write, so that lines of several processes do not mix.
        let line = format!("{name}\t{remedy}\t{who}\n");
        list.and_then(|mut list| list.write_all(line.as_bytes()))
            .map_err(|cause| format!("{who}: noting the skipped test: {cause}"))?;
    }
    Ok(())
}

/// Checks that a test that needs this may be left out. Without a list of names, any test may.
fn may_leave_out(allowed: Option<&str>, lack: &Lack, who: &str) -> Result<(), String> {
    let Lack { key, name, remedy } = lack;
    let is_allowed = |names: &str| names.split(',').any(|name| name.trim() == *key);
    if allowed.is_none_or(is_allowed) {
        Ok(())
    } else {
        Err(format!("{who} needs {name}: {remedy}; or name `{key}` in RUNNER_LEAVE_OUT"))
    }
}

/// The list as text, one paragraph for each missing thing; empty if nothing was missing.
#[allow(dead_code, reason = "the tests only write the list")]
pub fn summary(list: &Path) -> std::io::Result<String> {
    let text = match std::fs::read_to_string(list) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let mut lacks: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, '\t');
        if let (Some(name), Some(remedy), Some(who)) = (fields.next(), fields.next(), fields.next())
        {
            let all = lacks.entry((name, remedy)).or_default();
            if !all.contains(&who) {
                all.push(who);
            }
        }
    }
    let mut words = String::new();
    for ((name, remedy), tests) in lacks {
        let _ = writeln!(words, "  {name} ({remedy})");
        for test in tests {
            let _ = writeln!(words, "    {test}");
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::{Lack, may_leave_out, summary};

    #[test]
    fn only_named_tools_may_be_missing() {
        let lack = Lack { key: "slurm", name: "Slurm", remedy: "apt-get install slurm-wlm" };
        let check = |allowed| may_leave_out(allowed, &lack, "fleets::starters");
        assert_eq!(check(None), Ok(()));
        assert_eq!(check(Some("browser, slurm")), Ok(()));
        let why = "fleets::starters needs Slurm: apt-get install slurm-wlm; or name `slurm` in RUNNER_LEAVE_OUT";
        for allowed in ["advisories", "slurm-wlm", ""] {
            assert_eq!(check(Some(allowed)), Err(why.to_owned()), "{allowed}");
        }
    }

    #[test]
    fn the_summary_lists_each_lack_once_with_its_tests() {
        let folder = std::env::temp_dir().join(format!("left-out-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let list = folder.join("list");
        assert_eq!(summary(&list).unwrap(), "");
        let lines = "a browser\tapt-get install chromium\tbrowser::one\nmpirun\tapt-get install openmpi-bin\tfleets::two\n\
                     a browser\tapt-get install chromium\tbrowser::three\na browser\tapt-get install chromium\tbrowser::one\n";
        std::fs::write(&list, lines).unwrap();
        assert_eq!(
            summary(&list).unwrap(),
            "  a browser (apt-get install chromium)\n    browser::one\n    browser::three\n  \
             mpirun (apt-get install openmpi-bin)\n    fleets::two\n"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
