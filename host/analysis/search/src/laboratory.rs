//! Queues whose truth is known: requests that arrive by chance at servers that work them off in
//! order, and the engine of `simulator`. The module has searches of them, and runs of them as they
//! are watched. The tests draw few, and `host/benches/search`, which includes this file too, draws
//! many.

#![allow(dead_code, reason = "the tests and the benchmark each need a part of it")]

use std::collections::VecDeque;
use std::sync::OnceLock;

use model::units::Nanos;
use result::metric::Reading;
use result::summary::Backlog;
use simulator::{
    Case, Engine, Lengths, Parameters, Random, ServedRequest, Work, Workload, open, open_ends,
    poisson,
};

use search::answer::Ended;
use search::control::Arrivals;
use search::gather::{Gather, Measured};
use search::slo::{Observation, Tier, tiers};
use search::watch::{Alarm, Progress, Watch};
use search::{Answer, Config, Load, Outcome, Probe, Purpose, Report, Search, Step};

/// The time that servers take for a request; one second on average.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// By chance.
    Exponential,
    /// Always the same.
    Even,
    /// Nine in ten take 0.5 s on average and one takes 5.5 s, each by chance: a variance of 5.4.
    Uneven,
}

/// Servers with one queue.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub servers: u32,
    pub service: Service,
    /// Requests per second and server.
    pub load: f64,
}

impl Queue {
    /// Draws the times at which each request is due, and at which it ends.
    pub fn run(&self, requests: usize, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Random::new(seed);
        let rate = self.load * f64::from(self.servers);
        let mut due = 0.0;
        let mut free = vec![0.0_f64; self.servers as usize];
        (0..requests)
            .map(|_| {
                due += random.exponential() / rate;
                let service = match self.service {
                    Service::Exponential => random.exponential(),
                    Service::Even => 1.0,
                    Service::Uneven if random.uniform() < 0.9 => 0.5 * random.exponential(),
                    Service::Uneven => 5.5 * random.exponential(),
                };
                let first = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
                *first = due.max(*first) + service;
                (due, *first)
            })
            .collect()
    }
}

/// A run of the usual engine under chats, at a share of its capacity: when each request is due, and
/// when it ends.
pub fn engine_run(load: f64, requests: usize, seed: u64) -> Vec<(f64, f64)> {
    let work = Lengths::work(simulator::CHAT[0], simulator::CHAT[1], requests, 40 + seed);
    let due = poisson(requests, load * engine_capacity(), 50 + seed);
    let engine = &mut Engine::new(Parameters::default(), 60 + seed);
    (open(engine, &due, &work).iter())
        .map(|own| {
            let end = own.tokens.last().copied().unwrap_or(own.sent);
            (own.sent.as_secs_f64(), end.as_secs_f64())
        })
        .collect()
}

/// Requests per second that the usual engine answers at most.
pub fn engine_capacity() -> f64 {
    static CAPACITY: OnceLock<f64> = OnceLock::new();
    *CAPACITY.get_or_init(|| Case::usual(simulator::Load::Open(1.0), 1).capacity)
}

/// An engine under chats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The usual engine, as the simulation of a run's control describes it.
    Usual,
    /// One of 64 slots whose steps take longer with the tokens in its KV cache, as the simulation
    /// describes it.
    Cached,
    /// One whose pace wanders by a third from second to second, which no simulation knows.
    Wandering,
    /// One that reads prompts before anything else, in steps of their own, and pads its batches and
    /// prompts. No line describes its steps.
    Padded,
    /// One that reads prompts first too, and whose decode steps give each answer one to four tokens
    /// by chance, as speculative decoding does. No simulation has either.
    Speculative,
    /// Two usual ones behind a router that sends each request to the next one.
    Replicas,
    /// Two usual ones behind a router that sends two of three requests to the first one. No
    /// simulation has such a router.
    Lopsided,
    /// Two small ones behind a router under short answers of much the same length: a few percent of
    /// load lie between no miss and misses alone.
    Cliff,
}

impl Kind {
    /// Requests per second, about as many as it answers at most.
    pub fn capacity(self) -> f64 {
        match self {
            Kind::Usual | Kind::Wandering => engine_capacity(),
            Kind::Cached => 19.6,
            Kind::Padded => 13.9,
            Kind::Speculative => 24.0,
            Kind::Replicas => 2.0 * engine_capacity(),
            Kind::Lopsided => 1.5 * engine_capacity(),
            Kind::Cliff => 65.0,
        }
    }

    /// A run at a rate: each answer with its first and its last token.
    pub fn run(self, rate: f64, requests: usize, seed: u64) -> Vec<ServedRequest> {
        let [prompts, answers] = match self {
            Kind::Cliff => [128.0, 64.0].map(|mean| Lengths { mean, spread: 0.06 }),
            _ => simulator::CHAT,
        };
        let work = Lengths::work(prompts, answers, requests, 40 + seed);
        let due = poisson(requests, rate, 50 + seed);
        let parameters = match self {
            Kind::Cliff => "slots=16,step=4ms".parse().unwrap(),
            Kind::Usual | Kind::Replicas | Kind::Lopsided => Parameters::default(),
            Kind::Cached => "slots=64,context=100ns".parse().unwrap(),
            Kind::Wandering => "jitter=0.3,correlation=0.9".parse().unwrap(),
            Kind::Padded | Kind::Speculative => {
                return prompts_first(&due, &work, 60 + seed, self == Kind::Speculative);
            }
        };
        // The replica of each request in turn.
        let turns: &[usize] = match self {
            Kind::Replicas | Kind::Cliff => &[0, 1],
            Kind::Lopsided => &[0, 1, 0],
            _ => &[0],
        };
        let mut served: Vec<ServedRequest> = (0..turns.len().min(2))
            .flat_map(|replica| {
                let all = due.iter().copied().zip(work.iter().copied()).zip(turns.iter().cycle());
                let own = all.filter(|(_, turn)| **turn == replica).map(|(own, _)| own);
                let (due, work): (Vec<_>, Vec<_>) = own.unzip();
                let engine =
                    &mut Engine::new(parameters.clone(), 60 + seed + ((replica as u64) << 32));
                open_ends(engine, &due, &work)
            })
            .collect();
        served.sort_by_key(|own| own.sent);
        served
    }
}

/// The run of [`Kind::Padded`] or of [`Kind::Speculative`].
fn prompts_first(
    due: &[Nanos],
    work: &[Work],
    seed: u64,
    is_speculative: bool,
) -> Vec<ServedRequest> {
    // The next multiple to which the engine pads prompts, and batches; and a decode step's seconds.
    let (prompt, batch_size, decode) =
        if is_speculative { (1, 1, 0.016) } else { (512, 16, 0.010) };
    // Each of three drafted tokens is right with this chance, if those before it are.
    let accepted = |random: &mut Random| {
        (0..3).take_while(|_| is_speculative && random.uniform() < 0.7).count() as u32
    };
    let mut random = Random::new(seed);
    let of =
        |(due, work): (&Nanos, &Work)| ServedRequest { sent: *due, work: *work, tokens: vec![] };
    let mut served: Vec<ServedRequest> = due.iter().zip(work).map(of).collect();
    let (mut now, mut next) = (Nanos::ZERO, 0);
    let (mut queue, mut batch) = (VecDeque::new(), Vec::<(usize, u32)>::new());
    loop {
        while served.get(next).is_some_and(|own| own.sent <= now) {
            queue.push_back(next);
            next += 1;
        }
        let jitter = (0.05 * random.normal()).exp();
        let mut step = |seconds: f64| now = now + Nanos::from_secs_f64(seconds * jitter);
        if batch.len() < 32 && !queue.is_empty() {
            let (mut read, begun) = (0, batch.len());
            while batch.len() < 32 && read < 4096 {
                let Some(id) = queue.pop_front() else { break };
                read += served[id].work.prompt_tokens;
                batch.push((id, served[id].work.output_tokens - 1));
            }
            step(0.008 + 0.000_02 * f64::from(read.next_multiple_of(prompt)));
            for (id, _) in &batch[begun..] {
                served[*id].tokens.push(now);
            }
            batch.retain(|(_, left)| *left > 0);
        } else if !batch.is_empty() {
            let requests = (batch.len() as u32).next_multiple_of(batch_size);
            step(decode + 0.000_2 * f64::from(requests));
            batch.retain_mut(|(id, left)| {
                *left = left.saturating_sub(1 + accepted(&mut random));
                if *left == 0 {
                    served[*id].tokens.push(now);
                }
                *left > 0
            });
        } else {
            let Some(arrives) = served.get(next) else { return served };
            now = arrives.sent;
        }
    }
}

/// Counts a run of an engine at a rate, with a control where one is wanted.
pub fn gathered(tiers: &[Tier], served: &[ServedRequest], arrivals: Option<Arrivals>) -> Measured {
    let mut gather = Gather::new(tiers);
    for exchange in served.chunks(4096).flat_map(simulator::exchanges) {
        gather.add(&Reading::new(&exchange, true, None));
    }
    let waits: Vec<(f64, f64)> =
        (served.iter()).map(|own| (own.sent.as_secs_f64(), own.tokens[0].as_secs_f64())).collect();
    gather.finish(Some(backlog(&waits)), arrivals)
}

/// Counts a run for tiers that limit `e2e` alone.
pub fn measured(tiers: &[Tier], run: &[(f64, f64)], is_open: bool) -> Measured {
    let mut gather = Gather::new(tiers);
    for (due, end) in run {
        let took = Observation::Took((end - due) * 1000.0);
        let [due, end] = [due, end].map(|instant| Nanos::from_secs_f64(*instant));
        gather.add_seen(due, [None, Some(end)], Some(&[took]));
    }
    gather.finish(is_open.then(|| backlog(run)), None)
}

/// The outcome of a probe of one server that takes one second on average, by chance.
pub fn queued(tiers: &[Tier], probe: &Probe) -> Outcome {
    let queue = Queue { servers: 1, service: Service::Exponential, load: probe.at };
    let run = queue.run(probe.requests as usize, probe.seed);
    Outcome::Measured(measured(tiers, &run, true))
}

/// A run of an engine of these parameters at a rate: when each request is due, its first token and
/// its end.
pub fn streamed_run(
    parameters: &str,
    workload: Workload,
    rate: f64,
    requests: u64,
    seed: u64,
) -> Vec<[f64; 3]> {
    let parameters = parameters.parse().unwrap();
    let case =
        Case::new("case", parameters, workload, simulator::Load::Rate(rate), requests as usize);
    (case.served(seed, seed).iter())
        .map(|own| {
            let seconds = |token: Option<&Nanos>| token.unwrap_or(&own.sent).as_secs_f64();
            [own.sent.as_secs_f64(), seconds(own.tokens.first()), seconds(own.tokens.last())]
        })
        .collect()
}

/// Counts a streamed run for tiers that limit `ttft` alone.
pub fn streamed(tiers: &[Tier], run: &[[f64; 3]]) -> Measured {
    let mut gather = Gather::new(tiers);
    for [due, first, end] in run {
        let took = Observation::Took((first - due) * 1000.0);
        let [due, first, end] = [due, first, end].map(|own| Nanos::from_secs_f64(*own));
        gather.add_seen(due, [Some(first), Some(end)], Some(&[took]));
    }
    let waits: Vec<(f64, f64)> = run.iter().map(|own| (own[0], own[1])).collect();
    gather.finish(Some(backlog(&waits)), None)
}

/// Computes the backlog as the summary of a run does.
pub fn backlog(run: &[(f64, f64)]) -> Backlog {
    let (from, to) = (run[0].0, run[run.len() - 1].0);
    let quarter = (to - from) / 4.0;
    let [second_quarter, fourth_quarter] = [1.0, 3.0].map(|place| {
        let (begins, ends) = (from + place * quarter, from + (place + 1.0) * quarter);
        let within = |own: &(f64, f64)| (own.1.min(ends) - own.0.max(begins)).max(0.0);
        run.iter().map(within).sum::<f64>() / quarter
    });
    let half = run.len() as f64 / 2.0;
    Backlog { second_quarter, fourth_quarter, chance: (3.0 * half.sqrt()).max(0.02 * half) }
}

/// Makes the probes that a search asks for, until it is done.
pub fn drive(search: &mut Search, mut run: impl FnMut(&Probe) -> Outcome) -> Answer {
    for _ in 0..500 {
        match search.next() {
            Step::Done(answer) => return *answer,
            Step::Probe(probe) => {
                let outcome = run(&probe);
                let seconds = match probe.load {
                    Load::Rate => probe.requests as f64 / probe.at,
                    Load::Concurrency | Load::Sessions => 0.0,
                };
                let reported = search.report(Report { probe, outcome, seconds });
                assert_eq!(reported, Ok(()));
            }
        }
    }
    panic!("a search of 500 probes: {:?}", search.answer());
}

/// A search and its truth.
#[derive(Clone, Debug)]
pub struct SearchRun {
    /// The highest load that holds.
    pub truth: f64,
    pub answer: Answer,
    /// Requests of the runs that looked for a load below it and one above.
    pub bracketing: u64,
}

/// A search for the highest rate, with nothing confirmed.
fn config(tiers: &[Tier], start: f64, seed: u64, width: f64) -> Config {
    let usual = Config::new(Load::Rate, tiers.to_vec(), start);
    Config { seed, width, requests_each: 1_000_000, confirm: false, ..usual }
}

fn search_run(config: Config, truth: f64, run: impl FnMut(&Probe) -> Outcome) -> SearchRun {
    let mut search = Search::new(config).unwrap();
    let answer = drive(&mut search, run);
    let bracketing = (search.reports().iter())
        .filter(|report| report.probe.purpose == Purpose::Bracket)
        .map(|report| report.probe.requests)
        .sum();
    SearchRun { truth, answer, bracketing }
}

/// Searches for the highest rate at which one request in a hundred takes longer than `seconds`, of
/// a server that takes one second on average, by chance. The time in such a system is exponential:
/// at a rate r, longer than t with the probability exp(-(1 - r) t). So the truth is
/// 1 - ln(100) / t. Gives the true rate and the found one.
pub fn searched(seconds: f64, seed: u64, width: f64) -> SearchRun {
    let limits = tiers([format!("e2e.p99 <= {seconds}s").as_str()]).unwrap();
    let config = config(&limits, 0.3, seed, width);
    search_run(config, 1.0 - 100_f64.ln() / seconds, |probe| queued(&limits, probe))
}

/// The design effect of missing the limit of [`searched`] at the highest rate that holds, in closed
/// form. For the times V in an M/M/1 queue of load r, the Poisson equation of "V > t" gives the
/// variance that dependence adds to the number of misses. It is 4 r / (1 - r)^2 times the binomial
/// one, less a part that vanishes as misses become rare.
pub fn design_effect(seconds: f64) -> f64 {
    let (share, load) = (0.01_f64, 1.0 - 100_f64.ln() / seconds);
    let rare = 1.0 - share * (1.0 / share).ln() / (1.0 - share);
    1.0 + 4.0 * load / (1.0 - load).powi(2) * rare
}

/// The fewest requests for a 95 % interval of this width for [`searched`], with any unbiased
/// estimate from the number of misses. All are sent at the crossing, where the variance of the
/// logit is the design effect divided by n p (1 - p). The slope of the logit over the logarithm of
/// the load is known: r t / (1 - p).
pub fn least_requests(seconds: f64, width: f64) -> f64 {
    let (share, load) = (0.01, 1.0 - 100_f64.ln() / seconds);
    let deviation = width.ln_1p() / (2.0 * 1.959_964);
    let slope = load * seconds / (1.0 - share);
    design_effect(seconds) / (share * (1.0 - share) * (slope * deviation).powi(2))
}

/// The results of many searches.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of searches.
    pub runs: u64,
    /// The interval holds the truth.
    pub held: u64,
    /// Its lower end is above the truth: a load passed that does not hold.
    pub too_high: u64,
    /// Its upper end is below the truth.
    pub too_low: u64,
    /// Its interval is as narrow as the configured width.
    pub narrow: u64,
    /// The estimate is within 3 % of the truth.
    pub estimate_close: u64,
    /// Requests of each, without bracketing.
    pub requests: Vec<u64>,
    /// Requests of bracketing.
    pub bracketing: Vec<u64>,
    /// The width of each interval that has two ends.
    pub widths: Vec<f64>,
    /// Runs of all of them.
    pub probes: u64,
    /// The largest distance of the estimate from the truth, as a share.
    pub worst: f64,
}

/// The middle one of some values; infinite without any.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// Counts searches.
pub fn tallied(searches: impl Iterator<Item = SearchRun>) -> Tally {
    let mut tally = Tally::default();
    for SearchRun { truth, answer, bracketing } in searches {
        let found = &answer.tiers[0];
        let off = (found.estimate).map_or(f64::INFINITY, |own| (own / truth - 1.0).abs());
        let is_high = found.passed.is_some_and(|passed| passed > truth);
        let is_low = found.failed.is_some_and(|failed| failed < truth);
        tally.runs += 1;
        tally.held += u64::from(!is_high && !is_low);
        tally.too_high += u64::from(is_high);
        tally.too_low += u64::from(is_low);
        tally.narrow += u64::from(found.ended == Ended::Narrow);
        tally.estimate_close += u64::from(off <= 0.03);
        tally.requests.push(answer.requests.saturating_sub(bracketing));
        tally.bracketing.push(bracketing);
        tally.widths.extend(found.width());
        tally.probes += u64::from(answer.probes);
        tally.worst = tally.worst.max(off);
    }
    tally
}

/// Searches of the queue by seed, at each of these limits in turn.
pub fn searches(seconds: &[f64], runs: u64, width: f64) -> Tally {
    let draw = |seed: u64| searched(seconds[seed as usize % seconds.len()], seed, width);
    tallied((0..runs).map(draw))
}

/// Searches of an engine under chats, by seed, with the truth: the load where three runs of
/// `requests` requests together have the allowed number of late ones, found by halving. With or
/// without controls.
pub fn engine_searches(
    kind: Kind,
    objective: &str,
    width: f64,
    runs: u64,
    requests: usize,
    controls: bool,
) -> (f64, Tally) {
    let limits = tiers([objective]).unwrap();
    let late = |load: f64, step: u64| {
        let runs = [0, 1, 2].map(|run| kind.run(load, requests, 90_000 + 10 * step + run));
        let bad = runs.map(|run| gathered(&limits, &run, None).tiers[0][0].bad);
        bad.into_iter().sum::<u64>() as f64 / (3 * requests) as f64
    };
    let (mut low, mut high) = (0.7 * kind.capacity(), kind.capacity());
    for step in 0..10 {
        let middle = f64::midpoint(low, high);
        if late(middle, step) <= limits[0].limits[0].allowed() {
            low = middle
        } else {
            high = middle
        }
    }
    let truth = f64::midpoint(low, high);
    let found = (0..runs).map(|seed| engine_searched(kind, &limits, truth, seed, width, controls));
    (truth, tallied(found))
}

/// A search of an engine under chats.
pub fn engine_searched(
    kind: Kind,
    limits: &[Tier],
    truth: f64,
    seed: u64,
    width: f64,
    controls: bool,
) -> SearchRun {
    search_run(config(limits, 1.0, seed, width), truth, |probe| {
        let run = kind.run(probe.at, probe.requests as usize, probe.seed >> 8);
        let arrivals = Arrivals { per_s: probe.at, seed: probe.seed };
        Outcome::Measured(gathered(limits, &run, controls.then_some(arrivals)))
    })
}

/// The alarm that a run raises whose requests are due and end at these seconds, after `samples`
/// looks.
pub fn alarm(run: &[(f64, f64)], samples: u32) -> Option<Alarm> {
    let due: Vec<f64> = run.iter().map(|own| own.0).collect();
    let mut ends: Vec<f64> = run.iter().map(|own| own.1).collect();
    ends.sort_unstable_by(f64::total_cmp);
    let (from, to) = (due[0], due[due.len() - 1]);
    let mut watch = Watch::new(1.0);
    (1..=samples).find_map(|sample| {
        let at = (to - from) * f64::from(sample) / f64::from(samples);
        let until = |instants: &[f64]| instants.partition_point(|own| *own <= from + at) as u64;
        watch.sample(Progress {
            at: Nanos::from_secs_f64(at),
            due: until(&due),
            sent: until(&due),
            ended: until(&ends),
        })
    })
}

/// Kinds of queues: one server or many, even, random and very uneven service.
const KINDS: [(u32, Service); 5] = [
    (1, Service::Exponential),
    (1, Service::Even),
    (8, Service::Exponential),
    (64, Service::Even),
    (8, Service::Uneven),
];

/// Alarms of `runs` queues, spread over the kinds and over loads, of `requests` requests each.
pub fn alarms(runs: u64, loads: [f64; 2], requests: usize) -> u64 {
    let alarms = (0..runs).filter(|run| {
        let (servers, service) = KINDS[(*run % KINDS.len() as u64) as usize];
        let share = (*run as f64 + 0.5) / runs as f64;
        let queue = Queue { servers, service, load: loads[0] + (loads[1] - loads[0]) * share };
        alarm(&queue.run(requests, 7000 + run), 400).is_some()
    });
    alarms.count() as u64
}
