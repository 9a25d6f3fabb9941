//! Reads an engine of a lab file, and checks its placeholders.

use std::time::Duration;

use super::{bounded, required, suggestion, time, unique, wrong};
use crate::expand;
use crate::file::{Dimension, Engine, Flags, Model};
use crate::options::{self, Names};
use crate::template;
use crate::template::shown;
use model::nearest;
use reader::words::list;
use reader::{ConfigTable, Located, Place, Problem, Reader};

pub(super) fn engines(t: &mut Reader<'_, '_>, models: &[Model], set: &ConfigTable) -> Vec<Engine> {
    let mut names = Vec::new();
    let read = t.tables("engines", |t, place| engine(t, place, models, &mut names));
    if read.as_ref().is_none_or(Vec::is_empty) {
        t.report(Problem::new("the lab has no engines").help("describe each under [[engines]]"));
    }
    let known = placeholders(models);
    let mut texts = Vec::new();
    options::texts(set, &mut texts);
    for (text, place) in texts {
        check_placeholders(t, "set", &text, &place, &known);
    }
    bounded(t, "engines", read.unwrap_or_default().into_iter().flatten().collect())
}

fn engine(
    t: &mut Reader<'_, '_>,
    place: Place,
    models: &[Model],
    names: &mut Vec<Located<String>>,
) -> Option<Engine> {
    let name = required(t, "name", Some(&place), "an engine");
    if let Some(name) = &name {
        unique(t, "engine", names, name);
    }
    let backend = t.string("backend").map(|name| name.value);
    let config = t.config("config");
    let launch = t.one_or_more("launch");
    let env = variables(t, models);
    let dir = t.string("dir");
    if let Some(dir) = &dir {
        // No placeholder is filled in there.
        check_placeholders(t, "engines.dir", &dir.value, &dir.place, &[]);
    }
    let host = t.string("host").map_or_else(|| "127.0.0.1".to_owned(), |host| host.value);
    let port = port(t);
    let base_url = base_url(t);
    let ready_timeout = time(t, "ready-timeout").unwrap_or(Duration::from_secs(15 * 60));
    let stop_timeout = time(t, "stop-timeout").unwrap_or(Duration::from_secs(30));
    let version_command = t.one_or_more("version-command");
    let flags = t.word::<Flags>("flags").map_or(Flags::default(), |flags| flags.value);
    let (dimensions, unread) = options::read(t, &env);
    let own = name.as_ref().map_or("", |name| name.value.as_str());
    let names = Names::new(&dimensions, models, own, &unread);
    let exclude = options::conditions(t, "exclude", &names);
    let models_of = models_of(t, models);

    let known = placeholders(models);
    for (key, words) in [("launch", &launch), ("version-command", &version_command)] {
        for word in words.iter().flat_map(|words| &words.value) {
            check_word(t, key, word, &known);
        }
    }
    if let Some(launch) = &launch {
        check_launch(t, launch);
    } else {
        let is_there = t.has("launch");
        let has_options = !dimensions.is_empty() && !is_there;
        check_running(t, &place, own, is_there || base_url.is_some(), has_options);
    }
    for dimension in &dimensions {
        check_values(t, dimension, &known);
    }
    let plain = |words: Located<Vec<Located<String>>>| {
        words.value.into_iter().map(|word| word.value).collect()
    };
    Some(Engine {
        name: name?.value,
        place,
        backend,
        config,
        launch: launch.map(plain),
        env,
        dir: dir.map(|dir| dir.value),
        base_url: base_url.unwrap_or_else(|| format!("http://{host}:{port}")),
        host,
        port,
        ready_timeout,
        stop_timeout,
        version_command: version_command.map(plain),
        flags,
        dimensions,
        exclude,
        models: models_of,
    })
}

/// An engine without a launch command runs already: it needs an address and cannot have options.
fn check_running(
    t: &Reader<'_, '_>,
    place: &Place,
    name: &str,
    has_address: bool,
    has_options: bool,
) {
    let engine = match name {
        "" => "an engine".to_owned(),
        name => format!("the engine `{name}`"),
    };
    let report = |problem: String, help: &str| {
        t.report(Problem::new(problem).at(place.clone(), "here").help(help));
    };
    if !has_address {
        report(
            format!("{engine} has neither `launch` nor `base-url`"),
            "add `launch` to start it, or the `base-url` where it runs already",
        );
    }
    if has_options {
        report(
            format!("{engine} has options but no `launch`"),
            "options are given to an engine when it is started; add `launch`, or leave the options out",
        );
    }
}

/// A launch line is a list of words.
fn check_launch(t: &Reader<'_, '_>, launch: &Located<Vec<Located<String>>>) {
    if let [only] = launch.value.as_slice()
        && only.value.contains(char::is_whitespace)
    {
        let split: Vec<String> =
            only.value.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        t.report(
            Problem::new(
                "`engines.launch`: expected a list of words, found one string with spaces",
            )
            .at(launch.place.clone(), "here")
            .help(format!("write [{}]", split.join(", "))),
        );
    }
    let spots = launch.value.iter().filter(|word| word.value == expand::OPTIONS);
    for word in spots.skip(1) {
        let message = "`engines.launch`: the word \"{options}\" occurs twice";
        t.report(Problem::new(message).at(word.place.clone(), "the second"));
    }
}

fn check_word(t: &Reader<'_, '_>, key: &str, word: &Located<String>, known: &[String]) {
    if word.value == expand::OPTIONS && key == "launch" {
        return;
    }
    if word.value.contains("${") {
        t.report(
            Problem::new(format!("`engines.{key}`: a command line cannot hold variables, because everybody can see it"))
                .at(word.place.clone(), "here")
                .help("give the engine the variable under [engines.env]"),
        );
    }
    check_placeholders(t, &format!("engines.{key}"), &word.value, &word.place, known);
}

/// Placeholders in the values of options, and references to variables: a variable may hold one, a
/// command line may not.
fn check_values(t: &Reader<'_, '_>, dimension: &Dimension, known: &[String]) {
    let key = format!("engines.options.{}", dimension.name);
    for (option, value) in dimension.rows.iter().flat_map(|row| dimension.options.iter().zip(row)) {
        let text = shown(value);
        check_placeholders(t, &key, &text, &dimension.place, known);
        let error = if option.is_env {
            template::variables(&text).err()
        } else {
            text.contains("${").then(|| {
                "a command line cannot hold variables, because everybody can see it".to_owned()
            })
        };
        if let Some(error) = error {
            wrong(t, format!("`{key}`: {error}"), &dimension.place);
        }
    }
}

/// Reports placeholders that nothing fills in.
fn check_placeholders(t: &Reader<'_, '_>, key: &str, text: &str, place: &Place, known: &[String]) {
    for name in template::names(text) {
        if known.iter().any(|known| known == name) {
            continue;
        }
        let meant = nearest(name, known.iter().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean {{{meant}}}?")).unwrap_or_default();
        let message = format!("`{key}`: unknown placeholder {{{name}}}{meant}");
        let problem = Problem::new(message).at(place.clone(), "here");
        let help = format!("known are {}; write {{{{{name}}}}} for the text itself", list(known));
        t.report(problem.help(help));
    }
}

/// The names that placeholders may have: the names that all models share.
fn placeholders(models: &[Model]) -> Vec<String> {
    let mut names = ["port", "host", "engine"].map(str::to_owned).to_vec();
    if let Some((first, others)) = models.split_first() {
        let is_common = |key: &&String| others.iter().all(|model| model.values.contains_key(*key));
        let common = first.values.keys().filter(is_common);
        names.extend(common.map(|key| format!("model.{key}")));
    }
    names
}

fn variables(t: &mut Reader<'_, '_>, models: &[Model]) -> Vec<(String, String)> {
    let known = placeholders(models);
    let parse = |text: &str| template::variables(text).map(|_| text.to_owned());
    let variables: Vec<(String, Located<String>)> = t.strings("env", parse).collect();
    for (name, value) in &variables {
        check_placeholders(t, &format!("engines.env.{name}"), &value.value, &value.place, &known);
        check_variable_name(t, name, &value.place);
    }
    variables.into_iter().map(|(name, value)| (name, value.value)).collect()
}

/// Reports a name that no environment variable can have.
pub(crate) fn check_variable_name(t: &Reader<'_, '_>, name: &str, place: &Place) {
    if name.is_empty() || name.contains(['=', '\0']) {
        wrong(t, format!("`{name}` cannot be the name of an environment variable"), place);
    }
}

fn port(t: &mut Reader<'_, '_>) -> u16 {
    let Some(port) = t.integer("port") else { return 8000 };
    let fits = u16::try_from(port.value).ok().filter(|port| *port > 0);
    fits.unwrap_or_else(|| {
        let message =
            format!("`engines.port`: expected a port from 1 to 65535, found {}", port.value);
        t.report(Problem::new(message).at(port.place, "out of range"));
        8000
    })
}

fn base_url(t: &mut Reader<'_, '_>) -> Option<String> {
    let url = t.parsed("base-url", "an http or https URL", |text| {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if rest.is_some_and(|rest| !rest.is_empty()) {
            Ok(text.trim_end_matches('/').to_owned())
        } else {
            Err(format!("found {text:?}"))
        }
    })?;
    Some(url.value)
}

fn models_of(t: &mut Reader<'_, '_>, models: &[Model]) -> Vec<usize> {
    let Some(chosen) = t.one_or_more("models") else { return (0..models.len()).collect() };
    let mut places = Vec::new();
    for name in chosen.value {
        match models.iter().position(|model| model.name == name.value) {
            Some(place) if places.contains(&place) => {}
            Some(place) => places.push(place),
            None => {
                let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
                let mut end = suggestion(&name.value, names.iter().copied());
                if names.is_empty() {
                    end = "; a lab defines its models in [[models]]".to_owned();
                } else if end.is_empty() {
                    end = format!("; there are {}", list(&names));
                }
                let message = format!("`engines.models`: there is no model `{}`{end}", name.value);
                wrong(t, message, &name.place);
            }
        }
    }
    places.sort_unstable();
    places
}
