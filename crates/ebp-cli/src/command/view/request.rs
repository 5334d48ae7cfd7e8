//! Requests as the server takes them: one GET of a path it knows, by this machine's own names.
//!
//! Everything else is refused with a status and a sentence. A page of another host that reaches this port
//! through a name of its own (DNS rebinding) is told by its Host header.

use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Bytes of a request, from its first line to the empty one.
pub(super) const LARGEST_REQUEST: usize = 8 * 1024;
/// A request must be there after this time, however slowly it comes.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Page,
    Metrics { from: u64, mark: String },
    Picture(String),
}

/// Why not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: &'static str,
    pub(super) reason: String,
}

pub(super) fn refused(status: &'static str, reason: impl Into<String>) -> Refusal {
    Refusal { status, reason: reason.into() }
}

/// Reads up to the empty line. `set_timeout` is told how long the next read may take.
pub(super) fn read(
    stream: &mut impl Read,
    mut set_timeout: impl FnMut(Duration) -> io::Result<()>,
) -> Result<String, Refusal> {
    let started = Instant::now();
    let late = || refused("408 Request Timeout", "expected a whole request within five seconds");
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        if bytes.len() > LARGEST_REQUEST {
            let reason = format!("expected headers of at most {LARGEST_REQUEST} bytes");
            return Err(refused("431 Request Header Fields Too Large", reason));
        }
        let left = PATIENCE.checked_sub(started.elapsed()).filter(|left| !left.is_zero());
        set_timeout(left.ok_or_else(late)?).map_err(|_gone| late())?;
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return Err(late()),
            Ok(count) => bytes.extend(&part[..count]),
        }
    }
    String::from_utf8(bytes).map_err(|_other| refused("400 Bad Request", "expected UTF-8"))
}

/// What a request asks for, of a server at `port`.
pub(super) fn parse(text: &str, port: u16) -> Result<Wanted, Refusal> {
    let bad = |reason: &str| refused("400 Bad Request", reason);
    let mut lines = text.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
    let [method, target, version] = first[..] else {
        return Err(bad("expected `GET PATH HTTP/1.1`"));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(bad("expected HTTP/1.1"));
    }
    let named = |wanted: &str| {
        let field = lines.clone().filter_map(|line| line.split_once(':'));
        field
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
            .collect::<Vec<_>>()
    };
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let found = named("host");
    match found[..] {
        [host] if hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) => {}
        _ => {
            let reason = format!("expected the header `Host: {}`, found {found:?}", hosts[0]);
            return Err(refused("421 Misdirected Request", reason));
        }
    }
    if method != "GET" {
        let reason = format!("expected the method GET, found `{method}`");
        return Err(refused("405 Method Not Allowed", reason));
    }
    if named("content-length").iter().any(|length| *length != "0")
        || !named("transfer-encoding").is_empty()
    {
        return Err(bad("expected no body"));
    }
    route(target)
}

fn route(target: &str) -> Result<Wanted, Refusal> {
    let nothing = || {
        refused(
            "404 Not Found",
            "there are `/`, `/metrics.json?from=PLACE&mark=MARK` and `/picture/NAME` of the run's pictures",
        )
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => return Ok(Wanted::Page),
        "/metrics.json" => {
            let value = |name: &str| {
                let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
            };
            let from = value("from").unwrap_or("0");
            let from = from.parse().map_err(|_error| {
                refused(
                    "400 Bad Request",
                    format!("`from`: expected a place in bytes, found `{from}`"),
                )
            })?;
            return Ok(Wanted::Metrics { from, mark: value("mark").unwrap_or("").to_owned() });
        }
        _ => {}
    }
    let name = path.strip_prefix("/picture/").ok_or_else(nothing)?;
    Ok(Wanted::Picture(decoded(name).ok_or_else(nothing)?))
}

/// Text without its percent signs; `None` if one is not followed by two digits, or it is no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut found = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = digits.iter().map(|&digit| char::from(digit).to_digit(16));
            let number = digits.collect::<Option<Vec<_>>>()?;
            found.push(u8::try_from(16 * number[0] + number[1]).ok()?);
        } else {
            found.push(byte);
        }
    }
    String::from_utf8(found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> &'static str {
        parse(text, 8000).map_or_else(|refusal| refusal.status, |_| "200")
    }

    #[test]
    fn only_this_machine_asks_and_only_by_get() {
        let get = |target: &str, host: &str| {
            status(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        };
        assert_eq!(get("/", "127.0.0.1:8000"), "200");
        assert_eq!(get("/", "LocalHost:8000"), "200");
        for host in [
            "127.0.0.1",
            "127.0.0.1:8001",
            "evil.example",
            "evil.example:8000",
            "localhost:8000.evil",
            "",
        ] {
            assert_eq!(get("/", host), "421 Misdirected Request", "{host}");
        }
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "421 Misdirected Request");
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: localhost:8000\r\nHost: evil\r\n\r\n"),
            "421 Misdirected Request"
        );
        for method in ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "get"] {
            let text = format!("{method} / HTTP/1.1\r\nHost: localhost:8000\r\n\r\n");
            assert_eq!(status(&text), "405 Method Not Allowed", "{method}");
        }
        assert_eq!(status("GET /\r\n\r\n"), "400 Bad Request");
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: localhost:8000\r\nContent-Length: 3\r\n\r\n"),
            "400 Bad Request"
        );
    }

    #[test]
    fn paths_are_those_that_are_known() {
        for target in [
            "/..",
            "/../etc/passwd",
            "//",
            "/config.toml",
            "/plots",
            "/plots/",
            "/checkpoints/last",
            "http://127.0.0.1:8000/",
            "/%2e%2e/x",
            "*",
        ] {
            assert_eq!(route(target).unwrap_err().status, "404 Not Found", "{target}");
        }
        // Names are compared with those of the run's pictures, and never become a path.
        assert_eq!(
            route("/picture/plots%2Fa%20b.png?at=1").unwrap(),
            Wanted::Picture("plots/a b.png".into())
        );
        assert!(
            route("/picture/%zz").is_err()
                && route("/picture/%f").is_err()
                && route("/picture/%ff").is_err()
        );
        let metrics = |from, mark: &str| Wanted::Metrics { from, mark: mark.into() };
        assert_eq!(route("/metrics.json").unwrap(), metrics(0, ""));
        assert_eq!(route("/metrics.json?from=12&mark=ab").unwrap(), metrics(12, "ab"));
        assert_eq!(route("/metrics.json?from=-1").unwrap_err().status, "400 Bad Request");
    }

    #[test]
    fn requests_are_bounded() {
        let endless = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(LARGEST_REQUEST));
        let found = read(&mut endless.as_bytes(), |_| Ok(()));
        assert_eq!(found.unwrap_err().status, "431 Request Header Fields Too Large");
        let half = read(&mut "GET / HTTP/1.1\r\n".as_bytes(), |_| Ok(()));
        assert_eq!(half.unwrap_err().status, "408 Request Timeout");
    }
}
