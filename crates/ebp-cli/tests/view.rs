//! `ebp view`: pages that need nothing else, and a server that tells nobody else.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use program::{good, json, refusal};

/// Settings of a model of clouds so small that a step takes a millisecond.
const TINY: [&str; 12] = [
    "data.num_shapes=12",
    "data.num_points=80",
    "data.held_out=4",
    "evaluation.num_sets=4",
    "evaluation.num_points=60",
    "model.encoder_widths=[8, 12]",
    "model.energy_widths=[12]",
    "model.latent_dim=3",
    "model.num_proposals=40",
    "batch_size=3",
    "train.num_steps=4",
    "train.record_every=1",
];

/// The data of a page.
fn data_of(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\" nonce=\"viewer\">";
    let (_, rest) = page.split_once(start).expect("data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

/// What a page must never have: an address, or anything that a browser would fetch.
fn assert_self_contained(page: &str) {
    let lower = page.to_lowercase();
    for forbidden in
        ["http://", "https://", "@import", "url(", "<link rel=\"stylesheet", "<iframe", "eval("]
    {
        assert!(!lower.contains(forbidden), "the page has `{forbidden}`");
    }
    let without_data = lower.split("<script type=\"application/json\"").next().expect("a head");
    // Places are letters and slashes, which may spell anything.
    assert!(!without_data.contains(" src=") && !without_data.contains("//cdn"));
    assert!(page.contains("default-src 'none'") && page.contains("connect-src 'none'"));
    assert_eq!(page.matches("<script").count(), 2, "data and script");
}

#[test]
fn a_page_of_a_model_of_clouds_holds_everything_and_tells_nothing_of_this_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let mut train = vec!["train", "shapes", "--out", "run", "--quiet"];
    for set in TINY {
        train.extend(["--set", set]);
    }
    good(path, &train);
    let report = json(path, &["view", "run", "-n", "5", "--points", "50", "--json", "-q"]);
    let rooms: Vec<&str> =
        report["rooms"].as_array().expect("rooms").iter().filter_map(Value::as_str).collect();
    assert_eq!(rooms, ["clouds", "training", "pictures", "numbers"]);
    let page = fs::read_to_string(path.join("run/view.html")).expect("the page");
    assert_eq!(report["bytes"], page.len());
    assert_self_contained(&page);
    assert!(!page.contains(path.to_str().expect("UTF-8")), "the folder of this machine");
    let data = data_of(&page);
    let clouds = &data["clouds"];
    let count = |name: &str| clouds[name].as_array().map_or(0, Vec::len);
    assert_eq!((count("groups"), count("rows"), count("paths"), count("blends")), (1, 2, 4, 2));
    assert_eq!(clouds["groups"][0]["count"], 5);
    assert_eq!(clouds["rows"][0]["heads"].as_array().map(Vec::len), Some(3));
    assert_eq!(clouds["paths"][0]["frames"].as_array().map(Vec::len), Some(25));
    // Ends of a blend are the samples themselves.
    assert_eq!(clouds["blends"][1]["frames"][0], 2);
    let points: u64 =
        clouds["counts"].as_array().expect("counts").iter().filter_map(Value::as_u64).sum();
    assert_eq!(report["points"], points);
    // Six bytes a place, and four letters for three bytes.
    assert_eq!(
        clouds["places"].as_str().map(str::len),
        Some((6 * usize::try_from(points).expect("a count")).div_ceil(3) * 4)
    );
    assert!(clouds["has_values"].as_array().is_some_and(|all| all.iter().all(|has| has == true)));
    let (steps, losses) =
        (&data["metrics"]["columns"]["loss"][0], &data["metrics"]["columns"]["loss"][1]);
    assert_eq!(steps, &serde_json::json!([0, 1, 2, 3]));
    assert!(losses[3].as_f64().is_some_and(f64::is_finite));
    assert!(page.len() < 1_000_000);
    // The same seed, the same page.
    good(
        path,
        &[
            "view",
            "run",
            "-n",
            "5",
            "--points",
            "50",
            "-q",
            "-o",
            "other/page.html",
            "--threads",
            "1",
        ],
    );
    let again = fs::read_to_string(path.join("other/page.html")).expect("the page");
    assert!(data_of(&again)["clouds"] == data["clouds"]);
}

#[test]
fn clouds_of_files_with_dangerous_names_stay_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let name = "<script>alert(1)<!--";
    fs::create_dir(path.join(name)).expect("a folder");
    for number in 0..3 {
        let points: Vec<String> = (0..9).map(|i| format!("{i} {number} {}", i * number)).collect();
        fs::write(path.join(name).join(format!("<img onerror=x>{number}.xyz")), points.join("\n"))
            .expect("a cloud");
    }
    good(path, &["view", name, "-o", "page.html"]);
    let page = fs::read_to_string(path.join("page.html")).expect("the page");
    assert_self_contained(&page);
    assert!(!page.contains("<img") && !page.contains("<!--"));
    let data = data_of(&page);
    assert_eq!(data["title"], name);
    assert_eq!(data["clouds"]["counts"], serde_json::json!([9, 9, 9]));
    assert!(
        data["clouds"]["names"][0].as_str().is_some_and(|name| name.contains("<img onerror=x>0"))
    );
}

#[test]
fn curves_get_densities_of_one_point_and_of_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let mut train = vec!["train", "sines", "--out", "run", "--quiet", "--set", "train.num_steps=3"];
    train.extend(program::TINY_CURVES);
    good(path, &train);
    good(path, &["view", "run", "-q"]);
    let page = fs::read_to_string(path.join("run/view.html")).expect("the page");
    assert_self_contained(&page);
    let densities = &data_of(&page)["densities"];
    let (columns, rows) = (
        densities["columns"].as_u64().expect("columns"),
        densities["rows"].as_u64().expect("rows"),
    );
    let maps = 9 * 9 + 3 * 8;
    assert_eq!(
        densities["maps"].as_str().map(|text| text.len() as u64),
        Some((maps * columns * rows).div_ceil(3) * 4)
    );
    assert_eq!(densities["curves"][2]["contexts"][7]["map"], maps - 1);
    assert_eq!(densities["curves"][0]["contexts"][3]["points"].as_array().map(Vec::len), Some(5));
    assert!(page.len() < 3_000_000);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::create_dir(path.join("empty")).expect("a folder");
    let text = refusal(path, &["view", "--live", "empty"]);
    assert!(text.contains("config.toml") && text.contains("found neither"), "{text}");
    assert!(refusal(path, &["view", "--live", "a", "b"]).contains("one run"));
    assert!(refusal(path, &["view", "run", "--port", "8000"]).contains("--live"));
    assert!(!program::ebp(path, &["view", "nowhere"]).status.success());
}

/// A server of a run, ended with the test.
struct Server(Child, u16);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn serve(folder: &Path) -> Server {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ebp"))
        .current_dir(folder)
        .args(["view", "--live", "run"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("an address");
    let port = line.split(['/', ':']).find_map(|part| part.parse().ok()).expect("a port");
    Server(child, port)
}

impl Server {
    /// Sends bytes as they are, and gives the whole answer.
    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.1)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        // The server may answer and close before all of a large request is sent.
        drop(stream.write_all(request.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, target: &str) -> String {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.1))
    }

    fn metrics(&self, from: &Value, mark: &Value) -> Value {
        let mark = mark.as_str().expect("a mark");
        let answer = self.get(&format!("/metrics.json?from={from}&mark={mark}"));
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    }
}

/// A folder as a run leaves it, with something beside it that is nobody's business.
fn run_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    fs::create_dir_all(run.join("plots")).expect("a folder");
    fs::write(run.join("config.toml"), "kind = \"clouds\"\n[train]\nnum_steps = 7\n")
        .expect("a file");
    fs::write(run.join("metrics.jsonl"), "{\"step\":0,\"loss\":2.0}\n").expect("a file");
    fs::write(run.join("plots/a b.png"), b"\x89PNG picture").expect("a file");
    fs::write(folder.path().join("secret.png"), b"secret").expect("a file");
    fs::write(run.join("plots/notes.txt"), b"secret").expect("a file");
    // What is beside a picture as SVG is the same picture.
    fs::write(run.join("plots/a b.svg"), b"<svg/>").expect("a file");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("secret.png"), run.join("plots/link.png"))
        .expect("a link");
    folder
}

#[test]
fn the_server_gives_what_is_new_and_nothing_else() {
    let folder = run_folder();
    let server = serve(folder.path());
    let page = server.get("/");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("connect-src 'self'"));
    assert!(
        page.contains("nosniff")
            && page.contains("same-origin")
            && page.contains("frame-ancestors 'none'")
    );
    let none = Value::from("");
    let first = server.metrics(&0.into(), &none);
    assert_eq!(first["lines"], serde_json::json!([{ "step": 0, "loss": 2.0 }]));
    assert_eq!(first["steps"], 7);
    let names: Vec<_> =
        first["pictures"].as_array().expect("pictures").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["plots/a b.png"]);
    assert!(server.get("/picture/plots%2Fa%20b.png").ends_with("\r\n\r\n\u{fffd}PNG picture"));
    let record = folder.path().join("run/metrics.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(&record).expect("the record");
    file.write_all(b"{\"step\":1,\"loss\":1.5}\n{\"step\":2,").expect("a line and a half");
    let second = server.metrics(&first["next"], &first["mark"]);
    assert_eq!(
        (&second["lines"][0]["step"], second["lines"].as_array().map(Vec::len)),
        (&1.into(), Some(1))
    );
    assert_eq!(second["again"], false);
    fs::write(&record, "{\"step\":0,\"loss\":9.0}\n").expect("another record");
    let third = server.metrics(&second["next"], &second["mark"]);
    assert_eq!((&third["again"], &third["lines"][0]["loss"]), (&true.into(), &9.0.into()));
}

#[test]
fn the_server_refuses_what_it_should() {
    let folder = run_folder();
    let server = serve(folder.path());
    let port = server.1;
    for target in [
        "/..",
        "/../secret.png",
        "/picture/../secret.png",
        "/picture/..%2fsecret.png",
        "/picture/plots%2F..%2F..%2Fsecret.png",
        "/picture/%2Fetc%2Fpasswd",
        "/picture//etc/passwd",
        "/picture/plots%2Flink.png",
        "/picture/plots%2Fnotes.txt",
        "/picture/",
        "/plots/",
        "/plots/a%20b.png",
        "/config.toml",
        "/metrics.jsonl",
        "//127.0.0.1/",
        "/picture/plots%2Fa%20b.png%00",
    ] {
        let answer = server.get(target);
        assert!(
            answer.starts_with("HTTP/1.1 404 ") && !answer.contains("secret"),
            "{target}: {answer}"
        );
    }
    let status = |text: String| server.send(&text).split(' ').nth(1).unwrap_or("none").to_owned();
    for host in ["evil.example", "127.0.0.1", "localhost:1", "0.0.0.0"] {
        assert_eq!(status(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), "421", "{host}");
    }
    assert_eq!(status(format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")), "200");
    assert_eq!(status("GET / HTTP/1.1\r\n\r\n".into()), "421");
    for method in ["POST", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(
            status(format!("{method} / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")),
            "405",
            "{method}"
        );
    }
    assert_eq!(status("nonsense\r\n\r\n".into()), "400");
    let long = "x".repeat(9 * 1024);
    assert_eq!(
        status(format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nX: {long}\r\n\r\n")),
        "431"
    );
    assert_eq!(status(format!("GET /{long} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")), "431");
}

#[test]
fn slow_and_many_visitors_stop_nobody() {
    let folder = run_folder();
    let server = serve(folder.path());
    let slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.1)).expect("a connection");
            drop(stream.write_all(b"GET / HT"));
            stream
        })
        .collect();
    // Eight of them hold a thread until their time is over; then there is room again.
    let started = Instant::now();
    while !server.get("/").starts_with("HTTP/1.1 200") {
        assert!(started.elapsed() < Duration::from_secs(20), "no answer");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(slow);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_server_cleanly() {
    let folder = run_folder();
    let mut server = serve(folder.path());
    let id = server.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    assert!(server.0.wait().expect("an end").success());
}
