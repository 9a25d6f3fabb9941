//! Energy of the host's processors and memory, from the counters that the kernel shows
//! (<https://docs.kernel.org/power/powercap/powercap.html>). AMD's processors have them under the
//! same names.
//!
//! Since 2020 only root may read them unless the machine's owner says otherwise, so they are often
//! absent. They do not count fans, disks and power supplies.

use std::path::{Path, PathBuf};
use std::{fs, io};

pub const ROOT: &str = "/sys/class/powercap";

#[derive(Debug)]
struct Zone {
    /// The file with the counter, in microjoules.
    energy: PathBuf,
    /// Beyond this it begins at zero again.
    range: u64,
    last: u64,
    /// Energy counted since it was opened, in microjoules.
    counted: u64,
}

#[derive(Debug)]
pub struct Rapl {
    zones: Vec<Zone>,
    names: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRapl {
    #[error("this machine shows no energy counters: no intel-rapl in {}", .0.display())]
    None(PathBuf),
    #[error("{} may be read by root only; `chmod a+r` lets others read it", .0.display())]
    Forbidden(PathBuf),
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
}

impl Rapl {
    /// Opens the host's counters. Fails if there are none, or they cannot be read.
    pub fn open() -> Result<Self, NoRapl> {
        Rapl::open_at(Path::new(ROOT))
    }

    /// The same below another folder. Errors: as of [`Rapl::open`].
    pub fn open_at(root: &Path) -> Result<Self, NoRapl> {
        let none = || NoRapl::None(root.to_owned());
        let entries = fs::read_dir(root).map_err(|_| none())?;
        let named = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            // `intel-rapl-mmio` has the packages a second time.
            is_zone(&entry.file_name().to_string_lossy()).then_some(())?;
            let name = fs::read_to_string(entry.path().join("name")).ok()?;
            Some((entry.path(), name.trim().to_owned()))
        });
        let mut named: Vec<(PathBuf, String)> = named.collect();
        named.sort();
        // A package includes its cores, and not its memory. `psys` includes the whole platform, so
        // it counts only without other counters.
        let part = |name: &str| name.starts_with("package") || name == "dram";
        if named.iter().any(|(_, name)| part(name)) {
            named.retain(|(_, name)| part(name));
        } else {
            named.retain(|(_, name)| name == "psys");
        }
        if named.is_empty() {
            return Err(none());
        }
        let zone = |(path, _): &(PathBuf, String)| {
            let energy = path.join("energy_uj");
            let (last, range) = (number(&energy)?, number(&path.join("max_energy_range_uj"))?);
            Ok(Zone { energy, range, last, counted: 0 })
        };
        let zones = named.iter().map(zone).collect::<Result<_, NoRapl>>()?;
        Ok(Rapl { zones, names: named.into_iter().map(|(_, name)| name).collect() })
    }

    /// Names of the counters, such as `package-0` and `dram`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads the joules that the host has drawn since this was opened. A read a minute is enough
    /// for counters that wrap around. Fails if a counter cannot be read any more.
    pub fn read(&mut self) -> Result<f64, NoRapl> {
        for zone in &mut self.zones {
            let now = number(&zone.energy)?;
            let drawn = if now >= zone.last {
                now - zone.last
            } else {
                (zone.range.saturating_sub(zone.last)).saturating_add(now)
            };
            zone.last = now;
            zone.counted = zone.counted.saturating_add(drawn);
        }
        Ok(self.zones.iter().map(|zone| zone.counted as f64 / 1e6).sum())
    }
}

/// `intel-rapl:0`, `intel-rapl:0:1`.
fn is_zone(name: &str) -> bool {
    name.strip_prefix("intel-rapl:").is_some_and(|rest| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        rest.split(':').all(digits)
    })
}

fn number(path: &Path) -> Result<u64, NoRapl> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => NoRapl::Forbidden(path.to_owned()),
        _ => NoRapl::Unreadable { path: path.to_owned(), why: error.to_string() },
    })?;
    text.trim().parse().map_err(|_| NoRapl::Unreadable {
        path: path.to_owned(),
        why: format!("`{}` is no number", model::clean::line(text.trim())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(root: &Path, folder: &str, name: &str, energy: &str, range: u64) {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("name"), format!("{name}\n")).unwrap();
        fs::write(folder.join("energy_uj"), format!("{energy}\n")).unwrap();
        fs::write(folder.join("max_energy_range_uj"), format!("{range}\n")).unwrap();
    }

    #[test]
    fn packages_and_memory_are_added_and_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        zone(root, "intel-rapl:0", "package-0", "1000000", 10_000_000);
        zone(root, "intel-rapl:0:0", "core", "7", 10_000_000);
        zone(root, "intel-rapl:0:1", "dram", "0", 10_000_000);
        zone(root, "intel-rapl:1", "package-1", "9000000", 10_000_000);
        zone(root, "intel-rapl:2", "psys", "5", 10_000_000);
        zone(root, "intel-rapl-mmio:0", "package-0", "1000000", 10_000_000);
        let mut rapl = Rapl::open_at(root).unwrap();
        assert_eq!(rapl.names(), ["package-0", "dram", "package-1"]);
        assert_eq!(rapl.read().unwrap(), 0.0);
        zone(root, "intel-rapl:0", "package-0", "3500000", 10_000_000);
        zone(root, "intel-rapl:0:0", "core", "2000007", 10_000_000);
        zone(root, "intel-rapl:0:1", "dram", "250000", 10_000_000);
        assert_eq!(rapl.read().unwrap(), 2.75);
        // The second package's counter begins again, twice.
        for energy in ["500000", "400000"] {
            zone(root, "intel-rapl:1", "package-1", energy, 10_000_000);
            rapl.read().unwrap();
        }
        assert_eq!(rapl.read().unwrap(), 2.75 + 1.5 + 9.9);
    }

    #[test]
    fn a_platform_counts_where_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "psys", "5", 100);
        zone(folder.path(), "intel-rapl:0:0", "core", "5", 100);
        let rapl = Rapl::open_at(folder.path()).unwrap();
        assert_eq!(rapl.names(), ["psys"]);
    }

    #[test]
    fn errors_name_the_reason_for_absent_counters() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let none = Rapl::open_at(&root.join("none")).unwrap_err();
        assert!(none.to_string().starts_with("this machine shows no energy counters"));
        zone(root, "intel-rapl", "intel-rapl", "5", 100);
        zone(root, "intel-rapl:x", "package-0", "5", 100);
        assert_eq!(Rapl::open_at(root).unwrap_err(), NoRapl::None(root.to_owned()));
        zone(root, "intel-rapl:0", "package-0", "many", 100);
        let error = Rapl::open_at(root).unwrap_err().to_string();
        assert!(error.ends_with("energy_uj: `many` is no number"), "{error}");
        fs::remove_file(root.join("intel-rapl:0/energy_uj")).unwrap();
        let error = Rapl::open_at(root).unwrap_err().to_string();
        assert!(error.contains("energy_uj: No such file"), "{error}");
        zone(root, "intel-rapl:0", "package-0", "5", 100);
        let mut rapl = Rapl::open_at(root).unwrap();
        fs::remove_dir_all(root.join("intel-rapl:0")).unwrap();
        assert!(rapl.read().is_err());
    }

    #[test]
    #[cfg(unix)]
    fn errors_name_counters_that_only_root_may_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "package-0", "5", 100);
        let file = folder.path().join("intel-rapl:0/energy_uj");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        match fs::read(&file) {
            // Root may read anything.
            Ok(_) => assert!(Rapl::open_at(folder.path()).is_ok()),
            Err(_) => {
                assert_eq!(Rapl::open_at(folder.path()).unwrap_err(), NoRapl::Forbidden(file))
            }
        }
    }
}
