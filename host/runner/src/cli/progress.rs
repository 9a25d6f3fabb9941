//! The progress line: shows a run's activity without disturbing it. On a terminal it is redrawn in
//! place; elsewhere, as in a CI log, a plain line is printed now and then.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::print::tell;
use load::thread_group::{GroupThread, ThreadGroup, trip};
use load::vitals::{WatchedThread, yield_to_others};
use model::{clean, duration};
use scenario::plan::{Amount, Plan};
use session::live::snapshot::Standing;
use session::live::{History, Live, Phase, Snapshot, Stop};

const REDRAW: Duration = Duration::from_millis(200);

/// The form in which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Silent,
    /// As a line that is drawn again in its place.
    InPlace,
    /// As a line of its own, at this interval.
    Lines(Duration),
}

impl How {
    /// Returns the form that suits stderr, with this interval if plain lines are needed.
    pub(crate) fn suiting_stderr(every: Duration) -> Self {
        if can_be_drawn_on() { How::InPlace } else { How::Lines(every) }
    }
}

/// True if stderr is a terminal that can move its cursor.
pub(crate) fn can_be_drawn_on() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Shows progress until dropped.
#[derive(Default)]
pub struct Progress {
    finished: Arc<AtomicBool>,
    thread: Option<GroupThread<()>>,
}

impl Progress {
    pub fn show(plan: &Plan, live: &Arc<Live>, threads: &ThreadGroup, how: How) -> Self {
        let line = Line::new(plan, live);
        match how {
            How::Silent => Ok(Progress::default()),
            How::InPlace => {
                // The first picture is drawn here, however late the thread gets a processor.
                let mut drawn = RedrawnLine::new(line);
                drawn.draw();
                Progress::start("progress", live, threads, |until| drawn.keep(until))
            }
            How::Lines(every) => Progress::start("progress", live, threads, move |until| {
                line.tell(every, until);
            }),
        }
        .unwrap_or_default()
    }

    /// Starts a thread that shows the progress of a run until the returned value is dropped.
    pub(super) fn start(
        name: &'static str,
        live: &Arc<Live>,
        threads: &ThreadGroup,
        show: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> io::Result<Self> {
        let finished = Arc::new(AtomicBool::new(false));
        let (until, live) = (Arc::clone(&finished), Arc::clone(live));
        let body = move || {
            yield_to_others();
            if let Some(watched) = WatchedThread::this_thread(name) {
                live.enlist(watched);
            }
            trip(name);
            show(&until);
        };
        Ok(Progress { finished, thread: Some(threads.start(name, None, body)?) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finished.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join();
        }
    }
}

struct Line {
    live: Arc<Live>,
    amount: Amount,
    name: String,
    history: History,
    /// True once the note about the model's context has been shown.
    has_noted: bool,
}

impl Line {
    fn new(plan: &Plan, live: &Arc<Live>) -> Self {
        Line {
            live: Arc::clone(live),
            amount: amount(plan),
            name: clean::line(&plan.name).into_owned(),
            history: History::default(),
            has_noted: false,
        }
    }

    /// The note about the model's context, once.
    fn note(&mut self) -> Option<String> {
        let note = self.live.beyond_context.get().filter(|_| !self.has_noted)?;
        self.has_noted = true;
        Some(format!("note: {}", clean::line(note)))
    }

    fn tell(mut self, every: Duration, finished: &AtomicBool) {
        let began = Instant::now();
        let mut next = every;
        while !finished.load(Ordering::Acquire) {
            self.note().into_iter().for_each(tell);
            let passed = began.elapsed();
            if passed < next {
                std::thread::park_timeout(REDRAW.min(next - passed));
                continue;
            }
            next += every;
            let snapshot = self.live.snapshot();
            self.history.note(&snapshot);
            let passed = duration::format(Duration::from_secs(passed.as_secs()));
            let label = label(&snapshot, &self.history, self.amount);
            tell(format_args!("{}: {passed}: {label}", self.name));
        }
        // A run may end before the next look.
        self.note().into_iter().for_each(tell);
    }
}

struct RedrawnLine {
    line: Line,
    bar: ProgressBar,
}

impl RedrawnLine {
    fn new(line: Line) -> Self {
        let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {bar:10} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(beginning(&line.name));
        RedrawnLine { line, bar }
    }

    fn draw(&mut self) {
        let line = &mut self.line;
        if let Some(note) = line.note() {
            self.bar.suspend(|| tell(note));
        }
        let snapshot = line.live.snapshot();
        line.history.note(&snapshot);
        let share = snapshot.share(line.amount);
        self.bar.set_position((share * 100.0) as u64);
        (self.bar).set_message(label(&snapshot, &line.history, line.amount));
    }

    fn keep(mut self, finished: &AtomicBool) {
        // The first picture is there already.
        while !finished.load(Ordering::Acquire) {
            std::thread::park_timeout(REDRAW);
            if !finished.load(Ordering::Acquire) {
                self.draw();
            }
        }
        self.bar.finish_and_clear();
        self.line.note().into_iter().for_each(tell);
    }
}

/// The beginning of a name, so that a terminal of 80 columns has room for the figures.
fn beginning(name: &str) -> String {
    const LETTERS: usize = 24;
    match name.char_indices().nth(LETTERS) {
        Some(_) => name.chars().take(LETTERS - 1).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

pub(super) fn amount(plan: &Plan) -> Amount {
    plan.held_requests().map_or(plan.load.amount, Amount::Requests)
}

pub(super) fn done(snapshot: &Snapshot, amount: Amount) -> String {
    match amount {
        Amount::Requests(requests) => format!("{}/{requests} done", snapshot.counts.over()),
        Amount::Sessions(sessions) => format!(
            "{}/{sessions} sessions done, {} requests",
            snapshot.counts.sessions,
            snapshot.counts.over()
        ),
        Amount::Duration(_) => format!("{} done", snapshot.counts.over()),
    }
}

/// The number of a fleet's reporting processes, and the names of the others.
pub(super) fn fleet(snapshot: &Snapshot) -> Option<String> {
    const NAMED: usize = 3;
    let agents = &snapshot.agents;
    if agents.is_empty() {
        return None;
    }
    let reporting = agents.iter().filter(|agent| agent.standing > Standing::Silent);
    let mut label = format!("{} of {} agents report", reporting.count(), agents.len());
    for standing in [Standing::Lost, Standing::Silent] {
        let such = agents.iter().filter(|agent| agent.standing == standing);
        let ranks: Vec<String> = such.map(|agent| agent.rank.to_string()).collect();
        let named = match ranks.len() {
            0 => continue,
            many if many > NAMED => format!("{many}"),
            1 => format!("rank {}", ranks.concat()),
            _ => format!("ranks {}", ranks.join(", ")),
        };
        label.push_str(&format!("; {}: {named}", standing.name()));
    }
    Some(label)
}

fn label(snapshot: &Snapshot, history: &History, amount: Amount) -> String {
    let state = state(snapshot, history, amount);
    match fleet(snapshot) {
        Some(fleet) => format!("{state} ({fleet})"),
        None => state,
    }
}

fn state(snapshot: &Snapshot, history: &History, amount: Amount) -> String {
    match snapshot.counts.phase {
        Phase::Preparing => return format!("preparing: {} requests ready", snapshot.counts.ready),
        Phase::WarmUp => return format!("warming up: {} done", snapshot.counts.warmup),
        Phase::Measuring | Phase::Draining | Phase::Over => {}
    }
    let mut parts =
        vec![done(snapshot, amount), format!("{} in flight", snapshot.counts.in_flight)];
    if let Some(waiting @ 1..) = snapshot.counts.waiting {
        parts.push(format!("{waiting} waiting"));
    }
    let failed = snapshot.counts.failures();
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    if snapshot.counts.cancelled > 0 {
        parts.push(format!("{} cancelled", snapshot.counts.cancelled));
    }
    if let Some(rates) = history.recent() {
        parts.push(format!("{:.0} tok/s", rates.tokens));
    }
    if let Some(ttft) = snapshot.ttft.recent.or(snapshot.ttft.whole) {
        parts.push(format!("TTFT {:.0} ms", ttft.p50_ms));
        parts.push(format!("P99 {:.0} ms", ttft.p99_ms));
    }
    if snapshot.counts.stopped != Stop::No || snapshot.counts.phase == Phase::Draining {
        parts.push("waiting for the last replies".to_owned());
    } else if let Some(left) = snapshot.left(amount) {
        let left = Duration::from_secs(Duration::from(left).as_secs());
        parts.push(format!("{} left", duration::format(left)));
    }
    parts.join(", ")
}
