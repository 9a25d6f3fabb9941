//! `runner scenario keys`: lists the keys of scenarios.

use std::process::ExitCode;

use serde::Serialize;

use super::super::failure::Failure;
use super::super::plugin::Form;
use scenario::{Fate, Key};

/// List the keys of scenarios: type, default, flag, variable, documentation
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only the keys that begin with this, such as load or load.ramp
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row<'k> {
    key: &'k str,
    #[serde(rename = "type")]
    expected: &'k str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'k str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    documentation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    must_agree: Option<&'static str>,
}

impl<'k> Row<'k> {
    fn new(key: &'k Key) -> Self {
        let flag = key.flag.as_ref();
        Row {
            key: &key.path,
            expected: &key.expected,
            values: key.words.iter().map(|(name, _)| *name).collect(),
            default: key.absent(),
            flag: flag.map(|flag| format!("--{}", flag.long)),
            variable: flag.map(scenario::Flag::variable),
            documentation: key.about.join("\n\n"),
            must_agree: match key.plan {
                Some((_, Fate::Must(kind))) => Some(kind.name()),
                _ => None,
            },
        }
    }
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let prefix = prefix.trim_end_matches('.');
    let begins = |key: &&Key| {
        let rest = key.path.strip_prefix(prefix);
        prefix.is_empty()
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let keys: Vec<&Key> = scenario::keys().iter().filter(begins).collect();
    if keys.is_empty() {
        return Err(Failure::command_line(unknown(prefix)));
    }
    let rows: Vec<Row<'_>> = keys.iter().copied().map(Row::new).collect();
    args.form.print(&rows, |_| keys.into_iter().map(block).collect::<Vec<_>>().join("\n"))
}

fn unknown(prefix: &str) -> String {
    let paths = scenario::keys().iter().map(|key| key.path.as_str());
    let tables = scenario::keys().iter().map(Key::table);
    match model::nearest(prefix, paths.chain(tables)) {
        Some(near) => format!("no key begins with `{prefix}`; did you mean `{near}`?"),
        None => {
            format!("no key begins with `{prefix}`; `runner scenario keys` lists all")
        }
    }
}

fn block(key: &Key) -> String {
    let row = Row::new(key);
    let mut lines = vec![row.key.to_owned()];
    let mut line = |text: &str| lines.push(format!("    {text}"));
    for paragraph in &key.about {
        line(paragraph);
    }
    let default = row.default.map(|value| format!("; default: {value}"));
    line(&format!("{}{}", row.expected, default.unwrap_or_default()));
    if let (Some(flag), Some(variable)) = (&row.flag, &row.variable) {
        let means = key.flag.as_ref().and_then(|flag| flag.inverted);
        let means = means.map(|_| " (sets it to false)").unwrap_or_default();
        line(&format!("{flag}{means}, {variable}"));
    }
    lines.join("\n") + "\n"
}
