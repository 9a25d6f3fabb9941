//! Chromium without a screen, driven through chromedriver. Tests wait for its content.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use super::lacking;
use super::process::Process;

/// Longer than anything here takes: it ends hanging tests, and measures nothing.
const PATIENCE: Duration = Duration::from_secs(120);

const ARGUMENTS: &str = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --disable-quic --no-first-run --disable-background-networking --disable-component-update \
    --disable-sync --window-size=1280,1000";

/// One browser at a time: several at once would take each other's time and memory.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A browser with one page. Dropping ends it.
pub struct Browser {
    session: String,
    port: u16,
    _driver: Process,
    _profile: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Starts a browser; nothing if none is installed.
pub async fn browser() -> Option<Browser> {
    if !lacking::has("chromedriver", &lacking::BROWSER) {
        return None;
    }
    let alone = ALONE.lock().await;
    let mut driver = Process::start(Command::new("chromedriver").arg("--port=0"));
    let port = |process: &Process| {
        let text = process.stdout();
        let (_, rest) = text.split_once("started successfully on port ")?;
        rest.split('.').next()?.trim().parse::<u16>().ok()
    };
    driver.until("chromedriver listens", |process| port(process).is_some());
    let port = port(&driver).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let profile_folder = format!("--user-data-dir={}", profile.path().display());
    let arguments: Vec<&str> = ARGUMENTS.split(' ').chain([profile_folder.as_str()]).collect();
    let capabilities = json!({
        "browserName": "chrome",
        "goog:chromeOptions": { "args": arguments },
        "goog:loggingPrefs": { "browser": "ALL" },
    });
    let wanted = json!({ "capabilities": { "alwaysMatch": capabilities } });
    let opened = value(port, "POST", "/session", &wanted);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let browser = Browser { session, port, _driver: driver, _profile: profile, _alone: alone };
    browser.medium("screen", "light");
    Some(browser)
}

impl Browser {
    pub async fn open(&self, path: &Path) {
        let path = path.canonicalize().unwrap();
        let url = format!("file://{}", path.display());
        self.post("url", &json!({ "url": url }));
    }

    /// The value of an expression in the page.
    pub async fn value(&self, expression: &str) -> Value {
        let script = format!("return ({expression})");
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The value of an expression in the page: a text.
    pub async fn text(&self, expression: &str) -> String {
        match self.value(expression).await {
            Value::String(text) => text,
            other => panic!("{expression}: {other}"),
        }
    }

    /// The value of an expression in the page: a number.
    pub async fn number(&self, expression: &str) -> f64 {
        let value = self.value(expression).await;
        value.as_f64().unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    /// True if an expression is true in the page.
    pub async fn holds(&self, expression: &str) -> bool {
        self.value(&format!("!!({expression})")).await == Value::Bool(true)
    }

    /// Waits until an expression is true in the page.
    pub async fn until(&self, expression: &str) {
        let began = Instant::now();
        while !self.holds(expression).await {
            assert!(began.elapsed() < PATIENCE, "it does not come to be: {expression}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Clicks on the element of a selector, as a user would.
    pub async fn press(&self, selector: &str) {
        let (x, y) = self.middle(selector).await;
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.devtools("Input.dispatchMouseEvent", &event);
        }
    }

    /// Moves the pointer to a position within a selector's element: shares of its width and height.
    pub async fn point(&self, selector: &str, (across, down): (f64, f64)) {
        let rect = self.rect(selector).await;
        let (x, y) = (rect[0] + rect[2] * across, rect[1] + rect[3] * down);
        self.devtools("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Presses a key where the focus is.
    pub fn key(&self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            let code = match key {
                "Tab" => 9,
                "Escape" => 27,
                "End" => 35,
                "Home" => 36,
                "ArrowLeft" => 37,
                "ArrowUp" => 38,
                "ArrowRight" => 39,
                "ArrowDown" => 40,
                other => panic!("no code is known of the key {other}"),
            };
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.devtools("Input.dispatchKeyEvent", &event);
        }
    }

    async fn rect(&self, selector: &str) -> Vec<f64> {
        let script = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; }})()"
        );
        serde_json::from_value(self.value(&script).await).unwrap()
    }

    async fn middle(&self, selector: &str) -> (f64, f64) {
        let rect = self.rect(selector).await;
        (rect[0] + rect[2] / 2.0, rect[1] + rect[3] / 2.0)
    }

    pub fn size(&self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Shows the page as on a medium (`screen`, `print`) to someone who prefers a colour scheme.
    pub fn medium(&self, medium: &str, scheme: &str) {
        // Without motion: a moving element is no longer at its place when it is pressed.
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        let media = json!({ "media": medium, "features": features });
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    pub fn pdf(&self) -> String {
        let printed = self.devtools("Page.printToPDF", &json!({ "printBackground": true }));
        printed["data"].as_str().unwrap().to_owned()
    }

    /// The console's messages of any level: errors, and refusals by the page's policy.
    pub fn console(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        log.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// A command of the browser's own protocol.
    fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        value(self.port, "POST", &format!("/session/{}/{path}", self.session), body)
    }
}

/// Returns the driver's answer to a command.
#[track_caller]
fn value(port: u16, method: &str, path: &str, body: &Value) -> Value {
    let answer = ask(port, method, path, &body.to_string()).unwrap();
    let answer: Value =
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{path}: {answer}"));
    let value = answer["value"].clone();
    assert!(value.get("error").is_none(), "{path} {body}: {value}");
    value
}

/// Sends the driver a request that the client has no method for.
fn ask(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    let host = format!("127.0.0.1:{port}");
    let mut stream = TcpStream::connect(&host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    // The driver keeps the connection open, whatever the request says.
    let mut answer = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while answer.read_line(&mut line)? > 2 {
        let field = line.to_ascii_lowercase();
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    Ok(String::from_utf8(body).unwrap())
}

impl Drop for Browser {
    /// If the driver is killed, its browser stays behind.
    fn drop(&mut self) {
        let _ = ask(self.port, "DELETE", &format!("/session/{}", self.session), "");
    }
}
