//! The streams of WASI 0.3 in the sandbox: empty standard input, and output that goes to the log.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use wasmtime::component::{ComponentType, FutureAny, FutureReader, Lift, Lower};
use wasmtime::component::{Source, StreamAny, StreamConsumer, StreamReader, StreamResult, Val};
use wasmtime::{AsContextMut, Result, StoreContextMut};

use super::sandbox::{Guest, Output};

const PIECE: usize = 64 << 10;

/// The errors of `wasi:cli/types`. None of them happens here.
#[expect(dead_code, reason = "the type of a future must equal the type that the guest imports")]
#[derive(Clone, Copy, Debug, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
enum ErrorCode {
    #[component(name = "io")]
    Io,
    #[component(name = "illegal-byte-sequence")]
    IllegalByteSequence,
    #[component(name = "pipe")]
    Pipe,
}

/// The end of a stream, as the guest may await it.
type StreamEnd = std::result::Result<(), ErrorCode>;

/// A stream without bytes, and the future of its success.
pub(super) fn empty(store: &mut StoreContextMut<'_, Guest>) -> Result<Val> {
    let stream = StreamReader::new(&mut *store, Vec::<u8>::new())?;
    let stream = StreamAny::try_from_stream_reader(&mut *store, stream)?;
    let ended = future(store, std::future::ready(Result::Ok(StreamEnd::Ok(()))))?;
    Ok(Val::Tuple(vec![Val::Stream(stream), ended]))
}

/// Prints the bytes of a stream, and returns the future of its end.
pub(super) fn printed(
    store: &mut StoreContextMut<'_, Guest>,
    stream: StreamAny,
    to: Output,
) -> Result<Val> {
    let end = End::default();
    let reader = stream.try_into_stream_reader::<u8>()?;
    let printer = Printer { to, end: end.clone() };
    reader.pipe(&mut *store, printer)?;
    future(store, end)
}

fn future(
    store: &mut StoreContextMut<'_, Guest>,
    ended: impl Future<Output = Result<StreamEnd>> + Send + 'static,
) -> Result<Val> {
    let reader = FutureReader::new(&mut *store, ended)?;
    Ok(Val::Future(FutureAny::try_from_future_reader(store, reader)?))
}

/// The state of a stream's end: true once it has ended, and its waiter.
#[derive(Clone, Default)]
struct End(Arc<Mutex<(bool, Option<Waker>)>>);

impl Future for End {
    type Output = Result<StreamEnd>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 {
            Poll::Ready(Ok(Ok(())))
        } else {
            state.1 = Some(context.waker().clone());
            Poll::Pending
        }
    }
}

/// Reads a stream into the log. It is dropped with the stream.
struct Printer {
    to: Output,
    end: End,
}

impl StreamConsumer<Guest> for Printer {
    type Item = u8;

    fn poll_consume(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'_, Guest>,
        source: Source<'_, u8>,
        _: bool,
    ) -> Poll<Result<StreamResult>> {
        let mut source = source.as_direct(store.as_context_mut());
        let bytes = source.remaining();
        let bytes = bytes[..bytes.len().min(PIECE)].to_vec();
        source.mark_read(bytes.len());
        store.data_mut().print(self.to, &bytes);
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        let mut state = self.end.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }
}
