//! The section of a page on where the time to first token goes.

use crate::chart::Chart;
use crate::charts::RunView;
use crate::document::{Document, Fit, Table};
use model::number::{count, fixed, percent};
use result::summary::FirstToken;
use result::summary::first_token::{BySeries, Parts};

const WHOLE: &str = "from due to first token";

/// Adds the section with these charts, if any run has parts of it.
pub(super) fn section(page: &mut Document, runs: &[RunView], charts: Vec<Chart>) {
    let runs_with_parts: Vec<(&RunView, &FirstToken)> = runs
        .iter()
        .filter_map(|run| Some((run, run.reported.summary.first_token.as_ref()?)))
        .collect();
    if runs_with_parts.is_empty() {
        by_series(page, runs, true);
        return;
    }
    page.section("parts", Some("Parts"), "Time to first token by part");
    page.remark("From due to first token. The client's part and the wait for a connection are by this client's clock, the queue and the prefill by the server's own timings. The rest is the network and the front end, or unexplained.");
    charts.into_iter().for_each(|chart| page.chart(chart));
    for (run, split) in runs_with_parts {
        super::label(page, runs, run);
        page.table(table(split));
        page.remark(format!("Requests: {}.", split.counted(count)));
        if let Some(words) = split.contradiction(count) {
            page.remark(words);
        }
    }
    by_series(page, runs, false);
}

/// Adds the means by the servers' series, in a section of their own where there is none.
fn by_series(page: &mut Document, runs: &[RunView], is_alone: bool) {
    let runs_with_parts: Vec<(&RunView, &BySeries)> = runs
        .iter()
        .filter_map(|run| Some((run, run.reported.summary.first_token_by_series.as_ref()?)))
        .collect();
    if runs_with_parts.is_empty() {
        return;
    }
    if is_alone {
        page.section("parts", Some("Parts"), "Time to first token by part");
    }
    page.remark("Means by the server's own series, over all requests that it observed during the measurement. They give no request's own time; the rest is unexplained.");
    for (run, split) in runs_with_parts {
        super::label(page, runs, run);
        let mut table = Table::new(["Part", "Mean (ms)", "Share"]);
        let whole = [(WHOLE, split.whole_ms)];
        for (name, ms) in split.named().into_iter().chain(whole) {
            let share = split.share(ms).map(percent).unwrap_or_default();
            table.row([name.to_owned(), fixed(ms, 2), share]);
        }
        page.table(table);
    }
}

/// A row for each part: its mean, its share, and its means around percentiles.
fn table(split: &FirstToken) -> Table {
    let mut head = vec!["Part".to_owned(), "Mean (ms)".to_owned(), "Share".to_owned()];
    head.extend(split.around.iter().map(|around| {
        let requests = count(around.requests);
        format!("Around P{} ({requests} requests, ms)", around.percentile)
    }));
    let mut table = Table::new(head);
    table.fit = Fit::Scrolled;
    let mean = &split.mean;
    let mut row = |name: &str, ms: f64, of: &dyn Fn(&Parts) -> Option<f64>| {
        let share = mean.share(ms).map(percent).unwrap_or_default();
        let around = split.around.iter().map(|around| of(&around.mean));
        let around = around.map(|ms| ms.map_or(String::new(), |ms| fixed(ms, 2)));
        table.row([name.to_owned(), fixed(ms, 2), share].into_iter().chain(around));
    };
    for (name, ms) in mean.named() {
        row(name, ms, &|parts| parts.by_name(name));
    }
    row(WHOLE, mean.whole_ms, &|parts| Some(parts.whole_ms));
    table
}
