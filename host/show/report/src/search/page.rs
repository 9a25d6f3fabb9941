//! A search as a page: the answer of each tier, the share of bad requests at every load that was
//! tried, and every run.

use super::{SIMULATED, amount, conclusion, is_simulated, short, unit};
use crate::chart::{Band, Chart, Rule, Side};
use crate::charts::curve::{Line, Plane, Plot, Spot, Style, chart};
use crate::document::{Cell, Document, Table, Text, Tone};
use crate::search::Searched;
use crate::workload::{self, Workload};
use model::number::percent;
use search::decision::{Decided, Decision};
use search::level::Level;
use search::slo::{Tier, UNNAMED};
use search::{Config, Purpose};

/// The page of a search; its title is the workload's name, or the given name without a run.
pub fn page(searched: &Searched, name: &str, workload: Option<&Workload>) -> Document {
    let config = searched.search.config();
    let answer = searched.answer.clone().unwrap_or_else(|| searched.search.answer());
    let levels: Vec<&Level> = answer.levels.iter().collect();
    let mut page =
        Document::new("Search", workload.map_or(name, |workload| workload.name.as_str()));
    if searched.answer.is_none() {
        page.paragraph(Text::strong(
            "This search is not complete: the answer comes from the loads so far.",
        ));
    }
    for (number, tier) in config.tiers.iter().enumerate() {
        page.heading(2, heading(tier));
        let found = answer.tiers.get(number);
        let ends = found.map(|found| [found.passed, found.failed]);
        for limit in 0..tier.limits.len() {
            page.chart(shares(config, tier, [number, limit], &levels, ends));
        }
        let lines = found.map(|found| conclusion(&answer, found)).unwrap_or_default();
        page.list(lines.into_iter().map(Text::plain).collect());
    }
    if let Some(workload) = workload {
        let mut workload = workload.clone().without_load();
        // Each run has its own number of them, which the table says.
        workload.requests.retain(|fact| fact.name != "Requests");
        workload::say(&mut page, "Workload and machines", &[("", &workload)]);
    }
    page.heading(2, "Loads");
    for (number, tier) in config.tiers.iter().enumerate() {
        if config.tiers.len() > 1 {
            page.heading(3, heading(tier));
        }
        page.table(loads(config, number, &levels));
    }
    if is_simulated(&answer) {
        page.say(SIMULATED);
    }
    page.heading(2, "Runs");
    page.table(runs(searched));
    page.say(&format!(
        "The interval follows from the share of bad requests at all loads together. Its lower end is above the highest load \
         that holds with a probability of {}, and its upper end below it with the same. Undecided is never a pass.",
        percent(config.alpha / 2.0)
    ));
    page
}

/// A tier's name with its objectives; objectives without a name alone.
fn heading(tier: &Tier) -> String {
    let all = tier.to_string();
    if tier.name == UNNAMED { all.replacen(&format!("{UNNAMED}: "), "", 1) } else { all }
}

/// Describes the standing of a tier at a load, in a word.
fn word(decided: &Decided) -> (&'static str, Tone) {
    match decided.decision {
        Decision::Pass | Decision::Below => ("passed", Tone::Good),
        Decision::Fail { .. } => ("failed", Tone::Bad),
        Decision::Undecided { .. } => ("undecided", Tone::Plain),
    }
}

/// The share of requests that are bad by one objective, at each load.
fn shares(
    config: &Config,
    tier: &Tier,
    [number, limit]: [usize; 2],
    levels: &[&Level],
    ends: Option<[Option<f64>; 2]>,
) -> Chart {
    let of = |wanted: &str, shape: Style| {
        let spots = levels.iter().filter_map(|level| {
            let decided = level.tiers.get(number)?;
            let stated = decided.limits.get(limit).filter(|own| own.requests > 0)?;
            let share = stated.bad as f64 / stated.requests as f64;
            let confirms = if level.confirms { ", confirming" } else { "" };
            (word(decided).0 == wanted).then(|| Spot {
                row: format!("{}{confirms}", amount(config.load, level.at)),
                x: level.at,
                y: share,
                text: format!(
                    "{wanted}: {} of {} requests are bad ({}, at most {})",
                    stated.bad,
                    stated.requests,
                    percent(share),
                    percent(stated.high)
                ),
            })
        });
        Line { label: wanted.to_owned(), shape, spots: spots.collect() }
    };
    let lines =
        [of("passed", Style::Apart), of("undecided", Style::Apart), of("failed", Style::Crossed)];
    let allowed = tier.limits[limit].allowed();
    let bands = match ends {
        Some([Some(passed), Some(failed)]) if failed > passed => {
            vec![Band { from: passed, to: failed, label: "the answer".to_owned() }]
        }
        _ => Vec::new(),
    };
    chart(&Plot {
        name: format!("tier-{}-objective-{}", number + 1, limit + 1),
        title: format!("Requests that miss {}", tier.limits[limit]),
        note: format!(
            "One point for each load; {} may miss it. A run that was stopped because its backlog grew has no point, and is \
             in the table.",
            percent(allowed)
        ),
        x: format!("Load ({})", unit(config.load)),
        head: "Load".to_owned(),
        panels: vec![Plane {
            y: "Share of requests".to_owned(),
            is_share: true,
            lines: lines.into_iter().filter(|line| !line.spots.is_empty()).collect(),
            rules: vec![Rule::new(Side::Y, allowed, format!("allowed: {}", percent(allowed)))],
        }],
        bands,
        is_named: false,
    })
}

fn loads(config: &Config, tier: usize, levels: &[&Level]) -> Table {
    let load = format!("Load ({})", unit(config.load));
    let mut table = Table::new([load.as_str(), "Requests", "Runs", "Result", "Why"]);
    for level in levels {
        let Some(decided) = level.tiers.get(tier) else { continue };
        let (text, tone) = word(decided);
        let words = decided.to_string();
        let why = words.strip_prefix(text).unwrap_or(&words).trim_start_matches([':', ',', ' ']);
        let text = if level.confirms { format!("{text} (confirming)") } else { text.to_owned() };
        table.row([
            short(level.at).into(),
            level.requests.to_string().into(),
            level.looks.to_string().into(),
            Cell { text: text.into(), tone },
            why.into(),
        ]);
    }
    table
}

fn runs(searched: &Searched) -> Table {
    let load = format!("Load ({})", unit(searched.search.config().load));
    let mut table = Table::new(["Run", load.as_str(), "Requests", "For", "Folder"]);
    for report in searched.search.reports() {
        let probe = &report.probe;
        let run = searched.runs.iter().find(|(number, _)| *number == probe.number);
        table.row([
            probe.number.to_string(),
            short(probe.at),
            probe.requests.to_string(),
            match probe.purpose {
                Purpose::Bracket => "the bounds",
                Purpose::Narrow => "between the bounds",
                Purpose::Confirm => "confirmation",
            }
            .to_owned(),
            run.map(|(_, folder)| folder.clone()).unwrap_or_default(),
        ]);
    }
    table
}
