//! The flags that each stand for one key of a scenario, made from the keys' declarations.

use std::sync::LazyLock;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches};

use super::super::failure::Failure;
use super::super::words;
use scenario::{Flag, Key, Scenario, heading};

/// The flags on the command line, with their values.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<(&'static KeyFlag, Vec<String>)>);

/// A key that has a flag, with the texts of its flag.
#[derive(Debug)]
pub struct KeyFlag {
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

    /// The words of a command with the same flags, except the model. Values that may be secret are
    /// left for the user to fill in.
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
