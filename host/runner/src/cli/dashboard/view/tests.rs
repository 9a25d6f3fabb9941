//! Pictures of the dashboard in characters, in several sizes and states of a run.
//!
//! They lie in `snapshots`; `INSTA_UPDATE=always` draws them anew, to be looked at before they are
//! kept.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::{Subject, View};
use load::vitals::{Busy, Load};
use model::exchange::Class;
use model::units::Nanos;
use scenario::plan::Amount;
use session::live::cells::Quantiles;
use session::live::snapshot::{Agent, Failures, Standing};
use session::live::{Counts, History, Live, Phase, Snapshot, Stop};

const SECOND: u64 = 1_000_000_000;

fn subject() -> Subject {
    Subject {
        name: "chat".to_owned(),
        target: "vllm 0.10.1 \u{b7} Qwen3-8B \u{b7} http://127.0.0.1:8000".to_owned(),
        amount: Amount::Requests(5_000),
        warmup: 10,
        slots: Some(64),
    }
}

fn quantiles(median_ms: f64) -> Option<Quantiles> {
    Some(Quantiles {
        count: 100,
        mean_ms: median_ms,
        p50_ms: median_ms,
        p90_ms: 1.5 * median_ms,
        p99_ms: 4.0 * median_ms,
        max_ms: 5.0 * median_ms,
    })
}

fn preparing() -> Snapshot {
    Snapshot { counts: Counts { ready: 37, ..Counts::default() }, ..Live::default().snapshot() }
}

/// A run after this many seconds, with some of everything.
fn measuring(seconds: u64) -> Snapshot {
    let failures = |count, latest: &str| Failures { count, latest: latest.to_owned() };
    let busy = |name: &str, cpu| Busy { name: name.to_owned(), cpu, waiting: 0.0 };
    let mut seen = Snapshot {
        counts: Counts {
            phase: Phase::Measuring,
            elapsed: Some(Nanos(seconds * SECOND)),
            warmup: 10,
            due: Some(25 * seconds),
            given_out: 24 * seconds,
            in_flight: 64,
            waiting: Some(seconds),
            answered: 20 * seconds,
            sent: 20 * seconds,
            // A rate that goes up and down.
            tokens_seen: 5_000 * seconds + (seconds % 7) * 400,
            failed: [
                (Class::Refused, failures(2, "connection refused (os error 111)")),
                (
                    Class::HttpStatus,
                    failures(6, "HTTP 503: too many requests in the queue,\ncome again later"),
                ),
            ]
            .into(),
            ready: 37,
            ..Counts::default()
        },
        load: Some(Load {
            threads: vec![
                busy("decode-0", 0.31),
                busy("decode-1", 0.05),
                busy("record", 0.02),
                busy("read-0", 0.93),
                busy("read-1", 0.41),
                busy("pace", 0.08),
                busy("dashboard", 0.01),
            ],
            backlog: 12,
        }),
        ..preparing()
    };
    (seen.ttft.recent, seen.ttft.whole) = (quantiles(132.4), quantiles(98.0));
    (seen.itl.recent, seen.itl.whole) = (quantiles(9.871), quantiles(8.25));
    (seen.e2e.whole, seen.send_lag.whole) = (quantiles(4_210.7), quantiles(0.021));
    seen
}

/// The rates until then, looked at every second.
fn until(seconds: u64) -> History {
    let mut history = History::default();
    (1..=seconds).for_each(|second| history.note(&measuring(second)));
    history
}

fn view<'v>(subject: &'v Subject, snapshot: &'v Snapshot, history: &'v History) -> View<'v> {
    View { subject, snapshot, history, paused: false, help: false, colours: true }
}

fn drawn(view: &View<'_>, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The characters, a line of the terminal each, without blanks at its end.
fn characters(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(width).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn picture(name: &str, view: &View<'_>, (width, height): (u16, u16)) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let seen = characters(&drawn(view, width, height));
    settings.bind(|| insta::assert_snapshot!(name, seen));
}

#[test]
fn pictures() {
    let (subject, blank, history) = (subject(), History::default(), until(95));
    let (preparing, measuring) = (preparing(), measuring(95));
    let mut warming = preparing.clone();
    (warming.counts.phase, warming.counts.warmup) = (Phase::WarmUp, 3);
    let mut stopped = measuring.clone();
    (stopped.counts.phase, stopped.counts.stopped) = (Phase::Draining, Stop::Finishing);
    let early = view(&subject, &preparing, &blank);
    let view = view(&subject, &measuring, &history);
    picture("preparing", &early, (80, 24));
    let warming = View { snapshot: &warming, ..early };
    picture("warming-up", &warming, (80, 24));
    picture("measuring", &view, (80, 24));
    picture("measuring-large", &view, (132, 40));
    picture("measuring-small", &view, (60, 12));
    picture("measuring-tiny", &view, (30, 4));
    let stopped = View { snapshot: &stopped, paused: true, ..view };
    picture("stopped", &stopped, (80, 24));
    let help = View { help: true, ..view };
    picture("help", &help, (80, 24));
    let mut refused = measuring.clone();
    refused.counts.failed.remove(&Class::Refused);
    let refused = View { snapshot: &refused, ..view };
    picture("one-failure", &refused, (80, 24));
}

/// A run of four processes: one is lost, and one has not been heard for a while.
fn of_a_fleet() -> Snapshot {
    let agent = |rank: u32, standing, age_ms: Option<u64>| Agent {
        rank,
        host: Some(format!("load{rank}")),
        standing,
        age: age_ms.map(|ms| Nanos(ms * 1_000_000)),
        answered: 475,
        failed: u64::from(rank),
        in_flight: (standing != Standing::Lost).then_some(16),
        load: (standing == Standing::Reporting)
            .then(|| Load { threads: measuring(95).load.unwrap().threads, backlog: 3 }),
    };
    Snapshot {
        agents: vec![
            agent(0, Standing::Reporting, Some(340)),
            agent(1, Standing::Reporting, Some(1_270)),
            agent(2, Standing::Lost, Some(31_000)),
            agent(3, Standing::Silent, Some(7_400)),
        ],
        ..measuring(95)
    }
}

#[test]
fn counts_fleet_processes_and_names_the_silent() {
    let (subject, snapshot, history) = (subject(), of_a_fleet(), until(95));
    let view = view(&subject, &snapshot, &history);
    let expected = "2 of 4 agents report; lost: rank 2; silent: rank 3";
    for (width, height) in [(100, 34), (80, 24), (60, 12)] {
        let seen = characters(&drawn(&view, width, height));
        assert!(seen.contains(expected), "{seen}");
    }
    for height in [21, 22, 23, 24, 25, 26, 27, 28, 29, 30] {
        for width in [1, 71, 72, 73] {
            drawn(&view, width, height);
        }
    }
}

#[test]
fn no_size_is_too_small() {
    let (subject, snapshot, history) = (subject(), measuring(7), until(7));
    for help in [false, true] {
        let view = View { help, ..view(&subject, &snapshot, &history) };
        for width in [1, 2, 3, 10, 31, 71, 72, 73, 200] {
            for height in [1, 2, 3, 7, 21, 22, 23, 90] {
                drawn(&view, width, height);
            }
        }
    }
}

#[test]
fn draws_colours_only_on_request() {
    let (subject, snapshot, history) = (subject(), measuring(30), until(30));
    let coloured = view(&subject, &snapshot, &history);
    let plain = View { colours: false, ..coloured };
    for size in [(80, 24), (40, 10)] {
        let [with, without] = [&coloured, &plain].map(|view| drawn(view, size.0, size.1));
        assert_eq!(characters(&with), characters(&without));
        assert!(with.content.iter().any(|cell| cell.fg == Color::Red));
        let none =
            |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
        assert!(without.content.iter().all(none));
    }
}

#[test]
fn server_text_cannot_move_the_cursor() {
    let (subject, mut snapshot, history) = (subject(), measuring(3), until(3));
    snapshot.counts.failed.values_mut().for_each(|failures| {
        failures.latest = "\u{1b}[2J\u{1b}[Hgone\r\n\u{7}".to_owned();
    });
    let view = view(&subject, &snapshot, &history);
    let seen = drawn(&view, 80, 24);
    let controls = |cell: &ratatui::buffer::Cell| cell.symbol().contains(char::is_control);
    assert!(!seen.content.iter().any(controls));
    assert!(characters(&seen).contains("refused 2:"));
}
