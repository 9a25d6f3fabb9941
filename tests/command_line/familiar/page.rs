//! The tables of the guide's page "Coming from vLLM and SGLang": the counterpart of each of their
//! flags.

use clap::{Arg, ArgAction, Command};

use runner::cli::flags::familiar::{Means, Pairs, Row, all, row};

/// A tool that the page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `vllm bench serve`.
    Vllm,
    /// SGLang's `bench_serving`.
    Sglang,
    /// LMDeploy's `profile_restful_api.py`.
    Lmdeploy,
}

/// A flag as its tool's help has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    pub long: String,
    /// True if a value stands after it.
    pub takes: bool,
}

use Tool::{Lmdeploy, Sglang, Vllm};

/// Notes for users of a tool on flags that are the same here by their names.
#[rustfmt::skip]
const REMARKS: [(&[Tool], &str, &str); 33] = [
    (&[Vllm], "backend", "the names of this tool work too: [the list](#backends); `vllm` without it (the tool's: `openai`)"),
    (&[Sglang, Lmdeploy], "backend", "the names of this tool work too: [the list](#backends); `vllm` without it (the tool's: `sglang`)"),
    (&[Vllm], "dataset-name", "the names of this tool work too: [the list](#datasets); `random` without it, as in the tool"),
    (&[Sglang], "dataset-name", "the names of this tool work too: [the list](#datasets); `random` without it (the tool's: `sharegpt`)"),
    (&[Vllm], "endpoint", "chooses the backend's route by its path; `--backend` alone is enough"),
    (&[Vllm, Sglang, Lmdeploy], "host", "without `--port`, the port where the backend's engine listens"),
    (&[Vllm, Sglang, Lmdeploy], "model", "the name that the server has; without it, the only one it lists"),
    (&[Vllm, Sglang, Lmdeploy], "tokenizer", "a name is looked up in the local cache, after `runner fetch tokenizer NAME`"),
    (&[Vllm], "seed", "0 without it in this tool's lines"),
    (&[Sglang], "seed", "42 without it in this tool's lines"),
    (&[Vllm], "num-warmups", "1 without it; the tool's is 0"),
    (&[Sglang], "warmup-requests", "warm-up prompts are never measured; the tool's are the first measured one"),
    (&[Sglang], "ready-check-timeout-sec", "no wait without it; the tool's is 60"),
    (&[Vllm], "random-range-ratio", "as in the tool in its own lines, where 0.0 is exact; refused if no flag shows the client"),
    (&[Sglang], "random-range-ratio", "0.0 without it in this tool's lines: any length up to the requested one"),
    (&[Sglang], "random-output-len", "1024 without it in this tool's lines"),
    (&[Vllm], "ramp-up-strategy", "the rate is a function of time; the tool's of the request's number"),
    (&[Vllm], "metric-percentiles", "90, 95 and 99 without it; the tool's is 99"),
    (&[Vllm], "ignore-eos", "without it, on for `random`, `random-mm` and `timed_trace` in this tool's lines. `--disable-ignore-eos` turns it off"),
    (&[Vllm], "temperature", "without it, left to the server in this tool's lines (`--temperature server`)"),
    (&[Sglang], "top-p", "not sent without it; the tool sends 1"),
    (&[Sglang], "output-file", "the lines are this program's summaries; `runner report RUN --style sglang --format jsonl` writes the tool's"),
    (&[Sglang], "cache-report", "compares the server's cached tokens with what repeats within the run"),
    (&[Sglang], "use-trace-timestamps", "names like `mooncake` imply it"),
    (&[Sglang], "gsp-num-groups", "`--num-prompts` is the number of requests here; the tool's is groups × prompts"),
    (&[Sglang], "mooncake-slowdown-factor", "a rate given with it wins; the tool ignores the rate"),
    (&[Vllm], "custom-output-len", "256 without it in this tool's lines"),
    (&[Vllm], "burstiness", "for equal gaps `--arrival constant`; the tool's is `inf`"),
    (&[Vllm], "goodput", "`e2el`, `ttft`, `tpot` and every other per-request metric"),
    (&[Sglang], "image-count", "without lengths 1024 tokens each in this tool's lines"),
    (&[Lmdeploy], "dataset-name", "for its choice of conversations and prompts `--set dataset.config.like=lmdeploy`; `random` without it (the tool's: `sharegpt`)"),
    (&[Lmdeploy], "random-output-len", "128 without it; the tool's is 1024"),
    (&[Lmdeploy], "random-range-ratio", "exact lengths without it; the tool's is 0.0, any length up to the requested one"),
];

/// This program's flag for another tool's flag, by the same name or by an alias.
pub fn own<'c>(command: &'c Command, long: &str) -> Option<&'c Arg> {
    let has = |arg: &&Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        !arg.is_hide_set() && (arg.get_long() == Some(long) || aliases.contains(&long))
    };
    command.get_arguments().find(has)
}

/// Returns the mistake in a flag of theirs on this command line, if there is one.
pub fn fault(command: &Command, theirs: &Theirs) -> Option<String> {
    let long = &theirs.long;
    let hidden = |arg: &&Arg| arg.get_long() == Some(&**long);
    let arg = match own(command, long) {
        Some(arg) => arg,
        None => command.get_arguments().find(hidden)?,
    };
    let takes = !matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::Help);
    let any = row(long).is_some_and(|row| matches!(row.means, Means::Refused(_)));
    (takes != theirs.takes && !any).then(|| format!("--{long} takes a value in one tool only"))
}

/// The table of a tool's flags in their order by name, or the flags that are neither supported nor
/// refused.
pub fn table(command: &Command, tool: Tool, flags: &[Theirs]) -> Result<String, Vec<String>> {
    // Flags of one meaning share a row, where the first of them stands.
    let mut rows: Vec<(Vec<String>, String)> = Vec::new();
    let mut missing = Vec::new();
    for Theirs { long, .. } in flags {
        let here = match (own(command, long), row(long)) {
            (Some(own), _) => match own.get_long() {
                Some(name) if name != long => format!("`--{name}`; this name works too"),
                _ => "the same".to_owned(),
            },
            (None, Some(row)) => meaning(row),
            (None, None) if long == "help" => "the same".to_owned(),
            (None, None) => {
                missing.push(format!("--{long}"));
                continue;
            }
        };
        let remark = REMARKS.iter().find(|(tools, flag, _)| tools.contains(&tool) && flag == long);
        let remark = remark.map(|(.., words)| format!("; {words}"));
        let here = format!("{here}{}", remark.unwrap_or_default());
        let here = as_code(&here).replace('|', "\\|");
        let refused = row(long).is_some_and(|row| matches!(row.means, Means::Refused(_)));
        let same = rows.iter_mut().find(|(_, own)| refused && *own == here);
        match same {
            Some((flags, _)) => flags.push(format!("`--{long}`")),
            None => rows.push((vec![format!("`--{long}`")], here)),
        }
    }
    let rows = rows.into_iter();
    let rows = rows.map(|(flags, here)| format!("| {} | {here} |\n", flags.join(", ")));
    let text = format!("| there | here |\n| --- | --- |\n{}", rows.collect::<String>());
    if missing.is_empty() { Ok(text) } else { Err(missing) }
}

fn as_code(text: &str) -> String {
    let wrapped = |word: &str| {
        let (open, word) = word.split_at(usize::from(word.starts_with('(')));
        match word.strip_prefix("--") {
            Some(_) => {
                let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
                let (flag, rest) = word.split_at(end.unwrap_or(word.len()));
                format!("{open}`{flag}`{rest}")
            }
            None => format!("{open}{word}"),
        }
    };
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        0 => part.split(' ').map(wrapped).collect::<Vec<_>>().join(" "),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

fn meaning(row: &Row) -> String {
    let pairs = |pairs: Pairs| {
        let pairs = pairs.iter();
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("`{key}` = `{value}`")).collect();
        pairs.join(", ")
    };
    match &row.means {
        Means::Key(key, []) => format!("sets `{key}`"),
        Means::Key(key, fixed) => format!("sets `{key}`, and {}", pairs(fixed)),
        Means::Only(key) => format!("sets `{key}` to a list of this"),
        Means::Fixed(fixed) => format!("sets {}", pairs(fixed)),
        Means::Change(_, words) => (*words).to_owned(),
        Means::Anyway(why) => format!("accepted, and changes nothing: {why}"),
        Means::Refused(instead) => format!("refused: {instead}"),
    }
}

#[test]
fn remarks_name_known_flags_and_no_flag_is_in_two_places() {
    let command = super::run_command();
    for (_, flag, _) in REMARKS {
        assert!(own(&command, flag).is_some() || row(flag).is_some(), "{flag}");
    }
    for row in all() {
        assert!(own(&command, row.long).is_none(), "{}", row.long);
        let same = all().filter(|other| other.long == row.long);
        assert_eq!(same.count(), 1, "{}", row.long);
    }
}
