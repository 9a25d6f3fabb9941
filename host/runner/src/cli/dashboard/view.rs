//! A run as the dashboard draws it: a pure function of a snapshot, the rates so far and the view
//! that keys have changed. A terminal that is too small for panels gets the most important figures
//! as lines.

mod panels;
mod words;

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::super::progress;
use model::clean;
use scenario::plan::{Amount, Plan};
use session::live::snapshot::Standing;
use session::live::{History, Phase, Snapshot, Stop};

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

    /// Engine, model and target, and the number of reporting processes of a fleet, at the two ends
    /// of a line.
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
        let height = area.height.min(words::HELP.len() as u16 + 2);
        let over = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        let text: Vec<Line<'_>> = words::HELP.iter().map(|line| Line::raw(*line)).collect();
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
