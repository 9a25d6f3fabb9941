//! The pacer on virtual time.

use super::*;
use model::arrival::{Arrival, ThinkSpread, Trace};
use std::cell::RefCell;
use std::time::Duration;

const MS: u64 = 1_000_000;

fn pacing(slots: Option<usize>, by_session: bool, capped: bool) -> Pacing {
    Pacing {
        origin: Nanos::ZERO,
        duration: None,
        slots,
        by_session,
        capped,
        thinking: None,
        lanes: None,
    }
}

/// Runs a phase on a paused clock with replies that take `service` each.
async fn run(
    arrival: Arrival,
    items: u32,
    slots: Option<usize>,
    duration: Option<Nanos>,
    service: Duration,
) -> Vec<(u32, Verdict, Nanos)> {
    let think = if let Arrival::Closed { think, .. } = arrival { think } else { None };
    let thinking = think.map(|think| Thinking { think, seed: 1, first: 0, step: 1 });
    let capped = arrival.is_open() && slots.is_some();
    let pacing = Pacing { duration, thinking, ..pacing(slots, true, capped) };
    let due_times = arrival.due_times(1, Some(u64::from(items)), &Trace::default());
    paced(&pacing, due_times, items, |_| service).await
}

/// Runs a phase on a paused clock; `service` is the time of the reply to an item.
async fn paced(
    pacing: &Pacing,
    due_times: impl Iterator<Item = Due>,
    items: u32,
    service: impl Fn(u32) -> Duration,
) -> Vec<(u32, Verdict, Nanos)> {
    let clock = Clock::start();
    let signal = Signal::for_task();
    let out = RefCell::new(Vec::new());
    let mut items = 0..items;
    pace(
        &clock,
        &signal,
        pacing,
        due_times,
        &mut Newsfeed::none(),
        |_| items.next().map_or(Next::None, Next::Ready),
        |item, verdict| {
            out.borrow_mut().push((item, verdict, clock.now()));
            let key = u64::from(item);
            if matches!(verdict, Verdict::Send(_)) {
                let signal = signal.clone();
                let service = service(item);
                tokio::spawn(async move {
                    tokio::time::sleep(service).await;
                    signal.release(key, clock.now());
                });
            }
            key.into()
        },
    )
    .await;
    drain(&clock, &signal, || false).await;
    out.into_inner()
}

fn closed(concurrency: u32, think: Option<Think>) -> Arrival {
    Arrival::Closed { concurrency, think }
}

fn thinking(ms: u64, spread: ThinkSpread) -> Option<Think> {
    Some(Think { time: Nanos(ms * MS), spread })
}

fn sent_at(sent: &[(u32, Verdict, Nanos)]) -> Vec<u64> {
    sent.iter().map(|(_, _, at)| at.0 / MS).collect()
}

/// Returns the due and release times of each request in milliseconds.
fn released(sent: &[(u32, Verdict, Nanos)]) -> Vec<(u64, u64)> {
    let times = sent.iter().map(|(_, verdict, _)| match verdict {
        Verdict::Send(release) => (release.due.0 / MS, release.granted.unwrap().0 / MS),
        Verdict::NotSent { .. } => panic!("all are sent"),
    });
    times.collect()
}

fn are_sent_when_due(sent: &[(u32, Verdict, Nanos)]) -> bool {
    sent.iter()
        .all(|(_, verdict, at)| *verdict == Verdict::Send(Release { due: *at, granted: None }))
}

#[tokio::test(start_paused = true)]
async fn constant_load_is_sent_when_due() {
    let sent = run(Arrival::Constant { rate: 100.0 }, 4, None, None, Duration::from_secs(9)).await;
    assert_eq!(sent_at(&sent), [0, 10, 20, 30]);
}

#[tokio::test(start_paused = true)]
async fn cap_shows_as_queueing() {
    let sent = run(Arrival::Inf, 4, Some(2), None, Duration::from_millis(50)).await;
    assert_eq!(released(&sent), [(0, 0), (0, 0), (0, 50), (0, 50)]);
}

#[tokio::test(start_paused = true)]
async fn load_that_found_no_slot_is_on_record() {
    let arrival = Arrival::Constant { rate: 10.0 };
    let second = Some(Nanos(1000 * MS));
    let sent = run(arrival, 99, Some(1), second, Duration::from_millis(450)).await;
    let verdicts: Vec<bool> =
        sent.iter().map(|(_, verdict, _)| matches!(verdict, Verdict::Send(_))).collect();
    assert_eq!(verdicts.len(), 10, "every request due within the second");
    assert_eq!(verdicts.iter().filter(|sent| **sent).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn closed_loop_sends_when_a_user_is_free() {
    let arrival = closed(2, None);
    let sent = run(arrival, 99, Some(2), Some(Nanos(1000 * MS)), Duration::from_millis(400)).await;
    assert_eq!(sent_at(&sent), [0, 0, 400, 400, 800, 800]);
    assert!(are_sent_when_due(&sent));
}

/// Two users, answers of 400 ms, 100 ms of thinking: each sends, and is due, every 500 ms.
#[tokio::test(start_paused = true)]
async fn users_think_before_their_next_request() {
    let arrival = closed(2, thinking(100, ThinkSpread::Constant));
    let sent = run(arrival, 5, Some(2), None, Duration::from_millis(400)).await;
    assert_eq!(sent_at(&sent), [0, 0, 500, 500, 1000]);
    assert!(are_sent_when_due(&sent));
}

/// Nobody begins to think before an answer, and a phase ends while its users think.
#[tokio::test(start_paused = true)]
async fn phase_ends_while_users_think() {
    let arrival = closed(3, thinking(700, ThinkSpread::Constant));
    let sent = run(arrival, 99, Some(3), Some(Nanos(1000 * MS)), Duration::from_millis(200)).await;
    assert_eq!(sent_at(&sent), [0, 0, 0, 900, 900, 900]);
}

/// A user's pauses are its own: drawn for its number and its turn, whoever is answered first. The
/// runtime's timers tick in milliseconds, so each request leaves within one of its due time.
#[tokio::test(start_paused = true)]
async fn pauses_belong_to_users_and_turns() {
    let think = Think { time: Nanos(50 * MS), spread: ThinkSpread::Exponential };
    let thinking = Some(Thinking { think, seed: 9, first: 1, step: 3 });
    let pacing = Pacing { thinking, ..pacing(Some(2), true, false) };
    let service = |item: u32| Duration::from_millis(100 + 37 * u64::from(item % 3));
    let sent = paced(&pacing, std::iter::repeat(Due::WhenFree), 12, service).await;
    let mut expected: Vec<(u64, u32)> = Vec::new();
    // Users 1 and 4: whoever is due next takes the next item.
    let mut next = [(0_u64, 1_u32, 0_u32), (0, 4, 0)];
    for item in 0..12 {
        next.sort_unstable();
        let (due, user, turn) = next[0];
        expected.push((due, item));
        let left = due.div_ceil(MS) * MS;
        let freed = left + u64::try_from(service(item).as_nanos()).unwrap();
        next[0] = (freed + think.pause(9, user, turn + 1).0, user, turn + 1);
    }
    let got: Vec<(u64, u32)> = sent
        .iter()
        .map(|(item, verdict, _)| match verdict {
            Verdict::Send(release) => (release.due.0, *item),
            Verdict::NotSent { .. } => panic!("all are sent"),
        })
        .collect();
    assert_eq!(got, expected);
}

/// A cap holds for every open model: here a ramp whose second half the cap holds back.
#[tokio::test(start_paused = true)]
async fn cap_holds_a_ramp_back() {
    let arrival = Arrival::Ramp {
        spread: model::arrival::Spread::Constant,
        ramp: model::arrival::Stage {
            from: 0.0,
            to: 4.0,
            shape: model::arrival::Shape::Linear,
            length: Nanos(2000 * MS),
        },
    };
    let sent = run(arrival, 5, Some(1), None, Duration::from_millis(700)).await;
    // t² requests are due until t; the third and later wait for the previous request.
    assert_eq!(released(&sent), [(0, 0), (1000, 1000), (1414, 1700), (1732, 2400), (2000, 3100)]);
}

/// Millions may be due when a run is stopped: none of them is drawn, and their number is known.
#[tokio::test(start_paused = true)]
async fn stop_leaves_due_samples_undrawn() {
    let clock = Clock::start();
    let second = |rate: f64| Arrival::Constant { rate };
    for (arrival, limit, left) in [
        (Arrival::Inf, None, 10_000_000 - 4),
        // Due at 0, 250 and 500 ms: two are in flight, the third waits, and more are not due.
        (second(4.0), None, 0),
        // A thousand were due in the half second before the stop, and one at it.
        (second(2_000.0), Some(Nanos(9_000 * MS)), 1_001 - 3),
    ] {
        let signal = Signal::for_task();
        let slots = Some(if matches!(arrival, Arrival::Inf) { 3 } else { 2 });
        let origin = clock.now();
        let pacing = Pacing { origin, duration: limit, ..pacing(slots, true, true) };
        let drawn = std::cell::Cell::new(0_u64);
        let due_times = arrival.due_times(1, Some(10_000_000), &Trace::default());
        let mut newsfeed = Newsfeed::none();
        let paced = pace(
            &clock,
            &signal,
            &pacing,
            due_times.take(10_000_000),
            &mut newsfeed,
            |_| {
                drawn.set(drawn.get() + 1);
                Next::Ready(drawn.get())
            },
            |item, _| item.into(),
        );
        let stop = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            signal.stop();
        };
        let (unsent, ()) = tokio::join!(paced, stop);
        assert_eq!(unsent, left, "{arrival:?}");
        assert!(drawn.get() <= 4, "{arrival:?}: {} were drawn", drawn.get());
    }
}

mod sessions;

/// A wait for a queue parks the thread too, and takes the token that was meant for the pacer.
#[test]
fn wake_during_another_wait_is_not_lost() {
    let signal = Signal::for_thread();
    let attached = std::sync::Barrier::new(2);
    let flag = AtomicBool::new(false);
    let waker = signal.clone();
    let stopped = std::thread::scope(|scope| {
        let pacer = scope.spawn(|| {
            let clock = Clock::start();
            signal.attach();
            attached.wait();
            while !flag.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            // The state after an unlucky receive: the wake has come, and its token is gone.
            std::thread::park_timeout(std::time::Duration::from_millis(1));
            pollster::block_on(signal.wait(&clock, None));
            signal.is_stopped()
        });
        attached.wait();
        waker.stop();
        flag.store(true, Ordering::Release);
        pacer.join().unwrap()
    });
    assert!(stopped);
}
