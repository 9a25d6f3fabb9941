//! A comparison as a page, for people; its JSON is the comparison itself (`runner schema
//! comparison`). A verdict has a sign and words, and no colour.

use super::plain;
use crate::charts::{self, Difference, Forest};
use crate::document::{Document, Table, Text};
use compare::{
    Compared, GatewayOverhead, Judgement, Kind, Method, NoInterval, Obstacle, Pair, Row, SideFacts,
    Variation,
};
use model::number;
use result::figure::{Better, Figure};

pub fn page(compared: &Compared) -> Document {
    let mut page = Document::new("Comparison", "Comparison");
    let mut sides = Table::new(["Side", "What", "Model", "Scenario", "Verdict"]);
    for of in &compared.sides {
        sides.row(side(of));
    }
    page.table(sides);
    for side in compared.sides.iter().filter(|side| !side.doubts.is_empty()) {
        let doubts = side.doubts.iter().cloned();
        list(&mut page, &format!("Reasons to doubt {}", side.name), doubts);
    }
    let allowed = compared.allowed.iter();
    list(
        &mut page,
        "COMPARED ALTHOUGH THESE DIFFER, which alone may explain the differences below",
        allowed.map(|obstacle| obstacle_words(obstacle, compared.baseline())),
    );
    let differences = compared.differences.iter();
    let differences = differences.map(|difference| {
        format!("{}: {}", difference.what, difference.values(compared.baseline()))
    });
    list(&mut page, "Differences", differences);
    let unknown = compared.unknown.iter().cloned();
    list(&mut page, "Unchecked settings", unknown);
    let stated = compared.sides.iter().filter_map(|side| {
        let GatewayOverhead { median, p99 } = side.gateway_overhead?;
        let (median, p99) = (number::short(median, 3), number::short(p99, 3));
        Some(format!(
            "{}: {median} ms (median), {p99} ms (P99) a request, by its own header",
            side.name
        ))
    });
    list(
        &mut page,
        "Overhead that a gateway states, to compare with the differences in TTFT",
        stated,
    );
    let judged = compared.pairs.iter().flat_map(|pair| &pair.figures);
    let family = judged.filter(|row| row.is_judged()).count();
    for pair in &compared.pairs {
        page.heading(2, format!("{} against {}", pair.side, compared.baseline()));
        page.chart(charts::chart(&Forest {
            name: format!("differences-{}", pair.side),
            title: "Differences".to_owned(),
            note: "Further right is better. A bar is the 95 % interval, and goes on where it reaches the edge.".to_owned(),
            x: "better by".to_owned(),
            zero: compared.baseline().to_owned(),
            rows: pair.figures.iter().filter_map(forest_row).collect(),
        }));
        let mut table = Table::new([
            "Figure",
            compared.baseline(),
            &pair.side,
            "Difference",
            "95 % interval",
            "Detectable",
            "Verdict",
        ]);
        table.numeric = Some(1..6);
        for row in &pair.figures {
            table.row(cells(row));
        }
        page.table(table);
        let freedom = compared.sides.iter().map(|side| side.sources.len().saturating_sub(1)).sum();
        let notes = notes(pair, family, compared.same_within, freedom);
        page.list(notes.iter().map(|note| Text::marked(note)).collect());
    }
    let conditions = compared.conditions.iter().map(|outcome| {
        let held = match (outcome.fails, outcome.is_absent) {
            (_, true) => "NOT KNOWN",
            (true, _) => "FAILS",
            (false, _) => "passes",
        };
        format!("{} of {}: {held}: {}", outcome.condition, outcome.side, outcome.seen)
    });
    list(&mut page, "Conditions", conditions);
    page
}

/// A figure's difference as a share of the baseline, if more or less of the figure is better.
fn forest_row(row: &Row) -> Option<Difference> {
    let direction = match row.figure.parse::<Figure>().ok()?.better() {
        Better::Lower => -1.0,
        Better::Higher => 1.0,
        Better::Neither => return None,
    };
    let share = direction / row.baseline.filter(|baseline| *baseline != 0.0)?.abs();
    let interval = row.interval.map(|ends| {
        let (low, high) = (ends.low * share, ends.high * share);
        [low.min(high), low.max(high)]
    });
    let [_, _, _, difference, ends, ..] = cells(row);
    Some(Difference {
        name: row.figure.clone(),
        share: row.difference? * share,
        interval,
        is_better: match row.judgement {
            Some(Judgement::Better) => Some(true),
            Some(Judgement::Worse) => Some(false),
            _ => None,
        },
        text: format!("{difference}, 95 %: {ends}"),
    })
}

/// Adds a list with words that introduce it, if it has items.
fn list(page: &mut Document, words: &str, items: impl Iterator<Item = String>) {
    let items: Vec<Text> = items.map(Text::plain).collect();
    if !items.is_empty() {
        page.paragraph(Text::plain(format!("{words}:")));
        page.list(items);
    }
}

/// Something that must agree but does not, in one line.
pub(crate) fn obstacle_words(obstacle: &Obstacle, baseline: &str) -> String {
    let difference = &obstacle.difference;
    let values = plain(&difference.values(baseline));
    format!("{} ({}): {values}", difference.what, obstacle.kind.name())
}

/// Lists the reasons why a comparison is refused, one per line, with the advice.
pub fn refusal(obstacles: &[Obstacle]) -> Vec<String> {
    let mut kinds: Vec<Kind> = obstacles.iter().map(|obstacle| obstacle.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds: Vec<&str> = kinds.into_iter().map(Kind::name).collect();
    let mut words: Vec<String> = (obstacles.iter())
        .map(|obstacle| format!("not comparable: {}", obstacle_words(obstacle, "A")))
        .collect();
    let is_repeat = |own: &Obstacle| own.difference.side.starts_with("another run of");
    if obstacles.iter().any(|own| own.kind == Kind::Prompts && is_repeat(own)) {
        words.push(
            "repeats to compare send the same requests: measure them with --same-requests".into(),
        );
    }
    words.push(format!(
        "these must agree, otherwise the comparison only shows their effect; to compare anyway, add --allow {}",
        kinds.join(",")
    ));
    words
}

fn side(side: &SideFacts) -> Vec<String> {
    let about = &side.about;
    let engine = [&about.engine, &about.engine_version].into_iter().flatten();
    let engine = engine.cloned().collect::<Vec<_>>().join(" ");
    let hardware = about.hardware.as_deref().unwrap_or_default();
    let what = [engine.as_str(), hardware].into_iter().filter(|part| !part.is_empty());
    let what = what.collect::<Vec<_>>().join(", ");
    let sources = match side.sources.as_slice() {
        [one] => one.clone(),
        [first, .., last] if side.sources.len() > 5 => {
            format!("{} runs: {first} to {last}", side.sources.len())
        }
        many => format!("{} runs: {}", many.len(), many.join(", ")),
    };
    let what = if what.is_empty() { sources } else { format!("{what}: {sources}") };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let verdict = match (&side.tool, side.verdict) {
        (Some(tool), _) => format!("stated by {tool}"),
        (None, Some(verdict)) => verdict.name().to_owned(),
        (None, None) => String::new(),
    };
    vec![side.name.clone(), what, text(&side.model), text(&side.scenario), verdict]
}

fn cells(row: &Row) -> [String; 7] {
    let values = [row.baseline, row.value].map(Option::unwrap_or_default);
    let shown = Form::new(&row.figure, values);
    let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| shown.value(value));
    let percent = match (row.percent, shown) {
        (Some(percent), Form::Plain(_)) => format!(" ({})", number::change(percent)),
        _ => String::new(),
    };
    let difference = row
        .difference
        .map_or("-".to_owned(), |difference| format!("{}{percent}", shown.signed(difference)));
    let interval = match (row.interval, row.no_interval) {
        (Some(ends), _) => {
            let walks = if row.walks { " ~" } else { "" };
            format!("{} to {}{walks}", shown.signed(ends.low), shown.signed(ends.high))
        }
        (None, Some(why)) => why.label().to_owned(),
        (None, None) => String::new(),
    };
    let detectable = row.detectable.map_or(String::new(), |least| shown.value(least));
    let verdict = row
        .judgement
        .map_or(String::new(), |judgement| format!("{} {}", judgement.sign(), judgement.label()));
    let unit = shown.unit(&row.unit);
    [
        format!("{}{unit}", row.figure),
        value(row.baseline),
        value(row.value),
        difference,
        interval,
        detectable,
        verdict,
    ]
}

/// The form in which a figure's numbers are written.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A share, in percent; differences in points.
    Share,
    /// A number with a number of decimals.
    Plain(usize),
}

impl Form {
    /// Chooses the form for a figure's values of that size.
    pub(super) fn new(figure: &str, values: [f64; 2]) -> Self {
        if figure.ends_with("-share") || figure.ends_with("-attainment") {
            return Form::Share;
        }
        Form::Plain(match values[0].abs().max(values[1].abs()) {
            value if value >= 10_000.0 => 0,
            value if value >= 1_000.0 => 1,
            value if value >= 1.0 => 2,
            _ => 4,
        })
    }

    pub(super) fn unit(self, unit: &str) -> String {
        match (unit, self) {
            ("", Form::Share) => " (%)".to_owned(),
            ("", Form::Plain(_)) => String::new(),
            (unit, _) => format!(" ({unit})"),
        }
    }

    pub(super) fn value(self, value: f64) -> String {
        match self {
            Form::Share => format!("{:.2}", value * 100.0),
            Form::Plain(decimals) => format!("{value:.decimals$}"),
        }
    }

    fn signed(self, value: f64) -> String {
        // No minus before a value that rounds to zero.
        let value = if self.value(value.abs()).bytes().all(|b| matches!(b, b'0' | b'.')) {
            0.0
        } else {
            value
        };
        match self {
            Form::Share => format!("{:+.2}", value * 100.0),
            Form::Plain(decimals) => format!("{value:+.decimals$}"),
        }
    }
}

/// Writes the note on figures that follow the load and vary by more than is assumed.
fn follows(pair: &Pair, variation: &Variation) -> String {
    let Variation::Assumed { share } = variation else { return String::new() };
    let more = pair.figures.iter().filter_map(|row| {
        let own = row.run_variation.filter(|own| own > share)?;
        Some((own, row.figure.as_str()))
    });
    let least = more.clone().min_by(|a, b| a.0.total_cmp(&b.0));
    let most = more.max_by(|a, b| a.0.total_cmp(&b.0));
    least.zip(most).map_or_else(String::new, |(least, most)| {
        let [from, to] = [least, most].map(|(own, figure)| format!("{} of {figure}", number::percent(own)));
        format!(" Requests come by a rate here, so a slower engine also has a fuller batch and longer queues, and figures that follow the load are taken to vary by more: by {from} up to {to}.")
    })
}

/// Describes the source of the run-to-run variation; `freedom` counts all sides' degrees.
fn source(baseline: usize, side: usize, freedom: usize) -> String {
    let degrees = |number: usize| number::plural(number as u64, "degree") + " of freedom";
    match (baseline, side) {
        (1, _) | (_, 1) => format!("pooled, {}; the single run varies alike", degrees(freedom)),
        (one, other) if one == other => format!("pooled, {}", degrees(2 * one - 2)),
        _ => "each side's own (Welch)".to_owned(),
    }
}

/// Writes the notes on how a pair's verdicts were reached.
fn notes(pair: &Pair, family: usize, same_within: Option<f64>, freedom: usize) -> Vec<String> {
    let mut notes = vec![match &pair.method {
        Method::Blocks { blocks, requests, variation } => {
            format!(
                "Intervals: 95 %, from resampling {blocks} blocks of about {requests} requests, the same requests in both runs where both sent them. One run per side cannot show the variation from run to run, which is {}.",
                variation.label()
            ) + &follows(pair, variation)
        }
        Method::Turns { turns, requests } => format!(
            "Intervals: 95 %, from resampling {turns} turns of {requests} requests, the same requests on both sides. Variation of the machine that outlasts a turn is in both sides alike and is not in the difference; another start of an engine may differ by more."
        ),
        Method::Runs { baseline, side } => format!(
            "Intervals: 95 %, Student's t, over {baseline} and {side} runs; figures are means over runs. The variation from run to run comes from the repeats of the sides: {}.",
            source(*baseline, *side, freedom)
        ),
        Method::None => {
            "No intervals: one side has no samples or too few of them, so nothing is judged."
                .to_owned()
        }
    }];
    if pair.figures.iter().any(|row| row.no_interval == Some(NoInterval::TimesInDoubt)) {
        notes.push("No verdict (times in doubt): other work or a limit on this client changed times and rates (see the reasons above), and may explain these differences. One run per side does not show by how much, so the assumed variation is ten times the usual one. Free the machine, compare repeats (`--repeat 5 --same-requests`), or state the variation with `--run-variation`.".to_owned());
    }
    if pair.figures.iter().any(Row::is_judged) {
        notes.push(format!(
            "Verdicts: {family} figures of all sides judged together (Benjamini and Hochberg, 5 %); better (+) or worse (!) only if the interval excludes zero. No difference shown (=) does not mean equal: about nine of ten such comparisons find a true difference of the size in the column Detectable, if that figure is judged alone, and smaller ones are often missed."
        ));
        if let Some(within) = same_within {
            notes.push(format!(
                "Same (≡): the difference is surely less than {} of A (two one-sided tests at 5 %).",
                number::percent(within)
            ));
        }
    }
    notes.extend(pair.figures.iter().filter_map(|row| {
        let unpaired = "no sample was judged in both runs, so nothing is paired and nothing is judged: runs with other samples differ by these alone";
        match (&row.paired, row.no_interval) {
            (Some(paired), _) => Some(format!("{}: {}.", row.figure, paired.label(&pair.side))),
            (None, Some(NoInterval::Unpaired)) => Some(format!("{}: {unpaired}.", row.figure)),
            _ => None,
        }
    }));
    if pair.figures.iter().any(|row| row.walks) {
        notes.push("~ This metric grew or wandered during the runs, as in a queue that never empties, so each run counts as a single sample: the interval is wide, and repeats make it narrower.".to_owned());
    }
    notes
}

#[cfg(test)]
pub(crate) mod tests;
