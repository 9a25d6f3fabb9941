//! The outcome of a run: the measurements, and on top of them the findings, the verdict and the
//! thresholds. `summary` measures, `finding` and `threshold` judge its measurements.

use std::borrow::Borrow;
use std::convert::Infallible;

use crate::finding::{Verdict, raise};
use crate::summary::gather::Gather;
use crate::summary::{RunFacts, Summary, Survey};
use model::exchange::Exchange;

impl Summary {
    /// Summarises a run. The order of the exchanges does not matter.
    pub fn new<E: Borrow<Exchange>>(
        facts: &RunFacts,
        exchanges: impl IntoIterator<Item = E> + Clone,
    ) -> Summary {
        let read = || Ok::<_, Infallible>(exchanges.clone().into_iter().map(Ok));
        let Ok(summary) = Summary::read(facts, read);
        summary
    }

    /// Summarises a run by reading its exchanges twice, without holding them in memory. Errors: the
    /// first error of reading.
    pub fn read<E, I, X>(facts: &RunFacts, open: impl Fn() -> Result<I, X>) -> Result<Summary, X>
    where
        E: Borrow<Exchange>,
        I: Iterator<Item = Result<E, X>>,
    {
        let mut survey = Survey::new(&facts.run);
        for exchange in open()? {
            survey.add(exchange?.borrow());
        }
        Summary::read_surveyed(facts, survey, open()?)
    }

    /// The same where the first pass was made already, over the same exchanges or the first of
    /// them. Errors: the first error of reading.
    pub fn read_surveyed<E, X>(
        facts: &RunFacts,
        survey: Survey,
        exchanges: impl Iterator<Item = Result<E, X>>,
    ) -> Result<Summary, X>
    where
        E: Borrow<Exchange>,
    {
        let surveyed = survey.finish(&facts.run);
        // Records of a run that goes on may have grown; both passes are over the same ones.
        let seen = surveyed.seen;
        let mut gather = Gather::new(facts, surveyed);
        for exchange in exchanges.take(seen) {
            gather.add(exchange?.borrow());
        }
        let mut summary = gather.finish();
        summary.findings = raise::findings(&summary);
        summary.verdict = Verdict::from_findings(&summary.findings);
        let thresholds = summary.run.thresholds.iter();
        summary.thresholds = thresholds.map(|own| own.check(&summary)).collect();
        Ok(summary)
    }
}
