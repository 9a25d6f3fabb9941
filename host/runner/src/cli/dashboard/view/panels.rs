//! The dashboard's panels, for a terminal that has room for them.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, RenderDirection, Sparkline, Wrap};

use super::View;
use super::words::{ABSENT, ms, percent, rate};
use session::live::Latency;
use session::live::cells::{Quantiles, RECENT_S};
use session::live::history::Rates;

const BAR: usize = 8;
const ROLE: u16 = 24;
/// Steps of a sparkline's data: it takes whole numbers, and a rate may be less than one.
const STEPS: f64 = 100.0;

impl View<'_> {
    pub(super) fn progress(&self, frame: &mut Frame<'_>, area: Rect) {
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

    pub(super) fn rates(&self, frame: &mut Frame<'_>, area: Rect) {
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

    pub(super) fn latencies(&self, frame: &mut Frame<'_>, area: Rect) {
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

    pub(super) fn requests(&self, frame: &mut Frame<'_>, area: Rect) {
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

    pub(super) fn client(&self, frame: &mut Frame<'_>, area: Rect) {
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
        let lag = self.snapshot.send_lag.recent;
        let lag = lag.or(self.snapshot.send_lag.whole);
        let lag = lag.map_or(ABSENT.to_owned(), |lag| {
            format!("P50 {} P99 {} ms", ms(lag.p50_ms), ms(lag.p99_ms))
        });
        let load = self.snapshot.load.as_ref();
        let backlog = load.map_or(ABSENT.to_owned(), |load| load.backlog.to_string());
        format!("send lag {lag}   decode backlog {backlog}")
    }
}

fn filled(share: f64, width: usize) -> [String; 2] {
    let full = ((share * width as f64).round() as usize).min(width);
    ["\u{2588}".repeat(full), "\u{2591}".repeat(width - full)]
}
