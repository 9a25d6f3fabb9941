//! Files that are no plugin of this runner. Some are plugins with a name in them changed.

use std::fs;

use plugins::backend::Backend;
use plugins::load::{SearchPath, load};
use plugins::outline::Outline;
use plugins::{PluginError, imports};
use serde_json::json;

use super::fixture::{self, BACKEND, DATASET, bytes, fails, load_bytes, patched};

#[test]
fn files_that_are_no_components_are_distinguished() {
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
        assert_eq!(error.to_string(), format!("plugin `plugin.wasm` {expected}"));
    }
}

/// The id of a section of exports in a component.
const EXPORTS: u8 = 11;

/// The sections of a component: the id of each, and where it ends.
///
/// Source: the binary format: after eight bytes, sections of an id, a length as LEB128, content.
fn sections(component: &[u8]) -> Vec<(u8, usize)> {
    let mut sections = Vec::new();
    let mut at = 8;
    while let Some(id) = component.get(at) {
        let (mut length, mut shift) = (0, 0);
        loop {
            at += 1;
            length |= usize::from(component[at] & 0x7f) << shift;
            shift += 7;
            if component[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1 + length;
        sections.push((*id, at));
    }
    sections
}

#[test]
fn a_component_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = bytes(BACKEND);
    let sections = sections(&whole);
    assert_eq!(sections.last().map(|(_, end)| *end), Some(whole.len()));
    // A file cut between two sections is a component without exports: they stand at its end.
    let sooner = sections.iter().take_while(|(id, _)| *id != EXPORTS);
    let ends: Vec<usize> = sooner.map(|(_, end)| *end).collect();
    for cut in ends.iter().step_by(ends.len().div_ceil(20)).chain(&[8]) {
        let error = fails(load_bytes(folder.path(), &whole[..*cut]));
        assert!(matches!(error, PluginError::WrongWorld { .. }), "cut at {cut}: {error:?}");
    }
    let cuts = (8..whole.len()).step_by(whole.len() / 50);
    for cut in cuts.chain([9, 12, whole.len() - 2, whole.len() - 1]) {
        if cut == 8 || sections.iter().any(|(_, end)| *end == cut) {
            continue;
        }
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
        "plugin `plugin.wasm` is a component, but not a runner plugin: it exports no interface, \
         but must export runner:plugin/dataset, backend or scorer@1.0.0"
    );
}

#[test]
fn another_version_says_who_should_update() {
    let folder = tempfile::tempdir().unwrap();
    for (version, advice) in [
        ("@9.0.0", "update the runner"),
        (
            "@0.0.9",
            "rebuild it with `runner plugin build`, or ask its author for a build against 1.0.0",
        ),
    ] {
        let error = fails(load_bytes(folder.path(), &patched(BACKEND, "@1.0.0", version)));
        assert!(matches!(error, PluginError::WrongWorld { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "plugin `plugin.wasm` was built for runner:plugin {}, but this runner supports 1.0.0; {advice}",
                &version[1..]
            )
        );
    }
}

/// The name that is changed into another import's name of the same length.
const LOG: &str = "runner:plugin/log@1.0.0";

#[test]
fn an_import_beyond_the_contract_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (import, why) in [
        (
            "wasi:http/handler@0.2.0",
            "plugins have no network, and only the runner sends requests; its author must build it without this import",
        ),
        (
            "wasi:nn/inference@0.2.0",
            "this runner provides only runner:plugin and an empty WASI 0.2 and 0.3; its author must build it without this import",
        ),
        (
            "wasi:clocks/clock@0.4.0",
            "this runner supports only versions 0.2 and 0.3 of WASI; its author must build it for one of them",
        ),
        ("runner:plugin/lag@1.0.0", "this runner has no such interface"),
        ("runner:plugin/log@9.3.0", "this runner does not support that version"),
    ] {
        let error = fails(load_bytes(folder.path(), &patched(BACKEND, LOG, import)));
        assert!(matches!(error, PluginError::WrongWorld { .. }), "{error:?}");
        let expected = format!("plugin `plugin.wasm` imports `{import}`, which is refused: {why}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn forbidden_imports_are_reported_with_the_reason() {
    let listed = |bytes: &[u8]| {
        let imports = imports::list(&Outline::read(bytes).unwrap());
        let line = |import: imports::Import| {
            let verdict = if import.allowed { "allowed" } else { "refused" };
            format!("{} {verdict}: {}", import.name, import.why)
        };
        imports.into_iter().map(line).collect::<Vec<_>>()
    };
    let socket = "wasi:sockets/udps@0.2.0";
    assert_eq!(
        listed(&patched(BACKEND, LOG, socket)),
        [
            "runner:plugin/types@1.0.0 allowed: part of the plugin interface",
            "wasi:sockets/udps@0.2.0 allowed: there is no network: using it aborts the call to the plugin",
        ]
    );
    let files = "runner:plugin/files@0.1";
    let lines = listed(&patched(BACKEND, LOG, files));
    assert_eq!(lines[1], "runner:plugin/files@0.1 refused: only datasets can read files");
    assert!(listed(&bytes(DATASET)).iter().all(|line| line.contains("allowed")));
}

#[test]
fn an_interface_with_other_functions_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = patched(BACKEND, "codec.default-url", "codec.default-uri");
    let plugin = load_bytes(folder.path(), &bytes).unwrap();
    let error = fails(Backend::new(plugin, &json!({}), fixture::grants(&json!({}))));
    assert!(
        matches!(&error, PluginError::WrongWorld { plugin, what } if plugin == "plugin.wasm"
            && what.starts_with("does not fit the world `backend-plugin`: ")
            && what.contains("default-url")),
        "{error:?}"
    );
}

#[test]
fn names_in_a_component_cannot_steer_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let import = "wasi\u{1b}[2J\u{202e}\u{7}/\u{9b}31mx@0.2";
    assert_eq!(import.len(), LOG.len());
    let bytes = patched(BACKEND, LOG, import);
    let error = fails(load_bytes(folder.path(), &bytes)).to_string();
    assert!(error.contains(r"`wasi\u{1b}[2J\u{202e}\u{7}/\u{9b}31mx@0.2`"), "{error}");
    let listed = imports::list(&Outline::read(&bytes).unwrap());
    assert!(listed.iter().any(|import| import.name.starts_with(r"wasi\u{1b}[2J")), "{listed:?}");
    let error = fails(load("\u{1b}]0;x\u{7}.wasm", &SearchPath::default())).to_string();
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn a_plugin_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = load_bytes(folder.path(), &bytes(DATASET)).unwrap();
    let error = fails(Backend::new(plugin, &json!({}), fixture::grants(&json!({}))));
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
        shipped: shipped::PLUGINS,
    };
    fs::create_dir(folder.path().join("folder.wasm")).unwrap();
    let error = fails(load("folder.wasm", &search)).to_string();
    assert!(
        error.ends_with(
            "folder.wasm` is a folder; name a .wasm file in it, or search it for plugins with --plugin-path"
        ),
        "{error}"
    );
    let built = folder.path().join("folder.wasm/target/plugin");
    fs::create_dir_all(&built).unwrap();
    fs::write(built.join("mine.wasm"), "").unwrap();
    let error = fails(load("folder.wasm", &search)).to_string();
    assert!(error.contains("is a folder; name its component, `"), "{error}");
    assert!(error.ends_with("target/plugin/mine.wasm`"), "{error}");
    let error = fails(load("nothing.wasm", &search));
    assert!(
        matches!(&error, PluginError::NotFound { name, .. } if name == "nothing.wasm"),
        "{error:?}"
    );
}

#[test]
fn a_search_path_need_not_sort_plugins_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.wasm"), bytes(BACKEND)).unwrap();
    let search = SearchPath {
        scenario: None,
        folders: vec![folder.path().to_owned()],
        shipped: shipped::PLUGINS,
    };
    let plugin = load("backends/mine.wasm", &search).unwrap();
    assert!(plugin.origin.ends_with("mine.wasm"), "{}", plugin.origin);
    // Shipped plugins are still found by name.
    assert_eq!(load("backends/openai.wasm", &search).unwrap().origin, "shipped");
    assert!(load("backends/mine/mine.wasm", &search).is_err());
}

#[test]
fn a_digest_without_its_prefix_is_not_taken_for_a_name() {
    let digits = "a1".repeat(32);
    let error = fails(load(&format!("mine.wasm@{digits}"), &SearchPath::default())).to_string();
    assert_eq!(
        error,
        "plugin `mine.wasm`: a pinned digest is `mine.wasm@sha256:` followed by 64 hexadecimal digits, \
         but this digest lacks `sha256:` before its digits"
    );
}
