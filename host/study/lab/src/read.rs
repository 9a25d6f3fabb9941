//! Reads a lab file: every mistake at once, each at its place.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::file::{Budget, Dimension, Engine, Flags, Lab, Model, Strategy};
use crate::objective::{Constraint, Objective};
use crate::options::Names;
use crate::template::shown;
use crate::{expand, hidden, options, template};
use model::duration::Span;
use model::nearest;
use reader::words::list;
use reader::{Config, ConfigTable, Located, Place, Problem, Reader, ScenarioError, parse_table};
use result::figure::Figure;

/// The most engines, models and scenarios of a lab.
const MOST: usize = 100;

impl Lab {
    /// Reads a lab file's text. `name` is its name in messages: its path. Errors: every mistake in
    /// it: syntax, keys, types, values, unknown names, and impossible trials.
    pub fn parse(name: &str, text: &str) -> Result<Lab, ScenarioError> {
        let mut lab = Lab::parse_alone(name, text)?;
        let Some(hidden) = hidden::hide(text) else { return Ok(lab) };
        if hidden.is_changed {
            let shown = Lab::parse_alone(name, &hidden.text).map_err(|error| {
                let message = format!(
                    "{name}: its secrets cannot be removed from it; write them as \"${{NAME}}\", and set the variables"
                );
                let mut problems = vec![Problem::new(message)];
                problems.extend(error.problems().iter().cloned());
                ScenarioError::new(problems)
            })?;
            lab.hidden = Some(Box::new(shown));
        }
        lab.secrets = hidden.secrets;
        lab.kept = hidden.text;
        Ok(lab)
    }

    fn parse_alone(name: &str, text: &str) -> Result<Lab, ScenarioError> {
        let (lab, mut problems) = parse_table(name, text, &[], |t, _| lab(t));
        let Some(Some(lab)) = lab else {
            if problems.is_empty() {
                problems.push(Problem::new(format!("{name}: it describes no lab")));
            }
            return Err(ScenarioError::new(problems));
        };
        if problems.is_empty() {
            problems = expand::problems(&lab);
        }
        ScenarioError::unless_empty(problems)?;
        Ok(lab)
    }
}

pub(crate) fn wrong(t: &Reader<'_, '_>, message: impl Into<String>, place: &Place) {
    t.report(Problem::new(message).at(place.clone(), "here"));
}

/// The end of a message about an unknown name: the known name that was probably meant, if any.
pub(crate) fn suggestion<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// A whole number within bounds, or its default. The key's table is for messages.
fn count(
    t: &mut Reader<'_, '_>,
    [table, key]: [&'static str; 2],
    [least, most]: [u32; 2],
    otherwise: u32,
) -> u32 {
    let Some(number) = t.integer(key) else { return otherwise };
    let fits = u32::try_from(number.value).ok().filter(|count| (least..=most).contains(count));
    fits.unwrap_or_else(|| {
        let message = format!(
            "`{table}{key}`: expected a whole number from {least} to {most}, found {}",
            number.value
        );
        t.report(Problem::new(message).at(number.place, "out of range"));
        otherwise
    })
}

fn above_zero(t: &mut Reader<'_, '_>, [table, key]: [&'static str; 2]) -> Option<f64> {
    let number = t.number(key, "a number above 0")?;
    if number.value > 0.0 && number.value.is_finite() {
        return Some(number.value);
    }
    let message = format!("`{table}{key}`: expected a number above 0, found {}", number.value);
    t.report(Problem::new(message).at(number.place, "out of range"));
    None
}

/// A required text; its absence is a problem at that place.
fn required(
    t: &mut Reader<'_, '_>,
    key: &'static str,
    place: Option<&Place>,
    owner: &str,
) -> Option<Located<String>> {
    let is_there = t.has(key);
    let value = t.string(key);
    if !is_there {
        t.report(Problem::new(format!("{owner} has no `{key}`")).at(place.cloned(), "here"));
    }
    value
}

fn lab(t: &mut Reader<'_, '_>) -> Option<Lab> {
    let name = required(t, "name", None, "the lab");
    let about = t.string("about").map(|about| about.value);
    let strategy = t.word("strategy");
    let kind = strategy.as_ref().map_or(Strategy::default(), |strategy| strategy.value);
    let repeats = count(t, ["", "repeats"], [1, 100], 3);
    let confirm = count(t, ["", "confirm"], [0, 100], repeats);
    let retries = count(t, ["", "retries"], [0, 10], 1);
    let scenarios = scenarios(t);
    let set = t.config("set");
    let set_for = t.config("set-for");
    for entry in set_for.iter().filter(|entry| !matches!(entry.value.value, Config::Table(_))) {
        let message =
            format!("`set-for.{}`: expected a table of a scenario's keys", entry.key.value);
        wrong(t, message, &entry.value.place);
    }
    let has_objective = t.has("objective");
    let objective = t.table("objective", |t| objective(t, has_objective));
    let budget = t.table("budget", |t| Budget {
        time: time(t, "time"),
        cost: above_zero(t, ["budget.", "cost"]),
    });
    let has_cost = t.has("cost");
    let per_hour = t.table("cost", |t| above_zero(t, ["cost.", "per-hour"]));
    if budget.cost.is_some() && !has_cost {
        let problem = Problem::new("`budget.cost` has no price to count with");
        t.report(problem.help("state the cost of an hour of the machine: [cost] per-hour = 2.5"));
    }
    let models = models(t);
    let engines = engines(t, &models, &set);
    if objective.is_none() && !has_objective && kind != Strategy::Matrix {
        let message = format!("the strategy `{}` needs an objective", kind.name());
        t.report(Problem::new(message).at(strategy.map(|strategy| strategy.place), "here").help(
            "add [objective] with `maximize` or `minimize`; only the strategy `matrix` can do without",
        ));
    }
    Some(Lab {
        name: name?.value,
        about,
        strategy: kind,
        repeats,
        confirm,
        retries,
        scenarios,
        set,
        set_for,
        objective,
        budget,
        per_hour,
        models,
        engines,
        secrets: Vec::new(),
        kept: String::new(),
        hidden: None,
    })
}

fn scenarios(t: &mut Reader<'_, '_>) -> Vec<Located<String>> {
    if !t.has("scenarios") {
        let problem = Problem::new("the lab has no `scenarios`");
        t.report(problem.help("name files, folders or built-in scenarios"));
    }
    let list = t.one_or_more("scenarios");
    bounded(t, "scenarios", list.map(|list| list.value).unwrap_or_default())
}

/// A list, cut with a report where it is longer than [`MOST`].
fn bounded<T>(t: &Reader<'_, '_>, key: &str, mut all: Vec<T>) -> Vec<T> {
    if all.len() > MOST {
        let message = format!("`{key}`: expected at most {MOST}, found {}", all.len());
        t.report(Problem::new(message));
        all.truncate(MOST);
    }
    all
}

fn time(t: &mut Reader<'_, '_>, key: &'static str) -> Option<Duration> {
    t.parsed(key, "a time such as \"15m\"", |text| {
        let span: Span = text.parse().map_err(|error| format!("{error}"))?;
        if span.0.is_zero() { Err("it is zero".to_owned()) } else { Ok(span.0) }
    })
    .map(|time| time.value)
}

fn objective(t: &mut Reader<'_, '_>, is_there: bool) -> Option<Objective> {
    const EXPECTED: &str =
        "a figure, such as \"throughput.output-tokens-per-s\", or \"score.NAME\"";
    let maximize = t.parsed("maximize", EXPECTED, str::parse::<Figure>);
    let minimize = t.parsed("minimize", EXPECTED, str::parse::<Figure>);
    let constraints = t.one_or_more("subject-to").map(|list| list.value).unwrap_or_default();
    let pareto = pareto(t);
    let mut parsed = Vec::new();
    for text in constraints {
        match text.value.parse::<Constraint>() {
            Ok(constraint) => parsed.push(constraint),
            Err(error) => t.report(
                Problem::new(format!("`objective.subject-to`: {error}"))
                    .at(text.place, "not a constraint"),
            ),
        }
    }
    let has_direction = t.has("maximize") || t.has("minimize");
    let (measure, is_maximized) = match (maximize, minimize) {
        (Some(both), Some(too)) => {
            let message = "`objective` has both `maximize` and `minimize`";
            let problem = Problem::new(message).at(both.place, "one").at(too.place, "the other");
            t.report(problem.help("keep one of them, and make a constraint of the other"));
            return None;
        }
        (Some(measure), None) => (measure, true),
        (None, Some(measure)) => (measure, false),
        (None, None) => {
            if is_there && !has_direction {
                t.report(Problem::new("`objective` has neither `maximize` nor `minimize`"));
            }
            return None;
        }
    };
    let mut objective = Objective::new(measure.value, is_maximized, parsed);
    objective.pareto = pareto.unwrap_or(objective.pareto);
    Some(objective)
}

fn pareto(t: &mut Reader<'_, '_>) -> Option<[Figure; 2]> {
    let list = t.one_or_more("pareto")?;
    let wrong = |error: String, place| {
        t.report(Problem::new(format!("`objective.pareto`: {error}")).at(place, "here"));
    };
    let found = list.value.len();
    let figures = list.value.into_iter().filter_map(|one| {
        let figure = one.value.parse::<Figure>();
        figure.map_err(|error| wrong(error, one.place)).ok()
    });
    let figures: Vec<Figure> = figures.collect();
    if found != 2 {
        wrong(format!("expected two figures, found {found}"), list.place);
    }
    <[Figure; 2]>::try_from(figures).ok()
}

fn models(t: &mut Reader<'_, '_>) -> Vec<Model> {
    let mut names: Vec<Located<String>> = Vec::new();
    let read = t.tables("models", |t, place| {
        let name = required(t, "name", Some(&place), "a model");
        let path = t.string("path");
        let served = t.string("served-name");
        let values = t.config("values");
        let name = name?;
        unique(t, "model", &mut names, &name);
        let mut all = BTreeMap::new();
        for entry in values.iter() {
            let key = &entry.key.value;
            if ["name", "path", "served-name"].contains(&key.as_str()) {
                let message = format!("`models.values.{key}` has a key of its own: `models.{key}`");
                wrong(t, message, &entry.key.place);
            }
            match &entry.value.value {
                Config::Scalar(value) => drop(all.insert(key.clone(), shown(value))),
                _ => {
                    let message = format!("`models.values.{key}`: expected a string or a number");
                    wrong(t, message, &entry.value.place)
                }
            }
        }
        let path = path.map_or_else(|| name.value.clone(), |path| path.value);
        let served = served.map_or_else(|| path.clone(), |served| served.value);
        all.extend([
            ("name".to_owned(), name.value.clone()),
            ("path".to_owned(), path),
            ("served-name".to_owned(), served),
        ]);
        Some(Model { name: name.value, values: all })
    });
    let is_there = read.is_some();
    let models = bounded(t, "models", read.unwrap_or_default().into_iter().flatten().collect());
    if is_there { models } else { vec![Model { name: String::new(), values: BTreeMap::new() }] }
}

/// Notes a name, and reports one that occurs twice.
fn unique(
    t: &Reader<'_, '_>,
    noun: &str,
    names: &mut Vec<Located<String>>,
    name: &Located<String>,
) {
    if let Some(first) = names.iter().find(|first| first.value == name.value) {
        let message = format!("two {noun}s have the name `{}`", name.value);
        let problem = Problem::new(message).at(name.place.clone(), "the second");
        t.report(problem.at(first.place.clone(), "the first"));
    }
    names.push(name.clone());
}

// Reads an engine of a lab file, and checks its placeholders.

fn engines(t: &mut Reader<'_, '_>, models: &[Model], set: &ConfigTable) -> Vec<Engine> {
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
    dimensions.iter().for_each(|dimension| check_values(t, dimension, &known));
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
    let report = |mistake: &str, help: &str| {
        let problem = Problem::new(format!("{engine} has {mistake}"));
        t.report(problem.at(place.clone(), "here").help(help));
    };
    if !has_address {
        let help = "add `launch` to start it, or the `base-url` where it runs already";
        report("neither `launch` nor `base-url`", help);
    }
    if has_options {
        let help = "options are given to an engine when it is started; add `launch`, or leave the options out";
        report("options but no `launch`", help);
    }
}

/// A launch line is a list of words.
fn check_launch(t: &Reader<'_, '_>, launch: &Located<Vec<Located<String>>>) {
    if let [only] = launch.value.as_slice()
        && only.value.contains(char::is_whitespace)
    {
        let split: Vec<String> =
            only.value.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let message = "`engines.launch`: expected a list of words, found one string with spaces";
        let problem = Problem::new(message).at(launch.place.clone(), "here");
        t.report(problem.help(format!("write [{}]", split.join(", "))));
    }
    let spots = launch.value.iter().filter(|word| word.value == expand::OPTIONS);
    for word in spots.skip(1) {
        let message = "`engines.launch`: the word \"{options}\" occurs twice";
        t.report(Problem::new(message).at(word.place.clone(), "the second"));
    }
}

const VISIBLE: &str = "a command line cannot hold variables, because everybody can see it";

fn check_word(t: &Reader<'_, '_>, key: &str, word: &Located<String>, known: &[String]) {
    if word.value == expand::OPTIONS && key == "launch" {
        return;
    }
    if word.value.contains("${") {
        let problem = Problem::new(format!("`engines.{key}`: {VISIBLE}"));
        let problem = problem.at(word.place.clone(), "here");
        t.report(problem.help("give the engine the variable under [engines.env]"));
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
            text.contains("${").then(|| VISIBLE.to_owned())
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
