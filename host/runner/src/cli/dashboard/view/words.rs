//! The dashboard's figures as text: for its panels, and for a terminal too small for them.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::super::progress;
use super::View;
use model::client::role;
use model::duration;
use model::exchange::Class;
use model::units::Nanos;
use session::live::cells::Quantiles;
use session::live::snapshot::Failures;
use session::live::{Latency, Phase};

pub(super) const ABSENT: &str = "-";

/// Share of a core at which a thread is worth a look, and at which it has nothing left to give.
const BUSY: [f64; 2] = [0.7, 0.9];

/// The parts of this client that measure, in the order in which a request meets them.
const MEASURING: [&str; 4] = ["pace", "read", "decode", "record"];

pub(super) const HELP: [&str; 13] = [
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

pub(super) fn ms(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 1_000.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

pub(super) fn rate(value: f64) -> String {
    match value {
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn seconds(span: Nanos) -> String {
    duration::format(Duration::from_secs(Duration::from(span).as_secs()))
}

/// The share of a core that a role's busiest thread used.
pub(super) struct Role<'r> {
    pub name: &'r str,
    pub threads: usize,
    pub cpu: f64,
}

impl View<'_> {
    pub(super) fn progress_label(&self) -> String {
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

    pub(super) fn rate_label(&self) -> String {
        match self.history.recent() {
            Some(rates) => format!("{} tok/s, {} req/s", rate(rates.tokens), rate(rates.requests)),
            None => format!("{ABSENT} tok/s, {ABSENT} req/s"),
        }
    }

    pub(super) fn flight_line(&self) -> Line<'static> {
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

    pub(super) fn server_line(&self) -> Option<Line<'static>> {
        let levels = self.snapshot.server?;
        let running = levels.running.map(|count| format!("  running {count:.0}"));
        let waiting = levels.waiting.map(|count| format!("  waiting {count:.0}"));
        let usage = levels.kv_usage.map(|share| format!("  KV {:.0} %", share * 100.0));
        let known: Vec<String> = [running, waiting, usage].into_iter().flatten().collect();
        (!known.is_empty()).then(|| Line::raw(format!("server{}", known.concat())))
    }

    pub(super) fn latency_line(&self, name: &str, latency: &Latency) -> Line<'static> {
        let shown = |seen: Option<Quantiles>| match seen {
            Some(seen) => format!("P50 {} P99 {} ms", ms(seen.p50_ms), ms(seen.p99_ms)),
            None => ABSENT.to_owned(),
        };
        Line::raw(format!("{name} {}", shown(latency.recent.or(latency.whole))))
    }

    /// The classes of failure, the most frequent first, each with its latest message.
    pub(super) fn failure_lines(&self) -> Vec<Line<'static>> {
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
    pub(super) fn roles(&self) -> Vec<Role<'_>> {
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

    pub(super) fn load_style(&self, cpu: f64) -> Style {
        match cpu {
            cpu if cpu >= BUSY[1] => self.bad(),
            cpu if cpu >= BUSY[0] => self.doubtful(),
            _ => self.good(),
        }
    }

    pub(super) fn client_name(&self) -> &'static str {
        if self.snapshot.agents.is_empty() { "this client" } else { "the busiest client" }
    }

    pub(super) fn client_line(&self) -> Line<'static> {
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
