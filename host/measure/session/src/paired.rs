//! A paired run: the same requests to several servers, in turns or at once. This module derives the
//! run of each side and turn from one scenario, and chooses the order.

use model::arrival::Arrival;
use model::connection::PairOrder;
use model::target::Target;
use reader::{Located, Place, Problem};
use result::threshold::Threshold;
use scenario::plan::{Amount, Plan};
use scenario::{Scenario, Side};
use serde::{Deserialize, Serialize};

use crate::Source;

/// Requests of a turn for each place of a closed loop or a cap, so that edges are a small part.
const TURN_REQUESTS_A_SLOT: u64 = 4;
const TURN_REQUESTS: u64 = 5;
/// The fewest and the most turns of a side.
const TURNS: std::ops::RangeInclusive<u64> = 3..=100;
/// The turns of a side, where nothing says otherwise.
const USUAL_TURNS: u64 = 10;
/// The setter of a turn's load, for messages.
const SETTER: &str = "[paired]";

/// The order of a paired run, with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChosenOrder {
    pub order: PairOrder,
    /// Turns of each side; one if all are measured together.
    pub turns: u64,
    pub because: String,
}

/// The servers that a scenario measures.
pub enum Servers {
    One(Box<Source>),
    Several(Pairing),
}

pub struct Pairing {
    pub sides: Vec<(String, Source)>,
    pub limits: Vec<Threshold>,
    order: Option<PairOrder>,
    turns: u64,
}

/// A side of a paired run, and the folders of its runs in the order of turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSide {
    pub name: String,
    pub runs: Vec<String>,
}

impl Pairing {
    /// Splits a scenario into its sides and `further` ones. Errors: every mistake in the sides.
    pub fn of(mut source: Source, further: &[Located<Side>]) -> Result<Servers, Vec<Problem>> {
        let scenario = &mut source.scenario;
        let mut sides = scenario.sides.take().unwrap_or_default();
        sides.extend_from_slice(further);
        if sides.is_empty() {
            return Ok(Servers::One(Box::new(source)));
        }
        let paired = std::mem::take(&mut scenario.paired);
        let limits = scenario.thresholds.take_differences();
        let mut problems = Vec::new();
        let turns = paired.turns.as_ref().map_or(USUAL_TURNS, |entry| entry.value);
        if let Some(entry) = paired.turns.as_ref().filter(|entry| !TURNS.contains(&entry.value)) {
            let problem = Problem::new(format!("`paired.turns`: expected 3 to 100, found {turns}"));
            problems.push(problem.at(entry.place.clone(), "out of range"));
        }
        if let Some(entry) = paired.baseline.as_ref().filter(|entry| !is_plain(&entry.value)) {
            let problem = Problem::new(format!("`paired.baseline`: {}", not_plain(&entry.value)));
            problems.push(problem.at(entry.place.clone(), "this name"));
        }
        let baseline = paired.baseline.map_or_else(|| letter(0), |entry| entry.value);
        let mut all = vec![(baseline, source.clone())];
        for (number, Located { value: side, place }) in (1..).zip(sides) {
            let name = side.name.as_ref().map_or_else(|| letter(number), |own| own.value.clone());
            problems.extend(side_problem(&name, &side, &place, &all));
            let mut own = source.clone();
            own.scenario = own.scenario.overlay(over(side));
            // Pages and hosts of one server are not another's.
            own.scenario.target.metrics_url = None;
            own.scenario.target.hosts = None;
            all.push((name, own));
        }
        if problems.is_empty() {
            let order = paired.order.map(|own| own.value);
            Ok(Servers::Several(Pairing { sides: all, limits, order, turns }))
        } else {
            Err(problems)
        }
    }

    /// The run of the first side alone, with the whole load.
    pub fn into_first(self) -> Source {
        self.sides.into_iter().next().map(|(_, source)| source).unwrap_or_default()
    }

    /// Chooses the order for runs with this plan. Errors: the wanted order is not possible.
    pub fn order(&self, plan: &Plan) -> Result<ChosenOrder, String> {
        let turns =
            |because: String| ChosenOrder { order: PairOrder::Turns, turns: self.turns, because };
        let together =
            |because: String| ChosenOrder { order: PairOrder::Together, turns: 1, because };
        match (self.order, self.uncut(plan)) {
            (Some(PairOrder::Together), _) => Ok(together("`paired.order` asks for it".to_owned())),
            (Some(PairOrder::Turns), Err(why)) => Err(why),
            (Some(PairOrder::Turns), Ok(_)) => Ok(turns("`paired.order` asks for it".to_owned())),
            (None, Err(why)) => Ok(together(why)),
            (None, Ok(amount)) => Ok(turns(format!(
                "sides that share a machine or an engine must not disturb each other; {amount} a turn"
            ))),
        }
    }

    /// Describes the load of a turn. Errors: the reason why this plan cannot be cut into turns.
    fn uncut(&self, plan: &Plan) -> Result<String, String> {
        let load = &plan.load;
        let timed = match load.arrival {
            Arrival::Inf if load.max_in_flight.is_none() => Some("all requests are due at once"),
            Arrival::Ramp { .. } | Arrival::Stages { .. } => Some("the rate changes over the run"),
            Arrival::Trace { .. } | Arrival::Dataset { .. } => Some("due times are recorded"),
            _ => load.lanes.map(|_| "sessions begin inside their recordings"),
        };
        if let Some(why) = timed {
            return Err(why.to_owned());
        }
        match load.amount {
            Amount::Duration(time) => {
                let turn = time.0 / self.turns;
                if turn < 1_000_000_000 {
                    return Err(format!("{} turns would be shorter than a second", self.turns));
                }
                let turn = std::time::Duration::from_nanos(turn);
                Ok(model::duration::format(turn))
            }
            Amount::Sessions(many) | Amount::Requests(many) => {
                let own = many / self.turns;
                let slots = plan.slots().map_or(1, |slots| slots as u64);
                let least = TURN_REQUESTS.max(TURN_REQUESTS_A_SLOT * slots);
                if own < least {
                    return Err(format!(
                        "{} turns of {own} would be shorter than {least}, {TURN_REQUESTS_A_SLOT} for each request in flight",
                        self.turns
                    ));
                }
                let unit =
                    if matches!(load.amount, Amount::Sessions(_)) { "session" } else { "request" };
                Ok(model::number::plural(own, unit))
            }
        }
    }

    /// The run of a side in a turn, from 0. Each turn draws its own requests, the same for both
    /// sides; the first turn alone warms up.
    pub fn run(&self, side: usize, turn: u64, plan: &Plan, chosen: &ChosenOrder) -> Source {
        let mut source = self.sides[side].1.clone();
        let scenario = &mut source.scenario;
        let set = |value: u64| Some(Located::flag(SETTER, value));
        if chosen.order == PairOrder::Turns {
            let load = &mut scenario.load;
            match plan.load.amount {
                Amount::Duration(time) => {
                    let turn = std::time::Duration::from_nanos(time.0 / chosen.turns);
                    load.duration = Some(Located::flag(SETTER, model::duration::Span(turn)));
                }
                Amount::Requests(many) => load.requests = set(share(many, turn, chosen.turns)),
                Amount::Sessions(many) => load.sessions = set(share(many, turn, chosen.turns)),
            }
            load.seed = set(plan.load.seed.wrapping_add(turn));
            if turn > 0 {
                (load.warmup, load.warming) = (set(0), None);
            }
        }
        source
    }
}

/// The mistakes of a scenario with keys for sides, for a command that measures one server.
pub(crate) fn unpaired(scenario: &Scenario) -> Option<Problem> {
    let sides = scenario.sides.iter().flatten().next().map(|side| &side.place);
    if let Some(place) = sides {
        let problem = Problem::new("`sides`: this command measures one server");
        return Some(problem.at(place.clone(), "a further server").help("use `runner run`"));
    }
    let order = scenario.paired.order.as_ref().map(|entry| &entry.place);
    let turns = scenario.paired.turns.as_ref().map(|entry| &entry.place);
    let baseline = scenario.paired.baseline.as_ref().map(|entry| &entry.place);
    let limit = scenario.thresholds.differences().next().map(|entry| &entry.place);
    let place = order.or(turns).or(baseline).or(limit)?;
    let problem = Problem::new("there is no side to compare with");
    Some(
        problem
            .at(place.clone(), "only for several sides")
            .help("add `--versus URL` or `[[sides]]`"),
    )
}

/// The part of `many` in a turn: all parts together are the whole.
fn share(many: u64, turn: u64, turns: u64) -> u64 {
    many / turns + u64::from(turn < many % turns)
}

fn letter(place: usize) -> String {
    char::from(b'A' + (place % 26) as u8).to_string()
}

/// True if the name of a side can be the name of its folder.
fn is_plain(name: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_usual)
}

fn not_plain(name: &str) -> String {
    format!("the name `{name}` must have letters, digits, `.`, `_` or `-`, and begin with no `.`")
}

fn side_problem(
    name: &str,
    side: &Side,
    place: &Place,
    before: &[(String, Source)],
) -> Option<Problem> {
    let message = if !is_plain(name) {
        format!("`sides`: {}", not_plain(name))
    } else if before.iter().any(|(other, _)| other == name) {
        format!("`sides`: two sides have the name `{name}`")
    } else if side.base_url.is_none() && side.model.is_none() && side.backend.is_none() {
        format!("`sides`: the side `{name}` has no `base-url`")
    } else {
        let urls = side.base_url.iter().flat_map(|urls| &urls.value);
        let wrong = urls.map(|url| Target::parse(&url.value)).find_map(Result::err)?;
        format!("`sides`: the side `{name}`: {wrong}")
    };
    Some(Problem::new(message).at(place.clone(), "this side"))
}

/// The scenario that a side lays over the common one.
fn over(side: Side) -> Scenario {
    let mut over = Scenario::default();
    over.target.base_url = side.base_url;
    over.target.model = side.model;
    over.target.api_key_env = side.api_key_env;
    over.backend.plugin = side.backend;
    over
}
