//! Timings of a start: the times of its stages since the process began.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// A stage of the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Every plugin is compiled, or was read as it had been compiled before.
    PluginsLoaded,
    /// The tokenizer is ready.
    TokenizerLoaded,
    /// The target has answered.
    TargetProbed,
    /// The requests that must be ready before the first is sent are ready.
    RequestsReady,
    /// Connections are open.
    ConnectionsOpen,
    /// The first request was handed to a worker, in the warm-up if there is one.
    FirstSent,
}

/// The times at which stages were reached; each once, the first time.
#[derive(Debug, Default)]
pub struct Timings([AtomicU64; 6]);

/// The times at which each stage was reached, in milliseconds since the process began. A stage that
/// was not reached is absent.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct StageTimes {
    /// Plugins were loaded.
    pub plugins_loaded_ms: Option<f64>,
    /// The tokenizer was loaded.
    pub tokenizer_loaded_ms: Option<f64>,
    /// The target had answered.
    pub target_probed_ms: Option<f64>,
    /// The required requests were ready.
    pub requests_ready_ms: Option<f64>,
    /// Connections were open.
    pub connections_open_ms: Option<f64>,
    /// The first request was handed to a worker.
    pub first_sent_ms: Option<f64>,
}

impl Timings {
    /// A stage is reached. Does nothing the second time.
    pub fn reach(&self, stage: Stage) {
        let at = clock::since_process_began().0.max(1);
        let _ =
            self.0[stage as usize].compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the stages reached so far.
    pub fn reached(&self) -> StageTimes {
        let at = |stage: Stage| match self.0[stage as usize].load(Ordering::Relaxed) {
            0 => None,
            // Microseconds are precise enough, and shorter to read.
            at => Some((at / 1_000) as f64 / 1_000.0),
        };
        StageTimes {
            plugins_loaded_ms: at(Stage::PluginsLoaded),
            tokenizer_loaded_ms: at(Stage::TokenizerLoaded),
            target_probed_ms: at(Stage::TargetProbed),
            requests_ready_ms: at(Stage::RequestsReady),
            connections_open_ms: at(Stage::ConnectionsOpen),
            first_sent_ms: at(Stage::FirstSent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_keeps_its_first_time() {
        let timings = Timings::default();
        assert_eq!(timings.reached(), StageTimes::default());
        timings.reach(Stage::TargetProbed);
        let first = timings.reached();
        assert!(first.target_probed_ms.is_some());
        assert_eq!(first.plugins_loaded_ms, None);
        timings.reach(Stage::TargetProbed);
        assert_eq!(timings.reached(), first);
    }
}
