//! Components that are too much: small files that stand for much, and large files.

use model::plugin::Limits;
use plugins::PluginError;
use plugins::backend::Backend;
use serde_json::json;

use super::fixture::{
    BACKEND, DEEDS, bytes, fails, grants, load_bytes, load_bytes_within, patched, trapped,
};

/// Returns the message about a component of this text.
#[track_caller]
fn refused(text: &str) -> String {
    refused_within(&wat::parse_str(text).unwrap(), &Limits::default())
}

#[track_caller]
fn refused_within(bytes: &[u8], limits: &Limits) -> String {
    let folder = tempfile::tempdir().unwrap();
    match fails(load_bytes_within(folder.path(), bytes, limits)) {
        PluginError::Excessive { what, .. } => what,
        error => panic!("{error:?}"),
    }
}

/// A component of one module.
fn module(inside: &str) -> String {
    format!("(component (core module {inside}))")
}

#[test]
fn thousands_of_functions() {
    let expected = "it has 200001 functions, at most 200000 are allowed (raise `functions` under [sandbox] if you trust it)";
    assert_eq!(refused(&module(&"(func)".repeat(200_001))), expected);
    let spread = "(core module (func) (func))".repeat(600);
    let limits = Limits { functions: 1_000, ..Limits::default() };
    let bytes = wat::parse_str(format!("(component {spread})")).unwrap();
    assert!(refused_within(&bytes, &limits).starts_with("it has 1200 functions, at most 1000"));
}

#[test]
fn huge_tables() {
    let expected = "it has 4000000000 elements in its tables, at most 100000 are allowed (raise `table` under [sandbox] if you trust it)";
    assert_eq!(refused(&module("(table 4000000000 funcref)")), expected);
    assert!(refused(&module(&"(table 2000 funcref)".repeat(51))).starts_with("it has 102000 "));
}

#[test]
fn huge_memories() {
    let expected = "it starts with 4096 MiB of memory, at most 256 MiB are allowed (raise `memory` under [sandbox] if you trust it)";
    assert_eq!(refused(&module("(memory 65536)")), expected);
    assert!(refused(&module("(memory i64 0x1000000000000)")).contains("of memory"));
    assert!(refused(&module(&"(memory 100)".repeat(50))).starts_with("it starts with 312 MiB"));
}

#[test]
fn components_in_components_without_end() {
    let deep = (0..9).fold(String::new(), |inside, _| format!("(component {inside})"));
    let expected = "it has 9 levels of nested modules and components, at most 8 are allowed (raise `nesting` under [sandbox] if you trust it)";
    assert_eq!(refused(&deep), expected);
    let deeper = (0..5_000).fold(Vec::new(), |inside: Vec<u8>, _| {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        if !inside.is_empty() {
            bytes.push(4);
            let mut length = inside.len();
            while length >= 0x80 {
                bytes.push(length as u8 | 0x80);
                length >>= 7;
            }
            bytes.push(length as u8);
            bytes.extend(inside);
        }
        bytes
    });
    assert!(refused_within(&deeper, &Limits::default()).starts_with("it has 5000 levels"));
}

/// Seven lines, ten to the sixth instances.
#[test]
fn instances_of_instances_without_end() {
    let mut text = "(core module $m) (core instance (instantiate $m))".to_owned();
    for level in 0..6 {
        let ten = "(instance (instantiate $c))".repeat(10);
        text = format!("(component $c {text}) {ten} (; level {level} ;)");
    }
    let message = refused(&format!("(component {text})"));
    let (count, limit) = message
        .strip_prefix("each instance consists of up to ")
        .and_then(|rest| rest.split_once(" instances, at most "))
        .unwrap_or_else(|| panic!("{message}"));
    assert!(count.parse::<u64>().unwrap() > 1_000_000, "{message}");
    assert_eq!(limit, "1000 are allowed");
}

/// The globals of each instance are counted, however many share a module.
#[test]
fn globals_of_instances() {
    let globals = "(global i32 (i32.const 0))".repeat(3_000);
    let many = "(core instance (instantiate $m))".repeat(200);
    let expected = "each instance takes up to 18 MiB for globals, functions and imports, at most 16 MiB are allowed";
    assert_eq!(refused(&format!("(component (core module $m {globals}) {many})")), expected);
    let elsewhere = "(core instance (instantiate $n))".repeat(200);
    let nested = format!(
        "(component (core module $m {globals}) (component $c (alias outer 1 $m (core module $n)) {elsewhere}) \
         (instance (instantiate $c)))"
    );
    assert!(refused(&nested).starts_with("each instance takes up to 18 MiB"));
    let elements =
        "(table 1 funcref) (func $f) (elem declare func".to_owned() + &" $f".repeat(60_000) + ")";
    let many = "(core instance (instantiate $m))".repeat(10);
    assert!(
        refused(&format!("(component (core module $m {elements}) {many})"))
            .starts_with("each instance takes up to 18 MiB")
    );
}

#[test]
fn lists_without_end() {
    let expected = "globals, segments and the like, at most 500000 are allowed";
    for inside in [
        "(global i32 (i32.const 0))".repeat(500_001),
        "(type (func (param i32 i32 i32 i32 i32 i32 i32 i32)))".repeat(250_000),
        format!("(memory 1) {}", r#"(data "")"#.repeat(500_001)),
    ] {
        let what = refused(&module(&inside));
        assert!(what.ends_with(expected), "{what}");
    }
}

/// A function of this code.
fn function(locals: usize, code: &str) -> String {
    let locals = "i32 ".repeat(locals);
    module(&format!("(func (local {locals}) {code})"))
}

#[test]
fn functions_that_take_the_compiler_memory_without_end() {
    let branches =
        "too many branches and local variables to be compiled in bounded memory; split it";
    let uses: String = (0..5_000).map(|n| format!("local.get {n} drop ")).collect();
    let diamonds = "i32.const 1 if else end ".repeat(2_000);
    let loops = "loop ".repeat(1_000) + &uses + &"end ".repeat(1_000);
    for (component, says) in [
        (function(5_000, &(diamonds + &uses)), branches),
        (function(5_000, &loops), branches),
        (function(1, &"i32.const 1 drop ".repeat(400_000)), "bytes, at most 1048576 are allowed"),
        (
            module(&format!("(func (local {}))", "i32 ".repeat(40_000)).repeat(220)),
            "local variables, which no plugin needs",
        ),
        (
            module(&format!("(func (param {}))", "i32 ".repeat(65))),
            "a function or block has 65 parameters or results, at most 64 are allowed",
        ),
        (
            module(&format!(
                "(func (param i32) i32.const 0 i32.const 0 (loop (param i32) drop i32.const 0 i32.const 0 br_table {}))",
                "0 ".repeat(300_000)
            )),
            branches,
        ),
    ] {
        let what = refused(&component);
        assert!(what.ends_with(says), "{what}");
    }
}

#[test]
fn code_that_is_handed_about() {
    let expected = "it passes components or modules as values, which no plugin needs";
    for text in [
        r#"(component (import "x" (core module)))"#,
        r#"(component (component (import "x" (component))))"#,
        r#"(component (component $c (component (export "y"))) (instance $i (instantiate $c)) (alias export $i "y" (component)))"#,
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn large_files() {
    let limits = Limits { component_bytes: 1_000, ..Limits::default() };
    let folder = tempfile::tempdir().unwrap();
    let error = fails(load_bytes_within(folder.path(), &bytes(BACKEND), &limits));
    let expected = "plugin `FOLDER/plugin.wasm` is refused: its file is larger than the 1000 bytes allowed (raise `component` under [sandbox] if you trust it)";
    assert_eq!(error.to_string().replace(folder.path().to_str().unwrap(), "FOLDER"), expected);
}

#[test]
fn code_that_takes_too_long_to_compile() {
    let limits = Limits { compile_ms: 1, ..Limits::default() };
    // A component that no other test has had compiled.
    let component = patched(BACKEND, "a panic on purpose", "a panic in compile");
    let expected = "compiling it takes longer than the 0.001 s allowed (raise `compile` under [sandbox] if you trust it)";
    assert_eq!(refused_within(&component, &limits), expected);
}

#[test]
fn a_failure_before_the_first_call_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (place, call) in
        [("misdeed at start: ", "instantiate"), ("misdeed in describe: ", "describe")]
    {
        for (deed, cause) in DEEDS {
            let text = |deed: &str| format!("{place}{deed:.<width$}", width = 40 - place.len());
            let component = patched(BACKEND, &text("nothing"), &text(deed));
            let plugin = load_bytes(folder.path(), &component).unwrap();
            let config = json!({"misbehave": deed});
            let backend = Backend::new(plugin, &json!({}), grants(&config)).unwrap();
            for _ in 0..2 {
                let error = fails(backend.describe());
                // Nobody listens for a panic's message that early.
                match deed {
                    "panic" | "flood-log-and-panic" => assert!(
                        error
                            .to_string()
                            .starts_with(&format!("plugin `plugin.wasm` failed in `{call}`: it ")),
                        "{error}"
                    ),
                    _ => trapped(&error, "plugin.wasm", call, cause),
                }
            }
        }
    }
}
