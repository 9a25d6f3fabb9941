//! The spread between repeats, as a page.

use super::compared::Form;
use crate::document::{Document, Table, Text};
use compare::until::Stopped;
use compare::variation::{FEWEST, Repeated, Repeats};

pub fn page(repeats: &Repeats) -> Document {
    let title = format!("{} runs of {}", repeats.runs, repeats.scenario);
    let mut page = Document::new("Repeats", title);
    if repeats.runs == 0 {
        page.say("No run was measured.");
        return page;
    }
    let mut table =
        Table::new(["Figure", "Mean", "Min", "Max", "Variation", "95 % interval of the mean"]);
    table.numeric = Some(1..6);
    for figure in &repeats.figures {
        table.row(cells(figure, repeats.runs));
    }
    page.table(table);
    let few = repeats.runs < FEWEST;
    page.remark(match (repeats.new_requests, few) {
        (true, true) => "Each run drew new requests.",
        (true, false) => {
            "Each run drew new requests, so the intervals hold for new requests of this kind."
        }
        (false, true) => "All runs sent the same requests.",
        (false, false) => {
            "All runs sent the same requests, so the intervals leave out new requests."
        }
    });
    if few {
        page.remark(
            "Fewer than three runs have no interval. The median of many such runs lies within the range of two in one case of \
             two. Three runs (--repeat 3) have an interval.",
        );
    }
    for line in repeats.stopped.iter().flat_map(Stopped::lines) {
        page.paragraph(Text::plain(line));
    }
    page
}

fn cells(figure: &Repeated, runs: usize) -> Vec<String> {
    let shown = Form::new(&figure.figure, [figure.max, figure.min]);
    let unit = shown.unit(&figure.unit);
    // A figure that not every run has is no mean over all of them.
    let of = if figure.runs < runs {
        format!(", {} of {runs} runs", figure.runs)
    } else {
        String::new()
    };
    let variation = figure.variation_percent.map(|percent| format!("{percent:.2} %"));
    let interval = figure
        .interval
        .map(|ends| format!("{} to {}", shown.value(ends.low), shown.value(ends.high)));
    vec![
        format!("{}{unit}{of}", figure.figure),
        shown.value(figure.mean),
        shown.value(figure.min),
        shown.value(figure.max),
        variation.unwrap_or_else(|| "-".to_owned()),
        interval.unwrap_or_else(|| "-".to_owned()),
    ]
}
