//! A wheel: the program as a script of its environment, with the Python module that calls it.
//!
//! A static program runs on any Linux, so its wheel has the tags of manylinux and musllinux. One
//! that needs glibc has the tag of the version that it calls. One that needs more has the tag
//! `linux`, which installs here and which no index takes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use super::Package;
use crate::elf::Elf;
use crate::product::{NOTICES, Product, SBOM};
use crate::project::read;
use crate::target::Target;
use crate::tree::Tree;
use crate::{COMMAND, PACKAGE_NAME, PYTHON_NAME, SUMMARY, version};

/// The oldest platform that Rust's standard library runs on, by its glibc.
const OLDEST: &str = "manylinux_2_17";
/// The same by the year of its definition, as older versions of pip know it.
const OLDEST_BY_YEAR: &str = "manylinux2014";

/// Makes the wheel.
///
/// # Errors
/// If the module's metadata has keys that wheels here do not carry, or another version.
pub fn make(product: &Product) -> Result<Vec<Package>> {
    let version = version::python(&product.project.version)?;
    let stem = format!("{PYTHON_NAME}-{version}");
    let info = format!("{stem}.dist-info");
    let platforms = platforms(product.target, &product.elf);
    let mut tree = Tree::new();
    tree.program(format!("{stem}.data/scripts/{COMMAND}"), &product.program);
    let python = product.project.python_folder();
    let module = python.join("src").join(PYTHON_NAME);
    if module.exists() {
        add_module(&mut tree, &module, PYTHON_NAME)?;
    }
    let described = product.project.python()?.unwrap_or_default();
    let metadata = Metadata {
        version: &version,
        semantic: &product.project.version,
        license: &product.project.license,
        has_notices: product.notices.is_some(),
        repository: product.project.repository.as_deref(),
        readme: &product.project.readme,
        folder: &python,
    };
    tree.file(format!("{info}/METADATA"), metadata.write(&described)?);
    tree.file(format!("{info}/WHEEL"), wheel(&platforms));
    let license = &product.project.license_text;
    tree.file(format!("{info}/licenses/LICENSE"), license);
    if let Some(notices) = &product.notices {
        tree.file(format!("{info}/licenses/{NOTICES}"), notices);
    }
    if let Some(sbom) = &product.sbom {
        tree.file(format!("{info}/sboms/{SBOM}"), sbom);
    }
    let record = format!("{info}/RECORD");
    let list = list(&tree, &record);
    tree.file(record, list);
    let name = format!("{stem}-py3-none-{}.whl", platforms.join("."));
    Ok(vec![(name, tree.zip(product.date, product.level)?)])
}

/// The platforms whose machines can run it.
fn platforms(target: Target, elf: &Elf) -> Vec<String> {
    let systems = match (target.is_static, elf.glibc) {
        (true, _) => vec![OLDEST.to_owned(), OLDEST_BY_YEAR.to_owned(), "musllinux_1_2".to_owned()],
        (false, Some((2, minor))) if elf.needed.iter().all(|name| is_everywhere(name)) => {
            match minor {
                0..=17 => vec![OLDEST.to_owned(), OLDEST_BY_YEAR.to_owned()],
                _ => vec![format!("manylinux_2_{minor}")],
            }
        }
        (false, _) => vec!["linux".to_owned()],
    };
    let machine = target.machine.name();
    systems.iter().map(|system| format!("{system}_{machine}")).collect()
}

/// True if every Linux with glibc has the library: it is a part of glibc, or the unwinder.
fn is_everywhere(library: &str) -> bool {
    let (name, _) = library.split_once(".so").unwrap_or((library, ""));
    ["libc", "libdl", "libgcc_s", "libm", "libpthread", "librt", "libutil"].contains(&name)
        || name.starts_with("ld-linux-")
}

/// The file `WHEEL`.
fn wheel(platforms: &[String]) -> Vec<u8> {
    let mut text = format!(
        "Wheel-Version: 1.0\nGenerator: package ({})\nRoot-Is-Purelib: false\n",
        env!("CARGO_PKG_VERSION")
    );
    for platform in platforms {
        let _ = writeln!(text, "Tag: py3-none-{platform}");
    }
    text.into_bytes()
}

/// The file `RECORD`: every file with its digest and its size, and itself with neither.
fn list(tree: &Tree, itself: &str) -> Vec<u8> {
    let mut text = String::new();
    for (path, bytes) in tree.files() {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let _ = writeln!(text, "{path},sha256={digest},{}", bytes.len());
    }
    let _ = writeln!(text, "{itself},,");
    text.into_bytes()
}

/// Adds the module's files, without Python's compiled ones.
fn add_module(tree: &mut Tree, folder: &Path, path: &str) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" || name.ends_with(".pyc") {
            continue;
        }
        let path = format!("{path}/{name}");
        if entry.file_type()?.is_dir() {
            add_module(tree, &entry.path(), &path)?;
        } else {
            tree.file(path, read(&entry.path())?);
        }
    }
    Ok(())
}

/// Contents of the file `METADATA`, besides the module's own description.
struct Metadata<'a> {
    version: &'a str,
    semantic: &'a str,
    license: &'a str,
    has_notices: bool,
    repository: Option<&'a str>,
    readme: &'a [u8],
    folder: &'a Path,
}

impl Metadata<'_> {
    /// Writes the file, of version 2.4 of the format, from the table `project` of `pyproject.toml`.
    fn write(&self, project: &Table) -> Result<Vec<u8>> {
        let mut lines = String::from("Metadata-Version: 2.4\n");
        let mut line = |key: &str, value: &str| -> Result<()> {
            ensure!(!value.contains(['\n', '\r']), "{key}: expected one line, found {value:?}");
            let _ = writeln!(lines, "{key}: {value}");
            Ok(())
        };
        line("Name", PACKAGE_NAME)?;
        line("Version", self.version)?;
        let mut summary = SUMMARY;
        let mut license = self.license;
        let mut readme = self.readme.to_vec();
        let mut urls = Vec::new();
        if let Some(repository) = self.repository {
            urls.push(("Repository", repository));
        }
        for (key, value) in project {
            let said = || format!("pyproject.toml: `project.{key}`");
            match key.as_str() {
                // The files of the licence are the project's, and the version is the workspace's.
                "dynamic" | "license-files" => {}
                "name" => ensure!(
                    value.as_str() == Some(PACKAGE_NAME),
                    "{}: expected {PACKAGE_NAME}, found {value}",
                    said()
                ),
                "version" => ensure!(
                    [self.version, self.semantic].map(Some).contains(&value.as_str()),
                    "{}: expected {} as in Cargo.toml, found {value}",
                    said(),
                    self.version
                ),
                "description" => summary = value.as_str().with_context(said)?,
                "license" => license = value.as_str().with_context(said)?,
                "readme" => {
                    let name = value.as_str().or_else(|| value.get("file")?.as_str());
                    readme = read(&self.folder.join(name.with_context(said)?))?;
                }
                "requires-python" => line("Requires-Python", value.as_str().with_context(said)?)?,
                "keywords" => line("Keywords", &strings(value).with_context(said)?.join(","))?,
                "classifiers" => {
                    for classifier in strings(value).with_context(said)? {
                        line("Classifier", classifier)?;
                    }
                }
                "authors" | "maintainers" => {
                    for person in value.as_array().with_context(said)? {
                        let (field, value) = person_line(person).with_context(said)?;
                        let field = match (key.as_str(), field) {
                            ("authors", Field::Name) => "Author",
                            ("authors", Field::Email) => "Author-email",
                            (_, Field::Name) => "Maintainer",
                            (_, Field::Email) => "Maintainer-email",
                        };
                        line(field, &value)?;
                    }
                }
                "urls" => {
                    for (name, url) in value.as_table().with_context(said)? {
                        urls.retain(|(known, _)| known != name);
                        urls.push((name, url.as_str().with_context(said)?));
                    }
                }
                "dependencies" => {
                    for dependency in strings(value).with_context(said)? {
                        line("Requires-Dist", dependency)?;
                    }
                }
                "optional-dependencies" => {
                    for (extra, needs) in value.as_table().with_context(said)? {
                        line("Provides-Extra", extra)?;
                        for dependency in strings(needs).with_context(said)? {
                            line("Requires-Dist", &with_extra(dependency, extra))?;
                        }
                    }
                }
                _ => {
                    bail!("{} is not carried into the wheel: add it to the crate `package`", said())
                }
            }
        }
        line("Summary", summary)?;
        line("License-Expression", license)?;
        line("License-File", "LICENSE")?;
        if self.has_notices {
            line("License-File", NOTICES)?;
        }
        for (name, url) in urls {
            line("Project-URL", &format!("{name}, {url}"))?;
        }
        line("Description-Content-Type", "text/markdown; charset=UTF-8")?;
        let mut bytes = lines.into_bytes();
        bytes.push(b'\n');
        bytes.extend(readme);
        Ok(bytes)
    }
}

/// The field that a person stands in.
enum Field {
    Name,
    Email,
}

/// A person, by the rules of `pyproject.toml`: whoever has an address stands in its field.
fn person_line(person: &Value) -> Option<(Field, String)> {
    let text = |key: &str| person.get(key).and_then(Value::as_str);
    match (text("name"), text("email")) {
        (Some(name), Some(email)) => Some((Field::Email, format!("{name} <{email}>"))),
        (None, Some(email)) => Some((Field::Email, email.to_owned())),
        (Some(name), None) => Some((Field::Name, name.to_owned())),
        (None, None) => None,
    }
}

/// A dependency that holds only with an extra.
fn with_extra(dependency: &str, extra: &str) -> String {
    match dependency.split_once(';') {
        Some((what, marker)) => {
            format!("{} ; ({}) and extra == '{extra}'", what.trim(), marker.trim())
        }
        None => format!("{} ; extra == '{extra}'", dependency.trim()),
    }
}

fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::{Metadata, platforms};
    use crate::elf::Elf;
    use crate::target::{Machine, Target};
    use std::path::Path;

    fn written(project: &str) -> anyhow::Result<String> {
        let metadata = Metadata {
            version: "1.2.3rc4",
            semantic: "1.2.3-rc.4",
            license: "Apache-2.0",
            has_notices: true,
            repository: Some("https://example.org/runner"),
            readme: b"# runner\n",
            folder: Path::new("nowhere"),
        };
        let bytes = metadata.write(&toml::from_str(project)?)?;
        Ok(String::from_utf8(bytes)?)
    }

    #[test]
    fn metadata_is_that_of_the_module() {
        let text = written(
            r#"
            name = "runner-llm"
            version = "1.2.3rc4"
            description = "What it is"
            requires-python = ">=3.9"
            keywords = ["a", "b"]
            classifiers = ["Typing :: Typed"]
            authors = [{ name = "A" }, { name = "B", email = "b@example.org" }]
            dependencies = ["nanoarrow>=0.5"]
            optional-dependencies.tables = ["polars", "pandas>=2.2; python_version > '3.9'"]
            urls.Guide = "https://example.org/guide"
            "#,
        );
        let expected = "\
Metadata-Version: 2.4
Name: runner-llm
Version: 1.2.3rc4
Requires-Python: >=3.9
Keywords: a,b
Classifier: Typing :: Typed
Author: A
Author-email: B <b@example.org>
Requires-Dist: nanoarrow>=0.5
Provides-Extra: tables
Requires-Dist: polars ; extra == 'tables'
Requires-Dist: pandas>=2.2 ; (python_version > '3.9') and extra == 'tables'
Summary: What it is
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD-PARTY.txt
Project-URL: Repository, https://example.org/runner
Project-URL: Guide, https://example.org/guide
Description-Content-Type: text/markdown; charset=UTF-8

# runner
";
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let text = text.unwrap();
        assert_eq!(sorted(&text), sorted(expected), "{text}");
        assert!(text.ends_with("\n\n# runner\n"));
    }

    #[test]
    fn metadata_that_the_wheel_does_not_carry_is_refused() {
        let wrong = [
            ("name = 'other'", "project.name"),
            ("version = '9.9.9'", "expected 1.2.3rc4"),
            ("scripts.runner = 'runner_llm:main'", "project.scripts"),
            ("description = \"a\\nb\"", "one line"),
        ];
        for (project, part) in wrong {
            let error = format!("{:#}", written(project).unwrap_err());
            assert!(error.contains(part), "{project}: {error}");
        }
    }

    #[test]
    fn platforms_follow_what_the_program_needs() {
        let of = |glibc: Option<(u32, u32)>, needed: &[&str]| {
            let interpreter =
                (!needed.is_empty()).then(|| "/lib64/ld-linux-x86-64.so.2".to_owned());
            let target = Target { machine: Machine::X86_64, is_static: interpreter.is_none() };
            let elf = Elf {
                machine: target.machine,
                interpreter,
                needed: needed.iter().map(|name| (*name).to_owned()).collect(),
                glibc,
            };
            platforms(target, &elf).join(" ")
        };
        let oldest = "manylinux_2_17_x86_64 manylinux2014_x86_64";
        assert_eq!(of(None, &[]), format!("{oldest} musllinux_1_2_x86_64"));
        let usual = ["libc.so.6", "ld-linux-x86-64.so.2", "libgcc_s.so.1"];
        assert_eq!(of(Some((2, 16)), &usual), oldest);
        assert_eq!(of(Some((2, 17)), &usual), oldest);
        assert_eq!(of(Some((2, 34)), &usual), "manylinux_2_34_x86_64");
        let more = ["libc.so.6", "libssl.so.3"];
        assert_eq!(of(Some((2, 17)), &more), "linux_x86_64");
        assert_eq!(of(None, &["libc.musl-x86_64.so.1"]), "linux_x86_64");
    }
}
