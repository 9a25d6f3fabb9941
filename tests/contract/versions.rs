//! Components of older versions of the contract, as they were built then.

use std::fs;
use std::path::{Path, PathBuf};

use model::plugin::Kind;

use crate::support::trial::Trial;

/// A folder for each version, with a component of each kind.
const VERSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/versions");

fn versions() -> Vec<PathBuf> {
    fs::read_dir(VERSIONS).expect("tests/versions").map(|folder| folder.unwrap().path()).collect()
}

/// A whole run of three components that no compiler of today has touched.
#[tokio::test(start_paused = true)]
async fn a_component_of_each_version_runs() {
    let versions = versions();
    assert!(!versions.is_empty());
    for folder in versions {
        let plugin = |kind: Kind| {
            let path: &Path = &folder.join(format!("{}.wasm", kind.name()));
            path.to_str().unwrap().to_owned()
        };
        let scenario = format!(
            "[target]\nmodel = 'mock'\n[backend.config]\nroute = 'chat'\n[dataset]\nplugin = '{}'\n\
             [[scorers]]\nplugin = '{}'\n[load]\nrequests = 5\nwarmup = 0\narrival = 'constant'\nrate = 10.0\n",
            plugin(Kind::Dataset),
            plugin(Kind::Scorer),
        );
        let ran = Trial::new(&scenario).plugin(&plugin(Kind::Backend)).against("").run().await;
        assert_eq!(ran.failures(), [], "{}\n{}", folder.display(), ran.text);
        assert_eq!(ran.measured().count(), 5);
        assert!(!ran.summary.scores.is_empty(), "{}", folder.display());
    }
}
