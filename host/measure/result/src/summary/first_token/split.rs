//! The parts of one request's time from due to first token.

use crate::metric::Reading;
use model::exchange::{Connection, Exchange};
use model::units::Nanos;

model::names! {
    /// A part of the time from due to first token.
    pub enum Part {
        /// From due to sent, without the wait for a connection: the wait at the cap on requests in
        /// flight, and the send lag.
        Client = "client",
        /// The wait for a connection to open, TLS included, after the request could have been sent;
        /// zero where one was open.
        Connection = "connection",
        /// TTFT - the server's own time to first token, where the server reports it by itself.
        Network = "network",
        /// The server's own time to first token - its queue - its prefill, if it reports all three.
        FrontEnd = "front end",
        /// TTFT - the server's queue - its prefill, where it reports these two alone: the network
        /// and the front end cannot be told apart.
        NetworkAndFrontEnd = "network and front end",
        /// The server's own queue.
        Queue = "queue",
        /// The server's own prefill.
        Prefill = "prefill",
    }
}

impl Part {
    /// The name of the metric that is this part of each request.
    pub fn metric(self) -> &'static str {
        match self {
            Part::Client => "ttft-client",
            Part::Connection => "ttft-connection",
            Part::Network => "ttft-network",
            Part::FrontEnd => "ttft-front-end",
            Part::NetworkAndFrontEnd => "ttft-network-and-front-end",
            Part::Queue => "ttft-queue",
            Part::Prefill => "ttft-prefill",
        }
    }
}

/// The time from due to first token of one request, and its parts, in whole nanoseconds.
///
/// `whole` is the sum of the parts and of the unexplained time, exactly. A prefill and a decode on
/// different machines have a transfer and a second queue between them. No reply states these: they
/// are within the prefill or unexplained here, until a server's series tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// First output - due: the metric `ttft-from-due`.
    pub whole: Nanos,
    /// Each part, in the order of [`Part::ALL`]; absent where the server does not tell it.
    parts: [Option<Nanos>; Part::ALL.len()],
    /// The time that no part explains; negative if the server's timings exceed their whole.
    pub unexplained: i64,
    /// True if the server's timings are longer than their whole.
    pub is_contradicted: bool,
}

impl Split {
    /// Splits a request's time. Absent without a seen first token, or the server's timings.
    pub fn new(reading: &Reading<'_>) -> Option<Split> {
        let timings = reading.exchange.timings?;
        let stated = [timings.first_token, timings.queue, timings.prefill];
        if stated == [None; 3] {
            return None;
        }
        let mut split = Split::of_client(reading)?;
        let ttft = Nanos(split.whole.0.saturating_sub(split.before().0));

        let [_, queue, prefill] = stated;
        split.parts[Part::Queue as usize] = queue;
        split.parts[Part::Prefill as usize] = prefill;
        let inside = signed(queue.unwrap_or_default()) + signed(prefill.unwrap_or_default());
        let is_whole = queue.is_some() && prefill.is_some();
        match timings.first_token {
            Some(server) => {
                split.remainder(Some(Part::Network), signed(ttft) - signed(server));
                let front_end = is_whole.then_some(Part::FrontEnd);
                split.remainder(front_end, signed(server) - inside);
            }
            None => {
                let both = is_whole.then_some(Part::NetworkAndFrontEnd);
                split.remainder(both, signed(ttft) - inside);
            }
        }
        Some(split)
    }

    /// Splits off the time in this client before sending; absent without a seen first token.
    pub fn of_client(reading: &Reading<'_>) -> Option<Split> {
        let exchange = reading.exchange;
        let (sent, first) = (exchange.sent?, reading.began()?);
        let mut split = Split::default();
        let before = sent.since(exchange.due);
        let connection = exchange.connection.filter(|own| own.waited);
        let connection = connection.map_or(Nanos::ZERO, |own| waited(exchange, &own, sent));
        let connection = connection.min(before);
        split.put(Part::Client, before.since(connection));
        split.put(Part::Connection, connection);
        split.whole = Nanos(before.0.saturating_add(first.since(sent).0));
        Some(split)
    }

    fn before(&self) -> Nanos {
        let time = |part| self.part(part).unwrap_or_default();
        time(Part::Client) + time(Part::Connection)
    }

    pub fn part(&self, part: Part) -> Option<Nanos> {
        self.parts[part as usize]
    }

    fn put(&mut self, part: Part, time: Nanos) {
        self.parts[part as usize] = Some(time);
    }

    /// Enters the rest of a time: as that part, if it can be one, else as unexplained.
    fn remainder(&mut self, part: Option<Part>, left: i64) {
        match (part, u64::try_from(left)) {
            (Some(part), Ok(left)) => self.put(part, Nanos(left)),
            (part, _) => {
                self.unexplained = self.unexplained.saturating_add(left);
                if let Some(part) = part {
                    self.put(part, Nanos::ZERO);
                }
            }
        }
        self.is_contradicted |= left < 0;
    }
}

/// The wait of the request for its connection after it could have been sent. A connection that was
/// opened ahead of need, or for another request, may have begun before.
fn waited(exchange: &Exchange, connection: &Connection, sent: Nanos) -> Nanos {
    let could = exchange.due.max(exchange.granted.unwrap_or_default());
    connection.secured.unwrap_or(connection.connected).min(sent).since(connection.begun.max(could))
}

/// The longest time that is told apart from longer ones, 36 years: so sums and differences of a few
/// have their sign.
const LONGEST: u64 = 1 << 60;

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0.min(LONGEST)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::{ms, reply};
    use model::exchange::{Kind, ServerTimings};
    use proptest::prelude::*;

    fn timings(parts: [Option<u64>; 3]) -> Option<ServerTimings> {
        let [first_token, queue, prefill] = parts.map(|part| part.map(ms));
        Some(ServerTimings { queue, prefill, first_token, decode: None })
    }

    /// Due at 1000, granted at 1010, sent at 1050, first token at 1150. It waited for a connection
    /// from 1020 to 1045.
    fn exchange() -> Exchange {
        let mut exchange = reply(0, 1050, &[(1150, Kind::Text, None, 1)]);
        exchange.due = ms(1000);
        exchange.granted = Some(ms(1010));
        exchange.connection = Some(Connection {
            waited: true,
            begun: ms(1020),
            connected: ms(1030),
            secured: Some(ms(1045)),
            ..Connection::default()
        });
        exchange
    }

    fn split(exchange: &Exchange) -> Option<Split> {
        Split::new(&Reading::new(exchange, true, None))
    }

    /// Milliseconds of each part in order, then of the unexplained time.
    fn parts(split: &Split) -> ([Option<u64>; 7], i64) {
        let parts = Part::ALL.map(|part| split.part(part).map(|time| time.0 / 1_000_000));
        (parts, split.unexplained / 1_000_000)
    }

    #[test]
    fn parts_by_hand() {
        let mut exchange = exchange();
        let (client, connection) = (Some(25), Some(25));
        for (stated, rest, unexplained, contradicted) in [
            // First token, queue and prefill: 100 ms on this side, 90 on the server's.
            (
                [Some(90), Some(60), Some(20)],
                [Some(10), Some(10), None, Some(60), Some(20)],
                0,
                false,
            ),
            ([None, Some(60), Some(20)], [None, None, Some(20), Some(60), Some(20)], 0, false),
            // Without a queue, nobody knows the nature of the rest.
            ([None, None, Some(20)], [None, None, None, None, Some(20)], 80, false),
            ([Some(90), None, Some(20)], [Some(10), None, None, None, Some(20)], 70, false),
            ([Some(90), None, None], [Some(10), None, None, None, None], 90, false),
            // The server says more than there was.
            ([None, Some(90), Some(20)], [None, None, Some(0), Some(90), Some(20)], -10, true),
            (
                [Some(130), Some(60), Some(20)],
                [Some(0), Some(50), None, Some(60), Some(20)],
                -30,
                true,
            ),
            (
                [Some(90), Some(60), Some(40)],
                [Some(10), Some(0), None, Some(60), Some(40)],
                -10,
                true,
            ),
        ] {
            exchange.timings = timings(stated);
            let split = split(&exchange).unwrap();
            assert_eq!(split.whole, ms(150));
            let [network, front_end, both, queue, prefill] = rest;
            let expected = [client, connection, network, front_end, both, queue, prefill];
            assert_eq!(parts(&split), (expected, unexplained), "{stated:?}");
            assert_eq!(split.is_contradicted, contradicted, "{stated:?}");
        }
    }

    #[test]
    fn only_its_own_wait_is_its_connection() {
        let mut exchange = exchange();
        exchange.timings = timings([Some(90), None, None]);
        let connection = |exchange: &Exchange| parts(&split(exchange).unwrap()).0[1];
        exchange.connection.as_mut().unwrap().begun = ms(900);
        assert_eq!(connection(&exchange), Some(35), "from when it could be sent");
        exchange.connection.as_mut().unwrap().waited = false;
        assert_eq!(connection(&exchange), Some(0));
        exchange.connection = None;
        assert_eq!(connection(&exchange), Some(0));
    }

    #[test]
    fn no_split_without_a_first_token_or_timings() {
        let mut exchange = exchange();
        assert_eq!(split(&exchange), None);
        exchange.timings = timings([None; 3]);
        assert_eq!(split(&exchange), None, "decode says nothing of it");
        exchange.timings = timings([None, Some(1), Some(1)]);
        assert!(split(&exchange).is_some());
        assert_eq!(Split::new(&Reading::new(&exchange, false, None)), None);
        exchange.events = Default::default();
        assert_eq!(split(&exchange), None);
    }

    proptest! {
        /// Whatever a server says, the parts are the whole.
        #[test]
        fn parts_add_up(
            times in any::<[u32; 4]>(),
            stated in any::<[Option<u32>; 3]>(),
            waited: bool,
        ) {
            let [due, lag, ttft, begun] = times.map(u64::from);
            let mut exchange = exchange();
            exchange.due = Nanos(due);
            exchange.granted = None;
            exchange.sent = Some(Nanos(due + lag));
            exchange.events.at[0] = Nanos(due + lag + ttft);
            let own = exchange.connection.as_mut().unwrap();
            (own.waited, own.begun) = (waited, Nanos(begun));
            let [first_token, queue, prefill] = stated.map(|time| time.map(|ns| Nanos(ns.into())));
            exchange.timings = Some(ServerTimings { first_token, queue, prefill, decode: None });
            let Some(split) = split(&exchange) else { return Ok(()) };
            let sum: i64 = Part::ALL.iter().filter_map(|part| split.part(*part)).map(signed).sum();
            prop_assert_eq!(sum + split.unexplained, signed(split.whole));
            prop_assert_eq!(split.whole, Nanos(lag + ttft));
        }
    }
}
