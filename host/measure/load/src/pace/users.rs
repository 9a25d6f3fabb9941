//! The users in a closed loop: the free ones, since when, and the think time of each before its
//! next request is due. Waiting for it is the pacer's business.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Signal, Thinking};
use model::units::Nanos;

/// Every user is either waiting for its next request to be due or has one in flight.
pub(super) struct Users {
    thinking: Option<Thinking>,
    /// Due times of the next request of each waiting user; ties go by the user's number.
    waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Whose request has that number.
    in_flight: HashMap<u64, u32>,
    /// Whose session began with the request of that number.
    in_session: HashMap<u64, u32>,
    /// Answers so far, by user.
    turns: Vec<u32>,
}

impl Users {
    /// This many users, whose first requests are due at once.
    pub(super) fn new(users: usize, origin: Nanos, thinking: Option<Thinking>) -> Self {
        let numbers = 0..u32::try_from(users).unwrap_or(u32::MAX);
        Users {
            thinking,
            turns: vec![0; numbers.len()],
            in_flight: HashMap::new(),
            in_session: HashMap::new(),
            waiting: numbers.map(|user| Reverse((origin, user))).collect(),
        }
    }

    /// Takes note of the slots that have come free.
    pub(super) fn gather(&mut self, signal: &Signal) {
        while let Some(freed) = signal.next_freed() {
            if let Some(user) = self.in_flight.remove(&freed.key) {
                let due = freed.at + self.pause(user);
                self.waiting.push(Reverse((due, user)));
            }
        }
    }

    fn pause(&mut self, user: u32) -> Nanos {
        let turn = &mut self.turns[user as usize];
        *turn += 1;
        self.thinking.map_or(Nanos::ZERO, |thinking| {
            let number = (thinking.first).wrapping_add(user.wrapping_mul(thinking.step));
            thinking.think.pause(thinking.seed, number, *turn)
        })
    }

    /// Returns when the next request is due, if one will be without a further answer.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse((due, _))| *due)
    }

    /// The user whose request is due next; its request then has that number.
    pub(super) fn next(&mut self) -> Option<u32> {
        self.waiting.pop().map(|Reverse((_, user))| user)
    }

    /// A user has a session that begins with the request of that number, until it is over.
    pub(super) fn hold(&mut self, user: u32, root: u64) {
        self.in_session.insert(root, user);
    }

    /// A session is over: its user is free.
    pub(super) fn free(&mut self, root: u64, at: Nanos) {
        if let Some(user) = self.in_session.remove(&root) {
            let due = at + self.pause(user);
            self.waiting.push(Reverse((due, user)));
        }
    }

    /// A user's request is in flight under that number.
    pub(super) fn send(&mut self, user: u32, key: u64) {
        self.in_flight.insert(key, user);
    }
}
