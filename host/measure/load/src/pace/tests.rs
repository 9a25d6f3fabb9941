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

/// Returns the due and release times of each request in milliseconds.
fn released(sent: &[(u32, Verdict, Nanos)]) -> Vec<(u64, u64)> {
    let times = sent.iter().map(|(_, verdict, _)| match verdict {
        Verdict::Send(release) => (release.due.0 / MS, release.granted.unwrap().0 / MS),
        Verdict::NotSent { .. } => panic!("all are sent"),
    });
    times.collect()
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
    let due_times = arrival.due_times(1, Some(5), &Trace::default());
    let one = pacing(Some(1), true, true);
    let sent = paced(&one, due_times, 5, |_| Duration::from_millis(700)).await;
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
