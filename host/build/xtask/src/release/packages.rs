//! The files of a release: the required files, that the built files match them, and that none is
//! missing before anything is published. `cargo xtask package` makes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use semver::Version;

use super::Outcome;
use crate::dist::sha256;

/// The list of digests in a folder of packages.
const SUMS: &str = "SHA256SUMS";

/// A machine that packages are made for: the target, and its names in each kind of package.
struct Machine {
    target: &'static str,
    python: &'static str,
    debian: &'static str,
    npm: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine { target: "x86_64-unknown-linux-musl", python: "x86_64", debian: "amd64", npm: "x64" },
    Machine {
        target: "aarch64-unknown-linux-musl",
        python: "aarch64",
        debian: "arm64",
        npm: "arm64",
    },
];

/// Names of the files that each machine makes of its own; a star stands for any text.
fn of_machine(machine: &Machine, version: &Version) -> Vec<String> {
    let Machine { target, python, debian, npm } = machine;
    vec![
        format!("runner-{version}-{target}.tar.gz"),
        format!("runner-{version}-{target}.oci.tar"),
        format!("runner-{version}-{target}.cdx.json"),
        format!("runner_llm-{version}-py3-none-*{python}.whl"),
        format!("runner-llm_{version}_{debian}.deb"),
        format!("runner-llm-linux-{npm}-{version}.tgz"),
    ]
}

/// Names of the files that are the same whichever machine made them.
fn common(version: &Version) -> Vec<String> {
    vec![format!("runner-llm-{version}.tgz")]
}

/// Names of the files that name the archives of all machines, so that they are made last.
fn made_last() -> Vec<String> {
    ["runner-llm.rb", "flake.nix", "package.nix"].map(str::to_owned).to_vec()
}

/// Copies the packages of all machines into one folder, if each folder is as its list of digests
/// says. `cargo xtask package formula` writes the files that name the archives of all machines.
///
/// # Errors
/// If a file cannot be read or written.
pub fn gather(version: &Version, from: &Path, to: &Path) -> Result<Outcome> {
    let mut mistakes = Vec::new();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for machine in &MACHINES {
        let folder = from.join(machine.target);
        if !folder.is_dir() {
            mistakes.push(format!(
                "{} is not there; the packages of that machine were not built",
                folder.display()
            ));
            continue;
        }
        mistakes.extend(unlike_sums(&folder)?);
        let wanted = [of_machine(machine, version), common(version)].concat();
        let names = names(&folder)?;
        mistakes.extend(missing(&folder, &names, &wanted));
        for name in names {
            let is_last = made_last().contains(&name) || name == SUMS;
            if is_last || !wanted.iter().any(|pattern| is_like(&name, pattern)) {
                if !is_last {
                    mistakes.push(format!(
                        "{}: no package of {version} for {} has this name",
                        folder.join(&name).display(),
                        machine.target
                    ));
                }
                continue;
            }
            let bytes = read(&folder.join(&name))?;
            match files.get(&name) {
                Some(other) if *other != bytes => mistakes.push(format!(
                    "{name} differs between machines; it must not depend on the machine"
                )),
                _ => drop(files.insert(name, bytes)),
            }
        }
    }
    if to.exists() && !names(to)?.is_empty() {
        mistakes.push(format!("{} is not empty; remove it", to.display()));
    }
    if !mistakes.is_empty() {
        return Ok(Err(mistakes));
    }
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    let mut words = String::new();
    for (name, bytes) in &files {
        fs::write(to.join(name), bytes).with_context(|| format!("writing {name}"))?;
        let _ = writeln!(words, "{}  {name}", sha256(bytes));
    }
    Ok(Ok(words))
}

/// Checks that a folder has every package of every machine and nothing else, and that its list of
/// digests is true.
///
/// # Errors
/// If a file cannot be read.
pub fn complete(version: &Version, folder: &Path) -> Result<Outcome> {
    if !folder.is_dir() {
        return Ok(Err(vec![format!(
            "{} is not there; `cargo xtask release --gather FOLDER` makes it",
            folder.display()
        )]));
    }
    let mut wanted = [common(version), made_last()].concat();
    for machine in &MACHINES {
        wanted.extend(of_machine(machine, version));
    }
    let names = names(folder)?;
    let mut mistakes = missing(folder, &names, &wanted);
    for name in &names {
        if name != SUMS && !wanted.iter().any(|pattern| is_like(name, pattern)) {
            let path = folder.join(name);
            mistakes.push(format!("{}: no package of {version}", path.display()));
        }
    }
    mistakes.extend(unlike_sums(folder)?);
    Ok(if mistakes.is_empty() {
        Ok(format!("{} packages of {version}\n", names.len() - 1))
    } else {
        Err(mistakes)
    })
}

/// Mistakes for the names that no file has.
fn missing(folder: &Path, names: &[String], wanted: &[String]) -> Vec<String> {
    let absent = wanted.iter().filter(|pattern| !names.iter().any(|name| is_like(name, pattern)));
    absent.map(|pattern| format!("{} is missing", folder.join(pattern).display())).collect()
}

/// Compares a folder with its list of digests, in both directions.
fn unlike_sums(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join(SUMS);
    if !path.exists() {
        return Ok(vec![format!("{} is missing", path.display())]);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut mistakes = Vec::new();
    let mut listed = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((digest, name)) = line.split_once("  ") else {
            mistakes.push(format!(
                "{}:{}: expected a digest, two spaces and a name",
                path.display(),
                index + 1
            ));
            continue;
        };
        listed.push(name);
        let file = folder.join(name);
        if !file.is_file() {
            mistakes.push(format!("{} is listed and missing", file.display()));
        } else if sha256(&read(&file)?) != digest {
            mistakes.push(format!("{} is not the file whose digest {SUMS} has", file.display()));
        }
    }
    for name in names(folder)? {
        if name != SUMS && !listed.contains(&name.as_str()) {
            mistakes.push(format!("{SUMS} does not list {}", folder.join(name).display()));
        }
    }
    Ok(mistakes)
}

/// Names of the files in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// True if a name is the pattern's, whose star stands for any text.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(is_like("runner.rb", "runner.rb"));
        assert!(is_like("r-none-manylinux_x86_64.whl", "r-none-*x86_64.whl"));
        assert!(is_like("r-none-x86_64.whl", "r-none-*x86_64.whl"));
        assert!(!is_like("r-none-aarch64.whl", "r-none-*x86_64.whl"));
        assert!(!is_like("ab", "ab*b"));
    }
}
