//! Conclusions from the time and from the messages of all processes: the run can begin, it cannot
//! begin any more, or an agent is lost.

use model::units::Nanos;
use serde_json::Value;

use super::reason::differences;
use super::{Action, Event, Message, Phase, QUIET, Reason, Rendezvous, Seat, Step};

impl Rendezvous {
    /// Before the start: decides that all are ready, or that there is no hope for that.
    pub(super) fn judge(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let rules = &self.rules;
        let first = self.seats.first();
        let ours = first.and_then(|seat| Some((seat.plan.as_ref()?, seat.facts.as_ref()?)));
        let parts = |facts: &Value| facts.get("plan").cloned().unwrap_or_default();
        let mut found = Vec::new();
        for seat in &self.seats {
            if let (Some((ours, our_facts)), Some(theirs), Some(facts)) =
                (ours, &seat.plan, &seat.facts)
                && ours != theirs
            {
                let digests = (theirs.as_str(), ours.as_str());
                let differs = differences(&parts(facts), &parts(our_facts), digests);
                found.push(Reason::Plan { who: seat.who.clone(), differs });
            }
            if let Some((at, why)) = &seat.broken
                && now.since(*at) >= rules.grace
                && !seat.turned_away
            {
                let (who, step, why) = (seat.who.clone(), seat.step, why.clone());
                found.push(Reason::Lost { who, step, why });
            }
        }
        let here = |seat: &Seat| seat.instance.is_some() || seat.turned_away;
        if self.arrived.is_none() && self.seats.iter().all(here) {
            self.arrived = Some(now);
        }
        // Processes that never came are missing; some of the others may not be ready.
        let mut late = false;
        if self.arrived.is_none() && now.since(self.began) >= rules.arrive {
            late = true;
            let after = rules.arrive;
            for seat in self.seats.iter().filter(|seat| !here(seat)) {
                let who = seat.who.clone();
                found.push(Reason::Missing { who, after });
            }
        }
        let idle = |seat: &&Seat| seat.step < Step::Ready && !seat.turned_away;
        if self.arrived.is_some_and(|at| now.since(at) >= rules.prepare) {
            for seat in self.seats.iter().filter(idle) {
                late = true;
                let (who, step, after) = (seat.who.clone(), seat.step, rules.prepare);
                found.push(Reason::NotReady { who, step, after });
            }
        }
        let all_ready = (self.seats.iter())
            .all(|seat| seat.step == Step::Ready && seat.conn.is_some() && !seat.turned_away);
        if !all_ready {
            self.ready = None;
        } else if self.reasons.is_empty() && found.is_empty() {
            let since = *self.ready.get_or_insert(now);
            let wanting: Vec<Reason> =
                (self.seats.iter()).filter_map(|seat| self.clock_of(seat, now)).collect();
            if wanting.is_empty() {
                self.phase = Phase::Gathered;
                return actions.push(Action::Gathered);
            }
            if now.since(since) >= rules.measure {
                late = true;
                found = wanting;
            }
        }
        // Rank 0's own agent gets the reasons too: without a coordinator, it would try to join
        // until its patience ends.
        let settled = (now.since(self.news) >= rules.settle && first.is_none_or(here))
            || (self.seats.iter()).all(|seat| seat.turned_away || seat.plan.is_some());
        if !(self.reasons.is_empty() && found.is_empty()) && (late || settled) {
            self.reasons.extend(found);
            self.give_up(actions);
        }
    }

    /// Returns the reason why a clock is too inexact.
    fn clock_of(&self, seat: &Seat, now: Nanos) -> Option<Reason> {
        let who = seat.who.clone();
        let answers = seat.clock.answers();
        let needed = self.rules.answers.max(1);
        match seat.clock.at(now) {
            Some(estimate) if answers >= needed => {
                let cause = estimate.check(self.rules.smallest).err()?;
                Some(Reason::Clock { who, cause })
            }
            _ => Some(Reason::NoClock { who, answers, needed }),
        }
    }

    pub(super) fn give_up(&mut self, actions: &mut Vec<Action>) {
        self.phase = Phase::GaveUp;
        self.reasons.append(&mut self.strangers);
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        for conn in self.seats.iter_mut().filter_map(|seat| seat.conn.take()) {
            let reasons = reasons.clone();
            actions.push(Action::Send(conn, Message::Refused { reasons }));
            actions.push(Action::Close(conn));
        }
        self.by_conn.clear();
        actions.push(Action::GaveUp(self.reasons.clone()));
    }

    /// After the start: finds lost agents, and the end of all.
    pub(super) fn watch(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let grace = self.rules.grace;
        let started = self.phase == Phase::Running;
        for rank in 0..self.rules.size {
            let seat = self.seat(rank);
            if let Some((at, why)) = &seat.broken
                && now.since(*at) >= grace
            {
                let why = why.clone();
                self.lose(rank, why, actions);
            } else if started && now.since(seat.last_report) >= QUIET {
                let why = format!(
                    "it is connected, and has sent no figures, records or ending for {:.0} s",
                    QUIET.as_secs_f64()
                );
                self.lose(rank, why, actions);
            }
        }
        let ended = |seat: &Seat| seat.step == Step::Finished || seat.lost.is_some();
        if self.phase == Phase::Running && self.seats.iter().all(ended) {
            self.phase = Phase::Over;
            actions.push(Action::Event(Event::Over));
        }
    }

    pub(super) fn lose(&mut self, rank: u32, why: String, actions: &mut Vec<Action>) {
        let seat = self.seat(rank);
        if seat.lost.is_some() || seat.step == Step::Finished {
            return;
        }
        let (who, from) = (seat.who.clone(), seat.last_contact);
        seat.lost = Some((from, why.clone()));
        actions.push(Action::Event(Event::Lost { who, from, why }));
    }
}
