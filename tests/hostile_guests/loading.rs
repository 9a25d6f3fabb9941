//! Files that are no plugin, or not one for this runner. A component that is nearly right is a good one with
//! a name in it changed to another of the same length.

use std::fs;
use std::path::Path;

use runner::plugin::backend::Backend;
use runner::plugin::load::{SearchPath, load};
use runner::plugin::{Plugin, PluginError};
use serde_json::json;

use super::fixture::{self, BACKEND, DATASET, bytes, fails};

/// Loads a file of these bytes; its name is `plugin.wasm`.
fn load_bytes(folder: &Path, bytes: &[u8]) -> Result<Plugin, PluginError> {
    fs::write(folder.join("plugin.wasm"), bytes).unwrap();
    let search = SearchPath {
        scenario: Some(folder.to_owned()),
        folders: Vec::new(),
    };
    load("plugin.wasm", &search)
}

/// The component with every occurrence of a name changed.
fn patched(component: &str, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes(component);
    let mut found = 0;
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "{component} does not hold {from}");
    bytes
}

#[test]
fn what_is_no_component_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let core_module = b"\0asm\x01\0\0\0";
    let cases: [(&[u8], &str); 4] = [
        (b"", "is an empty file"),
        (b"(component)", "is not a WebAssembly file"),
        (b"\0as", "is not a WebAssembly file"),
        (
            core_module,
            "is a core WebAssembly module, not a component; wrap it with `wasm-tools component new`",
        ),
    ];
    for (bytes, expected) in cases {
        let error = fails(load_bytes(folder.path(), bytes));
        assert!(
            matches!(&error, PluginError::NotComponent { plugin, what }
                if plugin == "plugin.wasm" && what == expected),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("plugin `plugin.wasm` {expected}")
        );
    }
}

#[test]
fn a_component_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = bytes(BACKEND);
    for cut in [12, whole.len() / 2, whole.len() - 1] {
        let error = fails(load_bytes(folder.path(), &whole[..cut]));
        assert!(
            matches!(&error, PluginError::NotComponent { plugin, what }
                if plugin == "plugin.wasm" && what.starts_with("is not a valid WebAssembly component: ")),
            "cut at {cut}: {error:?}"
        );
    }
}

#[test]
fn a_component_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = fails(load_bytes(folder.path(), b"\0asm\x0d\0\x01\0"));
    assert!(matches!(error, PluginError::WrongWorld { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "plugin `plugin.wasm` is a component, but no runner plugin: it exports no interface, \
         expected one of runner:plugin/dataset, backend or scorer@0.2.0"
    );
}

#[test]
fn another_version_says_who_should_update() {
    let folder = tempfile::tempdir().unwrap();
    for (version, advice) in [
        ("@0.9.0", "update the runner"),
        ("@0.0.9", "ask its author for a build against 0.2.0"),
    ] {
        let error = fails(load_bytes(
            folder.path(),
            &patched(BACKEND, "@0.2.0", version),
        ));
        assert!(matches!(error, PluginError::WrongWorld { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "plugin `plugin.wasm` was built for runner:plugin {}, this runner speaks 0.1.0 and 0.2.0; {advice}",
                &version[1..]
            )
        );
    }
}

#[test]
fn an_import_beyond_the_contract_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = patched(
        BACKEND,
        "runner:plugin/log@0.2.0",
        "wasi:clocks/clock@0.2.0",
    );
    let plugin = load_bytes(folder.path(), &bytes).unwrap();
    let grants = fixture::grants(&json!({}));
    let backend = Backend::new(plugin, &json!({}), grants).unwrap();
    for error in [fails(backend.describe()), fails(backend.open())] {
        assert!(matches!(error, PluginError::WrongWorld { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            "plugin `plugin.wasm` imports `wasi:clocks/clock@0.2.0`, which a backend may not use: \
             plugins see no clock, socket, path, variable or randomness; its author must build it without"
        );
    }
}

#[test]
fn an_interface_with_other_functions_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = patched(BACKEND, "codec.default-url", "codec.default-uri");
    let plugin = load_bytes(folder.path(), &bytes).unwrap();
    let grants = fixture::grants(&json!({}));
    let backend = Backend::new(plugin, &json!({}), grants).unwrap();
    let error = fails(backend.open());
    assert!(
        matches!(&error, PluginError::WrongWorld { plugin, what } if plugin == "plugin.wasm"
            && what.starts_with("does not fit the world `backend-plugin`: ")
            && what.contains("default-url")),
        "{error:?}"
    );
}

#[test]
fn a_plugin_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = load_bytes(folder.path(), &bytes(DATASET)).unwrap();
    let error = fails(Backend::new(
        plugin,
        &json!({}),
        fixture::grants(&json!({})),
    ));
    assert!(matches!(error, PluginError::WrongKind { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "plugin `plugin.wasm` is a dataset, but a backend is expected at [backend]"
    );
}

#[test]
fn a_folder_is_not_readable_and_a_missing_file_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let search = SearchPath {
        scenario: Some(folder.path().to_owned()),
        folders: Vec::new(),
    };
    fs::create_dir(folder.path().join("folder.wasm")).unwrap();
    let error = fails(load("folder.wasm", &search));
    assert!(
        matches!(&error, PluginError::Unreadable { plugin, .. } if plugin.ends_with("folder.wasm")),
        "{error:?}"
    );
    let error = fails(load("nothing.wasm", &search));
    assert!(
        matches!(&error, PluginError::NotFound { asked, .. } if asked == "nothing.wasm"),
        "{error:?}"
    );
}
