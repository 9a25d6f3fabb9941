//! Releases: raises the version of everything that ships, dates the changelog, and checks a tag.
//! `.github/workflows/release.yml` builds and publishes.
//!
//! A mistake leaves the tree as it was: all files are written after all checks.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use semver::Version;

const CHANGELOG: &str = "CHANGELOG.md";
const MANIFEST: &str = "Cargo.toml";
/// The lock files of the workspace, the fuzzer, and the fixture with its own WASI library.
const LOCKS: [&str; 3] = ["Cargo.lock", "tests/fuzz/Cargo.lock", "tests/wasi3/Cargo.lock"];

const HELP: &str = "\
cargo xtask release VERSION           raise the version, and date the changelog's open section
cargo xtask release --show            print the version of this tree
cargo xtask release --check TAG       check that the tag and the changelog name the version of this tree
cargo xtask release-notes [VERSION]   print a version's section of the changelog

  --root FOLDER      another checkout instead of this one
  --repository URL   for notes: links to files lead there
";

/// Runs `cargo xtask release ARG...`. The error has every mistake, one a line.
pub fn release(root: &Path, arguments: &[OsString]) -> Result<()> {
    let mut words = words(arguments);
    let root = taken(&mut words, "--root")?.map_or(root.to_owned(), Into::into);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let tree = Tree::read(&root)?;
    match words.as_slice() {
        ["--show"] => println!("{}", tree.version),
        ["--check", tag] => tree.check(tag)?,
        [version] if !version.starts_with('-') => tree.raise(&root, version)?,
        _ => print!("{HELP}"),
    }
    Ok(())
}

/// Prints the changelog's section of a version, without its heading.
pub fn notes(root: &Path, arguments: &[OsString]) -> Result<()> {
    let mut words = words(arguments);
    let root = taken(&mut words, "--root")?.map_or(root.to_owned(), Into::into);
    let repository = taken(&mut words, "--repository")?;
    let tree = Tree::read(&root)?;
    let version = words.first().map_or_else(|| tree.version.to_string(), String::clone);
    let section = sections(&tree.changelog).into_iter().find(|section| section.name() == version);
    let section = section.with_context(|| format!("{CHANGELOG} has no section of `{version}`"))?;
    if !section.has_entries() {
        bail!("{CHANGELOG}: the section of {version} is empty");
    }
    let text = section.text.trim();
    match repository {
        Some(repository) => println!("{}", linked(text, &format!("{repository}/blob/v{version}"))),
        None => println!("{text}"),
    }
    Ok(())
}

fn words(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn taken(words: &mut Vec<String>, flag: &str) -> Result<Option<String>> {
    let Some(at) = words.iter().position(|word| word == flag) else { return Ok(None) };
    if at + 1 == words.len() {
        bail!("{flag} needs a value");
    }
    Ok(words.drain(at..at + 2).nth(1))
}

/// Text whose links lead to the tree's address: a release's page has no folder.
fn linked(text: &str, tree: &str) -> String {
    let folder = format!("{tree}/");
    let link = |part: &str| {
        let tree = if part.starts_with('#') || part.starts_with("http") { "" } else { &*folder };
        format!("]({tree}{part}")
    };
    let (first, rest) = text.split_once("](").unwrap_or((text, ""));
    let rest: String = rest.split("](").filter(|part| !part.is_empty()).map(link).collect();
    format!("{first}{rest}")
}

struct Section<'t> {
    /// The heading without its `## `.
    heading: &'t str,
    text: &'t str,
}

fn sections(changelog: &str) -> Vec<Section<'_>> {
    let parts = changelog.split("\n## ").skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .map(|(heading, text)| Section { heading, text })
        .collect()
}

impl Section<'_> {
    fn name(&self) -> &str {
        let name = self.heading.split(']').next().unwrap_or(self.heading);
        name.strip_prefix('[').unwrap_or(name)
    }

    fn is_dated(&self) -> bool {
        self.heading.split_once("] - ").is_some_and(|(_, date)| date.parse::<Date>().is_ok())
    }

    /// True until a release dates the section.
    fn is_open(&self) -> bool {
        self.heading == "[Unreleased]" || self.heading.ends_with("] - not released yet")
    }

    /// True if the section has a list entry; headings alone do not count.
    fn has_entries(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("- "))
    }
}

/// The version of a tree, and the files that a release changes.
struct Tree {
    version: Version,
    manifest: String,
    changelog: String,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let manifest = read(root, MANIFEST)?;
        let table: toml::Table = manifest.parse().context(MANIFEST)?;
        let version = table["workspace"]["package"]["version"].as_str();
        let version = version.context("Cargo.toml has no `workspace.package.version`")?;
        let version = version.parse().with_context(|| format!("Cargo.toml: `{version}`"))?;
        Ok(Self { version, manifest, changelog: read(root, CHANGELOG)? })
    }

    /// Checks that a tag names the version of the tree, and that the changelog has its section.
    fn check(&self, tag: &str) -> Result<()> {
        let current = &self.version;
        let mut mistakes = Vec::new();
        if tag != format!("v{current}") {
            mistakes.push(format!("tag `{tag}`: expected `v{current}`, the version in Cargo.toml"));
        }
        let sections = sections(&self.changelog);
        let own = sections.iter().find(|section| section.name() == current.to_string());
        if !own.is_some_and(|own| own.is_dated() && own.has_entries()) {
            mistakes.push(format!(
                "{CHANGELOG} has no section of {current} with a date and entries; \
                 `cargo xtask release {current}` dates the open section"
            ));
        }
        all(mistakes)
    }

    /// Raises the version of the tree, and dates the changelog's open section.
    fn raise(&self, root: &Path, wanted: &str) -> Result<()> {
        let mut mistakes = changes(root)?;
        let current = &self.version;
        let sections = sections(&self.changelog);
        let is_released =
            |name: &str| sections.iter().any(|other| other.name() == name && other.is_dated());
        match wanted.parse::<Version>() {
            // Each kind of package writes a pre-release in its own way.
            Ok(wanted) if !wanted.pre.is_empty() || !wanted.build.is_empty() => {
                mistakes.push(format!("version `{wanted}`: expected MAJOR.MINOR.PATCH"));
            }
            // The first release has the number that the tree was begun with.
            Ok(wanted) if wanted < *current || is_released(&wanted.to_string()) => {
                mistakes
                    .push(format!("{wanted} is not above {current}, the version in Cargo.toml"));
            }
            Ok(_) => {}
            Err(cause) => mistakes.push(format!(
                "version `{wanted}`: expected MAJOR.MINOR.PATCH, such as 0.2.0: {cause}"
            )),
        }
        let open = sections.first().filter(|first| first.is_open() && first.has_entries());
        if open.is_none() {
            mistakes.push(format!(
                "{CHANGELOG}: expected `## [Unreleased]` as the first section, with entries"
            ));
        }
        all(mistakes)?;
        let heading = open.map_or("", |open| open.heading);
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let dated = format!("\n## [Unreleased]\n\n## [{wanted}] - {today}\n");
        let changelog = self.changelog.replacen(&format!("\n## {heading}\n"), &dated, 1);
        let [old, new] = [current.to_string(), wanted.to_owned()]
            .map(|version| format!("\nversion = \"{version}\"\n"));
        let mut files = vec![(MANIFEST, self.manifest.replacen(&old, &new, 1))];
        for lock in LOCKS {
            // Our packages are the packages without a source.
            let packages = read(root, lock)?;
            let raised = packages.split("\n\n").map(|package| {
                if package.contains("\nsource = ") {
                    return package.to_owned();
                }
                format!("{package}\n").replacen(&old, &new, 1).trim_end().to_owned()
            });
            let raised = raised.collect::<Vec<_>>().join("\n\n");
            files.push((lock, raised.trim_end().to_owned() + "\n"));
        }
        files.push((CHANGELOG, changelog));
        for (path, text) in files {
            fs::write(root.join(path), text).with_context(|| format!("writing {path}"))?;
        }
        print!(
            "Next:\n  git diff\n  git commit --all --message 'release: {wanted}'\n  \
             git tag --annotate v{wanted} --message 'runner {wanted}'\n  \
             git push origin HEAD v{wanted}\n\
             The tag starts .github/workflows/release.yml. Try it first without publishing:\n  \
             gh workflow run release.yml --ref BRANCH --field dry-run=true\n"
        );
        Ok(())
    }
}

fn all(mistakes: Vec<String>) -> Result<()> {
    if mistakes.is_empty() { Ok(()) } else { bail!("{}", mistakes.join("\n")) }
}

fn changes(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["status", "--porcelain"])
        .output()
        .context("git")?;
    let is_clean = output.status.success() && output.stdout.is_empty();
    let files = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let mistake = format!("the tree is not committed:\n{}", files.trim_end());
    Ok(if is_clean { Vec::new() } else { vec![mistake] })
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[test]
    fn links_to_files_lead_to_the_tree() {
        let text = "[A](a/B.md#c), [b](https://example.org/x), [c](#d) and (e)";
        assert_eq!(
            linked(text, "https://example.org/r/blob/v1"),
            "[A](https://example.org/r/blob/v1/a/B.md#c), [b](https://example.org/x), [c](#d) and (e)"
        );
    }
}
