//! The unsent messages of one WebSocket: the next one, and its due time.
//!
//! Pure. Deadlines are absolute: a delay counts from the due time of the previous message, even if
//! that was sent late. So delays do not add up. A held message, or an answer to the server, cannot
//! be due before its release or demand. If that is later, its delay counts from there.

use std::collections::VecDeque;

use super::demand::Outgoing;
use crate::backlog::BacklogBytes;
use crate::transport::websocket::Message;
use model::frame::OUTGOING_BYTES;
use model::units::Nanos;

/// The size that a message counts as, in addition to its content.
const MESSAGE_BYTES: usize = size_of::<Waiting>();

pub(super) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Counts the total size of the messages in the run's bound.
    held: BacklogBytes,
    /// Due time of the last message taken; at first, the instant at which the connection was open.
    last_due: Nanos,
}

struct Waiting {
    message: Message,
    delay: Nanos,
    is_held: bool,
    /// The instant from which its delay counts at the earliest.
    from: Nanos,
}

impl Outbox {
    /// Nothing waits, on a connection that was open at this instant.
    pub fn new(opened: Nanos, held: BacklogBytes) -> Self {
        Outbox { waiting: VecDeque::new(), held, last_due: opened }
    }

    /// Adds a message that was demanded at this instant.
    ///
    /// # Errors
    /// If too much waits; a message for people.
    pub fn add(&mut self, outgoing: Outgoing, now: Nanos) -> Result<(), String> {
        let Outgoing { message, delay, hold } = outgoing;
        self.held.set(self.held.bytes() + MESSAGE_BYTES + message.len());
        if self.held.bytes() > OUTGOING_BYTES {
            return Err(format!(
                "more than {} MiB wait to be sent over the WebSocket; does the server read?",
                OUTGOING_BYTES >> 20
            ));
        }
        self.waiting.push_back(Waiting { message, delay, is_held: hold, from: now });
        Ok(())
    }

    /// Releases the first message that is held, and with it those behind it, up to the next one
    /// that holds.
    pub fn proceed(&mut self, now: Nanos) {
        if let Some(held) = self.waiting.iter_mut().find(|waiting| waiting.is_held) {
            held.is_held = false;
            held.from = now;
        }
    }

    /// Returns the due time of the next message; absent without one, or if it is held.
    pub fn due(&self) -> Option<Nanos> {
        let next = self.waiting.front().filter(|next| !next.is_held)?;
        Some(self.last_due.max(next.from) + next.delay)
    }

    /// Takes the next message, if it is due.
    pub fn take(&mut self, now: Nanos) -> Option<Message> {
        let due = self.due().filter(|due| *due <= now)?;
        let next = self.waiting.pop_front()?;
        self.last_due = due;
        self.held.set(self.held.bytes() - MESSAGE_BYTES - next.message.len());
        Some(next.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::Backlog;
    use model::clock::Clock;

    fn empty(opened: Nanos) -> Outbox {
        Outbox::new(opened, Backlog::new(Clock::start(), 1 << 30).hold())
    }

    fn outgoing(text: &str, delay: u64, hold: bool) -> Outgoing {
        Outgoing { message: Message::Text(text.to_owned()), delay: Nanos(delay), hold }
    }

    fn outbox(messages: &[(&str, u64, bool)]) -> Outbox {
        let mut outbox = empty(Nanos(100));
        for (text, delay, hold) in messages {
            let added = outbox.add(outgoing(text, *delay, *hold), Nanos(100));
            assert_eq!(added, Ok(()));
        }
        outbox
    }

    /// The messages that are taken at this instant, in order.
    fn taken(outbox: &mut Outbox, now: u64) -> String {
        let texts = std::iter::from_fn(|| outbox.take(Nanos(now)));
        let texts = texts.map(|message| match message {
            Message::Text(text) => text,
            Message::Binary(_) => panic!("none was put"),
        });
        texts.collect()
    }

    #[test]
    fn delays_count_from_the_previous_due_time() {
        let mut outbox = outbox(&[("a", 0, false), ("b", 10, false), ("c", 10, false)]);
        assert_eq!(taken(&mut outbox, 100), "a");
        assert_eq!(outbox.due(), Some(Nanos(110)));
        assert_eq!(taken(&mut outbox, 109), "");
        // Late, which the next one is not for that.
        assert_eq!(taken(&mut outbox, 118), "b");
        assert_eq!(outbox.due(), Some(Nanos(120)));
        assert_eq!(taken(&mut outbox, 120), "c");
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn held_message_blocks_the_queue_until_proceed() {
        let messages = [("a", 0, false), ("b", 5, true), ("c", 0, false), ("d", 0, true)];
        let mut outbox = outbox(&messages);
        assert_eq!(taken(&mut outbox, 500), "a");
        assert_eq!(outbox.due(), None);
        outbox.proceed(Nanos(600));
        assert_eq!(outbox.due(), Some(Nanos(605)));
        assert_eq!(taken(&mut outbox, 605), "bc");
        outbox.proceed(Nanos(610));
        assert_eq!(taken(&mut outbox, 610), "d");
        outbox.proceed(Nanos(620));
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn early_release_does_not_send_a_message_early() {
        let mut outbox = outbox(&[("a", 50, false), ("b", 5, true)]);
        outbox.proceed(Nanos(110));
        assert_eq!(taken(&mut outbox, 149), "");
        assert_eq!(taken(&mut outbox, 150), "a");
        assert_eq!(outbox.due(), Some(Nanos(155)));
    }

    #[test]
    fn answer_delay_counts_from_its_demand() {
        let mut outbox = outbox(&[("a", 0, false)]);
        assert_eq!(taken(&mut outbox, 100), "a");
        assert_eq!(outbox.add(outgoing("b", 20, false), Nanos(1_000)), Ok(()));
        assert_eq!(outbox.due(), Some(Nanos(1_020)));
    }

    #[test]
    fn queue_of_messages_is_bounded() {
        let backlog = Backlog::new(Clock::start(), 1 << 30);
        let mut outbox = Outbox::new(Nanos::ZERO, backlog.hold());
        let piece = || Outgoing {
            message: Message::Binary(vec![0; 1 << 20]),
            delay: Nanos::ZERO,
            hold: false,
        };
        let added = std::iter::from_fn(|| outbox.add(piece(), Nanos::ZERO).ok());
        assert_eq!(added.take(1_000).count(), (OUTGOING_BYTES >> 20) - 1);
        assert!(backlog.bytes() > OUTGOING_BYTES - (1 << 20), "the run counts what waits");
        drop(outbox);
        assert_eq!(backlog.bytes(), 0);
        let mut outbox = empty(Nanos::ZERO);
        for _ in 0..10_000 {
            outbox.add(piece(), Nanos::ZERO).unwrap();
            outbox.take(Nanos::ZERO).unwrap();
        }
        let added = std::iter::from_fn(|| outbox.add(outgoing("", 0, false), Nanos::ZERO).ok());
        assert!(added.take(10_000_000).count() < OUTGOING_BYTES / MESSAGE_BYTES + 1);
    }
}
