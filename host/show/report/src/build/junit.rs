//! The checks of a build as JUnit XML. JUnit has no warning, so a doubt is a skipped test: readers
//! show skipped tests, and none of them fails a build.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Build, Check, Outcome};

/// A suite with a test for each check.
///
/// # Errors
/// If it cannot be written.
pub fn junit(build: &Build) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(build.scenario.as_str());
    suite.add_test_cases(build.checks().iter().map(|check| {
        let mut test = TestCase::new(check.name.as_str(), status(check));
        test.set_classname(format!("{}.{}", build.scenario, check.subject.name()));
        if check.outcome == Outcome::Passes {
            test.set_system_out(check.seen.as_str());
        }
        test
    }));
    let mut junit = Report::new("runner ci");
    junit.add_test_suite(suite);
    junit.to_string()
}

fn status(check: &Check) -> TestCaseStatus {
    let mut status = match check.outcome {
        Outcome::Passes => return TestCaseStatus::success(),
        Outcome::Notes | Outcome::Warns => TestCaseStatus::skipped(),
        Outcome::Fails => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_message(check.seen.as_str());
    status.set_type(check.subject.name());
    if !check.more.is_empty() {
        status.set_description(check.more.join("\n"));
    }
    status
}
