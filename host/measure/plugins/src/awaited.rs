//! Calls of components that import WASI 0.3, whose functions may be asynchronous. wasmtime calls
//! such a component as a future. Every import of `wasi` is ready at once, so a call is polled as
//! long as it wakes itself; a guest that waits for something else ends with an error.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use wasmtime::component::{ComponentNamedList, Func, Lift, Lower};
use wasmtime::{Store, bail, format_err};

use super::compile::Contract;
use super::sandbox::{Guest, NEVER};

/// The function that a component exports, if it is one that is called as a future.
pub(super) fn function(
    store: &mut Store<Guest>,
    interface: &str,
    name: &str,
) -> wasmtime::Result<Option<Func>> {
    let Some(instance) = store.data().concurrent else { return Ok(None) };
    let version = Contract::NEWEST.version();
    let interface = format!("runner:plugin/{interface}@{version}");
    let found = instance
        .get_export_index(&mut *store, None, &interface)
        .and_then(|within| instance.get_export_index(&mut *store, Some(&within), name))
        .and_then(|index| instance.get_func(&mut *store, index));
    match found {
        Some(function) => Ok(Some(function)),
        None => Err(format_err!("it does not export `{interface}#{name}`")),
    }
}

/// Calls a function of a component that is called as a future.
pub(super) fn call<P, R>(store: &mut Store<Guest>, function: Func, params: P) -> wasmtime::Result<R>
where
    P: ComponentNamedList + Lower + Send + Sync,
    R: Lift + wasmtime::component::ComponentType + Send + Sync + 'static,
{
    let function = function.typed::<P, (R,)>(&*store)?;
    let (result,) = finish(function.call_async(store, params))??;
    Ok(result)
}

/// Runs a future that waits for nothing outside of itself.
pub(super) fn finish<F: Future>(future: F) -> wasmtime::Result<F::Output> {
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        if !woken.0.swap(false, Ordering::Relaxed) {
            bail!("{NEVER}");
        }
    }
}

/// Calls an exported function by the generated bindings, or by its name as a future.
macro_rules! exported {
    ($store:ident, $interface:literal, $name:expr, $guest:expr, $call:ident($($argument:expr),*)) => {
        match $crate::awaited::function($store, $interface, $name)? {
            None => $guest.$call($store, $($argument),*),
            Some(function) => $crate::awaited::call($store, function, ($($argument,)*)),
        }
    };
}
pub(super) use exported;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwoken_call_ends_with_an_error() {
        let mut left = 3;
        let waking = std::future::poll_fn(|context: &mut Context<'_>| {
            left -= 1;
            context.waker().wake_by_ref();
            match left {
                0 => Poll::Ready("over"),
                _ => Poll::Pending,
            }
        });
        assert_eq!(finish(waking).unwrap(), "over");
        let error = finish(std::future::pending::<()>()).unwrap_err();
        assert_eq!(error.to_string(), NEVER);
    }
}
