//! The server of `ebp view --live`: a run that is under way, at 127.0.0.1 alone.
//!
//! ```text
//! /                         the page
//! /metrics.json?from&mark   what the record says since a place, and the pictures there are
//! /picture/NAME             one of these pictures
//! ```
//!
//! It reads files and never writes. At most [`MOST_THREADS`] requests are answered at once, each within
//! fixed times and sizes, and a connection serves one. The run does not know that anybody looks.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use miette::miette;
use serde::Serialize;
use serde_json::{Value, json};

use super::request::{Refusal, Wanted, parse, read, refused};
use super::{folder, page::Page, record};
use crate::failure::Failure;
use crate::output;

/// Requests that are answered at once; further ones are told to come again.
const MOST_THREADS: usize = 8;
/// An answer must be taken within this time.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// A picture that is larger is not served.
const LARGEST_PICTURE: u64 = 32 * 1024 * 1024;

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// What all requests share.
#[derive(Debug)]
struct Server {
    run: PathBuf,
    port: u16,
    page: String,
    /// Steps that the run takes in all, where its settings say so.
    steps: Option<u64>,
    busy: AtomicUsize,
}

/// Where the page is, for whoever started the server.
#[derive(Debug, Serialize)]
struct Serving {
    url: String,
    port: u16,
}

/// Serves until Ctrl-C.
pub(super) fn serve(run: &Path, port: u16, is_json: bool) -> Result<(), Failure> {
    if !folder::is_run(run) {
        return Err(Failure::Usage(miette!(
            help = "give the folder of a run that was begun, such as runs/shapes of `ebp train shapes`",
            "expected `config.toml` or `metrics.jsonl` in `{}`, found neither",
            run.display()
        )));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        Failure::Usage(miette!(
            help = "leave `--port` out, and a free port is taken",
            "cannot listen at 127.0.0.1:{port}: {error}"
        ))
    })?;
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    ctrlc::set_handler(|| IS_OVER.store(true, Ordering::SeqCst))
        .map_err(|error| Failure::Failed(miette!("cannot listen for Ctrl-C: {error}")))?;
    let server = Arc::new(Server {
        run: run.to_owned(),
        port,
        page: page_of(run),
        steps: steps_of(run),
        busy: AtomicUsize::new(0),
    });
    let url = format!("http://127.0.0.1:{port}/");
    if is_json {
        output::print_json(None, &Serving { url, port })?;
    } else {
        output::print(&format!("{url}  (Ctrl-C ends it; the run goes on)\n"))?;
    }
    while !IS_OVER.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((stream, _)) => take(&server, stream),
            // Nobody there, or somebody who went away at once.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK),
            Err(_) => thread::sleep(LOOK),
        }
    }
    Ok(())
}

/// Answers in a thread of its own, if one is free.
fn take(server: &Arc<Server>, mut stream: TcpStream) {
    if server.busy.fetch_add(1, Ordering::SeqCst) >= MOST_THREADS {
        server.busy.fetch_sub(1, Ordering::SeqCst);
        let refusal = refused("503 Service Unavailable", "many requests at once; come again");
        drop(stream.set_write_timeout(Some(LOOK)));
        drop(stream.write_all(&answer_of(Err(refusal))));
        return;
    }
    let shared = Arc::clone(server);
    let work = move || {
        // What goes wrong between the two ends is nobody's business.
        drop(answer(&shared, &mut stream));
        shared.busy.fetch_sub(1, Ordering::SeqCst);
    };
    if thread::Builder::new().name("answer".into()).spawn(work).is_err() {
        server.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

fn answer(server: &Server, stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    let clock = stream.try_clone()?;
    let wanted = read(stream, |left| clock.set_read_timeout(Some(left)))
        .and_then(|text| parse(&text, server.port));
    let found = wanted.and_then(|wanted| server.find(wanted));
    stream.write_all(&answer_of(found))?;
    stream.flush()
}

impl Server {
    /// The media type and the bytes of what is wanted.
    fn find(&self, wanted: Wanted) -> Result<(&'static str, Vec<u8>), Refusal> {
        let unreadable = |error: std::io::Error| {
            refused("503 Service Unavailable", format!("the run cannot be read just now: {error}"))
        };
        match wanted {
            Wanted::Page => Ok(("text/html; charset=utf-8", self.page.clone().into_bytes())),
            Wanted::Metrics { from, mark } => {
                let news = record::since(&self.run.join("metrics.jsonl"), from, &mark);
                let news = news.map_err(unreadable)?;
                let value = json!({
                    "lines": news.lines,
                    "next": news.next,
                    "mark": news.mark,
                    "again": news.again,
                    "steps": self.steps,
                    "pictures": self.pictures(),
                });
                Ok(("application/json", value.to_string().into_bytes()))
            }
            Wanted::Picture(name) => {
                let pictures = folder::pictures_of(&self.run);
                let found = pictures.into_iter().find(|(known, _)| *known == name);
                let (_, path) = found.ok_or_else(|| {
                    refused("404 Not Found", "the run has no picture of this name")
                })?;
                let size = fs::symlink_metadata(&path).map_err(unreadable)?.len();
                if size > LARGEST_PICTURE {
                    return Err(refused("404 Not Found", "the picture is too large to be shown"));
                }
                let media = folder::media_type(&path).unwrap_or("application/octet-stream");
                Ok((media, fs::read(&path).map_err(unreadable)?))
            }
        }
    }

    /// Names, and a stamp that changes with the picture.
    fn pictures(&self) -> Vec<Value> {
        let stamp = |path: &Path| {
            let meta = fs::symlink_metadata(path).ok()?;
            let time = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(format!("{}-{}", time.as_millis(), meta.len()))
        };
        let pictures = folder::pictures_of(&self.run).into_iter();
        pictures.map(|(name, path)| json!({ "name": name, "stamp": stamp(&path) })).collect()
    }
}

fn answer_of(found: Result<(&'static str, Vec<u8>), Refusal>) -> Vec<u8> {
    let (status, media, body) = match found {
        Ok((media, body)) => ("200 OK", media, body),
        Err(Refusal { status, reason }) => {
            (status, "text/plain; charset=utf-8", format!("{reason}\n").into_bytes())
        }
    };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend(body);
    bytes
}

fn page_of(run: &Path) -> String {
    let name = run.canonicalize().unwrap_or_else(|_| run.to_owned());
    let name = name.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut page = Page::new(&name);
    page.is_live = true;
    page.subtitle = format!("a run as it goes, ebp {}", env!("CARGO_PKG_VERSION"));
    folder::add_numbers(&mut page, run);
    page.html()
}

/// `train.num_steps` of the settings.
fn steps_of(run: &Path) -> Option<u64> {
    let text = fs::read_to_string(run.join("config.toml")).ok()?;
    let settings: toml::Value = toml::from_str(&text).ok()?;
    u64::try_from(settings.get("train")?.get("num_steps")?.as_integer()?).ok()
}
