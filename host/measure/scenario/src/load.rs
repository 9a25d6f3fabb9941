//! `[load]` as written: the number and the times of requests.

use std::path::PathBuf;
use std::time::Duration;

use crate::Fate::{Must, Silent};
use crate::Kind;
use crate::field::{Maybe, place as at};
use crate::key::{heading::LOAD, plan};
use crate::table::table;
use model::arrival::{Shape, ThinkSpread};
use model::duration::Span;
use model::session::{Cache, LaneSalt, Users, Warming};
use reader::{Located, Place, Size};

table! {
    /// `[load]`: the number and the times of requests.
    pub struct Load {
        /// Number of requests to measure.
        requests: Maybe<u64> = 1000 => plan("load.amount", Must(Kind::Count))
            .flag("num-prompts", "N", LOAD)
            .conflicts("duration")
            .otherwise("1000, or as many as the trace or the dataset's arrival times have")
            .theirs(&["num-prompts", "num-requests", "total-requests"]);
        /// Number of sessions to measure, instead of a number of requests.
        ///
        /// A session is a request that depends on no other, with all that depend on it: a
        /// conversation, or an agent's task. In lanes, the measurement ends when a lane is over and
        /// no session is left for it. Requests that are sent later are counted, and not measured.
        sessions: Maybe<u64> => plan("load.amount", Must(Kind::Count))
            .flag("sessions", "N", LOAD)
            .conflicts("num-prompts")
            .conflicts("duration");
        /// Time to measure, such as 60s, instead of a number of requests.
        duration: Maybe<Span> => plan("load.amount", Must(Kind::Count))
            .flag("duration", "TIME", LOAD);
        /// Arrival of requests.
        ///
        /// Another key can imply it: `concurrency` and `think-time` mean closed, `burstiness` means
        /// gamma, `trace` means trace, and an infinite rate means inf. By a flag, a rate means
        /// poisson.
        arrival: Maybe<Arrival> = Arrival::Inf => plan("load.arrival", Must(Kind::Load))
            .flag("arrival", "ARRIVAL", LOAD)
            .conflicts("use-trace-timestamps");
        /// Requests per second; `inf` sends all at once.
        rate: Maybe<f64> => plan("load.arrival", Must(Kind::Load))
            .flag("request-rate", "RATE", LOAD)
            .expects(RATE)
            .theirs(&["request-rate"]);
        /// Shape of the gamma-distributed gaps: 1 is Poisson, less is burstier, more is more even.
        burstiness: Maybe<f64> => plan("load.arrival", Must(Kind::Load))
            .flag("burstiness", "SHAPE", LOAD);
        /// Scale random gaps so that the last of n requests is due at n/rate, as vLLM's client
        /// does.
        normalise: Maybe<bool> = false => plan("load.arrival", Must(Kind::Load))
            .switch("normalise", LOAD)
            .alias("normalize")
            .theirs(&["normalize"]);
        /// A rate that changes once, instead of a constant one.
        ramp: Ramp;
        /// Rates one after the other, instead of a constant one.
        stages: Option<Vec<Located<Stage>>>;
        /// A file with the times when requests are due; alone it means `arrival` = "trace".
        trace: Trace;
        /// Users in a closed loop; each sends its next request when the last one is answered.
        concurrency: Maybe<u64> => plan("load.arrival", Must(Kind::Load))
            .flag("concurrency", "USERS", LOAD);
        /// Work of each user of a closed loop: one session at a time, or one request at a
        /// time.
        ///
        /// With sessions, a user finishes its session, think times included, and then begins
        /// another. With requests, it takes the next request that is due, so the number of requests
        /// in flight is the number of users.
        users: Maybe<Users> = Users::default() => plan("load.users", Must(Kind::Load))
            .flag("users", "WHAT", LOAD);
        /// Time that a user of a closed loop waits after an answer, such as 2s.
        think_time: Maybe<Span> => plan("load.arrival", Must(Kind::Load))
            .flag("think-time", "TIME", LOAD)
            .otherwise("not at all");
        /// Distribution of the think time.
        think_spread: Maybe<ThinkSpread> = ThinkSpread::Constant => plan("load.arrival", Must(Kind::Load))
            .flag("think-spread", "SPREAD", LOAD)
            .theirs(&["think-time-spread"]);
        /// Maximum number of requests in flight; the wait for a free slot is recorded as queueing.
        max_in_flight: Maybe<u64> => plan("load.max-in-flight", Must(Kind::Load))
            .flag("max-concurrency", "N", LOAD)
            .theirs(&["max-concurrency"]);
        /// Number of requests to send before the measurement; their prompts are never measured.
        warmup: Maybe<u64> = 1 => plan("load.warmup", Must(Kind::Load))
            .flag("warmup-requests", "N", LOAD)
            .alias("num-warmups")
            .theirs(&["num-warmups", "warmup-requests"]);
        /// Way to warm the engine up.
        ///
        /// A few requests leave an engine cold that compiles, captures graphs or fills caches when
        /// the load comes. `like-load` sends as many requests as the measurement has in flight; at
        /// a rate without a cap, the requests of five seconds; else at most 1000. `until-stable`
        /// repeats such waves, at most ten, until the last two agree: every request was answered,
        /// the medians of TTFT and TPOT differ by at most a tenth or a millisecond, and neither
        /// longest TTFT is more than twice the other, or 100 ms more. A wave has at most 10,000
        /// requests. `warmup` counts for `requests` alone.
        warming: Maybe<Warming> = Warming::default() => plan("load.warming", Must(Kind::Load))
            .flag("warmup", "HOW", LOAD)
            .conflicts("warmup-requests");
        /// Longest time for a warmup that goes on until the engine is stable, such as 5m; no wave
        /// begins after it.
        warmup_limit: Maybe<Span> = Span(WARMUP_LIMIT) => plan("load.warmup-limit", Silent)
            .flag("warmup-limit", "TIME", LOAD);
        /// Way to keep prompts of earlier runs in the server's prefix cache from helping this one.
        ///
        /// An earlier run with the same prompts, or one that was stopped, leaves them in the cache.
        /// The server then skips work, so the figures are too good. Prompts that are embedded or
        /// ranked are never salted.
        cache: Maybe<Cache> = Cache::default() => plan("load.salted", Must(Kind::Load))
            .flag("cache", "HOW", LOAD);
        /// Make the server clear its prefix cache between the warmup and the measurement: short for
        /// `cache` = "flush".
        flush_cache: Maybe<bool> = false => plan("control.flush-cache", Must(Kind::Load))
            .switch("flush-cache", LOAD);
        /// Memory that the sessions under way may take, such as 4GiB.
        ///
        /// Their unsent prompts and their histories take it. At this bound no new session begins
        /// until others end, and a finding reports the wait.
        session_memory: Maybe<Size> = Size(SESSION_MEMORY) => plan("load.session-memory", Silent)
            .flag("session-memory", "SIZE", LOAD);
        /// Sessions that begin inside their recordings, one in each lane.
        lanes: Lanes;
        /// Random seed.
        seed: Maybe<u64> = 1 => plan("load.seed", Must(Kind::Prompts)).flag("seed", "SEED", LOAD);
    }
}

/// The default for the bytes that the sessions under way may take.
pub const SESSION_MEMORY: u64 = 4 << 30;

/// The default for the time after which no wave of a warmup begins.
pub const WARMUP_LIMIT: Duration = Duration::from_secs(300);

const RATE: &str = "a number of requests per second";

table! {
    /// `[load.ramp]`: a rate that goes from one value to another and stays there.
    pub struct Ramp {
        /// Course of the rate over time.
        ///
        /// The rate is a function of time, and the area under it determines when requests are due.
        /// In vLLM's client, the rate is a function of the request's number.
        shape: Maybe<Shape> = Shape::Linear => plan("load.arrival", Must(Kind::Load))
            .flag("ramp-up-strategy", "SHAPE", LOAD);
        /// Requests per second at the start of the ramp.
        from: Maybe<f64> => plan("load.arrival", Must(Kind::Load))
            .flag("ramp-up-start-rps", "RATE", LOAD)
            .expects(RATE);
        /// Requests per second at the end of the ramp and after it.
        to: Maybe<f64> => plan("load.arrival", Must(Kind::Load))
            .flag("ramp-up-end-rps", "RATE", LOAD)
            .expects(RATE);
        /// Length of the ramp.
        over: Maybe<Span> => plan("load.arrival", Must(Kind::Load))
            .flag("ramp-up-over", "TIME", LOAD)
            .otherwise("the whole run");
    }
}

table! {
    /// One of `[[load.stages]]`: a rate, or a ramp to one, for a while.
    pub struct Stage {
        /// A constant number of requests per second.
        rate: Maybe<f64> => plan("load.arrival", Must(Kind::Load)).expects(RATE);
        /// Requests per second at the start.
        from: Maybe<f64> => plan("load.arrival", Must(Kind::Load))
            .expects(RATE)
            .otherwise("the rate at the end of the stage before");
        /// Requests per second at the end.
        to: Maybe<f64> => plan("load.arrival", Must(Kind::Load)).expects(RATE);
        /// The shape of the change between them.
        shape: Maybe<Shape> = Shape::Linear => plan("load.arrival", Must(Kind::Load));
        /// Length of the stage.
        length as "for": Maybe<Span> => plan("load.arrival", Must(Kind::Load));
    }
}

table! {
    /// `[load.trace]`: a file with the times when requests are due.
    pub struct Trace {
        /// Send at the times in a file: JSON lines with a `timestamp` in milliseconds, or numbers
        /// of seconds.
        file: Maybe<PathBuf> => plan("load.arrival", Must(Kind::Load)).flag("trace", "FILE", LOAD);
        /// Play the trace or the dataset this many times as fast.
        time_scale: Maybe<f64> = 1.0 => plan("load.arrival", Must(Kind::Load))
            .flag("time-scale", "FACTOR", LOAD);
    }
}

table! {
    /// `[load.lanes]`: sessions that begin inside their recordings, as in AIPerf's agentic replay.
    ///
    /// Each user of the closed loop is a lane with one session at a time. The lane's first session
    /// is under way when the measurement begins, and every further session starts with its first
    /// request. When the dataset ends, its sessions are drawn again.
    ///
    /// With `duration`, sessions follow until the time is over; with `sessions`, until their
    /// number is reached, as in MLPerf Agentic.
    pub struct Lanes {
        /// Two shares of a recording's length, such as [0.25, 0.75]; each lane begins at a random
        /// instant between them.
        ///
        /// The instant follows from the seed, the session's name and the lane's number. Before the
        /// measurement, the last request of each live conversation before the instant is sent for
        /// one token. If one of these requests fails, the run ends.
        start_at: Maybe<Vec<Located<f64>>> => plan("load.lanes.start-at", Must(Kind::Load))
            .expects(SHARES);
        /// Further requests of each lane for one token, sent without pauses before the measurement.
        warmup: Maybe<u64> = 0 => plan("load.lanes.warmup", Must(Kind::Load));
        /// Longest wait for the replies of the warmup; after it the run ends.
        warmup_grace: Maybe<Span> = Span(WARMUP_GRACE) => plan("load.lanes.warmup-grace", Silent);
        /// Longest time without a request in flight, such as 10s; after it all waiting requests
        /// move forward together.
        idle_most: Maybe<Span> => plan("load.lanes.idle-most", Must(Kind::Load))
            .otherwise("as recorded");
        /// Texts of its own that each session has in all its prompts, against hits of the server's
        /// prefix cache.
        salt: Maybe<LaneSalt> = LaneSalt::default() => plan("load.lanes.salt", Must(Kind::Load));
    }
}

/// The default for the wait for the replies of a warm-up of lanes.
pub const WARMUP_GRACE: Duration = Duration::from_secs(1800);

const SHARES: &str = "a list of two numbers from 0 to 1, the lower one first";

model::words! {
    /// The due times of requests.
    pub enum Arrival {
        /// All at once.
        Inf = "inf",
        /// At equal gaps.
        Constant = "constant",
        /// At exponentially distributed gaps.
        Poisson = "poisson",
        /// At gamma-distributed gaps.
        Gamma = "gamma",
        /// At the times in a file.
        Trace = "trace",
        /// At the times in the dataset's samples.
        Dataset = "dataset",
        /// Each when an earlier one is answered: a closed loop.
        Closed = "closed",
    }
}

impl Arrival {
    /// True if due times of this arrival follow a rate.
    pub fn has_rate(self) -> bool {
        matches!(self, Arrival::Constant | Arrival::Poisson | Arrival::Gamma)
    }
}

impl Ramp {
    /// The first place where it is set, if it is.
    pub fn place(&self) -> Option<&Place> {
        at(&self.to).or(at(&self.from)).or(at(&self.shape)).or(at(&self.over))
    }
}

impl Lanes {
    pub fn place(&self) -> Option<&Place> {
        let places = [at(&self.start_at), at(&self.warmup), at(&self.warmup_grace)];
        let mut places = places.into_iter().chain([at(&self.idle_most), at(&self.salt)]);
        places.find_map(|place| place)
    }

    /// The shares between which lanes begin, if they are two in order.
    pub fn shares(&self) -> Option<[f64; 2]> {
        let [low, high] = self.start_at.as_ref()?.value.as_slice() else { return None };
        let shares = [low.value, high.value];
        (0.0 <= shares[0] && shares[0] <= shares[1] && shares[1] <= 1.0).then_some(shares)
    }
}

impl Trace {
    pub fn place(&self) -> Option<&Place> {
        at(&self.file).or(at(&self.time_scale))
    }
}

impl Load {
    /// Returns the treatment of the server's prefix cache, by either of the two keys.
    pub fn meant_cache(&self) -> Cache {
        if self.cache.is_none() && self.flush_cache() { Cache::Flush } else { self.cache() }
    }

    /// The arrival that the keys imply: its name, else a key that only it has, else a rate.
    pub fn meant_arrival(&self) -> Option<Arrival> {
        let by_rate = |rate: &Located<f64>| {
            if rate.value == f64::INFINITY { Arrival::Inf } else { Arrival::Poisson }
        };
        let only = [(self.trace.place(), Arrival::Trace), (at(&self.burstiness), Arrival::Gamma)];
        let named = self.arrival.as_ref().map(|arrival| arrival.value);
        let varies = self.ramp.place().is_some() || self.stages.is_some();
        let user = at(&self.concurrency).or(at(&self.think_time)).or(at(&self.think_spread));
        named
            .or_else(|| only.into_iter().find_map(|(at, means)| at.map(|_| means)))
            .or_else(|| self.rate.as_ref().map(by_rate))
            .or_else(|| varies.then_some(Arrival::Poisson))
            .or_else(|| user.map(|_| Arrival::Closed))
    }
}
