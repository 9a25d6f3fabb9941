//! The gate at which a run waits for others. All begin at one instant, with their first measured
//! request, and share a clock. After the last reply, one run asks the server for the metrics.

use std::sync::{Arc, Mutex};

use crate::lock;
use load::pace::Signal;
use model::clock::Clock;
use model::units::Nanos;
use tokio::sync::watch;

/// The stage that a run which waits for others has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It prepares its requests and warms up.
    Preparing,
    /// It has warmed up, and waits for the others before it asks the server to flush its cache.
    Warm,
    /// It has only to be given an instant to begin at.
    Ready,
    Measuring,
    Drained,
}

/// The time from the decision to begin to the first due time.
const START_AHEAD: Nanos = Nanos(20_000_000);

#[derive(Clone)]
pub struct Gate {
    clock: Clock,
    stage: watch::Sender<Stage>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    others_are_warm: bool,
    start: Option<Nanos>,
    others_are_drained: bool,
    signal: Option<Signal>,
}

impl Gate {
    pub fn new(clock: Clock) -> Self {
        Gate { clock, stage: watch::Sender::new(Stage::Preparing), open: Arc::default() }
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    pub fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    pub fn start(&self) -> Option<Nanos> {
        lock(&self.open).start
    }

    pub fn others_are_warm(&self) {
        self.change(|open| open.others_are_warm = true);
    }

    /// The run begins at this instant of its clock.
    pub fn start_at(&self, start: Nanos) {
        self.change(|open| open.start = Some(start));
    }

    pub fn others_are_drained(&self) {
        self.change(|open| open.others_are_drained = true);
    }

    /// The run is over, wherever it was.
    pub fn ended(&self) {
        self.reach(Stage::Drained);
    }

    /// Opens the gates of one process together; false, without a start, if a run ended before.
    pub fn open_together(gates: &[Gate]) -> bool {
        pollster::block_on(Gate::open_all(gates))
    }

    async fn open_all(gates: &[Gate]) -> bool {
        for stage in [Stage::Warm, Stage::Ready, Stage::Drained] {
            for gate in gates {
                let mut stages = gate.stages();
                let reached = stages.wait_for(|own| *own >= stage).await.map(|own| *own);
                if stage < Stage::Drained && matches!(reached, Ok(Stage::Drained) | Err(_)) {
                    return false;
                }
            }
            let start = gates.first().map(|gate| gate.clock.now() + START_AHEAD);
            for gate in gates {
                match stage {
                    Stage::Warm => gate.others_are_warm(),
                    Stage::Ready => start.into_iter().for_each(|at| gate.start_at(at)),
                    _ => gate.others_are_drained(),
                }
            }
        }
        true
    }

    /// Waits until all others have warmed up, or the run is stopped.
    pub(crate) async fn wait_for_others(&self, signal: &Signal) {
        self.reach(Stage::Warm);
        self.until(signal, |open| open.others_are_warm.then_some(())).await;
    }

    /// Waits for the start instant, and returns it; nothing if the run is stopped.
    pub(crate) async fn wait_for_start(&self, signal: &Signal) -> Option<Nanos> {
        self.reach(Stage::Ready);
        let start = self.until(signal, |open| open.start).await;
        if start.is_some() {
            self.reach(Stage::Measuring);
        }
        start
    }

    /// All replies have ended. Waits for the others' replies if `waits`, unless the run is stopped.
    pub(crate) async fn leave(&self, signal: &Signal, waits: bool) {
        self.reach(Stage::Drained);
        if waits {
            self.until(signal, |open| open.others_are_drained.then_some(())).await;
        }
    }

    fn reach(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    async fn until<T>(&self, signal: &Signal, known: impl Fn(&Open) -> Option<T>) -> Option<T> {
        loop {
            if signal.is_stopped() {
                return None;
            }
            {
                let mut open = lock(&self.open);
                if let Some(known) = known(&open) {
                    return Some(known);
                }
                open.signal = Some(signal.clone());
            }
            signal.wait(&self.clock, None).await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Open)) {
        let mut open = lock(&self.open);
        change(&mut open);
        if let Some(signal) = &open.signal {
            signal.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn run_waits_for_admission_or_stop() {
        let gate = Gate::new(Clock::start());
        let signal = Signal::for_task();
        let mut stages = gate.stages();
        let run = async {
            gate.wait_for_others(&signal).await;
            let start = gate.wait_for_start(&signal).await;
            gate.leave(&signal, true).await;
            start
        };
        let others = async {
            for (stage, opens) in [
                (Stage::Warm, Gate::others_are_warm as fn(&Gate)),
                (Stage::Ready, |gate| gate.start_at(Nanos(5))),
                (Stage::Drained, Gate::others_are_drained),
            ] {
                drop(stages.wait_for(|reached| *reached == stage).await.unwrap());
                // Nothing else moves it on.
                signal.wake();
                tokio::task::yield_now().await;
                assert_eq!(*stages.borrow(), stage);
                opens(&gate);
            }
        };
        let (start, ()) = tokio::join!(run, others);
        assert_eq!(start, Some(Nanos(5)));

        let (gate, signal) = (Gate::new(Clock::start()), Signal::for_task());
        let run = async {
            gate.wait_for_others(&signal).await;
            gate.wait_for_start(&signal).await
        };
        let (start, ()) = tokio::join!(run, async { signal.stop() });
        assert_eq!(start, None);
    }

    #[tokio::test(start_paused = true)]
    async fn gates_of_one_process_open_at_one_instant_or_not_at_all() {
        let clock = Clock::start();
        let gates = [Gate::new(clock), Gate::new(clock)];
        let run = async |gate: &Gate| {
            let signal = Signal::for_task();
            gate.wait_for_others(&signal).await;
            let start = gate.wait_for_start(&signal).await;
            gate.leave(&signal, true).await;
            start
        };
        let (opened, one, other) =
            tokio::join!(Gate::open_all(&gates), run(&gates[0]), run(&gates[1]));
        assert!(opened && one.is_some() && one == other, "{one:?} {other:?}");

        let gates = [Gate::new(clock), Gate::new(clock)];
        gates[1].ended();
        let signal = Signal::for_task();
        let opened = async {
            let opened = Gate::open_all(&gates).await;
            signal.stop();
            opened
        };
        let waits = async {
            gates[0].wait_for_others(&signal).await;
            gates[0].wait_for_start(&signal).await
        };
        let (opened, start) = tokio::join!(opened, waits);
        assert!(!opened && start.is_none() && gates[0].start().is_none());
    }
}
