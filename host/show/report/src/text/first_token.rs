//! The parts of the time to first token: a line with their shares, and a table of them by
//! percentile.

use super::block::{Block, or_dash};
use result::summary::Summary;
use result::summary::first_token::{FirstToken, Parts};

const NAME: usize = 22;

const WHOLE: &str = "TTFT from due";

/// The shares of the parts in one line.
pub(super) fn shares(block: &mut Block, summary: &Summary) {
    let shares = summary.first_token.as_ref().map(|split| split.mean.shares());
    let shares = shares.filter(|shares| !shares.is_empty());
    block.line("Parts of TTFT from due:", shares);
}

/// The shares, the number of requests, and the table.
pub(super) fn split(block: &mut Block, summary: &Summary) {
    let Some(split) = &summary.first_token else {
        by_series(block, summary);
        return;
    };
    block.section("Where TTFT Goes");
    let count = |requests: u64| requests.to_string();
    block.line("Requests with parts of TTFT:", Some(split.counted(count)));
    shares(block, summary);
    table(block, split);
    block.prose(
        "Means in ms; around a percentile, the means of the requests with such a TTFT from due.",
    );
    if let Some(words) = split.contradiction(count) {
        block.prose(&words);
    }
    by_series(block, summary);
}

fn by_series(block: &mut Block, summary: &Summary) {
    let Some(split) = &summary.first_token_by_series else { return };
    block.section("Where TTFT Goes, by the Server's Series");
    let parts = split.named().into_iter().chain([(WHOLE, split.whole_ms)]);
    let rows =
        parts.map(|(name, ms)| vec![name.to_owned(), format!("{ms:.2}"), percent(split.share(ms))]);
    block.table(1, &[("Part", NAME), ("Mean", 10), ("Share", 8)], rows);
    block.prose(&format!(
        "Means in ms over {} requests; the server's are of all that it observed meanwhile.",
        split.requests
    ));
}

fn table(block: &mut Block, split: &FirstToken) {
    let (mean, around) = (&split.mean, &split.around);
    let percentiles: Vec<String> =
        around.iter().map(|own| format!("P{}", own.percentile)).collect();
    let mut heads = vec![("Part", NAME), ("All", 10), ("Share", 8)];
    heads.extend(percentiles.iter().map(|name| (name.as_str(), 10)));
    let row = |name: &str, ms: f64, of: &dyn Fn(&Parts) -> Option<f64>| -> Vec<String> {
        let first = [name.to_owned(), format!("{ms:.2}"), percent(mean.share(ms))].into_iter();
        let around = around.iter().map(|own| or_dash(of(&own.mean), |ms| format!("{ms:.2}")));
        first.chain(around).collect()
    };
    let named = mean.named().into_iter();
    let parts = named.map(|(name, ms)| row(name, ms, &|parts| parts.by_name(name)));
    let whole = row(WHOLE, mean.whole_ms, &|parts| Some(parts.whole_ms));
    let requests = ["Requests".to_owned(), split.requests.to_string(), String::new()].into_iter();
    let requests = requests.chain(around.iter().map(|own| own.requests.to_string())).collect();
    block.table(1, &heads, parts.chain([whole, requests]));
}

fn percent(share: Option<f64>) -> String {
    or_dash(share, |share| format!("{:.1}%", share * 100.0))
}

#[cfg(test)]
mod tests {
    use crate::exchanges::{facts, ms, reply};
    use crate::text::{short, text};
    use model::exchange::{Exchange, Kind, ServerTimings};
    use result::summary::Summary;

    /// A hundred requests, each with a first token 80 ms after due: 60 ms queue, 15 ms prefill.
    fn run() -> Vec<Exchange> {
        let exchange = |index: u64| {
            let sent = 1000 + index * 100;
            let mut exchange = reply(index, sent, &[(sent + 79, Kind::Text, None, 1)]);
            exchange.due = ms(sent - 1);
            exchange.timings = Some(ServerTimings {
                queue: Some(ms(60)),
                prefill: Some(ms(15)),
                ..ServerTimings::default()
            });
            exchange
        };
        (0..100).map(exchange).collect()
    }

    #[test]
    fn parts_are_a_line_and_a_table() {
        let mut run = run();
        run[7].timings = None;
        let summary = Summary::new(&facts(), &run);
        let drawn = text(&summary);
        let shares = "Parts of TTFT from due:                  client 1.2 %, connection 0.0 %, \
                      network and front end 5.0 %, queue 75.0 %, prefill 18.8 %\n";
        let table = "\
Requests with parts of TTFT:             99, not 1 without timings of it
SHARESPart                          All    Share        P50        P90        P99
client                       1.00     1.2%       1.00       1.00       1.00
connection                   0.00     0.0%       0.00       0.00       0.00
network and front end        4.00     5.0%       4.00       4.00       4.00
queue                       60.00    75.0%      60.00      60.00      60.00
prefill                     15.00    18.8%      15.00      15.00      15.00
TTFT from due               80.00   100.0%      80.00      80.00      80.00
Requests                       99                  99         99         99
Means in ms; around a percentile, the means of the requests with such a TTFT from due.
"
        .replace("SHARES", shares);
        assert!(drawn.contains("-----------------Where TTFT Goes------------------\n"));
        assert!(drawn.contains(&table), "{drawn}");
        assert!(short(&summary).contains(shares), "{}", short(&summary));
    }

    #[test]
    fn without_timings_there_is_nothing() {
        let mut run = run();
        run.iter_mut().for_each(|exchange| exchange.timings = None);
        let summary = Summary::new(&facts(), &run);
        assert!(!text(&summary).contains("Where TTFT Goes"));
        assert!(!short(&summary).contains("Parts of TTFT"));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let mut run = run();
        run[3].timings.as_mut().unwrap().prefill = Some(ms(1000));
        let drawn = text(&Summary::new(&facts(), &run));
        let excess = "Of 1 of them the server states more time than passed between sending and first \
                    token; the excess is negative.";
        assert!(drawn.contains(excess), "{drawn}");
        assert!(drawn.contains("unexplained                 -9.81"), "{drawn}");
    }
}
