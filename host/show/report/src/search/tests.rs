use super::*;
use crate::search::Searched;
use crate::tests::golden;
use ::search::gather::{Counted, Measured};
use ::search::slo::tiers;
use ::search::{Config, Outcome, Probe, Report, Search, Step};
use result::summary::Backlog;

#[test]
fn numbers_have_four_digits() {
    for (number, text) in [
        (12.0, "12"),
        (0.03125, "0.03125"),
        (1234.56, "1235"),
        (12.3456, "12.35"),
        (0.5, "0.5"),
        (0.0, "0"),
        (f64::INFINITY, "inf"),
    ] {
        assert_eq!(short(number), text);
    }
}

/// The outcome on an engine whose requests are late from 20 a second on.
fn made(probe: &Probe) -> Outcome {
    let late = if probe.at < 20.0 { 0.0 } else { 0.4 };
    let counted = |share: f64| Counted {
        requests: probe.requests,
        bad: (share * probe.requests as f64) as u64,
        unknown: 0,
        effect: 1.0,
        tail_effect: 1.0,
        near_effect: 1.0,
        batches: 160,
        control: None,
        overloads: false,
    };
    Outcome::Measured(Measured {
        requests: probe.requests,
        tiers: vec![vec![counted(late), counted(0.0)]],
        loads: 100.0,
        backlog: Some(Backlog { second_quarter: 1.0, fourth_quarter: 1.0, chance: 3.0 }),
        little: None,
    })
}

/// A search that is done, or a search that was stopped after `most` runs.
pub(crate) fn searched(most: Option<u32>) -> Searched {
    let tiers = tiers(["ttft.p99<500ms", "tpot.p90<50ms"]).unwrap();
    let mut config = Config::new(Load::Rate, tiers, 4.0);
    config.width = 0.2;
    let mut searched =
        Searched { runs: Vec::new(), search: Search::new(config).unwrap(), answer: None };
    loop {
        let probe = match searched.search.next() {
            Step::Done(answer) => {
                searched.answer = Some(*answer);
                return searched;
            }
            Step::Probe(probe) => probe,
        };
        if most.is_some_and(|most| probe.number > most) {
            return searched;
        }
        let outcome = made(&probe);
        searched.runs.push((probe.number, format!("run-{}", probe.number)));
        searched.search.report(Report { probe, outcome, seconds: 0.0 }).unwrap();
    }
}

#[test]
fn the_page_equals_its_golden() {
    let page = page(&searched(None), "20260102-030405-chat-search", None);
    golden("src/cases/search.md", &page.markdown());
    let html = page.html();
    let charts: Vec<&str> = page.charts().map(|chart| chart.name.as_str()).collect();
    assert_eq!(charts, ["tier-1-objective-1", "tier-1-objective-2"]);
    for part in ["allowed: 1 %", "the answer", "better\">passed", "worse\">failed"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_search_that_was_stopped_has_a_page() {
    for most in [0, 2] {
        let page = page(&searched(Some(most)), "chat", None);
        let text = page.markdown();
        assert!(text.contains("This search is not complete"));
        let wanted = ["no estimate: no run was valid", "best estimate at least 8 req/s"];
        assert!(text.contains(wanted[usize::from(most > 0)]), "{text}");
        assert_eq!(page.charts().count(), if most == 0 { 0 } else { 2 });
        page.html();
    }
}
