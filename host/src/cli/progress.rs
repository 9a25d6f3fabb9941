//! The progress line: what a run is doing, on a terminal only, and never in the run's way.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::duration;
use crate::plan::{Amount, Plan};
use crate::run::Control;

/// How often the line is drawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Draws the line until dropped.
pub struct Progress {
    finished: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins to draw, if stderr is a terminal.
    pub fn show(plan: &Plan, control: &Control) -> Self {
        let finished = Arc::new(AtomicBool::new(false));
        let thread = std::io::stderr().is_terminal().then(|| {
            let line = Line::new(plan, control);
            let finished = Arc::clone(&finished);
            std::thread::Builder::new()
                .name("progress".into())
                .spawn(move || line.draw(&finished))
                .ok()
        });
        Progress {
            finished,
            thread: thread.flatten(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finished.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Line {
    control: Control,
    amount: Amount,
    name: String,
}

impl Line {
    fn new(plan: &Plan, control: &Control) -> Self {
        Line {
            control: control.clone(),
            amount: plan.load.amount,
            name: plan.name.clone(),
        }
    }

    fn draw(self, finished: &AtomicBool) {
        let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {bar:24} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_prefix(self.name.clone());
        let mut began = None;
        while !finished.load(Ordering::Relaxed) {
            let live = &self.control.live;
            if live.measuring_since.load(Ordering::Relaxed) == 0 {
                let ready = live.ready.load(Ordering::Relaxed);
                bar.set_message(format!("preparing: {ready} requests ready"));
            } else {
                let began = *began.get_or_insert_with(Instant::now);
                self.update(&bar, began.elapsed());
            }
            std::thread::sleep(REDRAW);
        }
        bar.finish_and_clear();
    }

    fn update(&self, bar: &ProgressBar, elapsed: Duration) {
        let live = &self.control.live;
        let done = live.done.load(Ordering::Relaxed);
        let share = match self.amount {
            Amount::Requests(requests) => done as f64 / requests.max(1) as f64,
            Amount::Duration(span) => elapsed.as_secs_f64() / span.as_secs_f64().max(1e-9),
        };
        bar.set_position((share * 100.0) as u64);
        let mut parts = vec![match self.amount {
            Amount::Requests(requests) => format!("{done}/{requests} done"),
            Amount::Duration(_) => format!("{done} done"),
        }];
        parts.push(format!("{} in flight", self.control.signal.in_flight()));
        let failed = live.failed.load(Ordering::Relaxed);
        if failed > 0 {
            parts.push(format!("{failed} failed"));
        }
        let tokens = live.output_tokens.load(Ordering::Relaxed) as f64;
        let seconds = elapsed.as_secs_f64();
        if seconds > 0.5 {
            parts.push(format!("{:.0} tok/s", tokens / seconds));
        }
        let count = live.first_output_count.load(Ordering::Relaxed);
        if count > 0 {
            let mean = live.first_output_sum.load(Ordering::Relaxed) as f64 / count as f64 / 1e6;
            parts.push(format!("TTFT {mean:.0} ms"));
        }
        if share > 0.02 && share < 1.0 {
            let left = seconds * (1.0 - share) / share;
            let left = Duration::from_secs(left.min(1e7) as u64);
            parts.push(format!("{} left", duration::format(left)));
        }
        bar.set_message(parts.join(", "));
    }
}
