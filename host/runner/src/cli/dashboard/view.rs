//! A run as the dashboard draws it: a pure function of a snapshot, the rates so far and the view
//! that keys have changed. A terminal that is too small for panels gets the most important figures
//! as lines.

#[cfg(test)]
mod tests;

use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, RenderDirection, Sparkline, Wrap};

use super::super::progress;
use model::client::role;
use model::exchange::Class;
use model::units::Nanos;
use model::{clean, duration};
use scenario::plan::{Amount, Plan};
use session::live::cells::{Quantiles, RECENT_S};
use session::live::snapshot::{Failures, Standing};
use session::live::{History, Latency, Phase, Rates, Snapshot, Stop};

const PANELS: (u16, u16) = (72, 22);

/// Facts about the run, from its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    pub name: String,
    /// Engine, model and target. A plan's targets hold no credentials.
    pub target: String,
    pub amount: Amount,
    /// Requests before the measurement.
    pub warmup: u32,
    /// The cap on requests in flight, or a closed loop's users.
    pub slots: Option<usize>,
}

impl Subject {
    pub fn from_plan(plan: &Plan) -> Self {
        let about = &plan.about;
        let engine = match (&about.engine, &about.engine_version) {
            (Some(engine), Some(version)) => format!("{engine} {version}"),
            (Some(engine), None) => engine.clone(),
            (None, _) => plan.backend.name.clone(),
        };
        let target = &plan.target;
        let parts = [engine, target.model.clone(), target.base_urls.join(", ")];
        Subject {
            name: plan.name.clone(),
            target: parts.join(" \u{b7} "),
            amount: progress::amount(plan),
            warmup: plan.load.warmup_requests(),
            slots: plan.slots(),
        }
    }
}

/// The content of one drawing.
#[derive(Clone, Copy)]
pub struct View<'v> {
    pub subject: &'v Subject,
    pub snapshot: &'v Snapshot,
    pub history: &'v History,
    /// True if drawing is paused, so that the snapshot is an old one.
    pub paused: bool,
    pub help: bool,
    pub colours: bool,
}

impl View<'_> {
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width >= PANELS.0 && area.height >= PANELS.1 {
            self.panels(frame, area);
        } else {
            self.lines(frame, area);
        }
        if self.help {
            self.explain(frame, area);
        }
        scrub(frame.buffer_mut());
    }

    fn panels(&self, frame: &mut Frame<'_>, area: Rect) {
        let [title, subject, progress, rates, figures, client, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(5),
            Constraint::Length(8),
            Constraint::Length(5),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(self.title(area.width), title);
        frame.render_widget(self.target_line(subject.width), subject);
        self.progress(frame, progress);
        self.rates(frame, rates);
        let [latencies, requests] =
            Layout::horizontal([Constraint::Length(38), Constraint::Fill(1)]).areas(figures);
        self.latencies(frame, latencies);
        self.requests(frame, requests);
        self.client(frame, client);
        frame.render_widget(self.keys(), keys);
    }

    fn lines(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut lines = vec![
            self.title(area.width),
            Line::raw(self.progress_label()),
            Line::raw(self.rate_label()),
            self.flight_line(),
            self.latency_line("TTFT", &self.snapshot.ttft),
            self.latency_line("ITL", &self.snapshot.itl),
        ];
        if let Some((label, style)) = self.fleet_label() {
            lines.insert(1, Line::styled(label, style));
        }
        lines.extend(self.server_line());
        lines.extend(self.failure_lines());
        lines.push(self.client_line());
        // The keys stay on the last line; lines that do not fit above them are left out.
        let room = usize::from(area.height.saturating_sub(1)).max(1);
        lines.truncate(room);
        frame.render_widget(Paragraph::new(lines), area);
        if area.height > 1 {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            frame.render_widget(self.keys(), last);
        }
    }

    fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn faint(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A colour; without colours, only font weight differs.
    fn coloured(&self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn bad(&self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn doubtful(&self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    fn good(&self) -> Style {
        self.coloured(Color::Green)
    }

    fn chart(&self) -> Style {
        self.coloured(Color::Cyan)
    }

    fn title(&self, width: u16) -> Line<'static> {
        let (phase, style) = self.phase();
        let name = self.subject.name.clone();
        let used = Line::raw(name.as_str()).width() + Line::raw(phase.as_str()).width();
        let gap = usize::from(width).saturating_sub(used).max(1);
        Line::from(vec![
            Span::styled(name, self.strong()),
            Span::raw(" ".repeat(gap)),
            Span::styled(phase, style),
        ])
    }

    /// Engine, model and target, and at the line's other end a fleet's reporting processes.
    fn target_line(&self, width: u16) -> Line<'_> {
        let target = Span::styled(self.subject.target.as_str(), self.faint());
        let Some((label, style)) = self.fleet_label() else { return Line::from(target) };
        let used = target.width() + Line::raw(label.as_str()).width();
        match usize::from(width).checked_sub(used) {
            Some(gap @ 1..) => {
                Line::from(vec![target, Span::raw(" ".repeat(gap)), Span::styled(label, style)])
            }
            // A lost process matters more than measurements.
            _ => Line::from(vec![Span::styled(label, style), Span::raw("  "), target]),
        }
    }

    fn fleet_label(&self) -> Option<(String, Style)> {
        let label = progress::fleet(self.snapshot)?;
        let worst = self.snapshot.agents.iter().map(|agent| agent.standing).min();
        let style = match worst {
            Some(Standing::Lost) => self.bad(),
            Some(Standing::Silent) => self.doubtful(),
            _ => Style::new(),
        };
        Some((label, style))
    }

    fn phase(&self) -> (String, Style) {
        let counts = &self.snapshot.counts;
        let (phase, style) = match (counts.stopped, counts.phase) {
            (Stop::Aborting, _) => ("stopped: abandoning replies", self.bad()),
            (Stop::Finishing, _) => ("stopped: waiting for the last replies", self.doubtful()),
            (Stop::No, Phase::Preparing) => ("preparing", self.strong()),
            (Stop::No, Phase::WarmUp) => ("warming up", self.strong()),
            (Stop::No, Phase::Measuring) => ("measuring", self.good()),
            (Stop::No, Phase::Draining) => ("waiting for the last replies", self.good()),
            (Stop::No, Phase::Over) => ("over", self.strong()),
        };
        if self.paused {
            (format!("{phase} (drawing paused)"), self.doubtful())
        } else {
            (phase.to_owned(), style)
        }
    }

    fn keys(&self) -> Line<'static> {
        let stop = match self.snapshot.counts.stopped {
            Stop::No => "q stop",
            Stop::Finishing => "q stop at once",
            Stop::Aborting => "q exit",
        };
        let pause = if self.paused { "p resume drawing" } else { "p pause drawing" };
        Line::styled(format!("{stop}   {pause}   ? help"), self.faint())
    }

    fn explain(&self, frame: &mut Frame<'_>, area: Rect) {
        let width = area.width.min(66);
        let height = area.height.min(HELP.len() as u16 + 2);
        let over = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        let text: Vec<Line<'_>> = HELP.iter().map(|line| Line::raw(*line)).collect();
        frame.render_widget(Clear, over);
        frame.render_widget(Paragraph::new(text).block(Block::bordered().title("help")), over);
    }
}

/// Removes characters that move the cursor or reverse text: names and messages come from servers.
fn scrub(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().contains(clean::unsafe_to_show) {
            cell.set_symbol("\u{fffd}");
        }
    }
}

// The dashboard's panels, for a terminal that has room for them.

const BAR: usize = 8;

const ROLE: u16 = 24;

/// Steps of a sparkline's data: it takes whole numbers, and a rate may be less than one.
const STEPS: f64 = 100.0;

impl View<'_> {
    fn progress(&self, frame: &mut Frame<'_>, area: Rect) {
        let label = self.progress_label();
        let [bar, beside] = Layout::horizontal([
            Constraint::Fill(1),
            Constraint::Length(label.chars().count() as u16 + 1),
        ])
        .areas(area);
        let share = match self.snapshot.counts.elapsed {
            Some(_) => self.snapshot.share(self.subject.amount),
            None => 0.0,
        };
        let [full, rest] = filled(share, usize::from(bar.width));
        let line =
            Line::from(vec![Span::styled(full, self.chart()), Span::styled(rest, self.faint())]);
        frame.render_widget(line, bar);
        frame.render_widget(Line::raw(label).right_aligned(), beside);
    }

    fn rates(&self, frame: &mut Frame<'_>, area: Rect) {
        let [tokens, requests] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
        self.rate(frame, tokens, ("output", "tok/s"), |rates| rates.tokens);
        self.rate(frame, requests, ("ended", "req/s"), |rates| rates.requests);
    }

    fn rate(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        (name, unit): (&str, &str),
        quantity: fn(&Rates) -> f64,
    ) {
        let shown_rate =
            |rates: Option<Rates>| rates.map_or(ABSENT.to_owned(), |rates| rate(quantity(&rates)));
        let seconds: Vec<f64> = self.history.seconds().map(|(_, rates)| quantity(&rates)).collect();
        let width = usize::from(area.width.saturating_sub(2));
        let shown = &seconds[seconds.len().saturating_sub(width)..];
        let most = shown.iter().copied().fold(0.0, f64::max);
        let mut title = vec![
            Span::raw(format!("{name} ")),
            Span::styled(format!("{} {unit}", shown_rate(self.history.recent())), self.strong()),
        ];
        if let Some(rates) = self.history.whole() {
            title.push(Span::raw(format!(", mean {}", rate(quantity(&rates)))));
        }
        let mut block = Block::bordered().title(Line::from(title));
        if !shown.is_empty() {
            let most = format!("most {}", rate(most));
            block = block.title_bottom(Line::styled(most, self.faint()).right_aligned());
        }
        let data = shown.iter().rev().map(|value| (value * STEPS) as u64);
        let chart = Sparkline::default()
            .data(data.collect::<Vec<u64>>())
            .max((most * STEPS).max(1.0) as u64)
            .direction(RenderDirection::RightToLeft)
            .style(self.chart())
            .block(block);
        frame.render_widget(chart, area);
    }

    fn latencies(&self, frame: &mut Frame<'_>, area: Rect) {
        let recent = format!("{RECENT_S}s");
        let row = |name: &str, span: &str, seen: Option<Quantiles>| {
            let cells = seen.map_or([(); 3].map(|()| ABSENT.to_owned()), |seen| {
                [seen.p50_ms, seen.p90_ms, seen.p99_ms].map(ms)
            });
            let [p50, p90, p99] = cells;
            format!("{name:<5}{span:<4}{p50:>9}{p90:>9}{p99:>9}")
        };
        let header = format!("{:<9}{:>9}{:>9}{:>9}", "ms", "P50", "P90", "P99");
        let mut lines = vec![Line::styled(header, self.faint())];
        let both = |name: &str, latency: &Latency| {
            [
                Line::styled(row(name, &recent, latency.recent), self.strong()),
                Line::raw(row("", "all", latency.whole)),
            ]
        };
        let seen = self.snapshot;
        lines.extend(both("TTFT", &seen.ttft));
        lines.extend(both("ITL", &seen.itl));
        lines.push(Line::raw(row("E2E", "all", seen.e2e.whole)));
        let block = Block::bordered().title("latency");
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }

    fn requests(&self, frame: &mut Frame<'_>, area: Rect) {
        let seen = self.snapshot;
        let due = seen.counts.due.map_or(ABSENT.to_owned(), |due| due.to_string());
        let failed = seen.counts.failures();
        let style = match failed {
            0 => Style::new(),
            _ => self.bad(),
        };
        let mut lines = vec![
            self.flight_line(),
            Line::raw(format!("due {due}  given out {}", seen.counts.given_out)),
            Line::from(vec![
                Span::raw(format!("answered {}  ", seen.counts.answered)),
                Span::styled(format!("failed {failed}"), style),
                Span::raw(match seen.counts.cancelled {
                    0 => String::new(),
                    cancelled => format!("  cancelled {cancelled}"),
                }),
            ]),
        ];
        lines.extend(self.server_line());
        let failures = self.failure_lines();
        // A single message may take the room of others.
        let alone = failures.len() == 1;
        lines.extend(failures);
        let mut panel = Paragraph::new(lines).block(Block::bordered().title("requests"));
        if alone {
            panel = panel.wrap(Wrap { trim: true });
        }
        frame.render_widget(panel, area);
    }

    fn client(&self, frame: &mut Frame<'_>, area: Rect) {
        let block = Block::bordered().title(self.client_name());
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let a_row = usize::from(inner.width / ROLE).max(1);
        let mut lines: Vec<Line<'_>> = Vec::new();
        for roles in self.roles().chunks(a_row).take(2) {
            let spans = roles.iter().flat_map(|role| {
                let name = match role.threads {
                    1 => role.name.to_owned(),
                    threads => format!("{} x{threads}", role.name),
                };
                let [full, rest] = filled(role.cpu, BAR);
                [
                    Span::raw(format!("{name:<10}")),
                    Span::styled(full, self.load_style(role.cpu)),
                    Span::styled(rest, self.faint()),
                    Span::raw(format!("{:>5} ", percent(role.cpu))),
                ]
            });
            lines.push(Line::from(spans.collect::<Vec<_>>()));
        }
        if lines.is_empty() {
            lines.push(Line::raw(format!("cores {ABSENT}")));
        }
        lines.push(Line::raw(self.punctuality()));
        frame.render_widget(Paragraph::new(lines), inner);
    }

    fn punctuality(&self) -> String {
        let lag = quantiles(&self.snapshot.send_lag);
        let load = self.snapshot.load.as_ref();
        let backlog = load.map_or(ABSENT.to_owned(), |load| load.backlog.to_string());
        format!("send lag {lag}   decode backlog {backlog}")
    }
}

fn filled(share: f64, width: usize) -> [String; 2] {
    let full = ((share * width as f64).round() as usize).min(width);
    ["\u{2588}".repeat(full), "\u{2591}".repeat(width - full)]
}

// The dashboard's figures as text: for its panels, and for a terminal too small for them.

const ABSENT: &str = "-";

/// Share of a core at which a thread is worth a look, and at which it has nothing left to give.
const BUSY: [f64; 2] = [0.7, 0.9];

/// The parts of this client that measure, in the order in which a request meets them.
const MEASURING: [&str; 4] = ["pace", "read", "decode", "record"];

const HELP: [&str; 13] = [
    "q, Ctrl-C   stop sending, wait for the last replies, report;",
    "            again: abandon the replies; again: exit at once",
    "p           pause drawing; the run continues",
    "?           show this help; Esc closes it",
    "",
    "Tokens per second and requests in flight are current values.",
    "Latencies, and requests answered or failed, count requests",
    "that have ended, so they lag by the length of a reply.",
    "`10s` covers the requests that ended in the last ten seconds.",
    "Percentiles here are within 0.4 %; the result's are exact.",
    "",
    "`this client` is the share of a core that each part of the",
    "runner used in the last second: near 100 % is too slow.",
];

fn ms(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 1_000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn rate(value: f64) -> String {
    match value {
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn quantiles(latency: &Latency) -> String {
    let seen = latency.recent.or(latency.whole);
    seen.map_or(ABSENT.to_owned(), |seen| {
        format!("P50 {} P99 {} ms", ms(seen.p50_ms), ms(seen.p99_ms))
    })
}

fn seconds(span: Nanos) -> String {
    duration::format(Duration::from_secs(Duration::from(span).as_secs()))
}

/// The share of a core that a role's busiest thread used.
struct Role<'r> {
    pub name: &'r str,
    pub threads: usize,
    pub cpu: f64,
}

impl View<'_> {
    fn progress_label(&self) -> String {
        let (seen, subject) = (self.snapshot, self.subject);
        match seen.counts.phase {
            Phase::Preparing => return format!("{} requests ready", seen.counts.ready),
            Phase::WarmUp => {
                return format!("{}/{} warm-up requests done", seen.counts.warmup, subject.warmup);
            }
            Phase::Measuring | Phase::Draining | Phase::Over => {}
        }
        let mut label = progress::done(seen, subject.amount);
        if let Some(elapsed) = seen.counts.elapsed {
            label.push_str(&format!(", {} elapsed", seconds(elapsed)));
        }
        if let Some(left) = seen.left(subject.amount) {
            label.push_str(&format!(", {} left", seconds(left)));
        }
        label
    }

    fn rate_label(&self) -> String {
        match self.history.recent() {
            Some(rates) => format!("{} tok/s, {} req/s", rate(rates.tokens), rate(rates.requests)),
            None => format!("{ABSENT} tok/s, {ABSENT} req/s"),
        }
    }

    fn flight_line(&self) -> Line<'static> {
        let seen = self.snapshot;
        let cap = self.subject.slots.map(|slots| format!(" of {slots}"));
        let mut spans = vec![Span::raw(format!(
            "in flight {}{}",
            seen.counts.in_flight,
            cap.unwrap_or_default()
        ))];
        if let Some(waiting) = seen.counts.waiting {
            let style = match waiting {
                0 => Style::new(),
                _ => self.doubtful(),
            };
            spans.push(Span::styled(format!("  waiting {waiting}"), style));
        }
        Line::from(spans)
    }

    fn server_line(&self) -> Option<Line<'static>> {
        let levels = self.snapshot.server?;
        let running = levels.running.map(|count| format!("  running {count:.0}"));
        let waiting = levels.waiting.map(|count| format!("  waiting {count:.0}"));
        let usage = levels.kv_usage.map(|share| format!("  KV {:.0} %", share * 100.0));
        let known: Vec<String> = [running, waiting, usage].into_iter().flatten().collect();
        (!known.is_empty()).then(|| Line::raw(format!("server{}", known.concat())))
    }

    fn latency_line(&self, name: &str, latency: &Latency) -> Line<'static> {
        Line::raw(format!("{name} {}", quantiles(latency)))
    }

    /// The classes of failure, the most frequent first, each with its latest message.
    fn failure_lines(&self) -> Vec<Line<'static>> {
        let mut classes: Vec<(&Class, &Failures)> = self.snapshot.counts.failed.iter().collect();
        classes.sort_by_key(|(class, failures)| (std::cmp::Reverse(failures.count), **class));
        let lines = classes.into_iter().map(|(class, failures)| {
            // Servers may answer in several lines, and with characters that move the cursor.
            let latest = failures.latest.replace(char::is_control, " ");
            Line::from(vec![
                Span::styled(format!("{} {}", class.name(), failures.count), self.bad()),
                Span::raw(format!(": {latest}")),
            ])
        });
        lines.collect()
    }

    /// The parts of this client: the parts that measure, then the parts that only watch.
    fn roles(&self) -> Vec<Role<'_>> {
        let mut roles: Vec<Role<'_>> = Vec::new();
        let load = self.snapshot.load.iter();
        for thread in load.flat_map(|load| &load.threads) {
            let name = role(&thread.name);
            match roles.iter_mut().find(|role| role.name == name) {
                Some(known) => {
                    known.threads += 1;
                    known.cpu = known.cpu.max(thread.cpu);
                }
                None => roles.push(Role { name, threads: 1, cpu: thread.cpu }),
            }
        }
        let place = |role: &Role<'_>| MEASURING.iter().position(|name| *name == role.name);
        roles.sort_by_key(|role| (place(role).unwrap_or(MEASURING.len()), role.name));
        roles
    }

    fn load_style(&self, cpu: f64) -> Style {
        match cpu {
            cpu if cpu >= BUSY[1] => self.bad(),
            cpu if cpu >= BUSY[0] => self.doubtful(),
            _ => self.good(),
        }
    }

    fn client_name(&self) -> &'static str {
        if self.snapshot.agents.is_empty() { "this client" } else { "the busiest client" }
    }

    fn client_line(&self) -> Line<'static> {
        let roles = self.roles();
        let busiest = roles.iter().max_by(|one, other| one.cpu.total_cmp(&other.cpu));
        match busiest {
            Some(role) => Line::from(vec![
                Span::raw(format!("{}: {} ", self.client_name(), role.name)),
                Span::styled(percent(role.cpu), self.load_style(role.cpu)),
            ]),
            None => Line::raw(format!("{}: {ABSENT}", self.client_name())),
        }
    }
}
