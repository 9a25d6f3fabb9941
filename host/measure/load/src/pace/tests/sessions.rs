//! Sessions on virtual time: followers of an answer are due on time, whoever else is waiting.

use super::*;

/// An item as it was handed on: its session and turn, when it was due, and when it was handed on.
type Sent = (u32, u32, u64, u64);

/// Paces sessions of this many turns: answers take `service`, and users then think for `delay`.
async fn sessions(
    pacing: &Pacing,
    due_times: impl Iterator<Item = Due>,
    (count, turns): (u32, u32),
    service: Duration,
    delay: Nanos,
) -> Vec<Sent> {
    let clock = Clock::start();
    let signal = Signal::for_task();
    let (announcer, mut newsfeed) = news::newsfeed(&signal);
    let seen = RefCell::new(Vec::new());
    let mut roots = 0..count;
    let mut key = 0_u64;
    pace(
        &clock,
        &signal,
        pacing,
        due_times,
        &mut newsfeed,
        |_| roots.next().map_or(Next::None, |root| Next::Ready((root, 0, 0))),
        |(session, turn, root), verdict| {
            key += 1;
            let (key, root) = (key, if turn == 0 { key } else { root });
            let Verdict::Send(Release { due, .. }) = verdict else { return key.into() };
            let line = (session, turn, due.0 / MS, clock.now().0 / MS);
            seen.borrow_mut().push(line);
            let (signal, announcer) = (signal.clone(), announcer.clone());
            tokio::spawn(async move {
                tokio::time::sleep(service).await;
                let at = clock.now();
                announcer.expect();
                signal.release(key, at);
                // The work that follows takes time of its own, but none that the pacer sees.
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(2));
                    announcer.announce(vec![if turn + 1 == turns {
                        News::Over { root, at }
                    } else {
                        News::Due(Follower { due: at + delay, item: (session, turn + 1, root) })
                    }]);
                });
            });
            HandedRequest { key, opens: turn == 0 && turns > 1 }
        },
    )
    .await;
    // News of one instant come in any order.
    let mut seen = seen.into_inner();
    seen.sort_by_key(|(session, turn, _, sent)| (*sent, *session, *turn));
    seen
}

fn ms(count: u64) -> Nanos {
    Nanos(count * MS)
}

#[tokio::test(start_paused = true)]
async fn turn_is_due_after_its_think_time() {
    let due_times = Arrival::Constant { rate: 10.0 }.due_times(1, Some(2), &Trace::default());
    let service = Duration::from_millis(70);
    let open = pacing(None, true, false);
    let seen = sessions(&open, due_times.take(2), (2, 3), service, ms(30)).await;
    let expected = [
        (0, 0, 0, 0),
        (0, 1, 100, 100),
        (1, 0, 100, 100),
        (0, 2, 200, 200),
        (1, 1, 200, 200),
        (1, 2, 300, 300),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn user_has_one_session_at_a_time() {
    let due_times = closed(2, None).due_times(1, None, &Trace::default());
    let service = Duration::from_millis(40);
    let seen = sessions(&pacing(Some(2), true, false), due_times, (3, 2), service, ms(60)).await;
    let expected = [
        (0, 0, 0, 0),
        (1, 0, 0, 0),
        (0, 1, 100, 100),
        (1, 1, 100, 100),
        // The first user is free when its second turn is answered.
        (2, 0, 140, 140),
        (2, 1, 240, 240),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn per_request_user_sends_the_next_due_request() {
    let due_times = closed(1, None).due_times(1, None, &Trace::default());
    let service = Duration::from_millis(40);
    let one = pacing(Some(1), false, false);
    let seen = sessions(&one, due_times, (2, 2), service, ms(60)).await;
    let expected = [
        (0, 0, 0, 0),
        // Its first session thinks until 100 ms, so the user begins another one.
        (1, 0, 40, 40),
        (0, 1, 100, 100),
        (1, 1, 140, 140),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn followers_wait_for_the_cap_too() {
    let due_times = Arrival::Inf.due_times(1, None, &Trace::default());
    let service = Duration::from_millis(50);
    let one = pacing(Some(1), true, true);
    let seen = sessions(&one, due_times, (2, 2), service, ms(0)).await;
    assert_eq!(seen, [(0, 0, 0, 0), (1, 0, 0, 50), (0, 1, 50, 100), (1, 1, 100, 150)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_after_the_end() {
    let due_times = Arrival::Inf.due_times(1, None, &Trace::default());
    let limited = Pacing { duration: Some(ms(250)), ..pacing(None, true, false) };
    let seen = sessions(&limited, due_times, (1, 9), Duration::from_millis(50), ms(50)).await;
    let due: Vec<u64> = seen.iter().map(|(_, _, due, _)| *due).collect();
    assert_eq!(due, [0, 100, 200]);
}

/// A user that thinks until after the end begins nothing more; its requests are due afterwards.
#[tokio::test(start_paused = true)]
async fn per_request_user_thinks_before_each_request() {
    let due_times = closed(1, None).due_times(1, None, &Trace::default());
    let Some(think) = thinking(2000, ThinkSpread::Constant) else { unreachable!("it thinks") };
    let limited = Pacing {
        duration: Some(ms(3000)),
        thinking: Some(Thinking { think, seed: 1, first: 0, step: 1 }),
        ..pacing(Some(1), false, false)
    };
    let seen = sessions(&limited, due_times, (3, 3), Duration::from_millis(40), ms(0)).await;
    assert_eq!(seen, [(0, 0, 0, 0), (0, 1, 2040, 2040)]);
}

/// Roots that never become ready, because open sessions hold all memory, count at the end.
#[tokio::test(start_paused = true)]
async fn unavailable_roots_count_as_unsent() {
    let clock = Clock::start();
    let signal = Signal::for_task();
    let (announcer, mut newsfeed) = news::newsfeed::<u64>(&signal);
    let limited = Pacing { duration: Some(ms(1000)), ..pacing(None, true, false) };
    let due_times = Arrival::Constant { rate: 10.0 }.due_times(1, Some(50), &Trace::default());
    let mut first = Some(0);
    let unsent = pace(
        &clock,
        &signal,
        &limited,
        due_times,
        &mut newsfeed,
        |_| first.take().map_or(Next::Later, Next::Ready),
        |key, _| HandedRequest { key, opens: true },
    )
    .await;
    assert_eq!(unsent, 9);
    assert_eq!(clock.now(), ms(1000));
    drop(announcer);
}

/// A lost request is recorded at once; it takes no user and no slot, and nothing waits for it.
#[tokio::test(start_paused = true)]
async fn lost_request_takes_no_user() {
    let clock = Clock::start();
    let signal = Signal::for_task();
    let (announcer, mut newsfeed) = news::newsfeed::<u64>(&signal);
    let due_times = closed(1, None).due_times(1, None, &Trace::default());
    let one = pacing(Some(1), false, false);
    let (seen, mut roots) = (RefCell::new(Vec::new()), 0..2);
    pace(
        &clock,
        &signal,
        &one,
        due_times,
        &mut newsfeed,
        |_| roots.next().map_or(Next::None, Next::Ready),
        |key, verdict| {
            seen.borrow_mut().push((key, verdict, clock.now()));
            if key < 2 {
                let (signal, announcer) = (signal.clone(), announcer.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    let at = clock.now();
                    announcer.expect();
                    signal.release(key, at);
                    announcer.announce(vec![
                        News::Lost(Follower { due: at, item: 10 + key }),
                        News::Over { root: key, at },
                    ]);
                });
            }
            HandedRequest { key, opens: key < 2 }
        },
    )
    .await;
    let sent = |due| Verdict::Send(Release { due, granted: None });
    let lost = |due| Verdict::NotSent { due };
    let expected = [
        (0, sent(ms(0)), ms(0)),
        (10, lost(ms(50)), ms(50)),
        (1, sent(ms(50)), ms(50)),
        (11, lost(ms(100)), ms(100)),
    ];
    assert_eq!(seen.into_inner(), expected);
}

/// The maximum number of sessions of a real run, to the millisecond.
#[tokio::test(start_paused = true)]
async fn many_sessions_keep_their_think_times() {
    let due_times = Arrival::Constant { rate: 1000.0 }.due_times(1, Some(300), &Trace::default());
    let service = Duration::from_millis(7);
    let open = pacing(None, true, false);
    let seen = sessions(&open, due_times.take(300), (300, 5), service, ms(13)).await;
    assert_eq!(seen.len(), 1500);
    for (session, turn, due, sent) in seen {
        assert_eq!(due, u64::from(session) + 20 * u64::from(turn));
        assert_eq!(sent, due, "session {session}, turn {turn}");
    }
}

/// Two followers a minute away: nothing is in flight for ten seconds at most, and both move.
#[tokio::test(start_paused = true)]
async fn idle_lanes_move_all_waiting_requests_forward() {
    let clock = Clock::start();
    let signal = Signal::for_task();
    let (announcer, mut newsfeed) = news::newsfeed(&signal);
    announcer.expect();
    let waiting = [(60_000, 'a'), (60_050, 'b'), (75_000, 'c')];
    announcer.announce(waiting.map(|(at, item)| News::Due(Follower { due: ms(at), item })).into());
    let lanes = Some(Lanes { idle_most: Some(ms(10_000)) });
    let paced = Pacing { lanes, ..pacing(None, true, false) };
    let mut sent = Vec::new();
    let mut key = 0;
    pace(
        &clock,
        &signal,
        &paced,
        std::iter::empty(),
        &mut newsfeed,
        |_| Next::None,
        |item, verdict| {
            key += 1;
            let Verdict::Send(Release { due, .. }) = verdict else { panic!("{item} was not sent") };
            sent.push((item, due.0 / MS, clock.now().0 / MS));
            let signal = signal.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                signal.release(key, clock.now());
            });
            key.into()
        },
    )
    .await;
    // The reply to `b` ends at 10,150 ms, and ten seconds later the third is due.
    assert_eq!(sent, [('a', 10_000, 10_000), ('b', 10_050, 10_050), ('c', 20_150, 20_150)]);
}
