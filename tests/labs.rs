//! Labs, searches and sweeps on real processes, which start and measure the mock engine.
//!
//! - `lab`: options that help, crash and lose requests; labs that are killed, interrupted and gone
//!   on with.
//! - `pages`: their pages in a browser.
//! - `search`: the highest load under an objective, and sweeps; interrupted and gone on with.

mod lab;
mod pages;
mod search;

/// Checks that a document follows the schema of that name.
fn follows(name: &str, document: &serde_json::Value) {
    let schema = ::report::schema::schema(name).or_else(|| ::lab::schema::schema(name));
    let schema = serde_json::from_str(&schema.unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(document);
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{name}: {document:#}");
}
