//! Sections on sessions, on turns, classes and adapters, and on the dataset.

use super::block::{Block, MS, or_dash};
use crate::sections;
use result::figure::Statistic;
use result::metric;
use result::summary::{Group, Summary};

/// The number of letters of a group's name that are shown.
const NAME: usize = 24;

pub(super) fn sessions(block: &mut Block, summary: &Summary) {
    block.section("Sessions");
    block.rows(sections::sessions(summary));
    block.distribution(summary, metric::SESSION_TIME, "Session Time", MS);
    for (name, label) in [
        (metric::SESSION_IN_FLIGHT, "Mean Session In Flight (ms):"),
        (metric::SESSION_IDLE, "Mean Session Idle (ms):"),
        (metric::SESSION_TURNS, "Mean Turns of a Session:"),
    ] {
        block.figure(label, summary.metric(name).map(|of| of.mean));
    }
    block.distribution(summary, metric::PARENT_WAIT, "Wait for Parents", MS);
    if let Some(histories) = &summary.histories {
        block.line("Requests with a history:", Some(histories.requests));
        let share = histories.recorded_share().map(|share| share * 100.0);
        block.figure("Answers on record in histories (%):", share);
    }
}

pub(super) fn groups(block: &mut Block, summary: &Summary) {
    let groups = &summary.groups;
    table(block, ("By Turn", "Turn", "later"), &groups.by_turn);
    table(block, ("By Class", "Class", "all others"), &groups.by_class);
    table(block, ("By Adapter", "Adapter", "all others"), &groups.by_adapter);
}

/// A row for each group: a name, and figures that stand to the right of their columns.
fn table(block: &mut Block, (title, head, others): (&'static str, &str, &str), groups: &[Group]) {
    if groups.is_empty() {
        return;
    }
    block.section(title);
    let counts = [("Requests", 8), ("Failed", 6), ("Input", 8), ("Output", 8), ("Cached", 7)];
    let times = [("TTFT", 10), ("P99 TTFT", 10), ("TPOT", 10), ("E2E", 10)];
    let heads = [&[(head, 0)][..], &counts, &times].concat();
    let rows = groups.iter().map(|group| {
        let tokens = |mean| or_dash(mean, |mean: f64| format!("{mean:.1}"));
        let at = |name: &str, percent: f64| {
            let of = group.metrics.get(name);
            let value = of.and_then(|of| of.statistic(Statistic::Percentile(percent)));
            or_dash(value, |value| format!("{value:.2}"))
        };
        vec![
            name(group, others),
            group.requests.to_string(),
            group.failed.to_string(),
            tokens(group.input_tokens),
            tokens(group.output_tokens),
            or_dash(group.cached_share, |share| format!("{:.1}%", share * 100.0)),
            at(metric::TTFT, 50.0),
            at(metric::TTFT, 99.0),
            at(metric::TPOT, 50.0),
            at(metric::E2E, 50.0),
        ]
    });
    block.table(1, &heads, rows);
    block.prose("Means of tokens, medians in ms.");
}

/// The name of a group as far as a table shows it.
pub(super) fn name(group: &Group, others: &str) -> String {
    group.name.as_deref().unwrap_or(others).chars().take(NAME).collect()
}

pub(super) fn dataset(block: &mut Block, summary: &Summary) {
    block.section("Dataset");
    for remark in summary.dataset.iter().flat_map(|dataset| &dataset.remarks) {
        block.prose(&format!("{} {}", remark.what.name(), remark.label()));
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::{facts, failed, ms, output_usage, reply};
    use crate::text::text;
    use model::exchange::Kind::{End, Text, Vector};
    use model::exchange::{Class, Exchange, History, Turn, Vectors};
    use result::summary::{Dataset, Remark, Summary, Treatment};

    fn turn(index: u64, place: u32, sent: u64) -> Exchange {
        let events = [(sent + 50, Text, None, 4), (sent + 250, End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        exchange.usage = output_usage(5);
        exchange.sample.input_tokens = Some(100 + place);
        exchange.sample.class = Some("chat".into());
        exchange.sample.turn = Some(Turn { session: format!("c{}", index / 2), index: place });
        match place {
            0 => exchange.sample.descendants = 1,
            _ => {
                exchange.sample.parents = vec![index - 1];
                exchange.sample.history =
                    Some(History { continues: index - 1, answers: 1, recorded: 0 });
            }
        }
        exchange
    }

    /// One session of two turns that took 800 ms, and one whose first turn failed.
    fn sessions() -> [Exchange; 4] {
        let mut given_up = failed(turn(3, 1, 1400), Class::ParentFailed, "a parent failed");
        given_up.sent = None;
        let broken = failed(turn(2, 0, 1100), Class::Truncated, "");
        [turn(0, 0, 1000), turn(1, 1, 1550), broken, given_up]
    }

    #[test]
    fn sessions_and_groups_are_shown() {
        let mut facts = facts();
        facts.dataset = Some(Dataset {
            remarks: vec![Remark {
                what: Treatment::Dropped,
                reason: "fewer than two turns".into(),
                count: 12,
                first: Some("line 7".into()),
            }],
        });
        let block = text(&Summary::new(&facts, sessions()));
        for line in [
            "Failed requests:                         2",
            "Failed requests (parent-failed):         1",
            "Failed by themselves:                    1",
            "Sessions:                                2",
            "Complete sessions:                       1",
            "Sessions with a failure:                 1",
            "Sessions cut short:                      0",
            "Session throughput (sessions/s):         1.25",
            "Turn throughput (turns/s):               2.50",
            "Mean Session Time (ms):                  800.00",
            "Mean Session In Flight (ms):             500.00",
            "Mean Session Idle (ms):                  300.00",
            "Mean Turns of a Session:                 2.00",
            "Requests with a history:                 1",
            "Answers on record in histories (%):      0.00",
            "Turn Requests Failed    Input   Output  Cached       TTFT   P99 TTFT       TPOT        E2E",
            "0           2      1    100.0      5.0       -      50.00      50.00      50.00     250.00",
            "chat         4      2    100.5      5.0       -      50.00      50.00      50.00     250.00",
            "dropped 12 × fewer than two turns, first line 7",
        ] {
            assert!(block.lines().any(|shown| shown == line), "no {line} in\n{block}");
        }
        let failures = "2 of 4 requests failed (50.0 %), 1 of them by themselves and 1 because a request that they depend on had failed";
        assert!(block.contains(failures), "{block}");
    }

    #[test]
    fn a_run_without_sessions_says_nothing_of_them() {
        let mut exchange = turn(0, 0, 1000);
        exchange.sample.turn = None;
        exchange.sample.class = None;
        exchange.sample.descendants = 0;
        exchange.due = ms(1000);
        let block = text(&Summary::new(&facts(), [exchange]));
        for absent in ["Session", "Turn", "Class", "Dataset", "by themselves", "history"] {
            assert!(!block.contains(absent), "{absent} in\n{block}");
        }
    }

    #[test]
    fn a_run_of_embeddings_has_no_first_token_and_no_output() {
        let run: Vec<Exchange> = (0..3)
            .map(|index| {
                let sent = 1000 + index * 500;
                let mut exchange = reply(index, sent, &[(sent + 40, Vector, None, 0)]);
                exchange.vectors = Some(Vectors { count: 1, dimensions: 8 });
                exchange.sample.input_tokens = Some(30);
                exchange.output = String::new();
                exchange
            })
            .collect();
        let block = text(&Summary::new(&facts(), &run));
        for absent in ["TTFT (ms)", "TPOT (ms)", "ITL (ms)", "generated", "Output"] {
            assert!(!block.contains(absent), "{absent} in\n{block}");
        }
        // An interval may be unknown, but no count.
        let (before, table) = block.split_once(crate::sure::TITLE).unwrap();
        let (_, after) = table.split_once("\n---").unwrap();
        assert!(![before, after].iter().any(|part| part.contains("unknown")), "{block}");
        assert!(block.contains("Mean E2E Latency (ms):                   40.00"), "{block}");
        assert!(
            block.contains("Not measured:                            TTFT, TPOT, ITL"),
            "{block}"
        );
        assert!(block.contains("Input token throughput (tok/s):"), "{block}");
    }
}
