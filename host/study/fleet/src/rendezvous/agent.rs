//! An agent's side: its sent and received messages, and their repetition on a new connection.
//!
//! Like [`super::Rendezvous`] it has no socket and no clock. Every message that an agent sends is a
//! fact about it, so a connection that breaks loses nothing: [`Agent::again`] repeats the facts.

use serde_json::Value;

use model::units::Nanos;

use crate::wire::{Finished, Interrupt, Message, Welcome};

/// The knowledge of an agent.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// The work; absent before the first welcome.
    pub welcome: Option<Welcome>,
    /// The time when the run begins, by this agent's clock, and the bound of its error.
    pub start: Option<(Nanos, Nanos)>,
    /// The order to end the run before its time.
    pub interrupt: Option<Interrupt>,
    /// The reason why this agent takes no part.
    pub refused: Option<Vec<String>>,
    /// The coordinator has everything.
    pub released: bool,
    /// The number of bytes of records that the coordinator has.
    pub acknowledged: u64,
    prepared: Option<(String, Value)>,
    ready: bool,
    declined: Option<Vec<String>>,
    interrupting: Option<String>,
    finished: Option<Finished>,
}

impl Agent {
    /// Records that the plan is made.
    pub fn prepare(&mut self, plan: String, facts: Value) -> Message {
        self.prepared = Some((plan.clone(), facts.clone()));
        Message::Prepared { plan, facts }
    }

    /// Records that connections are open.
    pub fn set_ready(&mut self) -> Message {
        self.ready = true;
        Message::Ready
    }

    /// Records that this process cannot take part.
    pub fn decline(&mut self, reasons: Vec<String>) -> Message {
        self.declined = Some(reasons.clone());
        Message::Refused { reasons }
    }

    /// Records that somebody stopped this process.
    pub fn stop(&mut self, why: String) -> Message {
        self.interrupting = Some(why.clone());
        Message::Interrupt(Interrupt { times: 1, why })
    }

    /// Records that the part of the run has ended, and its records are complete.
    pub fn finish(&mut self, finished: Finished) {
        self.finished = Some(finished);
    }

    /// The ending, once all records are acknowledged.
    pub fn ending(&self) -> Option<Message> {
        let finished = self.finished.as_ref()?;
        (self.acknowledged >= finished.records).then(|| Message::Finished(finished.clone()))
    }

    /// Returns the messages to send after the welcome of a new connection.
    pub fn again(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        if let Some(reasons) = self.declined.clone() {
            messages.push(Message::Refused { reasons });
            return messages;
        }
        if let Some((plan, facts)) = self.prepared.clone() {
            messages.push(Message::Prepared { plan, facts });
        }
        if self.ready {
            messages.push(Message::Ready);
        }
        // The coordinator knows an interrupt that came back.
        if let (Some(why), None) = (self.interrupting.clone(), &self.interrupt) {
            messages.push(Message::Interrupt(Interrupt { times: 1, why }));
        }
        messages.extend(self.ending());
        messages
    }

    /// Takes a message of the coordinator, except questions about the clock. Fails if no
    /// coordinator would send that here.
    pub fn on(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Welcome(welcome) => {
                self.acknowledged = welcome.records;
                let known = self.welcome.get_or_insert_with(|| (*welcome).clone());
                if (known.index, known.of) != (welcome.index, welcome.of) {
                    return Err("the coordinator gave another slice than before".to_owned());
                }
            }
            // The first start holds: a second differs only by the clocks' estimate.
            Message::Start { at, bound } => {
                self.start.get_or_insert((at, bound));
            }
            Message::Ack { offset } => self.acknowledged = self.acknowledged.max(offset),
            Message::Interrupt(interrupt) => {
                let known = self.interrupt.as_ref().map_or(0, |known| known.times);
                if interrupt.times > known {
                    self.interrupt = Some(interrupt);
                }
            }
            Message::Refused { reasons } => self.refused = Some(reasons),
            Message::Bye => self.released = true,
            other => {
                let kind = other.kind();
                return Err(format!("the coordinator sent a message of kind `{kind}`"));
            }
        }
        Ok(())
    }
}
