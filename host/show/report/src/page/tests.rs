use super::*;
use crate::charts::fixture::{exchanges, run_of, sides_of};
use crate::exchanges::failed;
use model::exchange::{Class, Exchange};
use runs::folder;

fn page_of(runs: &[RunView]) -> String {
    let without = vec![Vec::new(); runs.len()];
    drawn_with(runs, &without)
}

/// The page of runs, each with its exchanges.
fn drawn_with(runs: &[RunView], exchanges: &[Vec<Exchange>]) -> String {
    let (sides, options) = sides_of(runs, exchanges);
    let several = runs.len() > 1;
    let compared = several.then(|| compare::compare(&sides, &options));
    page(runs, compared.as_ref()).html()
}

/// Older runs are marked too, by their plan.
#[test]
fn percentiles_of_a_closed_loop_are_marked() {
    let exchanges = exchanges(60, 0);
    let mut run = run_of("one", &exchanges);
    let mut drawn = |arrival| {
        run.reported.plan.load.arrival = serde_json::from_value(arrival).unwrap();
        let facts = folder::facts(&run.reported.plan, Default::default(), false);
        run.reported.summary = result::summary::Summary::new(&facts, &exchanges);
        let name = run.reported.summary.run.r#loop.name();
        let text = crate::text::text(&run.reported.summary);
        let lines = text.matches("closed loop, where slow periods get fewer requests").count();
        let tiles = page_of(std::slice::from_ref(&run));
        (name, lines, tiles.matches("of a closed loop").count())
    };
    let closed = serde_json::json!({ "model": "closed", "concurrency": 4 });
    assert_eq!(drawn(closed), ("closed", 1, 4));
    let burst = serde_json::json!({ "model": "inf" });
    assert_eq!(drawn(burst), ("open", 0, 0));
}

/// A percentile that failures make infinite is shown as that, and a mean is not.
#[test]
fn failures_may_count_as_infinitely_late() {
    let exchanges = exchanges(60, 0);
    let mut run = run_of("one", &exchanges);
    run.reported.plan.failures_as_infinite = true;
    let facts = folder::facts(&run.reported.plan, Default::default(), false);
    run.reported.summary = result::summary::Summary::new(&facts, &exchanges);
    assert!(run.reported.summary.requests.failed > 0);
    let page = page_of(std::slice::from_ref(&run));
    assert!(page.contains(">inf</td>"), "{page}");
    assert!(!page.contains("NaN"), "{page}");
}

#[test]
fn shows_sessions_and_changes_by_the_dataset() {
    use result::summary::{Dataset, Remark, Treatment};
    let mut run = run_of("one", &exchanges(60, 0));
    run.reported.summary.dataset = Some(Dataset {
        remarks: vec![Remark {
            what: Treatment::Repeated,
            reason: "fewer prompts than <b>requests".to_owned(),
            count: 1234,
            first: Some("line 7".to_owned()),
        }],
    });
    let text = page_of(&[run]);
    for part in [
        "Session time, median",
        "Complete sessions per second",
        "Changes by the dataset",
        "repeated: fewer prompts than &lt;b&gt;requests",
        "1,234, first line 7",
        "Cached input",
        "id=\"def-session-time\"",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let mut alone = exchanges(60, 0);
    for exchange in &mut alone {
        exchange.sample.turn = None;
        exchange.sample.class = None;
    }
    let text = page_of(&[run_of("one", &alone)]);
    for absent in ["Session time", "Complete sessions", "Changes by the dataset", "By turn of"] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn a_page_of_embeddings_has_no_first_token_and_no_output() {
    let mut run = exchanges(20, 0);
    for exchange in &mut run {
        let at = exchange.ended.unwrap_or(exchange.due);
        exchange.events = model::exchange::Events::default();
        exchange.events.push(model::exchange::Event {
            at,
            kind: model::exchange::Kind::Vector,
            tokens: None,
            bytes: 0,
        });
        exchange.vectors = Some(model::exchange::Vectors { count: 1, dimensions: 8 });
    }
    let text = page_of(&[run_of("one", &run)]);
    for absent in ["TTFT, median</", "TPOT, median</", "Output throughput", "tokens-unknown"] {
        assert!(!text.contains(absent), "{absent}");
    }
    assert!(text.contains("E2E latency, median"));
}

#[test]
fn a_page_is_complete_and_reproducible() {
    let run = || run_of("one", &exchanges(60, 0));
    let text = page_of(&[run()]);
    assert_eq!(text, page_of(&[run()]));
    assert!(!text.contains("Thresholds"), "absent is absent");
    let mut checked = run();
    let threshold = crate::fixture::threshold("ttft.p99 <= 100 ms", false, 160.0);
    checked.reported.summary.thresholds = vec![threshold];
    let checked = page_of(&[checked]);
    assert!(checked.contains("ttft.p99 &lt;= 100 ms") && checked.contains("does not hold"));
    for part in [
        "<title>m on vllm 0.10.1</title>",
        "8x H800",
        "2026-01-02, 03:04:05 UTC",
        "57 of 60",
        "it broke &lt;off&gt;",
        "By turn of the conversation",
        "By class of sample",
        "TTFT, median",
        "id=\"def-ttft\"",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("By adapter"), "absent is absent");
    let ids: Vec<&str> =
        text.split(" id=\"").skip(1).filter_map(|id| id.split('"').next()).collect();
    let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "ids are unique");
    for reference in ["popovertarget=\"", "aria-labelledby=\"", "aria-describedby=\"", "href=\"#"] {
        for id in text.split(reference).skip(1).filter_map(|id| id.split('"').next()) {
            assert!(ids.contains(&id), "{reference}{id}");
        }
    }
}

#[test]
fn escapes_text_of_servers() {
    let hostile = "</script><img src=x onerror=alert(1)>\u{7}\"'`";
    let mut all = exchanges(40, 0);
    all[3] = failed(all[3].clone(), Class::HttpStatus, hostile);
    for exchange in &mut all {
        exchange.sample.id = hostile.to_owned();
        exchange.sample.class = Some(hostile.to_owned());
    }
    let mut run = run_of(hostile, &all);
    run.reported.folder = hostile.to_owned();
    run.reported.plan.about.engine = Some(hostile.to_owned());
    run.reported.plan.about.launch_command = Some(hostile.to_owned());
    let text = page_of(&[run.clone(), run]);
    assert!(!text.contains("<img"), "nothing is an element");
    assert!(!text.contains('\u{7}') && text.contains("&lt;img"));
    assert_eq!(text.matches("</script>").count(), 1);
}

#[test]
fn secrets_are_not_shown() {
    let mut run = run_of("one", &exchanges(20, 0));
    run.reported.plan.request.extra_body = Some(serde_json::json!({ "tenant": "sk-secret" }));
    let text = page_of(&[run.clone(), run]);
    assert!(!text.contains("sk-secret"));
    assert!(text.contains("tenant"));
}

#[test]
fn several_runs_stand_side_by_side() {
    let of = [exchanges(600, 0), exchanges(600, 30)];
    let runs = [run_of("one", &of[0]), run_of("two", &of[1])];
    let text = drawn_with(&runs, &of);
    for part in
        ["Differences between the runs", "▲ +23.1 %", "(worse)", "data-run=\"1\"", "runner compare"]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(!page_of(&runs[..1]).contains("data-run=\"0\""));
}

/// A difference that is not known to be more than chance, or is of another load, has no mark.
#[test]
fn marks_only_shown_differences() {
    let of = [exchanges(600, 0), exchanges(600, 30)];
    let runs = [run_of("one", &of[0]), run_of("two", &of[1])];
    let marked = |text: &str| text.contains("▲") || text.contains("(worse)");
    assert!(!marked(&page_of(&runs)), "without samples");
    assert!(marked(&drawn_with(&runs, &of)));
    let mut other = runs.clone();
    other[1].reported.plan.target.model = "<other>".to_owned();
    let text = drawn_with(&other, &of);
    assert!(!marked(&text) && text.contains("+23.1 %"), "of another model");
    assert!(text.contains("&lt;other&gt; in two"), "{text}");
}

#[test]
fn a_run_of_nothing_has_a_page() {
    let text = page_of(&[run_of("none", &[])]);
    assert!(text.contains("Invalid") && !text.contains("NaN"), "{text}");
}

#[test]
fn ten_thousand_requests_fit() {
    let one = run_of("one", &exchanges(10_000, 0));
    let text = page_of(std::slice::from_ref(&one));
    assert!(text.len() < 1_500_000, "{} bytes", text.len());
    let three =
        [one, run_of("two", &exchanges(10_000, 10)), run_of("three", &exchanges(10_000, 20))];
    let text = page_of(&three);
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
}

#[test]
fn the_parts_of_the_first_token_have_a_section() {
    let mut exchanges = exchanges(60, 0);
    let title = "Time to first token by part";
    assert!(!page_of(&[run_of("one", &exchanges)]).contains(title));
    for exchange in &mut exchanges {
        exchange.timings = Some(model::exchange::ServerTimings {
            queue: Some(model::units::Nanos(60_000_000)),
            first_token: Some(model::units::Nanos(500_000_000)),
            ..Default::default()
        });
    }
    let page = page_of(&[run_of("one", &exchanges)]);
    for words in [
        title,
        "Around P99 (4 requests, ms)",
        "Requests: 57, not 3 unanswered.",
        "Of 57 of them the server states more time than passed",
        ">unexplained<",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
