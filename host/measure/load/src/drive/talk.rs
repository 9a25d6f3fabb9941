//! The requests and replies of one exchange, each request named by the reply before (`demand`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::demand::{Course, Demand, First, Kind, Step};
use super::pool::Pool;
use super::reading::{Inputs, NoHead, Reading, pause};
use super::{End, Reply, Worker};
use crate::transport::{Connect, Connection, GRPC_STATUS, Head, Marks, Request, Sink as _};
use model::exchange::{self, Class, Open};
use model::frame::Framing;
use model::units::Nanos;

/// A wait for a demand of this length is the decode threads' fault, and no timeout counts it.
const PATIENCE: Nanos = Nanos(50_000_000);

/// The known times of an exchange under way, also if it is given up at any point.
pub(super) struct Trail {
    /// The instants of the first request.
    pub first: Rc<Marks>,
    current: RefCell<Rc<Marks>>,
    /// The longest time that bytes of the replies before this one were in the socket.
    read_lag: Cell<Option<Nanos>>,
    /// Until when the exchange was held up by this client.
    excused: Cell<Nanos>,
}

/// One request and the data needed to read its reply.
struct Saying {
    request: Request,
    place: u32,
    framing: Framing,
    /// Statuses, beside success, whose replies are decoded.
    accepted: Vec<u16>,
    /// Told with the head of the reply.
    context: Vec<u8>,
    is_step: bool,
}

impl Default for Trail {
    fn default() -> Self {
        let first: Rc<Marks> = Rc::default();
        Trail {
            current: RefCell::new(Rc::clone(&first)),
            first,
            read_lag: Cell::new(None),
            excused: Cell::new(Nanos::ZERO),
        }
    }
}

impl Trail {
    fn next(&self) {
        let before = self.current.replace(Rc::default());
        let lag = self.read_lag.get().max(before.read_lag.get());
        self.read_lag.set(lag);
    }

    fn note(&self, exchange: &mut Open) {
        if let Some(step) = exchange.steps.last_mut() {
            let marks = self.current.borrow();
            step.sent = marks.sent.get();
            step.first_byte = marks.first_byte.get();
        }
    }

    /// Puts everything that is known into the record of an exchange, whose end is at most `now`.
    pub fn finish(&self, exchange: &mut Open, now: Nanos) {
        exchange.sent = self.first.sent.get();
        exchange.written = self.first.written.get();
        exchange.first_byte = self.first.first_byte.get();
        let current = self.current.borrow().read_lag.get();
        exchange.read_lag = self.read_lag.get().max(current);
        if exchange.ended.is_none() && exchange.sent.is_some() {
            exchange.ended = Some(now);
        }
        self.note(exchange);
        if let Some(step) = exchange.steps.last_mut()
            && step.sent.is_some()
            && step.ended.is_none()
        {
            step.ended = exchange.ended;
        }
    }
}

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Has the whole exchange, up to its end. `halt` comes when no further request may be sent.
    pub(super) async fn talk(
        &self,
        pool: &Rc<Pool<C>>,
        exchange: &mut Open,
        (request, framing, course): (Request, Framing, Course),
        session: Option<&Arc<str>>,
        to: (u64, &Rc<dyn Reply>),
        (trail, inputs, halt): (&Trail, &mut Option<Inputs>, &CancellationToken),
    ) -> End {
        if let Course::Socket(messages) = course {
            let inputs = inputs.insert(Inputs::default());
            return self.converse(pool, exchange, (request, messages), to, trail, inputs).await;
        }
        let place = exchange.request.prepared.target;
        let (accepted, context) = (Vec::new(), Vec::new());
        let mut saying = Saying { request, place, framing, accepted, context, is_step: false };
        let Course::Steps(first) = course else {
            return self.say(pool, exchange, saying, session, to, trail).await;
        };
        let First { accepted, context, fields } = *first;
        (saying.accepted, saying.context, saying.is_step) = (accepted, context, true);
        let reply = to.1;
        let mut demands = reply.demands(place, Kind::Steps);
        exchange.steps.push(exchange::Step::default());
        loop {
            let end = self.say(pool, exchange, saying, session, to, trail).await;
            trail.note(exchange);
            if let Some(step) = exchange.steps.last_mut() {
                step.ended = exchange.ended;
            }
            let End::Whole { .. } = end else { return end };
            let Some(step) = self.demanded(reply, &mut demands, trail).await else { return end };
            // A later event may still end the exchange at its own instant.
            let since = exchange.ended.take();
            if let Err(end) = self.pause(&step, since, reply, trail, halt).await {
                return end;
            }
            exchange.steps.push(exchange::Step { host: step.host, ..exchange::Step::default() });
            trail.next();
            saying = Saying {
                request: (step.request)().with_missing(&fields),
                place: step.place,
                framing: step.framing,
                accepted: step.accepted,
                context: step.context,
                is_step: true,
            };
        }
    }

    /// The next request of the exchange, if any, once the reply before is decoded.
    async fn demanded(
        &self,
        reply: &Rc<dyn Reply>,
        demands: &mut UnboundedReceiver<Demand>,
        trail: &Trail,
    ) -> Option<Box<Step>> {
        let since = self.clock.now();
        reply.turned();
        let demand = demands.recv().await;
        let now = self.clock.now();
        if now.since(since) > PATIENCE {
            trail.excused.set(now);
        }
        match demand {
            Some(Demand::Step(step)) => Some(step),
            // Only WebSockets have messages.
            Some(Demand::Ended | Demand::Send(_) | Demand::Proceed) | None => None,
        }
    }

    /// Waits until a step may be sent. The error ends the exchange.
    async fn pause(
        &self,
        step: &Step,
        ended: Option<Nanos>,
        reply: &Rc<dyn Reply>,
        trail: &Trail,
        halt: &CancellationToken,
    ) -> Result<(), End> {
        let until = ended.unwrap_or_else(|| self.clock.now()) + step.delay;
        let held_up = (trail.first.sent.get(), trail.excused.get());
        tokio::select! {
            biased;
            () = halt.cancelled() => Err(End::Broke(
                Class::Interrupted,
                "the run was stopped before the next request of this exchange was sent".to_owned(),
            )),
            waited = pause(self, reply, held_up, until) => waited,
        }
    }

    /// Sends one request and reads its reply.
    async fn say(
        &self,
        pool: &Rc<Pool<C>>,
        exchange: &mut Open,
        saying: Saying,
        session: Option<&Arc<str>>,
        to: (u64, &Rc<dyn Reply>),
        trail: &Trail,
    ) -> End {
        let Saying { request, place, framing, accepted, context, is_step } = saying;
        let asking = (request, place, framing, is_step);
        let reply_head =
            self.ask(pool, exchange, asking, session.map(|own| &**own), to, trail).await;
        let (mut connection, mut reading, head) = match reply_head {
            Ok(parts) => parts,
            Err(end) => return end,
        };
        let is_decoded = (200..300).contains(&head.status) || accepted.contains(&head.status);
        if is_decoded && let Some(wrong) = not_as_asked(&head.headers, framing) {
            return End::Broke(Class::Protocol, wrong);
        }
        let (end, at, mut connection, bytes) = if is_decoded {
            to.1.head(head.status, &head.headers, framing, context);
            // A reply of gRPC without a message has its trailer fields in its head.
            if head.headers.contains_key(GRPC_STATUS)
                && let Err(wrong) = reading.trailers(connection.last_read(), &head.headers)
            {
                return End::Broke(Class::Protocol, wrong);
            }
            let read = reading.frames(connection).await;
            trail.excused.set(trail.excused.get().max(read.excused));
            (read.end, read.at, read.connection, read.bytes)
        } else {
            let (end, at) = reading.error_body(&mut connection, &head.headers).await;
            let bytes = match &end {
                End::Status { body, .. } => body.len() as u64,
                _ => 0,
            };
            (end, at, connection, bytes)
        };
        exchange.ended = Some(at);
        if let Some(step) = exchange.steps.last_mut() {
            step.bytes = bytes;
        }
        if !matches!(end, End::Broke(..)) && connection.rest(self.clock.now()) {
            pool.put_back(place, session.map(Arc::clone), connection);
        }
        end
    }

    /// Sends one request with its cookies, and waits for the head. The error ends the exchange.
    pub(super) async fn ask(
        &self,
        pool: &Rc<Pool<C>>,
        exchange: &mut Open,
        (mut request, place, framing, is_step): (Request, u32, Framing, bool),
        session: Option<&str>,
        (key, reply): (u64, &Rc<dyn Reply>),
        trail: &Trail,
    ) -> Result<(Connection<C::Io>, Reading, Head), End> {
        let marks = Rc::clone(&trail.current.borrow());
        let prepared = &exchange.request.prepared;
        let jars = self.jars.as_deref().filter(|_| place == prepared.target);
        let cookies = jars.map(|jars| jars.cookies(prepared, key));
        if let Some(cookies) = &cookies {
            request = cookies.add(request);
        }
        let (connection, reading, head) = loop {
            let taken = pool.take(place, session).await;
            let mut connection = taken.map_err(|(class, cause)| End::Broke(class, cause))?;
            let facts = connection.facts();
            if exchange.steps.len() <= 1 {
                exchange.connection = Some(facts);
            }
            if let Some(step) = exchange.steps.last_mut() {
                step.connection = Some(facts);
            }
            let instants = (&marks, &trail.first);
            let excused = trail.excused.get();
            let mut reading =
                Reading::new(self, (key, reply), (framing, is_step), instants, excused);
            match reading.head(connection.send(request, &marks)).await {
                Ok(head) => break (connection, reading, head),
                Err(NoHead::GivenUp(class, cause)) => return Err(End::Broke(class, cause)),
                // Nothing of it was sent, so using another connection is not a second attempt.
                Err(NoHead::Unsent(again)) if !facts.waited => request = again,
                Err(NoHead::Unsent(_)) => {
                    let cause = "a new connection was closed before a request was sent";
                    return Err(End::Broke(Class::Reset, cause.to_owned()));
                }
            }
        };
        let headers = connection.last_read();
        if let Some(cookies) = &cookies {
            cookies.take(&head.headers);
        }
        exchange.status = Some(head.status);
        exchange.headers.get_or_insert(headers);
        if let Some(step) = exchange.steps.last_mut() {
            (step.status, step.headers) = (Some(head.status), Some(headers));
        }
        Ok((connection, reading, head))
    }
}

/// Returns the fault of a reply that clearly is not of the kind that was asked for.
fn not_as_asked(headers: &HeaderMap, framing: Framing) -> Option<String> {
    let says = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(coding) = says(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        return Some(format!(
            "the reply is compressed (`content-encoding: {coding}`), but compression was not requested; is there a proxy in between?"
        ));
    }
    let kind = says(CONTENT_TYPE)?;
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let (what, advice) = match (kind, framing) {
        ("text/html", _) => ("a web page", "are the port and the path the engine's?"),
        ("application/json", Framing::EventStream) => (
            "one whole JSON document instead of a stream",
            "if the server does not stream, ask for whole replies (--disable-stream)",
        ),
        (kind, Framing::Grpc) if !kind.starts_with("application/grpc") => {
            ("a reply that is not gRPC", "are the port and the path right for its gRPC service?")
        }
        _ => return None,
    };
    Some(format!("the server answered with {what} ({kind}); {advice}"))
}
