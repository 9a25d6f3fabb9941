//! The flags that describe a run, with the names that users of `vllm bench serve` and SGLang's
//! client know. They become a scenario that overrides the file's.
//!
//! Flags that each stand for one key are declared with the key, in `scenario`. The flags here stand
//! for parts of a key, or for several keys.

use std::fmt;
use std::net::Ipv6Addr;
use std::num::ParseFloatError;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};

use super::failure::{Exit, Failure};
use super::words::{self, is_flag};
use model::nearest;
use reader::{ConfigTable, Located, Problem};
use scenario::{Arrival, Flag, Key, Scenario, heading};

/// Makes rows of a table into flags: each row has an `arg`, and is `given` in matches.
macro_rules! rows_as_flags {
    ($Flags:ident, $rows:expr) => {
        impl clap::Args for $Flags {
            fn augment_args(command: clap::Command) -> clap::Command {
                command.args($rows.map(|row| row.arg()))
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }

        impl clap::FromArgMatches for $Flags {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                let given = $rows.filter_map(|row| Some((row, row.given(matches)?)));
                Ok($Flags(given.collect()))
            }

            fn update_from_arg_matches(
                &mut self,
                matches: &clap::ArgMatches,
            ) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

pub mod backends;
pub mod datasets;
pub mod familiar;
mod settle;

use familiar::Familiar;
use familiar::line::LineOf;

/// Flags that describe a run by themselves: the backend and the dataset are the usual ones then.
#[rustfmt::skip]
const DESCRIBING: [&str; 7] = [
    "--base-url", "--host", "--port", "--endpoint", "--model", "--random-input-len",
    "--random-output-len",
];

/// Flags that describe the run. Each overrides the scenario file.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Requests")]
pub struct Flags {
    /// A plugin (backend, dataset or scorer; detected from the component); repeatable
    ///
    /// A path, or the name of a built-in plugin, such as backends/vllm.wasm or
    /// datasets/conversation.wasm; `runner plugin list` lists them. Append @sha256: and a digest to
    /// accept only that exact file.
    #[arg(long = "plugin", value_name = "WASM", env = "RUNNER_PLUGIN", value_delimiter = ',')]
    #[arg(help_heading = "Plugins")]
    plugins: Vec<String>,
    /// Folders to search for plugins, separated as in PATH
    #[arg(long, value_name = "FOLDERS", env = "RUNNER_PLUGIN_PATH", help_heading = "Plugins")]
    plugin_path: Option<std::ffi::OsString>,
    /// Short for --plugin backends/NAME.wasm [default: vllm, if only flags describe the run]
    ///
    /// The names that vllm bench serve and SGLang's client have for it work too, such as
    /// openai-chat and sglang-oai-chat; `runner plugin list` lists them.
    #[arg(long, value_name = "NAME", env = "RUNNER_BACKEND", help_heading = "Plugins")]
    backend: Option<String>,
    /// Path of the engine to send requests to, such as /v1/chat/completions: chooses the backend's
    /// route
    ///
    /// The part before the backend's own path belongs to the base URL.
    #[arg(long, value_name = "PATH", env = "RUNNER_ENDPOINT", help_heading = "Plugins")]
    endpoint: Option<String>,
    /// Set any key of the scenario, such as backend.config.route=chat or load.requests=50;
    /// repeatable
    ///
    /// `runner scenario keys` lists the keys, and `runner plugin info` the keys of plugins. A VALUE
    /// that is not TOML of the right type is read as a string. This overrides other flags.
    #[arg(long, value_name = "KEY=VALUE", env = "RUNNER_SET", hide_env_values = true)]
    #[arg(help_heading = "Scenario")]
    set: Vec<String>,

    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    familiar: Familiar,

    /// Client that this command line was written for; its defaults hold for unset keys
    ///
    /// By default, the name of --backend decides, and then flags that only one client has: `runner
    /// guide coming-from` has the rules. With a scenario, a line is this program's own.
    #[arg(long, value_name = "WHOSE", env = "RUNNER_LINE_OF", help_heading = "Scenario")]
    line_of: Option<LineOf>,
    /// Host of the engine; use with --port instead of --base-url
    #[arg(long, env = "RUNNER_HOST", conflicts_with = "base-url", help_heading = "Target")]
    host: Option<String>,
    /// Port of the engine [default: where the backend's engine listens]
    #[arg(long, env = "RUNNER_PORT", conflicts_with = "base-url", help_heading = "Target")]
    port: Option<u16>,
    /// Short for --plugin datasets/NAME.wasm [default: random, if no scenario names one]
    ///
    /// The names that vllm bench serve and SGLang's client have for it work too, such as
    /// prefix_repetition and generated-shared-prefix; `runner plugin list` lists them.
    #[arg(long, value_name = "NAME", env = "RUNNER_DATASET_NAME")]
    dataset_name: Option<String>,
    /// The dataset's input file
    #[arg(long, value_name = "FILE", env = "RUNNER_DATASET_PATH")]
    dataset_path: Option<PathBuf>,
    /// Input tokens per request (random dataset)
    #[arg(long, alias = "random-input", value_name = "TOKENS", env = "RUNNER_RANDOM_INPUT_LEN")]
    random_input_len: Option<u64>,
    /// Output tokens per request (random dataset)
    #[arg(long, alias = "random-output", value_name = "TOKENS", env = "RUNNER_RANDOM_OUTPUT_LEN")]
    random_output_len: Option<u64>,
    /// Range of random lengths; 1.0 = all equal, as in SGLang's client. vLLM's
    /// {"input": R, "output": R} too
    #[arg(long, value_name = "RATIO", env = "RUNNER_RANDOM_RANGE_RATIO")]
    #[arg(value_parser = Ratio::parse)]
    random_range_ratio: Option<Ratio>,
    /// Output tokens per request (ShareGPT dataset), instead of the real answer's length
    #[arg(long, value_name = "TOKENS", env = "RUNNER_SHAREGPT_OUTPUT_LEN")]
    sharegpt_output_len: Option<u64>,
    /// Send at the times in the dataset's samples; short for --arrival dataset
    #[arg(id = "use-trace-timestamps", long, env = "RUNNER_USE_TRACE_TIMESTAMPS")]
    #[arg(help_heading = "Load")]
    use_trace_timestamps: bool,
}

impl Flags {
    /// True if plugins, keys or the line itself describe a run. A variable alone begins none.
    pub(crate) fn describe_a_run(&self) -> bool {
        let says = |word: std::ffi::OsString| DESCRIBING.iter().any(|flag| is_flag(&word, flag));
        !self.named_plugins().is_empty()
            || !self.set.is_empty()
            || !self.familiar.is_empty()
            || std::env::args_os().any(says)
    }

    pub(crate) fn named_plugins(&self) -> Vec<Located<String>> {
        let backend = self.backend.as_deref().map(|name| {
            let plugin = backends::alias(name).map_or(name, |alias| alias.plugin);
            Located::flag("--backend", backends::file(plugin))
        });
        let dataset = self.dataset_name.as_deref().map(|name| {
            let plugin = datasets::alias(name).map_or(name, |alias| alias.plugin);
            Located::flag("--dataset-name", datasets::file(plugin))
        });
        self.plugins
            .iter()
            .map(|plugin| Located::flag("--plugin", plugin.clone()))
            .chain(backend)
            .chain(dataset)
            .collect()
    }

    pub(crate) fn plugin_folders(&self) -> Vec<PathBuf> {
        self.plugin_path.iter().flat_map(std::env::split_paths).collect()
    }

    /// Returns the scenario of `--set`, which overrides the other flags, and its mistakes.
    pub fn assigned(&self) -> (Scenario, Vec<Problem>) {
        Scenario::assigned(&self.set)
    }

    /// The scenario of the other flags, over the file's. Reports unsupported names of other tools.
    pub fn scenario(&self) -> Result<Scenario, Failure> {
        self.names()?;
        let mut scenario = self.keys.scenario()?;
        if self.host.is_some() || self.port.is_some() {
            let host = self.host.as_deref().unwrap_or("127.0.0.1");
            let host = match host.parse::<Ipv6Addr>() {
                Ok(address) => format!("[{address}]"),
                Err(_) => host.to_owned(),
            };
            let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
            let url = Located::flag("--host", format!("http://{host}{port}"));
            scenario.target.base_url = Some(Located::flag("--host", vec![url]));
        }
        if self.use_trace_timestamps {
            let arrival = Located::flag("--use-trace-timestamps", Arrival::Dataset);
            scenario.load.arrival = Some(arrival);
        }
        self.aliases(&mut scenario);
        let dataset = &mut scenario.dataset;
        if let Some(path) = &self.dataset_path {
            let file = Located::flag("--dataset-path", path.clone());
            dataset.files.insert("data".to_owned(), file);
        }
        let config = &mut dataset.config;
        for (key, flag, value) in [
            ("input-len", "--random-input-len", self.random_input_len),
            ("output-len", "--random-output-len", self.random_output_len),
            ("output-len", "--sharegpt-output-len", self.sharegpt_output_len),
        ] {
            set(config, key, flag, value);
        }
        let ratio = self.random_range_ratio;
        set(config, "range-ratio", "--random-range-ratio", ratio);
        self.familiar.lay_over(scenario)
    }

    /// Sets the further effects of other tools' names for plugins.
    fn aliases(&self, scenario: &mut Scenario) {
        let backend = self.backend.as_deref().and_then(backends::alias);
        let route = backend.and_then(|alias| alias.route);
        let config = &mut scenario.backend.config;
        set(config, "route", "--backend", route);
        let dataset = self.dataset_name.as_deref().and_then(datasets::alias);
        for (key, value) in dataset.map_or(&[][..], |alias| alias.config) {
            let key = format!("dataset.config.{key}");
            let (assigned, _) = Scenario::assigned_by("--dataset-name", &key, value);
            *scenario = std::mem::take(scenario).overlay(assigned);
        }
    }

    /// Refuses other tools' names for plugins without a counterpart here, and misspelled names.
    fn names(&self) -> Result<(), Failure> {
        let backends: Vec<&str> = backends::shipped_aliases().map(|alias| alias.name).collect();
        let datasets: Vec<&str> = datasets::ALIASES.iter().map(|alias| alias.name).collect();
        let is_backend =
            self.backend.as_deref().is_some_and(|name| backends::alias(name).is_some());
        let is_dataset =
            self.dataset_name.as_deref().is_some_and(|name| datasets::alias(name).is_some());
        let backend = ("--backend", "backends", &self.backend, &backends::REFUSED[..]);
        let dataset = ("--dataset-name", "datasets", &self.dataset_name, &datasets::REFUSED[..]);
        let named = [(backend, backends, is_backend), (dataset, datasets, is_dataset)];
        let mut wrong = Vec::new();
        for ((flag, folder, name, refused), aliases, is_known) in named {
            let Some(name) = name else { continue };
            if let Some((_, instead)) = refused.iter().find(|(own, _)| *own == name) {
                wrong.push(format!("{flag} {name} is not supported: {instead}"));
                continue;
            }
            let file = format!("{folder}/{name}.wasm");
            if is_known || shipped::has_plugin(&file) {
                continue;
            }
            if name.starts_with("kind=") {
                wrong.push(format!(
                    "{flag} {name} is guidellm's: here it is --backend openai --base-url URL --model NAME"
                ));
                continue;
            }
            // Slips of plugins' own names are found where plugins are looked for, in folders too.
            let plugins = shipped::plugins().filter_map(|plugin| {
                let plugin = plugin.strip_prefix(folder)?.strip_prefix('/')?;
                plugin.strip_suffix(".wasm")
            });
            let meant = nearest(name, aliases.iter().copied().chain(plugins));
            if let Some(meant) = meant.filter(|meant| aliases.contains(meant))
                && !self.finds(&file)
            {
                wrong.push(format!(
                    "no plugin `{file}`, and {flag} has no name `{name}`; did you mean {flag} {meant}?"
                ));
            }
        }
        Failure::of_any(Exit::CommandLine, wrong)
    }

    fn finds(&self, file: &str) -> bool {
        let folders = self.plugin_folders();
        let here = std::iter::once(PathBuf::new());
        here.chain(folders).any(|folder| folder.join(file).exists())
    }
}

/// A range of lengths: one ratio, or vLLM's JSON form with one for prompts and one for answers.
#[derive(Clone, Copy, Debug)]
enum Ratio {
    Both(f64),
    Each { input: f64, output: f64 },
}

impl Ratio {
    fn parse(text: &str) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            return finite(text).map(Ratio::Both);
        }
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Each {
            input: f64,
            output: f64,
        }
        let each = serde_json::from_str(text).map_err(|error| error.to_string());
        each.map(|Each { input, output }| Ratio::Each { input, output })
    }

    /// True if it gives other lengths for vLLM than for SGLang.
    fn has_two_readings(self) -> bool {
        matches!(self, Ratio::Both(ratio) if ratio < 1.0)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ratio::Both(ratio) => ratio.fmt(f),
            Ratio::Each { .. } => Value::from(*self).fmt(f),
        }
    }
}

impl From<Ratio> for Value {
    fn from(ratio: Ratio) -> Value {
        match ratio {
            Ratio::Both(ratio) => ratio.into(),
            Ratio::Each { input, output } => json!({"input": input, "output": output}),
        }
    }
}

fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error: ParseFloatError| error.to_string())?;
    if number.is_finite() { Ok(number) } else { Err("expected a finite number".to_owned()) }
}

fn set<T: Into<Value>>(config: &mut ConfigTable, key: &str, flag: &str, value: Option<T>) {
    if let Some(value) = value {
        config.set(key, Located::flag(flag, value.into()));
    }
}

/// The flags on the command line, with their values.
#[derive(Clone, Debug, Default)]
struct Keys(Vec<(&'static KeyFlag, Vec<String>)>);

/// A key that has a flag, with the texts of its flag.
#[derive(Debug)]
struct KeyFlag {
    key: &'static Key,
    flag: &'static Flag,
    variable: String,
    help: String,
    long_help: Option<String>,
}

static KEY_FLAGS: LazyLock<Vec<KeyFlag>> = LazyLock::new(|| {
    let row = |key: &'static Key| {
        let flag = key.flag.as_ref()?;
        let (first, others) = key.about.split_first()?;
        let first = flag.inverted.unwrap_or(first.trim_end_matches('.'));
        let default = key.absent().filter(|_| !key.switch);
        let default = default.map(|value| format!(" [default: {value}]"));
        let help = format!("{first}{}", default.unwrap_or_default());
        let long_help = [std::slice::from_ref(&help), others].concat().join("\n\n");
        Some(KeyFlag {
            key,
            flag,
            variable: flag.variable(),
            long_help: (!others.is_empty()).then_some(long_help),
            help,
        })
    };
    let mut all: Vec<KeyFlag> = scenario::keys().iter().filter_map(row).collect();
    let place = |heading: &str| heading::ALL.iter().position(|known| *known == heading);
    all.sort_by_key(|row| place(row.flag.heading));
    all
});

impl Keys {
    pub fn scenario(&self) -> Result<Scenario, Failure> {
        let mut scenario = Scenario::default();
        for (KeyFlag { key, flag, .. }, texts) in &self.0 {
            let set = scenario.say(&key.path, &format!("--{}", flag.long), texts);
            set.map_err(Failure::command_line)?;
        }
        Ok(scenario)
    }
}

/// The flags that name the server and its access, for commands without a run.
#[derive(Clone, Debug)]
pub struct TargetKeys(Vec<(&'static KeyFlag, Vec<String>)>);

impl TargetKeys {
    #[rustfmt::skip]
    const FLAGS: [&'static str; 8] = [
        "model", "api-key-env", "header", "http", "ca-cert", "insecure", "connect-timeout",
        "request-timeout",
    ];

    fn rows() -> impl Iterator<Item = &'static KeyFlag> {
        KEY_FLAGS.iter().filter(|row| Self::FLAGS.contains(&row.flag.long))
    }

    pub fn scenario(&self) -> Result<Scenario, Failure> {
        Keys(self.0.clone()).scenario()
    }

    /// The words of a command with the same flags, without the model and values of secrets.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (KeyFlag { key, flag, .. }, texts) in &self.0 {
            let long = format!("--{}", flag.long);
            match (flag.long, key.switch) {
                ("model", _) => {}
                (_, true) => words.push(long),
                (_, false) => {
                    for text in texts {
                        let name = text.split([':', '=']).next().unwrap_or_default();
                        let shown = if flag.secret { format!("{name}: ...") } else { text.clone() };
                        words.extend([long.clone(), shown]);
                    }
                }
            }
        }
        words
    }
}

rows_as_flags!(TargetKeys, TargetKeys::rows());

rows_as_flags!(Keys, KEY_FLAGS.iter());

impl KeyFlag {
    fn arg(&'static self) -> Arg {
        let KeyFlag { key, flag, .. } = self;
        let mut arg = Arg::new(flag.long)
            .long(flag.long)
            .env(self.variable.as_str())
            .help(self.help.as_str())
            .help_heading(flag.heading)
            .hide_env_values(flag.secret)
            .conflicts_with_all(flag.conflicts.iter().copied());
        if let Some(long) = &self.long_help {
            arg = arg.long_help(long.as_str());
        }
        if let Some(alias) = flag.alias {
            arg = arg.alias(alias);
        }
        if key.switch {
            return arg.action(ArgAction::SetTrue);
        }
        arg = arg
            .value_name(flag.value_name)
            .allow_negative_numbers(flag.negative)
            .action(if key.many { ArgAction::Append } else { ArgAction::Set });
        if let Some(delimiter) = flag.delimiter {
            arg = arg.value_delimiter(delimiter);
        }
        if flag.words {
            arg = arg.num_args(1..);
        }
        if !key.words.is_empty() {
            let values = key.words.iter();
            let values = values.map(|(name, about)| words::value(name, about));
            return arg.value_parser(PossibleValuesParser::new(values));
        }
        arg.value_parser(|text: &str| -> Result<String, String> {
            let text = flag.spelled(text);
            key.check(&text).map(|()| text)
        })
    }

    fn given(&self, matches: &ArgMatches) -> Option<Vec<String>> {
        if self.key.switch {
            let value = self.flag.inverted.is_none();
            return matches.get_flag(self.flag.long).then(|| vec![value.to_string()]);
        }
        let texts = matches.get_many::<String>(self.flag.long)?;
        Some(texts.cloned().collect())
    }
}
