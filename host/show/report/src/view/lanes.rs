//! The requests of a closed loop of sessions by the user, or lane, that sent them.
//!
//! A record names no user. Users take a session when their last one is over, so a session goes to
//! the user that waited for the shortest time when it began.

use std::collections::{BTreeMap, HashMap};

use model::exchange::{Class, Exchange, Outcome, Phase};
use model::units::Nanos;

/// The lanes that are drawn, and the bars of all of them.
const LANES: usize = 40;
const BARS: usize = 2_000;
/// The requests that are looked at, the earliest.
const MOST: usize = 20_000;

/// The first lanes of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lanes {
    pub lanes: Vec<Lane>,
    /// Requests that were sent, and are not among these.
    pub left_out: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    pub sessions: u64,
    pub bars: Vec<Bar>,
}

/// A request that was sent, in seconds since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub sent_s: f64,
    pub first_s: Option<f64>,
    pub ended_s: f64,
    /// True if it belongs to another conversation than its session's first request.
    pub is_sub_agents: bool,
    pub failure: Option<Class>,
}

/// The kept data of a request.
struct Kept {
    parents: Vec<u64>,
    conversation: Option<String>,
    /// Absent for a request of the warm-up, which only joins others.
    bar: Option<(Nanos, Bar)>,
}

pub(super) struct Gatherer {
    origin: Nanos,
    sent: u64,
    /// By the time when it was due, and its number.
    kept: BTreeMap<(Nanos, u64), Kept>,
}

impl Gatherer {
    pub(super) fn new(origin: Nanos) -> Self {
        Gatherer { origin, sent: 0, kept: BTreeMap::new() }
    }

    /// Takes a request, with the time to its first token in milliseconds.
    pub(super) fn add(&mut self, exchange: &Exchange, ttft_ms: Option<f64>) {
        let Some(sent) = exchange.sent else { return };
        let second = |at: Nanos| at.since(self.origin).as_secs_f64();
        let bar = (exchange.phase == Phase::Measure).then(|| {
            let bar = Bar {
                sent_s: second(sent),
                first_s: ttft_ms.map(|ttft| second(sent) + ttft / 1000.0),
                ended_s: second(exchange.ended.unwrap_or(sent)),
                is_sub_agents: false,
                failure: match &exchange.outcome {
                    Outcome::Ok => None,
                    Outcome::Incomplete { class, .. } => Some(*class),
                },
            };
            (exchange.due, bar)
        });
        self.sent += u64::from(bar.is_some());
        let kept = Kept {
            parents: exchange.sample.parents.clone(),
            conversation: exchange.sample.turn.as_ref().map(|turn| turn.session.clone()),
            bar,
        };
        self.kept.insert((exchange.due, exchange.index), kept);
        if self.kept.len() > MOST {
            self.kept.pop_last();
        }
    }

    pub(super) fn finish(self) -> Lanes {
        let mut lanes: Vec<(f64, Lane)> = Vec::new();
        for (begun, bars) in self.sessions() {
            let ended = bars.iter().map(|bar| bar.ended_s).fold(begun, f64::max);
            let free = lanes.iter_mut().filter(|(until, _)| *until <= begun);
            let lane = match free.max_by(|one, other| one.0.total_cmp(&other.0)) {
                Some(lane) => lane,
                None => {
                    lanes.push((0.0, Lane::default()));
                    let last = lanes.len() - 1;
                    &mut lanes[last]
                }
            };
            lane.0 = ended;
            lane.1.sessions += 1;
            lane.1.bars.extend(bars);
        }
        let mut lanes: Vec<Lane> = lanes.into_iter().take(LANES).map(|(_, lane)| lane).collect();
        let mut times: Vec<f64> =
            lanes.iter().flat_map(|lane| &lane.bars).map(|bar| bar.sent_s).collect();
        times.sort_by(f64::total_cmp);
        if let Some(end) = times.get(BARS) {
            lanes.iter_mut().for_each(|lane| lane.bars.retain(|bar| bar.sent_s < *end));
        }
        let drawn: usize = lanes.iter().map(|lane| lane.bars.len()).sum();
        Lanes { lanes, left_out: self.sent - drawn as u64 }
    }

    /// The requests of each session, by the time when its first one was due.
    fn sessions(&self) -> Vec<(f64, Vec<Bar>)> {
        let mut joined = Joined::default();
        for ((_, index), kept) in &self.kept {
            let own = joined.place(Name::Request(*index));
            let parents = kept.parents.iter().map(|parent| Name::Request(*parent));
            for other in parents.chain(kept.conversation.as_deref().map(Name::Conversation)) {
                let other = joined.place(other);
                joined.join(own, other);
            }
        }
        // By its place: its conversation, and its requests.
        let mut sessions: BTreeMap<usize, (Option<&str>, f64, Vec<Bar>)> = BTreeMap::new();
        let mut by_number: Vec<(u64, &Kept)> =
            self.kept.iter().map(|((_, index), kept)| (*index, kept)).collect();
        by_number.sort_by_key(|(index, _)| *index);
        for (index, kept) in by_number {
            let place = joined.place(Name::Request(index));
            let conversation = kept.conversation.as_deref();
            let session = (sessions.entry(joined.find(place)))
                .or_insert_with(|| (conversation, f64::INFINITY, Vec::new()));
            if let Some((due, bar)) = kept.bar {
                session.1 = session.1.min(due.since(self.origin).as_secs_f64());
                session.2.push(Bar { is_sub_agents: conversation != session.0, ..bar });
            }
        }
        let sessions = sessions.into_values().map(|(_, begun, bars)| (begun, bars));
        let mut sessions: Vec<_> = sessions.filter(|(_, bars)| !bars.is_empty()).collect();
        sessions.sort_by(|one, other| one.0.total_cmp(&other.0));
        sessions
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Name<'a> {
    Request(u64),
    Conversation(&'a str),
}

/// Requests and conversations that belong together.
#[derive(Default)]
struct Joined<'a> {
    places: HashMap<Name<'a>, usize>,
    /// Another member of each place's group, itself for its first.
    before: Vec<usize>,
}

impl<'a> Joined<'a> {
    fn place(&mut self, name: Name<'a>) -> usize {
        let next = self.before.len();
        let place = *self.places.entry(name).or_insert(next);
        if place == next {
            self.before.push(next);
        }
        place
    }

    /// The first member of a place's group.
    fn find(&mut self, mut place: usize) -> usize {
        while self.before[place] != place {
            self.before[place] = self.before[self.before[place]];
            place = self.before[place];
        }
        place
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.before[one.max(other)] = one.min(other);
    }
}
