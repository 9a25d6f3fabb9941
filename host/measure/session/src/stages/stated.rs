//! Statements about plugins in a result.

use std::collections::BTreeMap;

use model::client::Overruns;
use model::target::Secrets;
use plugins::sandbox::LogBook;
use result::summary::{Dataset, Remark, Treatment};

/// States a dataset's changes to its input in the terms of a result.
pub(super) fn altered(remarks: &[plugins::dataset::Remark], secrets: &Secrets) -> Dataset {
    use plugins::dataset::Treatment as Said;
    let stated = |remark: &plugins::dataset::Remark| Remark {
        what: match remark.what {
            Said::Dropped => Treatment::Dropped,
            Said::Truncated => Treatment::Truncated,
            Said::Repaired => Treatment::Repaired,
            Said::Repeated => Treatment::Repeated,
        },
        reason: secrets.redact(&remark.reason),
        count: remark.count,
        first: remark.first.as_deref().map(|first| secrets.redact(first)),
    };
    Dataset { remarks: remarks.iter().map(stated).collect() }
}

/// The calls to plugins that were stopped, as a result states them.
pub(super) fn overruns(log: &LogBook) -> BTreeMap<String, Overruns> {
    let stated = |(plugin, overruns): (String, plugins::sandbox::Overruns)| {
        let seconds = overruns.time.as_secs_f64();
        let calls = overruns.calls;
        (plugin, Overruns { calls, seconds })
    };
    log.overruns().into_iter().map(stated).collect()
}
