use super::*;

use std::sync::atomic::AtomicU32;
use std::task::Wake;

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Stream {
    gate: Gate,
    woken: Arc<Woken>,
}

impl Stream {
    fn new(backlog: &Arc<Backlog>, number: u64) -> Self {
        Stream { gate: Gate::new(backlog, number), woken: Arc::default() }
    }

    fn may_read(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.gate.poll(&mut Context::from_waker(&waker)).is_ready()
    }

    fn woken(&self) -> u32 {
        self.woken.0.load(Ordering::Relaxed)
    }
}

fn backlog(bound: usize) -> Arc<Backlog> {
    Backlog::new(Clock::start(), bound)
}

/// A stream that waits, because this queue is full.
fn full() -> (Arc<Backlog>, Stream, BacklogBytes) {
    let backlog = backlog(100);
    let mut stream = Stream::new(&backlog, 0);
    let queued = backlog.queue(100);
    assert!(!stream.may_read());
    (backlog, stream, queued)
}

#[test]
fn full_backlog_stops_readers_until_a_quarter_is_free() {
    let backlog = backlog(100);
    let mut stream = Stream::new(&backlog, 0);
    let first = backlog.queue(60);
    assert!(stream.may_read());
    let second = backlog.queue(40);
    assert!(!stream.may_read());
    let mut third = backlog.queue(30);
    drop(second);
    assert!(stream.may_read(), "90 of 100 are held: whoever asks may read");
    third.set(40);
    assert!(!stream.may_read());
    assert_eq!(stream.woken(), 0);
    third.set(20);
    assert_eq!(stream.woken(), 0, "80 of 100 are held");
    drop(third);
    assert_eq!(stream.woken(), 1);
    assert!(stream.may_read());
    drop(first);
    assert_eq!(backlog.bytes(), 0);
}

/// Pieces of frames are only let go when more is read. Otherwise everyone would wait for ever.
#[test]
fn one_stream_continues_if_only_pieces_are_held() {
    let backlog = backlog(100);
    let mut pieces = backlog.hold();
    pieces.set(120);
    let (mut one, mut other) = (Stream::new(&backlog, 0), Stream::new(&backlog, 1));
    assert!(one.may_read());
    assert!(!other.may_read());
    assert!(one.may_read(), "it keeps its exemption");
    one.gate.end_exemption();
    assert_eq!(other.woken(), 1);
    assert!(other.may_read());
    assert!(!one.may_read());
    drop(other);
    assert_eq!(one.woken(), 1, "a stream that ends passes the exemption on");
    assert!(one.may_read());
}

#[test]
fn pieces_wait_for_queued_frames() {
    let backlog = backlog(100);
    let mut pieces = backlog.hold();
    pieces.set(80);
    let queued = backlog.queue(30);
    let mut stream = Stream::new(&backlog, 7);
    assert!(!stream.may_read());
    drop(queued);
    assert_eq!(stream.woken(), 1);
    assert!(stream.may_read());
}

#[test]
fn bytes_after_a_wait_show_if_the_engine_waited() {
    for (bytes, throttled) in [(THROTTLED_BYTES - 1, false), (THROTTLED_BYTES, true)] {
        let (backlog, mut stream, queued) = full();
        drop(queued);
        assert!(stream.may_read());
        stream.gate.read(bytes / 2);
        stream.gate.read(bytes - bytes / 2);
        assert!(stream.may_read());
        stream.gate.read(1 << 20);
        let figures = backlog.figures(Nanos::ZERO);
        let held_back = figures.held_back.unwrap();
        assert_eq!(held_back.throttled_from_s.is_some(), throttled, "{bytes}");
        assert_eq!((held_back.periods, held_back.from_to_s.len()), (1, 1));
        assert_eq!((figures.bound_bytes, figures.peak_bytes), (100, 100));
    }
}

#[test]
fn bytes_after_a_long_wait_may_be_stamped_late() {
    for (bytes, is_late) in [(0, false), (1, true)] {
        let (backlog, mut stream, queued) = full();
        std::thread::sleep(std::time::Duration::from(LATE));
        drop(queued);
        assert!(stream.may_read());
        stream.gate.read(bytes);
        assert!(stream.may_read());
        let held_back = backlog.figures(Nanos::ZERO).held_back.unwrap();
        assert_eq!(held_back.throttled_from_s, None);
        let late = held_back.late_s;
        assert_eq!(late.is_some_and(|late| late >= 0.01), is_late, "{late:?}");
    }
}

/// Replies that share a connection share its window: one unread reply would block the others.
#[test]
fn streams_of_one_connection_continue_together() {
    let backlog = backlog(100);
    let mut pieces = backlog.hold();
    pieces.set(40);
    let queued = backlog.queue(60);
    let [mut one, mut other, mut elsewhere] = [0, 1, 2].map(|number| Stream::new(&backlog, number));
    for shared in [&mut one, &mut other] {
        shared.gate.share(1 << 63);
        assert!(!shared.may_read());
    }
    assert!(!elsewhere.may_read());
    pieces.set(120);
    drop(queued);
    assert_eq!(other.woken(), 1, "all look again");
    assert!(one.may_read() && one.gate.is_exempt());
    assert!(other.may_read() && !elsewhere.may_read());
    other.gate.end_exemption();
    assert!(elsewhere.may_read() && !one.may_read());
}

#[test]
fn queued_bytes_do_not_make_the_backlog_tight() {
    let backlog = backlog(100);
    let _queued = backlog.queue(90);
    let mut pieces = backlog.hold();
    pieces.set(49);
    assert!(!backlog.is_tight());
    pieces.set(50);
    assert!(backlog.is_tight());
}

#[test]
fn new_measurement_resets_the_backlog() {
    let (backlog, _stream, queued) = full();
    drop(queued);
    backlog.restart();
    let figures = backlog.figures(Nanos::ZERO);
    assert_eq!((figures.peak_bytes, figures.held_back), (0, None));
}

#[test]
fn close_periods_merge_into_a_bounded_list() {
    let mut seen = Waits::default();
    let second = 1_000_000_000;
    seen.end_of_period(Nanos(0), Nanos(second));
    seen.end_of_period(Nanos(second + 1), Nanos(2 * second));
    assert_eq!(seen.periods, [(Nanos(0), Nanos(2 * second))]);
    for number in 2..200 {
        seen.end_of_period(Nanos(2 * number * second), Nanos((2 * number + 1) * second));
    }
    assert_eq!(seen.periods.len(), PERIODS);
    assert_eq!(seen.periods.len() as u64 + seen.more_periods, 199);
}

/// However threads add and release, no reader sleeps while there is room.
#[test]
fn every_waiting_reader_is_woken() {
    let backlog = backlog(1_000);
    let workers: Vec<_> = (0..4_u64)
        .map(|number| {
            let backlog = Arc::clone(&backlog);
            std::thread::spawn(move || {
                for round in 0..2_000 {
                    let mut gate = Gate::new(&backlog, number);
                    pollster::block_on(std::future::poll_fn(|cx| gate.poll(cx)));
                    let held = backlog.queue(300 + (round % 7) * 100);
                    std::thread::yield_now();
                    drop(held);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(backlog.bytes(), 0);
}

#[test]
fn spare_frames_return_empty_with_capacity() {
    let spares = Spares::default();
    let mut frames = Frames::default();
    frames.push(Nanos(1), Some("name".to_owned()), &[7; 500]);
    let memory = frames.memory();
    spares.put_back(frames.clone(), 100);
    assert!(spares.take().is_none(), "it was too large");
    spares.put_back(frames, memory);
    let again = spares.take().unwrap();
    assert!(again.is_empty() && again.names().is_empty());
    assert!(again.memory() >= 500);
    assert!(spares.take().is_none());
}
