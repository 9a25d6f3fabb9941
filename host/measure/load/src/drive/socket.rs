//! An exchange over a WebSocket: its handshake and its close. [`reading`](super::reading) has the
//! part between.

use std::rc::Rc;

use super::demand::{Kind, Outgoing};
use super::pool::Pool;
use super::reading::Inputs;
use super::talk::Trail;
use super::types::{End, Reply, Worker};
use crate::transport::websocket::handshake::Handshake;
use crate::transport::{Connect, Request};
use model::exchange::{Class, Open};
use model::frame::Framing;

/// Each message is a frame, as each event of a stream is.
const FRAMING: Framing = Framing::EventStream;
/// Statuses from here on refuse a handshake, and the backend explains them.
const REFUSED: u16 = 300;

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Opens a WebSocket with this request, sends these messages and the messages that decoding
    /// demands, and reads the server's. Puts the instant of each send into `inputs`, also if the
    /// exchange is given up.
    pub(super) async fn converse(
        &self,
        pool: &Rc<Pool<C>>,
        exchange: &mut Open,
        (request, messages): (Request, Vec<Outgoing>),
        (key, reply): (u64, &Rc<dyn Reply>),
        trail: &Trail,
        inputs: &Inputs,
    ) -> End {
        let place = exchange.request.prepared.target;
        let (request, handshake) = match Handshake::begin(request) {
            Ok(begun) => begun,
            Err(what) => return End::Broke(Class::Refused, what),
        };
        let asking = (request, place, FRAMING, false);
        // Never reserved for a conversation: it carries nothing afterwards.
        let reply_head = self.ask(pool, exchange, asking, None, (key, reply), trail).await;
        let (mut connection, mut reading, head) = match reply_head {
            Ok(parts) => parts,
            Err(end) => return end,
        };
        if head.status >= REFUSED {
            let (end, at) = reading.error_body(&mut connection, &head.headers).await;
            exchange.ended = Some(at);
            if connection.rest(self.clock.now()) {
                pool.put_back(place, None, connection);
            }
            return end;
        }
        if let Err(wrong) = handshake.check(&head) {
            return End::Broke(Class::Protocol, wrong);
        }
        let Some(socket) = connection.into_websocket() else {
            let what = "a WebSocket was to be opened over HTTP/2, and needs HTTP/1.1";
            return End::Broke(Class::Protocol, what.to_owned());
        };
        let demands = reply.demands(place, Kind::Socket);
        reply.head(head.status, &head.headers, FRAMING, Vec::new());
        let inputs = Inputs::clone(inputs);
        let over = reading.converse(socket, (messages, inputs), demands).await;
        exchange.ended = Some(over.at);
        if matches!(over.end, End::Whole { .. }) {
            pool.leave(over.socket);
        }
        over.end
    }
}
