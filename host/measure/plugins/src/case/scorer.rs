//! Checks of a scorer: exchanges are scored in order, twice, and then odd exchanges.

use serde_json::{Map, Value};

use super::{Observations, TOLERATED, format};
use crate::PluginError;
use crate::scorer::{Exchange, Judge, Scorer};

/// References that a plugin might not expect.
const REFERENCES: [&str; 7] = ["null", "true", "-1e300", "\"\"", "[]", "{}", "[[{\"a\":[null]}]]"];
/// Answers that a plugin might not expect.
const OUTPUTS: [&str; 4] = ["", "\u{0}", "\u{1f1e9}\u{301}\u{202e} \u{2028}", "NaN"];

pub fn judge(plugin: &Scorer, exchanges: &[Exchange], seen: &mut Observations) {
    let doing = "judging the exchanges";
    let first = match judged(plugin, exchanges, seen) {
        Ok(scores) => scores,
        Err(error) => return seen.ended(doing, &error),
    };
    match judged(plugin, exchanges, seen) {
        Ok(second) => {
            let what = || format!("{doing} again, in a fresh instance, gives different scores");
            if seen.same(what, &first, &second) {
                seen.found("scores.json", first);
            }
        }
        Err(error) => seen.misbehaved(&format!("{doing} again, in a fresh instance"), &error),
    }
    odd(plugin, exchanges, seen);
}

fn judged(
    plugin: &Scorer,
    exchanges: &[Exchange],
    seen: &mut Observations,
) -> Result<String, PluginError> {
    let mut judge = plugin.open()?;
    let mut lines = Vec::new();
    for exchange in exchanges {
        let mut line = Map::new();
        line.insert("id".to_owned(), exchange.id.as_str().into());
        seen.checks.scored += 1;
        match judge.score(exchange) {
            Ok(scores) => line.insert("scores".to_owned(), format::scores(&scores)),
            Err(error) => match format::error(&error) {
                Some(message) => line.insert("error".to_owned(), message.trim_end().into()),
                None => return Err(error),
            },
        };
        lines.push(format!("    {}", Value::Object(line)));
    }
    let run = format::scores(&judge.finish()?);
    Ok(match lines.as_slice() {
        [] => format!("{{\n  \"exchanges\": [],\n  \"run\": {run}\n}}\n"),
        lines => {
            format!("{{\n  \"exchanges\": [\n{}\n  ],\n  \"run\": {run}\n}}\n", lines.join(",\n"))
        }
    })
}

/// Passes exchanges that the plugin might not expect: the result must be an error or finite scores.
fn odd(plugin: &Scorer, exchanges: &[Exchange], seen: &mut Observations) {
    let Some(example) = exchanges.first() else { return };
    let mut odd = Vec::new();
    for reference in REFERENCES {
        odd.push((
            format!("the reference {reference}"),
            Exchange { reference: Some(reference.to_owned()), ..example.clone() },
        ));
    }
    for output in OUTPUTS {
        odd.push((
            format!("the answer {output:?}"),
            Exchange { output: output.to_owned(), ..example.clone() },
        ));
    }
    odd.push((
        "only an id".to_owned(),
        Exchange {
            reference: None,
            turn: None,
            class: None,
            requested_tokens: None,
            output_tokens: None,
            finish: None,
            output: String::new(),
            choices: Vec::new(),
            reasoning: String::new(),
            tool_calls: String::new(),
            id: example.id.clone(),
        },
    ));
    let mut judge = match plugin.open() {
        Ok(judge) => judge,
        Err(error) => return seen.misbehaved("opening it once more", &error),
    };
    let mut spoilt = 0;
    let mut tried = |what: String, result: Result<(), PluginError>, seen: &mut Observations| {
        if let Err(error) = result
            && error.is_misbehaviour()
        {
            seen.misbehaved(&format!("judging an exchange with {what}"), &error);
            spoilt += 1;
        }
        spoilt < TOLERATED
    };
    for (what, exchange) in odd {
        seen.checks.scored += 1;
        let result = judge.score(&exchange).map(drop);
        if !tried(what, result, seen) {
            return;
        }
    }
    let finished = judge.finish().map(drop);
    tried("such values before `finish`".to_owned(), finished, seen);
    let finished = plugin.open().and_then(|mut judge: Judge| judge.finish()).map(drop);
    tried("nothing before `finish`".to_owned(), finished, seen);
}
