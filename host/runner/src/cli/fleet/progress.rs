//! The progress of a fleet: the figures of all agents together, in a line now and then.

use ::fleet::link::Running;

use super::super::print::tell;
use super::agent::{Figures, figures};

/// Prints a line for all agents together.
pub(super) fn tell_all(running: &Running, agents: u32) {
    let all = running.figures().into_iter().map(figures);
    let sum = all.fold(Figures::default(), |sum, one| Figures {
        answered: sum.answered + one.answered,
        failed: sum.failed + one.failed,
        in_flight: sum.in_flight + one.in_flight,
        tokens: sum.tokens + one.tokens,
    });
    let bytes: u64 = running.records().iter().sum();
    tell(format_args!(
        "{agents} agents: {} answered, {} failed, {} in flight, {} tokens; {} of records here",
        sum.answered,
        sum.failed,
        sum.in_flight,
        sum.tokens,
        hub::size(bytes)
    ));
}
