//! The workload of a run: its requests, as they were really sent, and the server they were sent to.
//! A page states it beside the scenario's name, because flags may have changed the load.

use crate::document::{Document, Table};
use crate::label::engine;
use crate::page::plan::load;
use model::duration;
use model::number::{bytes, count, plural, short};
use result::summary::{Distribution, Summary};
use runs::Reported;
use scenario::plan::{Amount, Plan};
use serde_json::Value;

const INPUT: &str = "input-tokens";
const OUTPUT: &str = "output-tokens";

/// The requests and the server, as text. Unknown facts are left out.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Workload {
    /// The scenario's name.
    pub name: String,
    /// The requests: their origin, their lengths, their number, when they were sent.
    pub requests: Vec<Fact>,
    /// Engine, model and machines.
    pub machines: Vec<Fact>,
}

/// A fact with its name.
#[model::apply(model::document!)]
pub struct Fact {
    /// Its name: `Prompts`.
    pub name: String,
    /// The fact as text.
    pub is: String,
}

fn facts<const N: usize>(all: [(&str, Option<String>); N]) -> Vec<Fact> {
    let known = all.into_iter().filter_map(|(name, is)| Some((name, is?)));
    known.map(|(name, is)| Fact { name: name.to_owned(), is }).collect()
}

impl Workload {
    pub fn new(run: &Reported) -> Self {
        let (plan, summary) = (&run.plan, &run.summary);
        let about = &plan.about;
        let client = run.environment.as_ref().map(|environment| {
            let cores = environment.cores.map(|cores| plural(cores as u64, "core"));
            let memory = environment.memory_bytes.map(bytes);
            let all = [environment.cpu.clone(), cores, memory];
            all.into_iter().flatten().collect::<Vec<_>>().join(", ")
        });
        Workload {
            name: plan.name.clone(),
            requests: facts([
                ("Dataset", Some(dataset(plan))),
                ("Prompts", lengths(summary, INPUT)),
                ("Answers", lengths(summary, OUTPUT)),
                ("Requests", Some(amount(plan))),
                ("Arrival", Some(load(plan))),
                ("Replies", Some(replies(plan))),
            ]),
            machines: facts([
                ("Engine", engine(about)),
                ("Model", (!plan.target.model.is_empty()).then(|| plan.target.model.clone())),
                ("Hardware", about.hardware.clone()),
                ("Load machine", client.filter(|client| !client.is_empty())),
                ("Runner", Some(plan.runner.clone())),
            ]),
        }
    }

    /// The same for runs that differ in their load alone: without the facts in their table.
    pub fn without_load(mut self) -> Self {
        self.requests.retain(|fact| fact.name != "Arrival");
        self
    }

    /// The workload in a table cell: `128 tokens in, 32 out; 200 requests; poisson, 4/s`.
    pub fn in_short(run: &Reported) -> String {
        let mean = |name: &str| {
            let of = run.summary.metric(name)?;
            Some(short(of.mean, 4))
        };
        let lengths = match (mean(INPUT), mean(OUTPUT)) {
            (Some(into), Some(out)) => Some(format!("{into} tokens in, {out} out")),
            (Some(into), None) => Some(format!("{into} tokens in")),
            (None, Some(out)) => Some(format!("{out} tokens out")),
            (None, None) => None,
        };
        let all = [lengths, Some(amount(&run.plan)), Some(load(&run.plan))];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// Puts workloads on a page: their facts as a table, and once the facts that all share.
pub fn say(page: &mut Document, heading: &str, workloads: &[(&str, &Workload)]) {
    if workloads.is_empty() {
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    let all = |workload: &Workload| -> Vec<Fact> {
        workload.requests.iter().chain(&workload.machines).cloned().collect()
    };
    let every: Vec<(&str, Vec<Fact>)> =
        (workloads.iter()).map(|(name, workload)| (*name, all(workload))).collect();
    for fact in every.iter().flat_map(|(_, facts)| facts) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    page.heading(2, heading);
    let value = |facts: &[Fact], name: &str| {
        facts.iter().find(|fact| fact.name == name).map(|fact| fact.is.clone()).unwrap_or_default()
    };
    let (mut same, mut differ) = (Vec::new(), Vec::new());
    for name in names {
        let values: Vec<String> = every.iter().map(|(_, facts)| value(facts, name)).collect();
        if values.iter().all(|own| *own == values[0]) {
            same.push((name, values[0].clone()))
        } else {
            differ.push((name, values))
        }
    }
    if !differ.is_empty() {
        let head = ["Scenario"].into_iter().chain(differ.iter().map(|(name, _)| *name));
        let mut table = Table::new(head);
        for (at, (name, _)) in every.iter().enumerate() {
            let values = differ.iter().map(|(_, values)| values[at].clone());
            table.row([(*name).to_owned()].into_iter().chain(values));
        }
        page.table(table);
    }
    let mut table = Table::new(if differ.is_empty() { ["Workload", ""] } else { ["Of all", ""] });
    for (name, value) in same {
        table.row([name.to_owned(), value]);
    }
    page.table(table);
}

fn dataset(plan: &Plan) -> String {
    let plugin = &plan.dataset.plugin;
    match &plugin.config {
        Value::Object(map) if !map.is_empty() => {
            let keys = map.iter().map(|(key, value)| match value {
                Value::String(text) => format!("{key} {text}"),
                value => format!("{key} {value}"),
            });
            format!("{} ({})", plugin.plugin, keys.collect::<Vec<_>>().join(", "))
        }
        _ => plugin.plugin.clone(),
    }
}

/// The lengths that were counted: `128 tokens each`, `1,086 tokens (850 to 1,374)`.
fn lengths(summary: &Summary, name: &str) -> Option<String> {
    let of: &Distribution = summary.metric(name)?;
    Some(if of.min == of.max {
        format!("{} tokens each", short(of.min, 4))
    } else {
        format!(
            "{} tokens on average ({} to {})",
            short(of.mean, 4),
            short(of.min, 4),
            short(of.max, 4)
        )
    })
}

fn amount(plan: &Plan) -> String {
    match plan.load.amount {
        Amount::Requests(requests) => plural(requests, "request"),
        Amount::Sessions(sessions) => plural(sessions, "session"),
        Amount::Duration(span) => format!("for {}", duration::format(span.into())),
    }
}

fn replies(plan: &Plan) -> String {
    let request = &plan.request;
    let stream = if request.stream { "streamed" } else { "whole" };
    let requested =
        request.output_tokens.map(|tokens| format!("{} tokens requested", count(tokens.into())));
    let eos = request.asks_to_go_on().then(|| "the end of the text ignored".to_owned());
    let warm = u64::from(plan.load.warmup);
    let warm = (warm > 0).then(|| format!("after a warm-up of {}", plural(warm, "request")));
    let all = [Some(stream.to_owned()), requested, eos, warm];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::{facts as facts_of_run, reply};
    use model::exchange::Kind::{End, Text};

    fn workload(arrival: &str) -> Workload {
        Workload {
            name: "chat".to_owned(),
            requests: facts([
                ("Prompts", Some("128 tokens each".to_owned())),
                ("Arrival", Some(arrival.to_owned())),
            ]),
            machines: facts([("Engine", Some("vllm 0.11".to_owned())), ("Model", None)]),
        }
    }

    #[test]
    fn shared_facts_are_stated_once() {
        let mut page = Document::new("Lab", "chat");
        let (slow, fast) = (workload("poisson, 1/s"), workload("poisson, 8/s"));
        say(&mut page, "Workload", &[("slow", &slow), ("fast", &fast)]);
        let text = page.markdown();
        assert!(text.contains("| slow | poisson, 1/s |"), "{text}");
        assert_eq!(text.matches("128 tokens each").count(), 1, "{text}");
        assert!(!text.contains("Model"), "{text}");
        assert!(slow.without_load().requests.len() == 1);
    }

    #[test]
    fn shows_the_actual_lengths() {
        let exchanges: Vec<_> = [100, 140]
            .into_iter()
            .zip(0..)
            .map(|(tokens, index)| {
                let mut exchange =
                    reply(index, 1000, &[(1050, Text, None, 3), (1070, End, None, 0)]);
                exchange.sample.input_tokens = Some(tokens);
                exchange
            })
            .collect();
        let run = crate::fixture::reported(&facts_of_run(), &exchanges);
        let workload = Workload::new(&run);
        let named = |name: &str| {
            let all = workload.requests.iter().chain(&workload.machines);
            all.filter(|fact| fact.name == name).count()
        };
        for name in ["Dataset", "Requests", "Arrival", "Runner"] {
            assert_eq!(named(name), 1, "{name} of {workload:?}");
        }
        let prompts = workload.requests.iter().find(|fact| fact.name == "Prompts");
        assert_eq!(prompts.unwrap().is, "120 tokens on average (100 to 140)");
        let short = Workload::in_short(&run);
        assert!(short.starts_with("120 tokens in; ") && short.contains("request"), "{short}");
    }
}
