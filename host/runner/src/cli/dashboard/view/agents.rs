//! The processes of a fleet, as far as there is room: unheard processes first.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::super::super::progress;
use super::View;
use super::words::{ABSENT, percent};
use session::live::snapshot::{Agent, Standing};

/// A panel's border, and a line of titles.
const AROUND: u16 = 3;

impl View<'_> {
    /// The number of lines that the panel takes of the free ones; none where there is no room for
    /// any process.
    pub(super) fn agents_height(&self, free: u16) -> u16 {
        let agents = u16::try_from(self.snapshot.agents.len()).unwrap_or(u16::MAX);
        match agents {
            0 => 0,
            _ if free <= AROUND => 0,
            agents => agents.saturating_add(AROUND).min(free),
        }
    }

    /// The number of processes that are heard; nothing if there is one.
    pub(super) fn fleet_words(&self) -> Option<(String, Style)> {
        let words = progress::fleet(self.snapshot)?;
        let worst = self.snapshot.agents.iter().map(|agent| agent.standing).min();
        Some((words, self.standing_style(worst.unwrap_or(Standing::Reporting))))
    }

    fn standing_style(&self, standing: Standing) -> Style {
        match standing {
            Standing::Lost => self.looks().bad(),
            Standing::Silent => self.looks().doubtful(),
            Standing::Reporting | Standing::Finished => Style::new(),
        }
    }

    /// A line for each process.
    pub(super) fn agents(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(AROUND));
        if room == 0 {
            return;
        }
        let mut agents: Vec<&Agent> = self.snapshot.agents.iter().collect();
        agents.sort_by_key(|agent| (agent.standing > Standing::Silent, agent.rank));
        let header = format!(
            "{:>6} {:<20} {:<10}{:>8}{:>11}{:>8}{:>10}",
            "rank", "machine", "", "lag s", "answered", "failed", "in flight"
        );
        let mut lines = vec![Line::styled(header, self.looks().faint())];
        let hidden = agents.len().saturating_sub(room);
        lines.extend(agents.iter().take(room).map(|agent| self.agent(agent)));
        let title = match hidden {
            0 => "agents".to_owned(),
            hidden => format!("agents ({hidden} more)"),
        };
        let block = Block::bordered().title(title);
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }

    fn agent(&self, agent: &Agent) -> Line<'static> {
        let host: String = (agent.host.as_deref().unwrap_or(ABSENT).chars().take(20)).collect();
        let or_absent = |value: Option<String>| value.unwrap_or_else(|| ABSENT.to_owned());
        let age = or_absent(agent.age.map(|age| format!("{:.1}", age.as_secs_f64())));
        let in_flight = or_absent(agent.in_flight.map(|requests| requests.to_string()));
        let busiest = agent.load.iter().flat_map(|load| &load.threads);
        let busiest = busiest.max_by(|one, other| one.cpu.total_cmp(&other.cpu));
        let busiest = busiest.map(|thread| format!("  {} {}", thread.name, percent(thread.cpu)));
        Line::from(vec![
            Span::raw(format!("{:>6} {host:<20} ", agent.rank)),
            Span::styled(
                format!("{:<10}", agent.standing.name()),
                self.standing_style(agent.standing),
            ),
            Span::raw(format!(
                "{age:>8}{:>11}{:>8}{in_flight:>10}{}",
                agent.answered,
                agent.failed,
                busiest.unwrap_or_default()
            )),
        ])
    }
}
