//! Releases: the version of everything that ships, raised by one command, and the checks that the
//! release workflow makes between its steps.
//!
//! Everything is planned in memory and written at the end, so that a mistake leaves the tree as it
//! was. `changelog` knows CHANGELOG.md, `versions` the files that hold the version, and `packages`
//! the files of a release. `.github/workflows/release.yml` decides when to publish, and which
//! files.

mod changelog;
mod packages;
mod versions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use changelog::Changelog;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use semver::Version;
use versions::Versions;

/// The file that lists the changes of each version.
const CHANGELOG: &str = "CHANGELOG.md";

/// Help for `release` and `release-notes`.
const HELP: &str = "\
cargo xtask release VERSION [--date YYYY-MM-DD]   raise the version and date the changelog's open section
cargo xtask release --show            print the version of this tree
cargo xtask release --check TAG       check that the tag names the version of this tree
cargo xtask release --gather FOLDER   copy the packages of all machines from FOLDER/TARGET to target/gathered
cargo xtask release --complete        check that target/gathered has every package, as in its SHA256SUMS
cargo xtask release-notes [VERSION]   print a version's section of the changelog; `unreleased` is a version too

  --root FOLDER      another checkout instead of this one
  --output FOLDER    another folder instead of target/gathered
  --repository URL   for notes: links to files lead there

Mistakes are told all at once, and nothing is written where there is one.
";

/// The task that the arguments state.
enum Task {
    Raise(String, Option<String>),
    Check(String),
    Gather(PathBuf),
    Complete,
    Show,
    Help,
}

/// Options that every task has.
struct Options {
    root: PathBuf,
    output: PathBuf,
}

/// Runs `cargo xtask release ARG...`.
///
/// # Errors
/// If an argument is unknown or missing.
pub fn release(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let (task, options) = asked(root, arguments)?;
    let root = &options.root;
    let done = match task {
        Task::Help => Ok(HELP.to_owned()),
        Task::Show => Ok(format!("{}\n", versions::current(root)?)),
        Task::Raise(version, date) => raise(root, &version, date.as_deref())?,
        Task::Check(tag) => check(root, &tag)?,
        Task::Gather(from) => packages::gather(&versions::current(root)?, &from, &options.output)?,
        Task::Complete => packages::complete(&versions::current(root)?, &options.output)?,
    };
    match done {
        Ok(words) => {
            print!("{words}");
            Ok(ExitCode::SUCCESS)
        }
        Err(mistakes) => {
            for mistake in mistakes {
                eprintln!("xtask: {mistake}");
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Prints the changelog's section of a version, without its heading.
///
/// # Errors
/// If the changelog has no such section, or an empty one.
pub fn notes(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let mut arguments = Arguments::split(arguments, &["root", "repository"])?;
    let root = &arguments.root(root);
    let version = match arguments.words.as_slice() {
        [] => versions::current(root)?.to_string(),
        [word] if word == "--help" => {
            print!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        [word] => word.clone(),
        _ => bail!("`release-notes` takes one version; `cargo xtask release --help` has the form"),
    };
    let text = read(root, CHANGELOG)?;
    let changelog = Changelog::read(&text);
    let section = match version.as_str() {
        "unreleased" => changelog.open(),
        version => changelog.of(version),
    };
    let Some(section) = section else {
        let known = changelog.names().join(", ");
        bail!("{CHANGELOG} has no section of `{version}`; it has {known}");
    };
    if !section.has_entries() {
        bail!("{CHANGELOG}:{}: the section is empty", section.line);
    }
    let text = section.text.trim();
    match arguments.flags.get("repository") {
        Some(repository) => println!("{}", linked(text, &format!("{repository}/blob/v{version}"))),
        None => println!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Text whose links to files of the tree lead to the tree's address: the page of a release has no
/// folder to start from.
fn linked(text: &str, tree: &str) -> String {
    let mut parts = text.split("](");
    let mut linked = parts.next().unwrap_or("").to_owned();
    for part in parts {
        linked += "](";
        if !part.starts_with('#') && !part.split(')').next().unwrap_or("").contains("://") {
            linked += tree;
            linked += "/";
        }
        linked += part;
    }
    linked
}

/// Arguments: words, and flags with their values.
struct Arguments {
    words: Vec<String>,
    flags: BTreeMap<String, String>,
}

impl Arguments {
    /// Splits arguments into words and flags; flags with these names have a value.
    fn split(arguments: &[OsString], flags: &[&str]) -> Result<Self> {
        let mut split = Self { words: Vec::new(), flags: BTreeMap::new() };
        let mut rest = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(word) = rest.next() {
            match word.strip_prefix("--").filter(|name| flags.contains(name)) {
                None => split.words.push(word.into_owned()),
                Some(name) => {
                    let value = rest.next().with_context(|| format!("{word} needs a value"))?;
                    split.flags.insert(name.to_owned(), value.into_owned());
                }
            }
        }
        Ok(split)
    }

    /// The checkout that is worked on.
    fn root(&mut self, default: &Path) -> PathBuf {
        let root = self.flags.remove("root").map(PathBuf::from);
        root.unwrap_or_else(|| default.to_owned())
    }
}

fn asked(root: &Path, arguments: &[OsString]) -> Result<(Task, Options)> {
    let flags = ["root", "output", "date", "check", "gather"];
    let mut arguments = Arguments::split(arguments, &flags)?;
    let root = arguments.root(root);
    let output = arguments.flags.remove("output").map(PathBuf::from);
    let options = Options { output: output.unwrap_or_else(|| root.join("target/gathered")), root };
    let Arguments { words, flags } = arguments;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let flags: Vec<(&str, &str)> = (flags.iter().map(|(k, v)| (k.as_str(), v.as_str()))).collect();
    let task = match (words.as_slice(), flags.as_slice()) {
        (["--help"], []) => Task::Help,
        (["--complete"], []) => Task::Complete,
        (["--show"], []) => Task::Show,
        ([], [("check", tag)]) => Task::Check((*tag).to_owned()),
        ([], [("gather", folder)]) => Task::Gather(folder.into()),
        ([version], []) if !version.starts_with('-') => Task::Raise((*version).to_owned(), None),
        ([version], [("date", date)]) => {
            Task::Raise((*version).to_owned(), Some((*date).to_owned()))
        }
        _ => bail!("expected one of the forms of `cargo xtask release --help`"),
    };
    Ok((task, options))
}

/// Words for the user, or all mistakes.
type Outcome = Result<String, Vec<String>>;

/// Raises the version of the tree.
fn raise(root: &Path, wanted: &str, date: Option<&str>) -> Result<Outcome> {
    let mut mistakes = Vec::new();
    mistakes.extend(changes(root)?);
    let versions = Versions::read(root)?;
    mistakes.extend(versions.mistakes());
    let text = read(root, CHANGELOG)?;
    let changelog = Changelog::read(&text);
    let version = parsed(wanted).map_err(|mistake| mistakes.push(mistake));
    let date = match date {
        Some(date) => {
            date.parse().map_err(|_| mistakes.push(format!("--date {date}: expected YYYY-MM-DD")))
        }
        None => Ok(today()),
    };
    mistakes.extend(changelog.mistakes());
    if let Ok(version) = &version {
        let current = &versions.current;
        // The first release has the number that the tree was begun with.
        let is_released = changelog.is_released(&current.to_string());
        if version < current || (version == current && is_released) {
            mistakes.push(format!("{version} is not above {current}, the version in Cargo.toml"));
        }
        if changelog.is_released(wanted) && version != current {
            mistakes.push(format!("{CHANGELOG} has a section of {version} already"));
        }
    }
    let (Ok(version), Ok(date)) = (version, date) else {
        return Ok(Err(mistakes));
    };
    let new = changelog.released(&text, &version.to_string(), &date.to_string());
    if !mistakes.is_empty() {
        return Ok(Err(mistakes));
    }
    let mut written = versions.raised(&version);
    written.push((PathBuf::from(CHANGELOG), new.context("the changelog has no open section")?));
    write_all(root, &written)?;
    let mut words = String::new();
    for (path, _) in &written {
        words += &format!("wrote {}\n", path.display());
    }
    words += &format!(
        "\nNext:\n  git diff\n  git commit --all --message 'release: {version}'\n  \
         git tag --annotate v{version} --message 'runner {version}'\n  \
         git push origin HEAD v{version}\n\
         The tag starts .github/workflows/release.yml. Try it first without publishing:\n  \
         gh workflow run release.yml --ref BRANCH --field dry-run=true\n"
    );
    Ok(Ok(words))
}

/// Checks that a tag and the tree name one version.
fn check(root: &Path, tag: &str) -> Result<Outcome> {
    let versions = Versions::read(root)?;
    let mut mistakes = versions.mistakes();
    let current = &versions.current;
    if tag != format!("v{current}") {
        mistakes
            .push(format!("tag `{tag}`: expected `v{current}`, from the version in Cargo.toml"));
    }
    if let Err(mistake) = parsed(&current.to_string()) {
        mistakes.push(mistake);
    }
    let text = read(root, CHANGELOG)?;
    let changelog = Changelog::read(&text);
    match changelog.of(&current.to_string()) {
        Some(section) if section.date().is_none() => mistakes.push(format!(
            "{CHANGELOG}:{}: the section of {current} has no date; `cargo xtask release {current}` gives it one",
            section.line
        )),
        Some(section) if !section.has_entries() => mistakes.push(format!(
            "{CHANGELOG}:{}: the section of {current} is empty",
            section.line
        )),
        Some(_) => {}
        None => mistakes.push(format!("{CHANGELOG} has no section of {current}")),
    }
    Ok(if mistakes.is_empty() {
        Ok(format!("{tag} is the version of this tree\n"))
    } else {
        Err(mistakes)
    })
}

/// Lists the uncommitted changes, if there are any.
fn changes(root: &Path) -> Result<Option<String>> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["status", "--porcelain"])
        .output()
        .context("git does not start")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let files: Vec<&str> = text.lines().filter_map(|line| line.get(3..)).collect();
    let shown = files.iter().take(5).copied().collect::<Vec<_>>().join(", ");
    Ok(match files.len() {
        0 => None,
        count @ 1..=5 => Some(format!(
            "the tree has {count} files that are not committed: {shown}; commit or stash them"
        )),
        count => Some(format!(
            "the tree has {count} files that are not committed: {shown} and others; commit or stash them"
        )),
    })
}

/// Reads a version that may be released.
fn parsed(text: &str) -> Result<Version, String> {
    let form = "expected MAJOR.MINOR.PATCH, such as 0.2.0";
    let version: Version =
        text.parse().map_err(|cause| format!("version `{text}`: {form}: {cause}"))?;
    if !version.pre.is_empty() || !version.build.is_empty() {
        // A wheel, a Debian package, an npm package and an image each write these in another way,
        // and an image's tag can hold no `+`.
        return Err(format!(
            "version `{text}`: {form}; packages have no one form for what follows it"
        ));
    }
    Ok(version)
}

fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// Reads a file below the root.
fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
}

/// Writes all files or none: each beside its place first, and then all are moved.
fn write_all(root: &Path, files: &[(PathBuf, String)]) -> Result<()> {
    let beside = |path: &Path| {
        let mut name = root.join(path).into_os_string();
        name.push(".new");
        PathBuf::from(name)
    };
    let written = files.iter().try_for_each(|(path, text)| {
        fs::write(beside(path), text).with_context(|| format!("writing {}", path.display()))
    });
    if let Err(error) = written {
        for (path, _) in files {
            let _ = fs::remove_file(beside(path));
        }
        return Err(error);
    }
    for (path, _) in files {
        fs::rename(beside(path), root.join(path))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{linked, parsed};

    #[test]
    fn links_to_files_lead_to_the_tree() {
        let text = "[A](a/B.md#c), [b](https://example.org/x), [c](#d) and (e)";
        assert_eq!(
            linked(text, "https://example.org/r/blob/v1"),
            "[A](https://example.org/r/blob/v1/a/B.md#c), [b](https://example.org/x), [c](#d) and (e)"
        );
    }

    #[test]
    fn a_released_version_has_three_numbers() {
        assert_eq!(parsed("0.2.0").unwrap().to_string(), "0.2.0");
        for wrong in ["0.2", "v0.2.0", "0.2.0-rc.1", "0.2.0+5", "01.2.0", "", "0.2.0 "] {
            let why = parsed(wrong).unwrap_err();
            assert!(
                why.starts_with(&format!(
                    "version `{wrong}`: expected MAJOR.MINOR.PATCH, such as 0.2.0"
                )),
                "{why}"
            );
        }
    }
}
