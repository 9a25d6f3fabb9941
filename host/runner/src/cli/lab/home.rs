//! The place of a lab file: a folder, or the program itself.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::failure::Failure;

/// The place of a lab file, from which its paths start.
pub(super) enum Home {
    Folder(PathBuf),
    /// In the program, by this name.
    Shipped(String),
}

impl Home {
    pub(super) fn read(name: &str) -> Result<(String, Self), Failure> {
        let path = Path::new(name);
        match (reader::read_text(path), shipped::lab(name)) {
            (Ok(text), _) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                Ok((text, Home::Folder(folder)))
            }
            (Err(cause), _) if cause.kind() != ErrorKind::NotFound => {
                Err(Failure::input(format!("cannot read the lab `{name}`: {cause}")))
            }
            (Err(_), Some(text)) => Ok((text.to_owned(), Home::Shipped(name.to_owned()))),
            (Err(_), None) => Err(Failure::input(format!(
                "no lab `{name}`: there is no such file; the built-in ones are {}",
                shipped::labs().collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Home::Folder(folder) => Some(folder),
            Home::Shipped(_) => None,
        }
    }

    /// The place where a scenario of the lab is: beside the lab, or built in.
    pub(super) fn scenario(&self, name: &str) -> String {
        match self {
            Home::Folder(folder) => match folder.join(name) {
                path if path.exists() => path.display().to_string(),
                _ => name.to_owned(),
            },
            Home::Shipped(lab) => {
                let mut parts: Vec<&str> = lab.split('/').collect();
                parts.pop();
                for part in name.split('/') {
                    match part {
                        "." => {}
                        ".." => drop(parts.pop()),
                        part => parts.push(part),
                    }
                }
                let beside = parts.join("/");
                let below = format!("{beside}/");
                let known = |known: &str| known == beside || known.starts_with(&below);
                if shipped::scenarios().any(known) { beside } else { name.to_owned() }
            }
        }
    }
}
