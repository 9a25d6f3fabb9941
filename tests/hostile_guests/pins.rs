//! A plugin that is pinned to a digest is that plugin or none.

use plugins::PluginError;
use plugins::load::{SearchPath, load};

use super::fixture::{BACKEND, SCORER, components, fails};

fn search() -> SearchPath {
    SearchPath { scenario: None, folders: vec![components()], shipped: shipped::PLUGINS }
}

#[test]
fn the_pinned_component_runs() {
    let plain = load(BACKEND, &search()).unwrap();
    for digest in [plain.digest.clone(), plain.digest.to_uppercase()] {
        let pinned = load(&format!("{BACKEND}@sha256:{digest}"), &search()).unwrap();
        assert_eq!((pinned.name.as_str(), &pinned.digest), (BACKEND, &plain.digest));
    }
    let error = fails(load(&format!("{SCORER}@sha256:{}", plain.digest), &search()));
    let PluginError::OtherDigest { pinned, found, .. } = &error else { panic!("{error:?}") };
    assert_eq!(pinned, &plain.digest);
    assert_ne!(found, pinned);
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("plugin `{SCORER}` ("))
            && text.contains(found.as_str())
            && text.contains(pinned.as_str()),
        "{text}"
    );
}

#[test]
fn an_invalid_digest_is_reported() {
    let digits = "0123456789abcdef".repeat(4);
    for (digest, what) in [
        ("", "has 0".to_owned()),
        (&digits[1..], "has 63".to_owned()),
        (&format!("{digits}0"), "has 65".to_owned()),
        (&digits.replace('f', "g"), "contains 'g', which is not hexadecimal".to_owned()),
    ] {
        let error = fails(load(&format!("{BACKEND}@sha256:{digest}"), &search()));
        assert_eq!(
            error.to_string(),
            format!(
                "plugin `{BACKEND}`: a pinned digest is `{BACKEND}@sha256:` followed by 64 hexadecimal digits, but this digest {what}"
            )
        );
    }
}

#[test]
fn a_name_with_an_at_in_it_is_a_name() {
    let error = fails(load("a@b.wasm", &search()));
    assert!(
        matches!(&error, PluginError::NotFound { name, .. } if name == "a@b.wasm"),
        "{error:?}"
    );
}
