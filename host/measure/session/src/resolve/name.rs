//! Names of runs: the author's name or, if it does not describe the run any more, the dataset with
//! its lengths and the load.
//!
//! A name in a scenario's file describes the file, as "Random 1k/1k" does. Flags, a lab or a sweep
//! may set other lengths, another dataset or another load. Then it is untrue, and the run gets a
//! name of its own.

use std::path::Path;

use super::Source;
use super::source::BY_DEFAULT;
use model::session::Users;
use reader::{Config, Located, Place};
use scenario::{Arrival, Entry, Load};

/// Characters of a part of a description, at most: a name of a model, a dataset or a file.
const PART: usize = 48;

/// Keys of `[load]` that say how much load there is, and when; not for how long, or the seed.
const OF_LOAD: [&str; 11] = [
    "load.arrival",
    "load.rate",
    "load.burstiness",
    "load.ramp",
    "load.stages",
    "load.trace",
    "load.concurrency",
    "load.users",
    "load.think-time",
    "load.think-spread",
    "load.max-in-flight",
];
/// Keys outside `[dataset]` that set the requested lengths.
const OF_REQUESTS: [&str; 2] = ["request.output-tokens", "request.min-output-tokens"];

impl Source {
    /// Returns the name of its run for people.
    pub fn title(&self) -> String {
        self.titled(&load(&self.scenario.load))
    }

    /// Returns its name for people without its load, which may vary from run to run.
    pub fn title_but_for_load(&self) -> String {
        self.titled("")
    }

    /// Returns the name of its folder: a description is of a model too, if that is known.
    pub fn folder_title(&self, title: String, model: Option<&str>) -> String {
        let model = model.filter(|model| !model.is_empty());
        match (self.given_name(), model) {
            (None, Some(model)) => format!("{} {title}", last(model)),
            _ => title,
        }
    }

    /// The name that somebody gave it, unless its file did and something else was set since.
    fn given_name(&self) -> Option<&str> {
        match &self.scenario.name {
            // A name on the command line was chosen together with the other flags.
            Some(Located { value, place: Place::Flag(_) }) => Some(value),
            _ if self.name.is_empty() || self.is_changed() => None,
            Some(name) => Some(&name.value),
            None => Some(&self.name),
        }
    }

    /// True if flags, a lab or a sweep set another dataset, lengths or load than the file.
    fn is_changed(&self) -> bool {
        let entries = self.scenario.entries();
        // If nothing names a dataset, the default one changes nothing.
        let is_another = |named: &Located<String>| {
            let is_default = matches!(&named.place, Place::Flag(flag) if flag == BY_DEFAULT);
            named.value.starts_with("datasets/") && !is_default
        };
        self.plugins.iter().any(is_another) || entries.iter().any(changes)
    }

    fn titled(&self, load: &str) -> String {
        match self.given_name() {
            Some(name) => name.to_owned(),
            None if load.is_empty() => self.dataset(),
            None => format!("{}, {load}", self.dataset()),
        }
    }

    fn dataset(&self) -> String {
        let dataset = &self.scenario.dataset;
        let of_kind = |named: &&Located<String>| {
            let mut folders = named.value.rsplit('/').skip(1);
            !matches!(folders.next(), Some("backends" | "scorers"))
        };
        let named = self.plugins.iter().rev().find(of_kind);
        let plugin = named.or(dataset.plugin.as_ref());
        let mut text = plugin.map_or_else(
            || "no dataset".to_owned(),
            |plugin| {
                let name = plugin.value.split('@').next().unwrap_or_default();
                stem(Path::new(name))
            },
        );
        // Of a file that is called as its format is, the format says enough.
        let file = dataset.files.get("data").map(|file| stem(&file.value));
        let adds = |file: &String| !file.to_lowercase().starts_with(&text.to_lowercase());
        if let Some(file) = file.filter(adds) {
            text = format!("{text} {file}");
        }
        let number = |key: &str| match dataset.config.get(key).map(|entry| &entry.value.value) {
            Some(Config::Scalar(value)) => value.as_u64(),
            _ => None,
        };
        let tokens = &self.scenario.request.output_tokens;
        let output = number("output-len").or(tokens.as_ref().map(|tokens| tokens.value));
        match (number("input-len"), output) {
            (Some(input), Some(output)) => format!("{text} {input}/{output}"),
            (Some(input), None) => format!("{text} {input} in"),
            (None, Some(output)) => format!("{text} {output} out"),
            (None, None) => text,
        }
    }
}

/// True if something that the file does not say makes it another workload.
fn changes(entry: &Entry) -> bool {
    let of = |key: &str| {
        let rest = entry.path.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    // A file may leave open which data it is for.
    let is_of_dataset = of("dataset") && !of("dataset.files");
    let keys = OF_LOAD.iter().chain(&OF_REQUESTS);
    matches!(entry.place, Place::Flag(_)) && (is_of_dataset || keys.copied().any(of))
}

fn load(load: &Load) -> String {
    let most = load.max_in_flight.as_ref().map(|most| format!("at most {} in flight", most.value));
    let ramp = load.ramp.from.as_ref().zip(load.ramp.to.as_ref());
    let ramp = ramp.map(|(from, to)| format!("{} to {} req/s", from.value, to.value));
    let when = match (load.meant_arrival(), &load.concurrency, &load.rate) {
        _ if load.stages.is_some() => Some("rates in stages".to_owned()),
        _ if ramp.is_some() => ramp,
        (Some(Arrival::Closed), Some(count), _) => {
            let sessions = load.users.as_ref().map(|users| users.value) == Some(Users::Sessions);
            let count = count.value;
            return if sessions {
                format!("{count} sessions")
            } else {
                format!("concurrency {count}")
            };
        }
        (Some(Arrival::Trace), ..) => {
            let file = load.trace.file.as_ref().map(|file| stem(&file.value));
            Some(format!("at the times of {}", file.as_deref().unwrap_or("a trace")))
        }
        (Some(Arrival::Dataset), ..) => Some("at the dataset's times".to_owned()),
        (_, _, Some(rate)) if rate.value.is_finite() => Some(format!("{} req/s", rate.value)),
        _ => None,
    };
    let parts: Vec<String> = when.into_iter().chain(most).collect();
    if parts.is_empty() { "all at once".to_owned() } else { parts.join(", ") }
}

/// A path's last part without its ending.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    short(&stem.to_string_lossy())
}

/// The last part of a model's name: `Llama-3.1-8B` of `meta-llama/Llama-3.1-8B`.
fn last(model: &str) -> String {
    let mut parts = model.rsplit('/').filter(|part| !part.is_empty());
    short(parts.next().unwrap_or(model))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(PART) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use scenario::Scenario;

    const RANDOM: &str = "name = \"Random 1k/1k\"\n[dataset]\nplugin = \"datasets/random.wasm\"\nconfig = { input-len = 1024, output-len = 1024 }\n[load]\nrate = inf\n";

    fn source(file: &str, set: &[&str]) -> Source {
        let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
        let (over, problems) = Scenario::assigned(&set);
        assert!(problems.is_empty(), "{problems:?}");
        let name = if file.is_empty() { "" } else { "random-1k-1k" };
        Source {
            scenario: Scenario::parse("random-1k-1k.toml", file).unwrap().overlay(over),
            name: name.to_owned(),
            ..Source::default()
        }
    }

    #[test]
    fn file_name_is_dropped_once_flags_change_the_run() {
        let capped = "random 1024/1024, 5 req/s, at most 9 in flight";
        let custom =
            ["dataset.plugin=datasets/custom.wasm", "dataset.files.data=/data/questions.jsonl"];
        for (set, expected) in [
            (&[][..], "Random 1k/1k"),
            // None of these makes the name untrue.
            (&["load.requests=7", "load.seed=3", "load.warmup=0"], "Random 1k/1k"),
            (&["target.model=org/model", "dataset.files.data=a.json"], "Random 1k/1k"),
            (&["dataset.config.input-len=128"], "random 128/1024, all at once"),
            (&["load.rate=2.5"], "random 1024/1024, 2.5 req/s"),
            (&["load.concurrency=8"], "random 1024/1024, concurrency 8"),
            (&["load.concurrency=8", "load.users=sessions"], "random 1024/1024, 8 sessions"),
            (&["load.rate=5", "load.max-in-flight=9"], capped),
            (&["load.max-in-flight=9"], "random 1024/1024, at most 9 in flight"),
            (&["load.ramp.from=1", "load.ramp.to=9"], "random 1024/1024, 1 to 9 req/s"),
            (&custom, "custom questions 1024/1024, all at once"),
            // Whoever renames it means it.
            (&["name=mine", "load.rate=2"], "mine"),
        ] {
            assert_eq!(source(RANDOM, set).title(), expected, "{set:?}");
        }
    }

    #[test]
    fn run_without_a_file_is_named_after_dataset_and_load() {
        let with = |set: &[&str]| {
            let mut source = source("", set);
            let dataset = "datasets/sharegpt.wasm".to_owned();
            source.plugins = vec![Located::flag("--dataset-name", dataset)];
            source
        };
        assert_eq!(with(&[]).title(), "sharegpt, all at once");
        assert_eq!(with(&[]).title_but_for_load(), "sharegpt");
        let run = with(&["request.output-tokens=60", "dataset.files.data=ShareGPT_V3.json"]);
        assert_eq!(run.title(), "sharegpt 60 out, all at once");
        let folder = run.folder_title(run.title(), Some("meta-llama/Llama-3.1-8B/"));
        assert_eq!(folder, "Llama-3.1-8B sharegpt 60 out, all at once");
        let named = source(RANDOM, &[]);
        assert_eq!(named.folder_title(named.title(), Some("m")), "Random 1k/1k");
    }

    #[test]
    fn file_names_have_a_maximum_length() {
        let mut long = source("", &[]);
        let file = PathBuf::from(format!("{}.jsonl", "ä".repeat(5000)));
        let files = &mut long.scenario.dataset.files;
        files.insert("data".to_owned(), Located::flag("--dataset-path", file));
        assert!(long.title().chars().count() < 100, "{}", long.title());
    }
}
