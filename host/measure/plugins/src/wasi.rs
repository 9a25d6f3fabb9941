//! An empty WASI 0.2 and 0.3, for components whose tools cannot build without WASI:
//! `wasm32-wasip2`, componentize-py and componentize-js. A component may import both.
//!
//! There are no arguments, environment variables, files, terminals or network. Input is empty,
//! clocks stand still at 0 and nothing blocks. Random numbers derive from the run's seed; standard
//! output and error go to the plugin's log. Any other function aborts the plugin's call with an
//! error that names the function.
//!
//! Functions are defined with the types with which the component imports them, so any 0.2 and 0.3
//! works. All resources have one type in the host: a component distinguishes its own.

use std::sync::Arc;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, Resource, ResourceAny, ResourceType, Val};
use wasmtime::{AsContextMut, StoreContextMut, bail};

use super::sandbox::{Guest, Output};
use super::streams;

/// Most random bytes returned at once.
const RANDOM_BYTES: u64 = 64 << 10;
/// Bytes that a stream accepts in one write.
const WRITE_BYTES: u64 = 64 << 10;

/// Anything that a component has a handle of.
struct Handle;

/// The objects that a handle stands for.
const NOTHING: u32 = 0;
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

#[derive(Clone, Copy)]
enum Function {
    /// Returns always the same.
    Constant(fn() -> Val),
    /// Returns a record with a time since 1970 in whole seconds, and nanoseconds.
    Time(fn() -> Val, u32),
    Handle(u32),
    Unit,
    /// Reports everything in a list as ready.
    AllReady,
    /// Takes bytes for a stream.
    Write,
    /// Returns a stream without bytes, and its success.
    Input,
    /// Takes a stream of bytes, and promises its success.
    Print(Output),
    RandomBytes,
    RandomNumber,
    RandomPair,
    /// Ends the call.
    Exit,
    /// Ends the call: there is no such thing here.
    Refuse(&'static str),
}

impl Function {
    fn new(interface: &str, name: &str) -> Self {
        match (interface, name) {
            ("cli/environment", "get-environment" | "get-arguments")
            | ("filesystem/preopens", "get-directories") => {
                Function::Constant(|| Val::List(Vec::new()))
            }
            ("cli/environment", "initial-cwd" | "get-initial-cwd")
            | ("cli/terminal-stdin", "get-terminal-stdin")
            | ("cli/terminal-stdout", "get-terminal-stdout")
            | ("cli/terminal-stderr", "get-terminal-stderr")
            | ("filesystem/types", "filesystem-error-code") => {
                Function::Constant(|| Val::Option(None))
            }
            ("cli/exit", _) => Function::Exit,
            ("cli/stdin", "get-stdin") => Function::Handle(NOTHING),
            ("cli/stdout", "get-stdout") => Function::Handle(STDOUT),
            ("cli/stderr", "get-stderr") => Function::Handle(STDERR),
            ("cli/stdin", "read-via-stream") => Function::Input,
            ("cli/stdout", "write-via-stream") => Function::Print(Output::Standard),
            ("cli/stderr", "write-via-stream") => Function::Print(Output::Error),
            ("clocks/monotonic-clock", "now") => Function::Constant(|| Val::U64(0)),
            ("clocks/monotonic-clock", "resolution" | "get-resolution")
            | ("clocks/system-clock", "get-resolution") => Function::Constant(|| Val::U64(1)),
            ("clocks/monotonic-clock", "wait-until" | "wait-for") => Function::Unit,
            ("clocks/system-clock", "now") => Function::Time(|| Val::S64(0), 0),
            ("clocks/monotonic-clock", "subscribe-instant" | "subscribe-duration")
            | (
                "io/streams",
                "[method]input-stream.subscribe" | "[method]output-stream.subscribe",
            ) => Function::Handle(NOTHING),
            ("clocks/wall-clock", "now") => Function::Time(|| Val::U64(0), 0),
            ("clocks/wall-clock", "resolution") => Function::Time(|| Val::U64(0), 1),
            ("io/error", "[method]error.to-debug-string") => {
                Function::Constant(|| Val::String(String::new()))
            }
            ("io/poll", "poll") => Function::AllReady,
            ("io/poll", "[method]pollable.ready") => Function::Constant(|| Val::Bool(true)),
            ("io/poll", "[method]pollable.block") => Function::Unit,
            (
                "io/streams",
                "[method]input-stream.read"
                | "[method]input-stream.blocking-read"
                | "[method]input-stream.skip"
                | "[method]input-stream.blocking-skip",
            ) => Function::Constant(|| {
                let closed = Val::Variant("closed".to_owned(), None);
                Val::Result(Err(Some(Box::new(closed))))
            }),
            ("io/streams", "[method]output-stream.check-write") => {
                Function::Constant(|| Val::Result(Ok(Some(Box::new(Val::U64(WRITE_BYTES))))))
            }
            (
                "io/streams",
                "[method]output-stream.write" | "[method]output-stream.blocking-write-and-flush",
            ) => Function::Write,
            (
                "io/streams",
                "[method]output-stream.flush" | "[method]output-stream.blocking-flush",
            ) => Function::Constant(|| Val::Result(Ok(None))),
            ("random/random", "get-random-bytes")
            | ("random/insecure", "get-insecure-random-bytes") => Function::RandomBytes,
            ("random/random", "get-random-u64")
            | ("random/insecure", "get-insecure-random-u64") => Function::RandomNumber,
            ("random/insecure-seed", "insecure-seed" | "get-insecure-seed") => Function::RandomPair,
            _ if interface.starts_with("sockets/") => Function::Refuse("a plugin has no network"),
            _ if interface.starts_with("filesystem/") => {
                Function::Refuse("plugins have no files except a dataset's inputs")
            }
            _ => Function::Refuse("the sandbox does not provide it"),
        }
    }

    /// Its result for these parameters; absent if it has none.
    fn result(
        self,
        store: &mut StoreContextMut<'_, Guest>,
        params: &[Val],
        handles: &[u32],
    ) -> wasmtime::Result<Option<Val>> {
        Ok(Some(match self {
            Function::Constant(value) => value(),
            Function::Time(seconds, nanoseconds) => Val::Record(vec![
                ("seconds".to_owned(), seconds()),
                ("nanoseconds".to_owned(), Val::U32(nanoseconds)),
            ]),
            Function::Handle(what) => {
                let handle = Resource::<Handle>::new_own(what);
                Val::Resource(handle.try_into_resource_any(store)?)
            }
            Function::Unit => return Ok(None),
            Function::AllReady => {
                let all = 0..u32::try_from(handles.len())?;
                Val::List(all.map(Val::U32).collect())
            }
            Function::Write => {
                let to = match handles {
                    [STDERR, ..] => Output::Error,
                    _ => Output::Standard,
                };
                store.data_mut().print(to, &bytes(params)?);
                Val::Result(Ok(None))
            }
            Function::Input => streams::empty(store)?,
            Function::Print(to) => {
                let [Val::Stream(printed)] = params else {
                    bail!("it is not called as WASI defines it");
                };
                streams::printed(store, printed.clone(), to)?
            }
            Function::RandomBytes => {
                let [Val::U64(length), ..] = params else {
                    bail!("it is not called as WASI defines it");
                };
                if *length > RANDOM_BYTES {
                    bail!(
                        "it asked for {length} random bytes at once, at most {RANDOM_BYTES} are allowed"
                    );
                }
                let guest = store.data_mut();
                let mut random = Vec::new();
                while (random.len() as u64) < *length {
                    random.extend(guest.random().to_le_bytes().map(Val::U8));
                }
                random.truncate(usize::try_from(*length)?);
                Val::List(random)
            }
            Function::RandomNumber => Val::U64(store.data_mut().random()),
            Function::RandomPair => {
                let guest = store.data_mut();
                Val::Tuple(vec![Val::U64(guest.random()), Val::U64(guest.random())])
            }
            Function::Exit => bail!("it called `exit`; a plugin must return a result or an error"),
            Function::Refuse(why) => bail!("{why}"),
        }))
    }
}

pub(super) fn link(linker: &mut Linker<Guest>, component: &Component) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (import, item) in component.component_type().imports(engine) {
        let Some(interface) = import.strip_prefix("wasi:") else { continue };
        let interface = interface.split('@').next().unwrap_or(interface);
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        let mut defined = linker.instance(import)?;
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    defined.resource(name, ResourceType::host::<Handle>(), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(ty) => {
                    let function = Function::new(interface, name);
                    let called = format!("wasi:{interface}#{name}");
                    let call = move |store: StoreContextMut<'_, Guest>,
                                     params: &[Val],
                                     results: &mut [Val]| {
                        call(function, store, params, results).map_err(|error| match function {
                            Function::Refuse(_) => {
                                wasmtime::Error::msg(format!("it called `{called}`: {error}"))
                            }
                            _ => error,
                        })
                    };
                    if ty.async_() {
                        let call = Arc::new(call);
                        defined.func_new_concurrent(
                            name,
                            move |accessor, _, params, results| {
                                let call = Arc::clone(&call);
                                Box::pin(async move {
                                    accessor.with(|mut access| {
                                        call(access.as_context_mut(), params, results)
                                    })
                                })
                            },
                        )?;
                    } else {
                        defined.func_new(name, move |store, _, params, results| {
                            call(store, params, results)
                        })?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn call(
    function: Function,
    mut store: StoreContextMut<'_, Guest>,
    params: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    let mut handles = Vec::new();
    for param in params {
        match param {
            Val::Resource(handle) => handles.push(taken(*handle, &mut store)?),
            Val::List(items) => {
                for item in items {
                    if let Val::Resource(handle) = item {
                        handles.push(taken(*handle, &mut store)?);
                    }
                }
            }
            _ => {}
        }
    }
    let result = function.result(&mut store, params, &handles)?;
    match (results, result) {
        ([place], Some(result)) => *place = result,
        ([], None) => {}
        _ => bail!("it is not imported as WASI defines it"),
    }
    Ok(())
}

/// Returns the number of the object that a handle stands for; the lender gets the handle back.
fn taken(handle: ResourceAny, store: &mut StoreContextMut<'_, Guest>) -> wasmtime::Result<u32> {
    Ok(handle.try_into_resource::<Handle>(&mut *store)?.rep())
}

fn bytes(params: &[Val]) -> wasmtime::Result<Vec<u8>> {
    let list = params.iter().find_map(|param| match param {
        Val::List(items) => Some(items),
        _ => None,
    });
    let Some(items) = list else {
        bail!("it is not called as WASI defines it");
    };
    let bytes = items.iter().map(|item| match item {
        Val::U8(byte) => Ok(*byte),
        _ => bail!("it is not called as WASI defines it"),
    });
    bytes.collect()
}
