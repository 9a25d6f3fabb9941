//! The export macros: from a type that implements a trait to a component. They export nothing
//! unless the target is WebAssembly, because only there can the names of the exports be linked.

use std::sync::Once;

use schemars::JsonSchema;

use crate::bindings::about::Info;
use crate::{config, log};

/// Sends a panic's message and location to the host's log: the trap that follows carries neither.
pub(crate) fn hook_panics() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        std::panic::set_hook(Box::new(|panic| log::error(&panic.to_string())));
    });
}

/// A plugin's description, from its crate's manifest. A crate `backend-sglang` is named `sglang`.
#[doc(hidden)]
pub fn info<C: JsonSchema>(krate: &str, version: &str, summary: &str) -> Info {
    hook_panics();
    let name = ["backend-", "dataset-", "scorer-"]
        .iter()
        .find_map(|kind| krate.strip_prefix(kind))
        .unwrap_or(krate);
    Info {
        name: name.to_owned(),
        version: version.to_owned(),
        summary: summary.to_owned(),
        config_schema: config::schema::<C>(),
    }
}

/// Exports a type that implements [`Backend`](crate::Backend). Name, version and summary are the
/// crate's.
#[macro_export]
macro_rules! export_backend {
    ($plugin:ty) => {
        $crate::__export_plugin!(
            <$plugin as $crate::Backend>::Config,
            backend,
            Codec = $crate::glue::Codec<$plugin>
        );
    };
}

/// Exports a type that implements [`Dataset`](crate::Dataset). Name, version and summary are the
/// crate's.
#[macro_export]
macro_rules! export_dataset {
    ($plugin:ty) => {
        $crate::__export_plugin!(
            <$plugin as $crate::Dataset>::Config,
            dataset,
            Generator = $crate::glue::Generator<$plugin>
        );
    };
}

/// Exports a type that implements [`Scorer`](crate::Scorer). Name, version and summary are the
/// crate's.
#[macro_export]
macro_rules! export_scorer {
    ($plugin:ty) => {
        $crate::__export_plugin!(
            <$plugin as $crate::Scorer>::Config,
            scorer,
            Judge = $crate::glue::Judge<$plugin>
        );
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_plugin {
    ($config:ty, $kind:ident, $resource:ident = $opened:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            struct Component;

            impl $crate::bindings::about::Guest for Component {
                fn describe() -> $crate::bindings::about::Info {
                    $crate::glue::info::<$config>(
                        env!("CARGO_PKG_NAME"),
                        env!("CARGO_PKG_VERSION"),
                        env!("CARGO_PKG_DESCRIPTION"),
                    )
                }
            }

            impl $crate::bindings::$kind::Guest for Component {
                type $resource = $opened;
            }

    $crate::bindings::about::export!(Component with_types_in $crate::bindings::about);
    $crate::bindings::$kind::export!(Component with_types_in $crate::bindings::$kind);
        };
    };
}
