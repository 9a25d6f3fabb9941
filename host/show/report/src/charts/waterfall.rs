//! Waterfalls: requests one below the other, each with the phases it went through.

use super::{RunView, milliseconds, of_run, seconds, time_unit};
use crate::chart::{
    Axis, Cell, Chart, Column, Form, Key, Mark, Panel, Point, Rows, Shape, Snap, Ticks, Tone,
    phase_height,
};
use crate::view::Request;
use model::number::count;
use model::units::Nanos;
use result::summary::first_token::Part;

const ROW: f64 = 9.0;

/// A phase that is always shorter than this share of the axis cannot be seen.
const SEEN: f64 = 0.002;

/// The phases of a request in their order, each with the number of its tone. Phases between sending
/// and first token are known if the server reports them; the rest is the phase until the first
/// token.
const PHASES: [(&str, usize); 10] = [
    ("held back by the cap", 0),
    ("send lag", 1),
    ("wait for a connection", 2),
    ("network", 5),
    ("front end", 6),
    ("network and front end", 5),
    ("until the first token", 3),
    ("queue of the server", 7),
    ("prefill", 8),
    ("decoding", 4),
];

struct Kind {
    name: &'static str,
    title: &'static str,
    note: String,
    /// True if each row begins at its request's due time.
    from_due: bool,
}

/// Three charts for each run: requests in a row, requests of the whole run, the slowest.
pub(super) fn charts(runs: &[RunView]) -> Vec<Chart> {
    let each = runs.iter().enumerate().flat_map(|(number, run)| {
        let view = &run.view;
        let all = run.reported.summary.requests.total;
        let some = |drawn: usize, which: &str| match drawn as u64 {
            drawn if drawn < all => format!("{} of {} requests, {which}.", count(drawn), count(all)),
            _ => "All requests.".to_owned(),
        };
        let consecutive = Kind {
            name: "waterfall",
            title: "Requests in a row",
            note: format!(
                "{} Each row is one request, starting at its due time; requests that overlap were in flight together.",
                some(view.consecutive.len(), "from the middle of the run")
            ),
            from_due: false,
        };
        let phases = Kind {
            name: "phases",
            title: "Where each request spent its time",
            note: format!(
                "{} In due order, each starting at its due time.",
                some(view.sampled.len(), "spread evenly over the run")
            ),
            from_due: true,
        };
        let slowest = Kind {
            name: "slowest",
            title: "The slowest requests",
            note: "The requests with the longest time since they were due, slowest first.".to_owned(),
            from_due: true,
        };
        [
            chart(runs, number, &consecutive, &view.consecutive),
            chart(runs, number, &phases, &view.sampled),
            chart(runs, number, &slowest, &view.slowest),
        ]
    });
    each.collect()
}

/// The begin and end of a phase in milliseconds since due; absent if it has no length.
type Interval = Option<(f64, f64)>;

fn phases(request: &Request) -> [Interval; PHASES.len()] {
    let span = |from: f64, to: f64| (to > from).then_some((from, to));
    let queue = request.queue_ms.unwrap_or(0.0);
    let since_due = |at: f64| ((at - request.due_s) * 1000.0).max(0.0);
    let sent = request.sent_s.map(since_due);
    let lag = request.send_lag_ms.unwrap_or(0.0);
    let connection = request.connection_ms.unwrap_or(0.0).min(lag);
    let first = sent.zip(request.ttft_ms).map(|(sent, ttft)| sent + ttft);
    let ended = request.ended_s.map(since_due);
    let [network, front_end, both, until, server, prefill] =
        until_first(request, sent, first, ended);
    [
        span(0.0, queue),
        sent.and_then(|_| span(queue, queue + lag - connection)),
        sent.and_then(|_| span(queue + lag - connection, queue + lag)),
        network,
        front_end,
        both,
        until,
        server,
        prefill,
        first.and_then(|first| span(first, ended?)),
    ]
}

/// The phases from sending to the first token, or to the end if there is none. The server's own
/// timings are lengths: their places are assumed, and so is that the unreported time comes before
/// the queue. The part that does not fit is cut off.
fn until_first(
    request: &Request,
    sent: Option<f64>,
    first: Option<f64>,
    ended: Option<f64>,
) -> [Interval; 6] {
    let mut phases = [None; 6];
    let Some((sent, end)) = sent.zip(first.or(ended)) else { return phases };
    let Some(split) = request.split.filter(|_| first.is_some()) else {
        phases[3] = (end > sent).then_some((sent, end));
        return phases;
    };
    let part = |part: Part| split.part(part).map_or(0.0, Nanos::as_millis_f64);
    let mut from = sent;
    for (phase, length) in phases.iter_mut().zip([
        part(Part::Network),
        part(Part::FrontEnd),
        part(Part::NetworkAndFrontEnd),
        split.unexplained.max(0) as f64 / 1e6,
        part(Part::Queue),
        part(Part::Prefill),
    ]) {
        let to = (from + length).min(end);
        *phase = (to > from).then_some((from, to));
        from = to;
    }
    phases
}

fn chart(runs: &[RunView], number: usize, kind: &Kind, requests: &[Request]) -> Chart {
    let offset = |request: &Request| if kind.from_due { 0.0 } else { request.due_s * 1000.0 };
    let over = |request: &Request| {
        let own = if kind.from_due { request.due_s } else { 0.0 };
        (request.over_s() - own) * 1000.0
    };
    let high = requests.iter().map(over).fold(0.0, f64::max);
    let low = requests.iter().map(offset).fold(f64::INFINITY, f64::min);
    let low = if low.is_finite() { low } else { 0.0 };
    let (unit, divisor) = if kind.from_due { time_unit(high) } else { ("s", 1000.0) };
    let mut keys = Vec::new();
    let mut marks = Vec::new();
    for (phase, (label, tone)) in PHASES.into_iter().enumerate() {
        let spans: Vec<Interval> = requests.iter().map(|request| phases(request)[phase]).collect();
        let longest = spans.iter().flatten().map(|(from, to)| to - from);
        if longest.fold(0.0, f64::max) <= (high - low) * SEEN {
            continue;
        }
        let placed = || requests.iter().zip(&spans).enumerate();
        let points = placed().filter_map(|(row, (request, span))| {
            let (from, to) = (*span)?;
            let offset = offset(request);
            let [x, to] = [from, to].map(|at| (offset + at) / divisor);
            Some(Point { x, to, y: Some(row as f64) })
        });
        let cells = placed().map(|(row, (request, span))| {
            let (from, to) = (*span)?;
            let x = (offset(request) + to) / divisor;
            Some(Cell { x, y: row as f64, text: milliseconds(to - from) })
        });
        let bars = Mark::new(keys.len(), Shape::Spans(phase_height(tone)), points.collect());
        marks.push(bars.with_column(label, cells.collect()));
        keys.push(Key { label: label.to_owned(), tone: Tone::Phase(tone) });
    }
    let end = |request: &Request| over(request) / divisor;
    let tokens = |request: &Request| {
        let [input, output] = [request.input_tokens, request.output_tokens]
            .map(|tokens| tokens.map_or("?".to_owned(), |tokens| count(u64::from(tokens))));
        format!("{input} in, {output} out")
    };
    let column = |head: &str, text: &dyn Fn(&Request) -> Option<String>| Column {
        head: head.to_owned(),
        cells: (requests.iter().enumerate())
            .map(|(row, request)| {
                Some(Cell { x: end(request), y: row as f64, text: text(request)? })
            })
            .collect(),
    };
    if let Some(last) = marks.len().checked_sub(1) {
        for column in [
            column("from due time to end", &|request| {
                Some(milliseconds(took_ms(request))).filter(|_| request.sent_s.is_some())
            }),
            column("tokens", &|request| {
                Some(tokens(request)).filter(|_| request.failure.is_none())
            }),
        ] {
            let unseen = Mark::new(marks[last].key, Shape::Unseen, Vec::new());
            marks.push(Mark { column: Some(column), ..unseen });
        }
    }
    let crosses = requests.iter().enumerate().filter(|(_, request)| request.failure.is_some());
    let crosses: Vec<Point> =
        crosses.map(|(row, request)| Point::at(end(request), row as f64)).collect();
    let failed = crosses.len();
    if failed > 0 {
        let failures =
            column("failed", &|request| request.failure.map(|class| class.name().to_owned()));
        let crosses = Mark::new(keys.len(), Shape::Crosses, crosses);
        marks.push(Mark { column: Some(failures), ..crosses });
        keys.push(Key { label: "failed".to_owned(), tone: Tone::Failed });
    }
    let [name, title] = of_run(runs, number, kind.name, kind.title);
    let longest = requests.iter().map(took_ms).fold(0.0, f64::max);
    let margin = (high - low) * 0.01;
    let rows = requests.len().max(1) as f64;
    let axis = match kind.from_due {
        true => format!("time since due ({unit})"),
        false => "time since the measurement began (s)".to_owned(),
    };
    let y = Axis::new("", -0.5, rows - 0.5, Ticks::None);
    Chart {
        name,
        title,
        note: kind.note.clone(),
        seen: format!(
            "{} requests, {} of them failed; the longest took {} from its due time.",
            requests.len(),
            failed,
            milliseconds(longest)
        ),
        x: Axis::new(axis, low / divisor, (high + margin) / divisor, Ticks::Numbers),
        panels: vec![Panel::new(y, (rows * ROW).max(40.0), marks)],
        keys,
        rows: Rows::new("Request", requests.iter().map(named).collect(), Snap::Y),
        log: None,
        form: Form::Full,
    }
}

fn took_ms(request: &Request) -> f64 {
    (request.over_s() - request.due_s) * 1000.0
}

fn named(request: &Request) -> String {
    format!("{} ({}), due at {}", request.index, request.id, seconds(request.due_s))
}
