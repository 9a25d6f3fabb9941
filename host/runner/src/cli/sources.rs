//! From the scenarios named on the command line to the runs to make, in order.

use std::path::{Path, PathBuf};

use super::failure::{Exit, Failure};
use super::flags::Flags;
use reader::ScenarioError;
use scenario::Scenario;
use session::{Faults, Source, Variables};

/// A scenario's text and its location.
struct Text {
    name: String,
    folder: Option<PathBuf>,
    text: String,
}

/// Reads every named scenario, or builds one from the flags alone.
///
/// # Errors
/// What cannot be found or read, and every mistake in every scenario.
pub fn sources(named: &[String], flags: &Flags) -> Result<Vec<Source>, Failure> {
    let over = flags
        .scenario()
        .map_err(|what| Failure::new(Exit::CommandLine, what))?;
    let source = |scenario: Scenario, name: String, folder: Option<PathBuf>| Source {
        scenario: scenario.overlay(over.clone()),
        name,
        folder,
        plugins: flags.named_plugins(),
        plugin_path: flags.plugin_folders(),
        shipped: shipped::PLUGINS,
        variables: Variables::Process,
        slice: None,
    };
    if named.is_empty() {
        return Ok(vec![source(Scenario::default(), "flags".to_owned(), None)]);
    }
    let mut sources = Vec::new();
    let mut faults = Faults::default();
    for name in named {
        let mut group = Vec::new();
        for Text { name, folder, text } in texts(name)? {
            match Scenario::parse(&name, &text) {
                Ok(scenario) => group.push((scenario, name, folder)),
                Err(error) => faults.scenario.extend(problems(&error)),
            }
        }
        group.sort_by_key(|(scenario, name, _)| {
            let order = scenario.order.as_ref().map(|said| said.value);
            (order.is_none(), order, name.clone())
        });
        for (scenario, name, folder) in group {
            let stem = Path::new(&name).file_stem().unwrap_or_default();
            sources.push(source(
                scenario,
                stem.to_string_lossy().into_owned(),
                folder,
            ));
        }
    }
    if faults.scenario.is_empty() {
        Ok(sources)
    } else {
        Err(faults.into())
    }
}

fn problems(error: &ScenarioError) -> impl Iterator<Item = reader::Problem> + '_ {
    error.problems().iter().cloned()
}

/// The files that a name stands for: a file, the TOML files of a folder, or built-in ones.
fn texts(name: &str) -> Result<Vec<Text>, Failure> {
    let path = Path::new(name);
    let unreadable = |path: &Path, cause: std::io::Error| {
        Failure::new(
            Exit::Input,
            format!("cannot read the scenario `{}`: {cause}", path.display()),
        )
    };
    if path.is_dir() {
        let mut texts = Vec::new();
        let entries = std::fs::read_dir(path).map_err(|cause| unreadable(path, cause))?;
        for entry in entries {
            let file = entry.map_err(|cause| unreadable(path, cause))?.path();
            if file
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                texts.push(read(&file).map_err(|cause| unreadable(&file, cause))?);
            }
        }
        if texts.is_empty() {
            let words =
                format!("the folder `{name}` holds no scenario: no file there ends in .toml");
            return Err(Failure::new(Exit::Input, words));
        }
        return Ok(texts);
    }
    match read(path) {
        Ok(text) => Ok(vec![text]),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => shipped_texts(name),
        Err(cause) => Err(unreadable(path, cause)),
    }
}

fn read(path: &Path) -> std::io::Result<Text> {
    Ok(Text {
        name: path.display().to_string(),
        folder: path.parent().map(Path::to_owned),
        text: std::fs::read_to_string(path)?,
    })
}

fn shipped_texts(name: &str) -> Result<Vec<Text>, Failure> {
    let name = name.trim_end_matches('/');
    let folder = format!("{name}/");
    let found: Vec<Text> = shipped::scenarios()
        .filter(|known| *known == name || known.starts_with(&folder))
        .filter_map(|known| {
            Some(Text {
                name: known.to_owned(),
                folder: None,
                text: shipped::scenario(known)?.to_owned(),
            })
        })
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let nearest = shipped::scenarios()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(closeness, _)| *closeness > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match nearest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!(
            "the built-in ones are {}",
            shipped::scenarios().collect::<Vec<_>>().join(", ")
        ),
    };
    Err(Failure::new(
        Exit::Input,
        format!("no scenario `{name}`: there is no such file, folder or built-in scenario; {hint}"),
    ))
}
