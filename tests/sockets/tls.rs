//! TLS: which certificates the client trusts, its message if it does not, and that a result says if
//! no certificate was checked.

use tempfile::TempDir;

use crate::endings::{exchanges, line, report};
use crate::support::authority::{Authority, ServerCertificate};
use crate::support::process::{Exit, Mock, run, runner};
use crate::support::results::{run_file, run_folder};

fn secure(certified: &ServerCertificate) -> Mock {
    let mut flags = vec!["--ttft", "1ms", "--itl", "1ms"];
    flags.extend(certified.flags());
    let mock = Mock::start(&flags);
    assert!(mock.url.starts_with("https://"), "{}", mock.url);
    mock
}

fn ask(mock: &Mock, folder: &TempDir, flags: &str) -> Exit {
    let flags = format!("--num-prompts 3 --random-output-len 4 {flags}");
    run(&mut line(runner(), mock, folder.path(), &flags))
}

#[test]
fn an_authority_that_is_named_is_trusted() {
    let authority = Authority::new();
    let mock = secure(&authority.certify("127.0.0.1"));
    for http in ["1.1", "2"] {
        let folder = TempDir::new().unwrap();
        let flags = format!("--http {http} --ca-cert {}", authority.certificate().display());
        let ended = ask(&mock, &folder, &flags).with_code(0);
        assert!(!ended.stdout.contains("insecure"), "{}", ended.stdout);
        let exchanges = exchanges(folder.path());
        assert_eq!(exchanges.iter().filter(|exchange| exchange.is_ok()).count(), 3);
        for exchange in exchanges {
            let connection = exchange.connection.unwrap();
            assert!(connection.connected <= connection.secured.unwrap());
            assert!(connection.secured <= exchange.sent);
        }
        let summary = run_file(folder.path(), "summary.json");
        assert!(summary["metrics"]["tls"]["count"].as_u64() >= Some(1), "{summary:#}");
        assert!(summary["run"].get("insecure").is_none());
    }
}

#[test]
fn whom_nobody_vouches_for_is_not_spoken_to() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mock = secure(&authority.certify("127.0.0.1"));
    let elsewhere = secure(&authority.certify("elsewhere.example"));
    let plain = Mock::start(&[]);
    let as_if_secure = |mock: &Mock| format!("--base-url {}", mock.url.replace("http:", "https:"));
    let as_if_plain = |mock: &Mock| format!("--base-url {}", mock.url.replace("https:", "http:"));
    let trust = |authority: &Authority| format!("--ca-cert {}", authority.certificate().display());
    let unknown =
        "give the authority's certificate with --ca-cert, or skip the check with --insecure";
    for (flags, expected) in [
        (as_if_secure(&mock), unknown),
        (format!("{} {}", as_if_secure(&mock), trust(&other)), unknown),
        (
            format!("{} {}", as_if_secure(&elsewhere), trust(&authority)),
            "the certificate is for another host; use the host name in the certificate, or skip the check with --insecure",
        ),
        (format!("{} --insecure", as_if_secure(&plain)), "does the server speak TLS on this port?"),
        (as_if_plain(&mock), "is this the engine's port"),
        (as_if_plain(&mock) + " --http 2", "gave no HTTP answer"),
    ] {
        let folder = TempDir::new().unwrap();
        let ended = run(runner()
            .args("--backend vllm --dataset-name random --num-prompts 3".split(' '))
            .args(flags.split(' '))
            .current_dir(folder.path()))
        .with_code(5);
        assert!(ended.stderr.contains(expected), "{flags}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn insecure_accepts_any_certificate_and_the_result_states_it() {
    let authority = Authority::new();
    let mock = secure(&authority.certify("elsewhere.example"));
    let folder = TempDir::new().unwrap();
    let ended = ask(&mock, &folder, "--insecure")
        .with_stdout(0, "note insecure: TLS certificates were not checked\n");
    assert_eq!(report(folder.path()).stdout, ended.stdout);
    let run_folder = run_folder(folder.path());
    let json = run(runner().arg("report").arg(run_folder).args(["--format", "json"])).with_code(0);
    let summary = json.json();
    assert_eq!(summary["run"]["insecure"], true);
    let findings = summary["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["id"] == "insecure"), "{summary:#}");
}

#[test]
fn the_mock_engine_reports_faults_of_its_files() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (own, foreign) = (authority.certify("127.0.0.1"), other.certify("127.0.0.1"));
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for (certificate, key, expected) in [
        ("nowhere.pem".to_owned(), path(&own.key), "`nowhere.pem` cannot be used as --tls-cert"),
        (path(&own.key), path(&own.key), "it holds no certificate"),
        (path(&own.certificate), path(&own.certificate), "cannot be used as --tls-key"),
        (path(&own.certificate), path(&foreign.key), "cannot be used: "),
    ] {
        let flags = ["mock", "--port", "0", "--tls-cert", &certificate, "--tls-key", &key];
        run(runner().args(flags)).with_stderr(2, expected);
    }
    run(runner().args(["mock", "--tls-cert", "x"])).with_stderr(2, "--tls-key");
}
