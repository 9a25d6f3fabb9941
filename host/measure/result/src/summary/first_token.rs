//! The parts of the time to first token by this client's clock and by the server's own timings,
//! over the run and around percentiles.
//!
//! [`split`] has the definition of each part for one request; this module sums them. They are parts
//! of the time from due to first token, `ttft-from-due`, so that a client's wait before it sent is
//! among them. Sums are of whole nanoseconds, so the parts of a mean are the mean.
//!
//! Memory has a bound: requests whose whole times have the same leading bits are summed together,
//! and a table around a percentile takes the sums that its ranks fall into. The order of requests
//! changes nothing.

mod by_series;
pub mod split;

use std::collections::BTreeMap;

pub use by_series::BySeries;
pub use split::{Part, Split};

use crate::metric::Reading;
use ::series::ServerSeries;
use statistics::cells::leading;

/// Bits of a whole time that distinguish sums: the times in one sum differ by at most a 512th.
const BITS: u32 = 10;

/// The percentiles that have parts of their own.
const PERCENTILES: [f64; 3] = [50.0, 90.0, 99.0];

/// Percent of the requests to each side of a percentile that are near it; fewer where the end is
/// nearer, and the same number on the other side.
const NEAR: f64 = 5.0;

/// The parts of the time from due to first token, of the answered requests whose server reports
/// timings of it.
#[model::apply(model::document!)]
pub struct FirstToken {
    /// The number of requests whose time is split.
    pub requests: u64,
    /// Answered requests with a first token whose replies state no timings of it. They are left
    /// out.
    pub without_timings: u64,
    /// Answered requests whose replies came whole or have no token. They are left out.
    pub without_first_token: u64,
    /// Requests that were not answered in full. They are left out, as they are of `ttft`.
    pub unanswered: u64,
    /// Requests whose server states more time than this client saw pass; the excess makes the
    /// unexplained time negative.
    pub contradicted: u64,
    /// The means over the requests.
    pub mean: Parts,
    /// The means over the requests around percentiles of the time from due to first token.
    pub around: Vec<Around>,
}

/// The requests around a percentile.
#[model::apply(model::document!)]
pub struct Around {
    /// The percentile.
    pub percentile: f64,
    /// The percentile at which they begin.
    pub from: f64,
    /// The percentile at which they end.
    pub to: f64,
    /// The number of these requests: their rank is within the two, or their whole time cannot be
    /// told from the time of such a request.
    pub requests: u64,
    /// Their means.
    pub mean: Parts,
}

/// Means of the parts, in milliseconds. The parts and the unexplained time add up to the whole. A
/// part is absent if no request tells it. A request that does not tell a part counts as zero there,
/// and its time is unexplained.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Parts {
    /// The time from due to first token.
    pub whole_ms: f64,
    /// The time from due to sent, without the wait for a connection.
    pub client_ms: f64,
    /// The wait for a connection to open, after the request could have been sent.
    pub connection_ms: f64,
    /// TTFT - the server's own time to first token, where the server reports it by itself.
    pub network_ms: Option<f64>,
    /// The server's own time to first token - its queue - its prefill.
    pub front_end_ms: Option<f64>,
    /// TTFT - the server's queue - its prefill, where the server reports these two alone.
    pub network_and_front_end_ms: Option<f64>,
    /// The server's own queue.
    pub queue_ms: Option<f64>,
    /// The server's own prefill.
    pub prefill_ms: Option<f64>,
    /// The unexplained time, which the server's timings leave open. Negative if they are longer
    /// than the whole.
    pub unexplained_ms: f64,
}

#[derive(Default)]
pub(super) struct Gather {
    /// The sums, by the leading bits of the whole time.
    sums: BTreeMap<u64, Sums>,
    /// This client's parts of all that have a first token.
    client: Sums,
    without_timings: u64,
    without_first_token: u64,
    unanswered: u64,
}

/// Sums over requests, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Sums {
    requests: u64,
    contradicted: u64,
    whole: u128,
    /// The number of requests that tell each part, and its sum.
    parts: [(u64, u128); Part::ALL.len()],
    unexplained: i128,
}

impl Gather {
    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        if !reading.exchange.is_ok() {
            self.unanswered += 1;
            return;
        }
        if let Some(split) = Split::of_client(reading) {
            self.client.add(&split);
        }
        if let Some(split) = Split::new(reading) {
            let (cell, _) = leading(split.whole.0, BITS);
            self.sums.entry(cell).or_default().add(&split);
        } else if reading.began().is_some() {
            self.without_timings += 1;
        } else {
            self.without_first_token += 1;
        }
    }

    /// The parts; absent if no server reports timings.
    pub(super) fn finish(self) -> Option<FirstToken> {
        let mut all = Sums::default();
        self.sums.values().for_each(|sums| all.merge(sums));
        let around = |percentile: f64| {
            let near = NEAR.min(percentile).min(100.0 - percentile);
            let (from, to) = (percentile - near, percentile + near);
            let sums = self.between(all.requests, from, to);
            Some(Around { percentile, from, to, requests: sums.requests, mean: sums.mean()? })
        };
        Some(FirstToken {
            requests: all.requests,
            without_timings: self.without_timings,
            without_first_token: self.without_first_token,
            unanswered: self.unanswered,
            contradicted: all.contradicted,
            mean: all.mean()?,
            around: PERCENTILES.into_iter().filter_map(around).collect(),
        })
    }

    /// The parts by the server's series; absent without them, or if replies tell as much.
    pub(super) fn by_series(&self, series: Option<&ServerSeries>) -> Option<BySeries> {
        let stages = series?.stages.as_ref()?;
        let is_told = !self.sums.is_empty() && stages.prefill_servers.is_empty();
        let client = self.client.mean().filter(|_| !is_told)?;
        Some(BySeries::new(self.client.requests, &client, stages))
    }

    /// The sums that hold ranks between two percentiles, of this number of requests.
    fn between(&self, requests: u64, from: f64, to: f64) -> Sums {
        let rank = |percent: f64| percent / 100.0 * requests.saturating_sub(1) as f64;
        let (first, last) = (rank(from).round() as u64, rank(to).round() as u64);
        let (mut before, mut within) = (0, Sums::default());
        for sums in self.sums.values() {
            if before <= last && before + sums.requests > first {
                within.merge(sums);
            }
            before += sums.requests;
        }
        within
    }
}

impl Sums {
    fn add(&mut self, split: &Split) {
        self.requests += 1;
        self.contradicted += u64::from(split.is_contradicted);
        self.whole += u128::from(split.whole.0);
        self.unexplained += i128::from(split.unexplained);
        for ((count, sum), part) in self.parts.iter_mut().zip(Part::ALL) {
            if let Some(time) = split.part(part) {
                *count += 1;
                *sum += u128::from(time.0);
            }
        }
    }

    fn merge(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.contradicted += other.contradicted;
        self.whole += other.whole;
        self.unexplained += other.unexplained;
        for ((count, sum), (more, time)) in self.parts.iter_mut().zip(other.parts) {
            *count += more;
            *sum += time;
        }
    }

    fn mean(&self) -> Option<Parts> {
        let requests = self.requests as f64;
        let mean = |nanos: f64| nanos / requests / 1e6;
        let part = |part: Part| {
            let (count, sum) = self.parts[part as usize];
            (count > 0).then(|| mean(sum as f64))
        };
        (self.requests > 0).then(|| Parts {
            whole_ms: mean(self.whole as f64),
            client_ms: part(Part::Client).unwrap_or_default(),
            connection_ms: part(Part::Connection).unwrap_or_default(),
            network_ms: part(Part::Network),
            front_end_ms: part(Part::FrontEnd),
            network_and_front_end_ms: part(Part::NetworkAndFrontEnd),
            queue_ms: part(Part::Queue),
            prefill_ms: part(Part::Prefill),
            unexplained_ms: mean(self.unexplained as f64),
        })
    }
}

pub const UNEXPLAINED: &str = "unexplained";

/// A time that is too short to mention: an unexplained time that rounds to it is nothing.
const NOTHING_MS: f64 = 0.000_5;

impl Parts {
    /// The mean time of a part in milliseconds; absent if no request tells it.
    pub fn part(&self, part: Part) -> Option<f64> {
        match part {
            Part::Client => Some(self.client_ms),
            Part::Connection => Some(self.connection_ms),
            Part::Network => self.network_ms,
            Part::FrontEnd => self.front_end_ms,
            Part::NetworkAndFrontEnd => self.network_and_front_end_ms,
            Part::Queue => self.queue_ms,
            Part::Prefill => self.prefill_ms,
        }
    }

    /// The names and times of the known parts, in order, and of any unexplained time.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let parts = Part::ALL.into_iter().filter_map(|part| Some((part.name(), self.part(part)?)));
        let rest = self.unexplained_ms;
        let rest = (rest.abs() >= NOTHING_MS).then_some((UNEXPLAINED, rest));
        parts.chain(rest).collect()
    }

    pub fn by_name(&self, name: &str) -> Option<f64> {
        match name {
            UNEXPLAINED => Some(self.unexplained_ms),
            _ => self.part(Part::ALL.into_iter().find(|part| part.name() == name)?),
        }
    }

    /// A time's share of the whole, from 0 to 1; absent if no time passed.
    pub fn share(&self, ms: f64) -> Option<f64> {
        (self.whole_ms > 0.0).then(|| ms / self.whole_ms)
    }

    /// Writes the shares, such as `client 0.1 %, connection 0.4 %, queue 71.0 %, prefill 28.5 %`.
    pub fn shares(&self) -> String {
        let shares = self.named().into_iter();
        let shares = shares
            .filter_map(|(name, ms)| Some(format!("{name} {:.1} %", self.share(ms)? * 100.0)));
        shares.collect::<Vec<_>>().join(", ")
    }
}

impl FirstToken {
    /// Writes the number of split requests and the number of left-out ones, with the reasons.
    pub fn counted(&self, count: impl Fn(u64) -> String) -> String {
        let mut words = count(self.requests);
        for (left_out, why) in [
            (self.unanswered, "unanswered"),
            (self.without_first_token, "without a first token"),
            (self.without_timings, "without timings of it"),
        ] {
            if left_out > 0 {
                words += &format!(", not {} {why}", count(left_out));
            }
        }
        words
    }

    /// Writes the number of requests with more stated time than passed; absent if there are none.
    pub fn contradiction(&self, count: impl Fn(u64) -> String) -> Option<String> {
        (self.contradicted > 0).then(|| {
            format!(
                "Of {} of them the server states more time than passed between sending and first token; the excess is negative.",
                count(self.contradicted)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, failed, ms, reply};
    use model::exchange::{Class, Exchange, Kind, Phase, ServerTimings};

    /// Due and sent every 100 ms; the first token `ttft` ms later; the server reports a queue of
    /// half of that, and a prefill of a quarter.
    fn timed(index: u64, ttft: u64) -> Exchange {
        let sent = 1000 + index * 100;
        let mut exchange = reply(index, sent, &[(sent + ttft, Kind::Text, None, 1)]);
        exchange.timings = Some(ServerTimings {
            queue: Some(ms(ttft / 2)),
            prefill: Some(ms(ttft / 4)),
            ..ServerTimings::default()
        });
        exchange
    }

    #[test]
    fn requests_around_a_percentile_have_its_rank() {
        // 4, 8, … 400 ms, in no order.
        let run: Vec<Exchange> = (0..100).map(|i| timed(i, 4 * (i * 37 % 100 + 1))).collect();
        let split = Summary::new(&facts(), &run).first_token.unwrap();
        assert_eq!((split.requests, split.contradicted), (100, 0));
        assert_eq!(split.mean.whole_ms, 202.0);
        assert_eq!(split.mean.queue_ms, Some(101.0));
        assert_eq!(split.mean.prefill_ms, Some(50.5));
        assert_eq!(split.mean.network_and_front_end_ms, Some(50.5));
        assert_eq!(split.mean.network_ms, None);
        let expected = "client 0.0 %, connection 0.0 %, network and front end 25.0 %, queue 50.0 %, prefill 25.0 %";
        assert_eq!(split.mean.shares(), expected);
        let around = |place: usize| {
            let around = &split.around[place];
            (around.percentile, around.from, around.to, around.requests, around.mean.whole_ms)
        };
        // Ranks 45 to 54, 84 to 94, and 97 to 99.
        assert_eq!(around(0), (50.0, 45.0, 55.0, 10, 202.0));
        assert_eq!(around(1), (90.0, 85.0, 95.0, 11, 360.0));
        assert_eq!(around(2), (99.0, 98.0, 100.0, 3, 396.0));
    }

    #[test]
    fn counts_requests_without_a_split() {
        let mut run: Vec<Exchange> = (0..6).map(|i| timed(i, 100)).collect();
        run[0].phase = Phase::Warmup;
        run[1] = failed(run[1].clone(), Class::Truncated, "");
        run[2].timings = None;
        run[3].events = Default::default();
        let split = Summary::new(&facts(), &run).first_token.unwrap();
        assert_eq!(split.requests, 2);
        assert_eq!((split.unanswered, split.without_timings, split.without_first_token), (1, 1, 1));
        let wanted =
            "2, not 1 unanswered, not 1 without a first token, not 1 without timings of it";
        assert_eq!(split.counted(|n| n.to_string()), wanted);
        run.iter_mut().for_each(|exchange| exchange.timings = None);
        assert_eq!(Summary::new(&facts(), &run).first_token, None);
    }

    /// Requests of servers that tell different parts still add up, and so do contradictions.
    #[test]
    fn means_add_up() {
        let mut run: Vec<Exchange> = (0..40).map(|i| timed(i, 10 + i * i)).collect();
        for (exchange, index) in run.iter_mut().zip(0u64..) {
            let timings = exchange.timings.as_mut().unwrap();
            match index % 4 {
                0 => timings.first_token = Some(ms(9 + index)),
                1 => timings.queue = None,
                2 => timings.prefill = Some(ms(500)),
                _ => {}
            }
        }
        let split = Summary::new(&facts(), &run).first_token.unwrap();
        assert!(split.contradicted >= 10 && split.mean.unexplained_ms != 0.0);
        let all = [&split.mean].into_iter();
        for parts in all.chain(split.around.iter().map(|around| &around.mean)) {
            let sum: f64 = parts.named().iter().map(|(_, ms)| ms).sum();
            assert!((sum - parts.whole_ms).abs() < 1e-9, "{parts:?}");
        }
        let words = split.contradiction(|n| n.to_string()).unwrap();
        assert!(words.contains(&format!("Of {} of them", split.contradicted)));
    }
}
