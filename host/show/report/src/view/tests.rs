use super::*;
use crate::charts::fixture::{exchanges, run_of};
use crate::exchanges::{any_run, failed, ms, reply};
use model::exchange::Class;
use proptest::prelude::*;

fn view(exchanges: &[Exchange]) -> View {
    run_of("a run", exchanges).view
}

fn seen(view: &View) -> String {
    format!("{view:?}")
}

#[test]
fn the_course_adds_up_to_the_summary() {
    let shown = run_of("a run", &exchanges(60, 0));
    let (course, summary) = (&shown.view.course, &shown.reported.summary);
    let lengths = (0..course.failed.len()).map(|place| {
        let (from, to) = course.span(place);
        to - from
    });
    let lengths: Vec<f64> = lengths.collect();
    let whole = |rates: &[f64]| -> f64 { rates.iter().zip(&lengths).map(|(r, l)| r * l).sum() };
    let duration = summary.throughput.duration_s.unwrap();
    assert!((lengths.iter().sum::<f64>() - duration).abs() < 1e-9);
    let tokens = whole(course.tokens_per_s.as_ref().unwrap());
    assert_eq!(tokens.round(), summary.tokens.output.total.unwrap() as f64);
    let in_flight = whole(&course.in_flight) / duration;
    assert!((in_flight - summary.concurrency.mean_in_flight.unwrap()).abs() < 1e-9);
    // A request waits 20 ms for the cap on average.
    assert!((whole(course.waiting.as_ref().unwrap()) - 60.0 * 0.02).abs() < 1e-9);
    assert_eq!(course.failed.iter().sum::<u64>(), summary.requests.failed);
    assert_eq!(summary.requests.failed, 3);
}

#[test]
fn distributions_equal_the_summary() {
    let shown = run_of("a run", &exchanges(60, 0));
    let names: Vec<&str> = shown.view.distributions.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, DRAWN);
    for (name, figures) in &shown.view.distributions {
        use statistics::Ranked;
        let expected = shown.reported.summary.metric(name).unwrap();
        assert_eq!(figures.count(), expected.count, "{name}");
        assert_eq!(figures.percentile(99.0), expected.percentile(99.0).unwrap(), "{name}");
    }
}

#[test]
fn requests_have_their_phases() {
    let mut one = exchanges(12, 0).remove(11);
    one.sample.id = "eleven".to_owned();
    let mut unsent = reply(12, 0, &[]);
    (unsent.due, unsent.sent, unsent.ended) = (ms(2200), None, None);
    let unsent = failed(unsent, Class::NotSent, "never");
    let view = view(&[unsent, one]);
    let [first, second] = &view.sampled[..] else { panic!("{:?}", view.sampled) };
    assert_eq!((first.index, first.id.as_str()), (11, "eleven"));
    assert_eq!(first.queue_ms, Some(10.0));
    assert_eq!(first.send_lag_ms, Some(0.0));
    assert_eq!(first.connection_ms, None);
    assert_eq!(first.ttft_ms, Some(140.0));
    assert_eq!(first.e2e_ms, Some(340.0));
    assert_eq!((first.input_tokens, first.output_tokens), (Some(300), Some(11)));
    assert_eq!((second.sent_s, second.ttft_ms), (None, None));
    assert_eq!(second.failure, Some(Class::NotSent));
    assert_eq!(view.slowest.len(), 1, "what failed is not slow");
}

#[test]
fn kept_data_has_a_bound() {
    let view = view(&exchanges(5_000, 0));
    assert_eq!(view.consecutive.len(), 48);
    let numbers: Vec<u64> = view.consecutive.iter().map(|request| request.index).collect();
    assert_eq!(numbers, (2476..2524).collect::<Vec<_>>());
    assert!((40..=80).contains(&view.sampled.len()), "{}", view.sampled.len());
    assert!((600..=1_200).contains(&view.dots.len()), "{}", view.dots.len());
    assert_eq!(view.slowest.len(), 12);
    assert!(view.course.failed.len() <= 180);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_order_of_records_does_not_matter(run in any_run(), seed in any::<u64>()) {
        let mut other = run.clone();
        other.sort_by_key(|exchange| (exchange.index + 1).wrapping_mul(seed | 1));
        prop_assert_eq!(seen(&view(&run)), seen(&view(&other)));
    }
}
