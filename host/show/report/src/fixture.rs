//! Runs for tests of drawings.

use model::exchange::Exchange;
use model::timings::StageTimes;
use result::finding::{Finding, Id, Severity};
use result::summary::{RunFacts, Summary};
use result::threshold::Checked;
use runs::Reported;
use runs::environment::Environment;
use runs::folder::Status;
use scenario::plan::Plan;

/// A plan: the random dataset asked of the OpenAI API's chat route, 30 a second.
pub(crate) fn plan() -> Plan {
    serde_json::from_str(include_str!("cases/plan.json")).unwrap()
}

/// A run of that plan that ended well.
pub(crate) fn reported(facts: &RunFacts, exchanges: &[Exchange]) -> Reported {
    Reported {
        folder: "20260102-030405-trial".into(),
        plan: plan(),
        environment: Some(Environment {
            runner: "0.1.0".into(),
            contract: "0.2.0".into(),
            platform: "linux x86_64".into(),
            cpu: Some("Processor".into()),
            cores: Some(16),
            memory_bytes: Some(137_438_953_472),
            kernel: Some("6.1.0".into()),
            descriptors: Some(65_536),
            command_line: ["/usr/bin/runner", "scenarios/trial.toml"].map(Into::into).into(),
        }),
        status: Some(Status {
            started: "2026-01-02T03:04:05Z".into(),
            origin: None,
            ended: "2026-01-02T03:04:15Z".into(),
            interrupted: false,
            unsent: 0,
            records: None,
            series: None,
            timings: StageTimes::default(),
            error: None,
        }),
        summary: Summary::new(facts, exchanges),
    }
}

pub(crate) fn finding(id: Id, severity: Severity, [seen, why, advice]: [&str; 3]) -> Finding {
    let [seen, why, advice] = [seen, why, advice].map(str::to_owned);
    Finding { id, severity, seen, why, advice }
}

pub(crate) fn threshold(threshold: &str, held: bool, seen: f64) -> Checked {
    Checked { threshold: threshold.to_owned(), seen: Some(seen), held, ..Checked::default() }
}
