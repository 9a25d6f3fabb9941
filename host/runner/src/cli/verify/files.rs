//! The cases and the profiles of clients: shipped ones, and a user's.

use std::fmt::Write;
use std::path::Path;

use super::super::failure::{Exit, Failure};
use verify::{Card, Case, FileError, Profile};

pub fn cases(folder: Option<&Path>) -> Result<Vec<Case>, Failure> {
    let read = match folder {
        None => {
            let cases = shipped::cases();
            cases.map(|(name, text)| Case::read(&format!("{name}.toml"), text)).collect::<Vec<_>>()
        }
        Some(folder) => of_folder(folder)?,
    };
    let mut cases = all(read)?;
    if cases.is_empty() {
        let folder = folder.unwrap_or(Path::new(""));
        let message = format!("{}: no case in it; expected files NAME.toml", folder.display());
        return Err(Failure::input(message));
    }
    cases.sort_by(|a, b| (a.part(), &a.name).cmp(&(b.part(), &b.name)));
    Ok(cases)
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |cause| Failure::input(format!("{}: cannot be read: {cause}", path.display()))
}

fn of_folder(folder: &Path) -> Result<Vec<Result<Case, FileError>>, Failure> {
    let mut read = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        read.push(Case::read(&path.to_string_lossy(), &text));
    }
    Ok(read)
}

fn all<T>(read: Vec<Result<T, FileError>>) -> Result<Vec<T>, Failure> {
    let mut wrong = Vec::new();
    let read = read.into_iter().filter_map(|one| one.map_err(|error| wrong.push(error)).ok());
    let good = read.collect();
    Failure::of_any(Exit::Input, wrong).map(|()| good)
}

pub fn chosen(cases: Vec<Case>, names: &[String]) -> Result<Vec<Case>, Failure> {
    if names.is_empty() {
        return Ok(cases);
    }
    let fits = |name: &str, case: &Case| match name.strip_suffix('*') {
        Some(beginning) => case.name.starts_with(beginning),
        None => case.name == name,
    };
    let none = names.iter().find(|name| !cases.iter().any(|case| fits(name, case)));
    if let Some(none) = none {
        let message = format!("no case `{none}`; `runner verify --list` lists them");
        return Err(Failure::command_line(message));
    }
    let chosen = cases.into_iter();
    Ok(chosen.filter(|case| names.iter().any(|name| fits(name, case))).collect())
}

/// A profile that ships, by name, or the profile in a file.
pub fn profile(client: &str) -> Result<Profile, Failure> {
    if let Some(text) = shipped::text(&format!("conformance/clients/{client}.toml")) {
        return Profile::read(&format!("{client}.toml"), text).map_err(Failure::input);
    }
    let path = Path::new(client);
    if !client.ends_with(".toml") {
        let names: Vec<&str> = shipped::clients().map(|(name, _)| name).collect();
        return Err(Failure::input(format!(
            "no client `{client}`; there are {}; or give a profile's file, NAME.toml",
            names.join(", ")
        )));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable(path))?;
    Profile::read(client, &text).map_err(Failure::input)
}

pub fn card(path: &str) -> Result<Card, Failure> {
    let text = std::fs::read_to_string(path).map_err(unreadable(Path::new(path)))?;
    serde_json::from_str(&text).map_err(|cause| {
        let message = "is no card; expected the output of `runner verify CLIENT --format json`";
        Failure::input(format!("{path}: {message}: {cause}"))
    })
}

pub fn list(cases: &[Case]) -> Result<String, Failure> {
    let mut text = String::new();
    let mut part = None;
    for case in cases {
        if part.replace(case.part()) != Some(case.part()) {
            let _ = writeln!(text, "{}", case.part().title());
        }
        let _ = writeln!(text, "  {:<24} {}", case.name, case.title);
    }
    let _ = writeln!(text, "Clients");
    for (name, profile) in shipped::clients() {
        let profile =
            Profile::read(name, profile).map_err(|error| Failure::new(Exit::Bug, error))?;
        let _ = writeln!(text, "  {name:<24} {}", profile.title);
    }
    Ok(text)
}

/// The files of the tokenizer whose tokens are words: the name and the text of each.
pub fn tokenizer() -> impl Iterator<Item = (&'static str, &'static str)> {
    shipped::texts_below("conformance/tokenizer/")
}
