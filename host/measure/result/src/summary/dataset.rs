//! A dataset's treatment of its input: parts left out, cut, repaired or used again.

model::words! {
    /// The treatment that a dataset gave to a part of its input.
    pub enum Treatment {
        /// Left it out.
        Dropped = "dropped",
        /// Cut it short.
        Truncated = "truncated",
        /// Changed something in it that was wrong.
        Repaired = "repaired",
        /// Used it again, because there was not enough.
        Repeated = "repeated",
    }
}

/// The treatment that a dataset gave to its input, in its own words.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Dataset {
    /// The remarks, by kind and reason.
    pub remarks: Vec<Remark>,
}

/// One kind of change by a dataset to its input.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Remark {
    /// The treatment.
    pub what: Treatment,
    /// The part of the input, and the reason.
    pub reason: String,
    /// The number of times.
    pub count: u64,
    /// The first of them, such as the number of a line.
    pub first: Option<String>,
}

impl Dataset {
    pub fn count(&self, what: Treatment) -> u64 {
        let same = self.remarks.iter().filter(|remark| remark.what == what);
        same.fold(0, |sum, remark| sum.saturating_add(remark.count))
    }
}

impl Remark {
    pub fn label(&self) -> String {
        let first = self.first.as_ref().map(|first| format!(", first {first}"));
        format!("{} × {}{}", self.count, self.reason, first.unwrap_or_default())
    }
}
