use std::collections::BTreeSet;

use super::{PublishedRun, page};
use crate::document::Slugs;
use crate::exchanges::{facts, output_usage, reply};
use crate::fixture::{finding, reported};
use crate::tests::golden;
use model::about::About;
use model::exchange::{Exchange, Kind};
use result::finding::{Id, Severity, Verdict};

/// A run whose first tokens take `ttft` milliseconds, of an engine and a model.
fn run(folder: &str, ttft: u64, engine: &str, model: &str) -> PublishedRun {
    let exchanges: Vec<Exchange> = (0..4)
        .map(|index| {
            let sent = 1000 + 250 * index;
            let first = sent + ttft + index;
            let mut exchange = reply(
                index,
                sent,
                &[
                    (first, Kind::Text, None, 4),
                    (first + 20, Kind::Text, None, 4),
                    (first + 40, Kind::Text, None, 4),
                    (first + 41, Kind::End, None, 0),
                ],
            );
            exchange.usage = output_usage(3);
            exchange.sample.input_tokens = Some(100);
            exchange
        })
        .collect();
    let mut facts = facts();
    facts.run.arrival = "poisson, 4 req/s".into();
    facts.run.max_in_flight = Some(8);
    let mut reported = reported(&facts, &exchanges);
    reported.folder = folder.into();
    reported.summary.findings.clear();
    reported.summary.verdict = Verdict::Valid;
    let plan = &mut reported.plan;
    plan.name = "ShareGPT".into();
    plan.target.model = model.into();
    plan.about = About {
        engine: Some(engine.into()),
        engine_version: Some("0.10.1".into()),
        hardware: Some("8x H800".into()),
        launch_command: Some(format!("{engine} serve {model} --tp 8\n")),
        ..About::default()
    };
    PublishedRun {
        reported,
        block: "============ Serving Benchmark Result ============\nSuccessful requests:                     4\n==================================================\n".into(),
    }
}

/// Two engines, two models, an invalid run, a run of few facts; and text like Markdown.
fn runs() -> Vec<PublishedRun> {
    let mut hostile = run("20260102-040000-b", 80, "sglang", "Qwen/Qwen3-8B");
    let plan = &mut hostile.reported.plan;
    plan.load.seed = 2;
    plan.about.launch_command = Some("sglang serve # ```\n<script>alert(1)</script>\n".into());
    plan.about.notes = [("kv|cache".into(), "<b>fp8</b> [x](http://x)\n# y".into())].into();
    hostile.block = "````\n# not a heading | a cell\n".into();
    hostile.reported.summary.verdict = Verdict::Invalid;
    let saturated = [
        "reader 0 had | 99 % of a core\nand more",
        "times are the client's",
        "take a larger <machine>",
    ];
    let few = ["4 requests", "P99 is the largest", "send 1000"];
    hostile.reported.summary.findings = vec![
        finding(Id::ClientSaturated, Severity::Invalid, saturated),
        finding(Id::FewSamples, Severity::Note, few),
    ];
    let mut bare = run("trial", 40, "x", "y");
    bare.reported.plan.about = About::default();
    bare.reported.plan.target.model = String::new();
    bare.reported.environment = None;
    bare.reported.status = None;
    bare.reported.summary.metrics.clear();
    bare.reported.summary.verdict = Verdict::Suspect;
    vec![
        run("20260102-030000-a", 100, "vllm", "Qwen/Qwen3-8B"),
        run("20260102-033000-a", 300, "vllm", "Qwen/Qwen3-32B"),
        hostile,
        bare,
    ]
}

/// The lines of a page that stand in no fence.
fn outside_fences(page: &str) -> Vec<&str> {
    let (mut fence, mut outside) = (0, Vec::new());
    for line in page.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            0 if ticks >= 3 => fence = ticks,
            0 => outside.push(line),
            _ if ticks >= fence && ticks == line.len() => fence = 0,
            _ => {}
        }
    }
    outside
}

#[test]
fn a_page_of_several_runs() {
    golden("src/cases/page.md", &page(&runs()).markdown());
}

#[test]
fn a_page_of_one_run_compares_nothing() {
    let page = page(&runs()[..1]).markdown();
    assert!(page.starts_with("# vllm 0.10.1, 8x H800\n"), "{page}");
    assert!(!page.contains("## Comparison"), "{page}");
    assert!(!page.contains("[!"), "{page}");
}

#[test]
fn every_link_within_a_page_leads_to_a_heading() {
    let page = page(&runs()).markdown();
    let mut slugs = Slugs::default();
    let lines = outside_fences(&page);
    let headings = lines.iter().filter(|line| line.starts_with('#'));
    let anchors: BTreeSet<String> =
        headings.map(|line| slugs.next(&line.trim_start_matches('#').replace('\\', ""))).collect();
    let links: BTreeSet<String> =
        page.split("](#").skip(1).map(|link| link.split(')').next().unwrap().to_owned()).collect();
    let lost: Vec<_> = links.difference(&anchors).collect();
    assert!(lost.is_empty(), "{lost:?} of {anchors:?}");
    for anchor in ["sharegpt", "sharegpt-1", "sharegpt-2", "qwenqwen3-8b-1"] {
        assert!(links.contains(anchor), "{anchor}: {links:?}");
    }
}

#[test]
fn text_from_outside_stays_text() {
    let page = page(&runs()).markdown();
    for line in outside_fences(&page) {
        assert!(!line.contains("<script") && !line.contains("<b>"), "{line}");
        assert!(!line.starts_with("# y") && !line.contains("not a heading"), "{line}");
        // Within a code span a link is text.
        let outside: String = line.split('`').step_by(2).collect();
        assert!(!outside.contains("[x](http"), "{line}");
    }
    let tables = page.split("\n\n").filter(|part| part.starts_with("| "));
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in tables {
        let widths: BTreeSet<usize> = table.lines().map(cells).collect();
        assert_eq!(widths.len(), 1, "{table}");
    }
}

#[test]
fn unmeasured_figures_are_not_zero() {
    let page = page(&runs()).markdown();
    let row = page.lines().find(|line| line.starts_with("| openai | model"));
    assert!(row.unwrap().ends_with("| – | – | – | – |"), "{row:?}");
}
