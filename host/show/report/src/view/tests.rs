use super::*;
use crate::charts::fixture::{exchanges, run_of};
use crate::exchanges::{any_run, failed, ms, reply};
use model::arrival::Arrival;
use model::exchange::{Class, Kind, Turn};
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

/// Three users with sessions of unequal lengths; each session's second request has a sub-agent, for
/// which its third one waits. The last request of every fifth session fails.
fn users() -> Vec<(usize, Exchange)> {
    let (mut made, mut free, mut index) = (Vec::new(), [1000_u64; 3], 0);
    for session in 0..60_u64 {
        let user = (0..3).min_by_key(|user| free[*user]).unwrap();
        let first = index;
        let mut due = free[user] + [0, 7][user % 2];
        for place in 0..4 + session % 3 {
            let took = 40 + (session * 31 + place * 17) % 90;
            let (name, parents) = match place {
                0 => (format!("s{session}"), vec![]),
                2 => (format!("s{session}/helper"), vec![first + 1]),
                3 => (format!("s{session}"), vec![first + 1, first + 2]),
                _ => (format!("s{session}"), vec![index - 1]),
            };
            let events = [(due + 15, Kind::Text, Some(1), 4), (due + took, Kind::End, None, 0)];
            let mut request = reply(index, due, &events);
            request.sample.parents = parents;
            request.sample.turn = Some(Turn { session: name, index: place as u32 });
            let is_last = place == 3 + session % 3;
            let request = match is_last && session % 5 == 4 {
                true => failed(request, Class::Truncated, "it broke"),
                false => request,
            };
            made.push((user, request));
            (index, due) = (index + 1, due + took + 5);
        }
        free[user] = due - 5;
    }
    made
}

#[test]
fn requests_lie_in_the_lanes_of_their_users() {
    let mut made = users();
    let mut expected = vec![(Vec::new(), 0, 0); 3];
    for (user, request) in &made {
        let second = |at: Nanos| at.since(ms(1000)).as_secs_f64();
        let (times, sub_agents, failures) = &mut expected[*user];
        times.push((second(request.sent.unwrap()), second(request.ended.unwrap())));
        *sub_agents += u64::from(request.sample.turn.as_ref().unwrap().session.contains('/'));
        *failures += u64::from(!request.is_ok());
    }
    // Records come in the order in which requests end.
    made.sort_by_key(|(_, request)| request.ended);
    let exchanges: Vec<Exchange> = made.into_iter().map(|(_, request)| request).collect();
    let mut reported = run_of("a run", &exchanges).reported;
    reported.plan.load.arrival = Arrival::Closed { concurrency: 3, think: None };
    let facts = runs::folder::facts(&reported.plan, Default::default(), false);
    let records = exchanges.iter().map(Ok::<_, std::convert::Infallible>);
    let Ok(view) = View::read(&facts, &reported, Nanos(1_000_000_000), records);
    let lanes = view.lanes.unwrap();
    assert_eq!(lanes.left_out, 0);
    assert_eq!(lanes.lanes.iter().map(|lane| lane.sessions).sum::<u64>(), 60);
    let mut found: Vec<_> = (lanes.lanes.iter())
        .map(|lane| {
            let mut times: Vec<_> = lane.bars.iter().map(|bar| (bar.sent_s, bar.ended_s)).collect();
            times.sort_by(|one, other| one.partial_cmp(other).unwrap());
            let of = |which: &dyn Fn(&Bar) -> bool| {
                lane.bars.iter().filter(|bar| which(bar)).count() as u64
            };
            (times, of(&|bar| bar.is_sub_agents), of(&|bar| bar.failure.is_some()))
        })
        .collect();
    found.sort_by(|one, other| one.0[0].partial_cmp(&other.0[0]).unwrap());
    expected.sort_by(|one, other| one.0[0].partial_cmp(&other.0[0]).unwrap());
    assert_eq!(found, expected);
    // Users who send single requests have no lanes.
    assert_eq!(run_of("open", &exchanges).view.lanes, None);
}

#[test]
fn some_are_picked_evenly_and_in_any_order_the_same() {
    let pick = |numbers: &mut dyn Iterator<Item = u64>| {
        let mut even = Even::new(8);
        numbers.for_each(|number| even.add(number, || number));
        even.finish()
    };
    assert_eq!(pick(&mut (0..8)), (0..8).collect::<Vec<_>>());
    let some = [0, 16, 32, 48, 64, 80, 96];
    assert_eq!(pick(&mut (0..100)), some);
    assert_eq!(pick(&mut (0..100).rev()), some);
    // A slice has gaps.
    assert_eq!(pick(&mut (0..50).map(|n| n * 2 + 1)).len(), 7);
}

#[test]
fn the_largest_are_the_same_in_any_order() {
    let pick = |numbers: &mut dyn Iterator<Item = u64>| {
        let mut largest = Largest::new(3);
        numbers.for_each(|number| largest.add(Nanos(number % 7), number, || number));
        largest.finish()
    };
    assert_eq!(pick(&mut (0..20)), [6, 13, 5]);
    assert_eq!(pick(&mut (0..20).rev()), [6, 13, 5]);
    assert_eq!(pick(&mut (0..2)), [1, 0]);
}
