//! The report of `runner plugin test` as JUnit XML.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use plugins::case::{SuiteReport, TimedReport};

pub fn xml(report: &SuiteReport) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(report.plugin.name());
    if let Some(error) = &report.error {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(error.as_str());
        status.set_type("untested");
        let mut test = TestCase::new("the plugin and its cases can be loaded", status);
        test.set_classname(report.plugin.name());
        suite.add_test_case(test);
    }
    suite.set_time(Duration::from_secs_f64(report.seconds));
    suite.add_test_cases(report.cases.iter().map(|case| {
        let mut test = TestCase::new(case.report.name.as_str(), status(case));
        test.set_classname(report.plugin.name());
        test.set_assertions(usize::try_from(case.report.checks.sum()).unwrap_or(usize::MAX));
        test.set_time(Duration::from_secs_f64(case.seconds));
        test
    }));
    let mut junit = Report::new("runner plugin test");
    junit.set_time(Duration::from_secs_f64(report.seconds));
    junit.add_test_suite(suite);
    junit.to_string()
}

fn status(case: &TimedReport) -> TestCaseStatus {
    let failures = &case.report.failures;
    let Some(first) = failures.first() else { return TestCaseStatus::success() };
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(first.headline());
    status.set_type(first.kind());
    let messages = failures.iter().map(|failure| {
        let diff = failure.diff().unwrap_or_default();
        format!("{}\n{diff}", failure.headline())
    });
    status.set_description(messages.collect::<Vec<_>>().join("\n"));
    status
}
