//! What misbehaves is turned away, and the rest is answered all the while.

mod support;

use serde_json::{Value, json};
use server::Limits;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use support::{Server, read_answer};

fn short() -> Limits {
    Limits {
        head_time: Duration::from_millis(600),
        question_time: Duration::from_millis(600),
        upload_time: Duration::from_millis(900),
        connections: 64,
        ..Limits::default()
    }
}

#[test]
fn a_gigabyte_is_refused_before_it_is_sent() {
    let server = Server::plain();
    for (path, kind) in [("/api/account", "application/json"), ("/api/audit", "text/csv")] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: 1073741824\r\n\r\n{{",
            server.host()
        );
        let answer = server.raw(head.as_bytes());
        assert_eq!(answer.status, 413, "{path}");
    }
    // And when it does not say so: chunks without end.
    let mut stream = server.connect();
    let head = format!(
        "POST /api/account HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.host()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"4000\r\n".as_slice(), &[b' '; 0x4000], b"\r\n"].concat();
    let mut sent = 0_usize;
    while sent < 1 << 30 && stream.write_all(&chunk).is_ok() {
        sent += 0x4000;
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    assert!(server.is_well());
}

#[test]
fn heads_and_bodies_that_trickle_are_cut_off() {
    let server = Server::limited(short());
    // Slow-loris: many heads that never end.
    let mut slow: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127").unwrap();
    }
    assert!(server.is_well());
    let begun = Instant::now();
    let mut byte = [0; 1024];
    for stream in &mut slow {
        // Closed, perhaps with a 408 before.
        while stream.read(&mut byte).is_ok_and(|count| count > 0) {}
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // A body that never comes.
    let mut stream = server.connect();
    let head = format!(
        "POST /api/account HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        server.host()
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).unwrap().status, 408);
    assert!(server.is_well());
}

#[test]
fn a_thousand_idle_connections_lock_nobody_out() {
    let server = Server::plain();
    let mut idle = Vec::new();
    for number in 0..1000 {
        match std::net::TcpStream::connect(server.address) {
            Ok(stream) => idle.push(stream),
            // This process has used up its own files.
            Err(_) if number > 400 => {
                drop(idle.pop());
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    for _ in 0..20 {
        assert!(server.is_well());
    }
}

#[test]
fn malformed_questions_are_named_and_change_nothing() {
    let server = Server::plain();
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let many = json!({"run": {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 10}, "delta": vec![1e-5; 5000]}).to_string();
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("half", b"{\"run\":".to_vec()),
        ("no run", b"{}".to_vec()),
        ("null", b"null".to_vec()),
        ("a list", b"[]".to_vec()),
        ("bytes", vec![0xff, 0xfe, 0x00, 0x80]),
        ("deep", deep.clone().into_bytes()),
        ("deep run", format!("{{\"run\":{deep}}}").into_bytes()),
        ("many", many.into_bytes()),
        ("unknown key", br#"{"run":{"noise_multipler":1},"delta":1e-5}"#.to_vec()),
        ("unknown question", br#"{"run":{},"detla":1e-5}"#.to_vec()),
        (
            "text for a number",
            br#"{"run":{"noise_multiplier":"1","sample_rate":0.1,"steps":1}}"#.to_vec(),
        ),
        ("overflow", br#"{"run":{"noise_multiplier":1e999,"sample_rate":0.1,"steps":1}}"#.to_vec()),
        ("negative", br#"{"run":{"noise_multiplier":-1,"sample_rate":0.1,"steps":1}}"#.to_vec()),
        (
            "half a step",
            br#"{"run":{"noise_multiplier":1,"sample_rate":0.1,"steps":1.5}}"#.to_vec(),
        ),
        (
            "no lens",
            br#"{"run":{"noise_multiplier":1,"sample_rate":0.1,"steps":1},"lens":"magic"}"#
                .to_vec(),
        ),
    ];
    for path in ["/api/account", "/api/calibrate", "/api/curve", "/api/panel", "/api/map"] {
        for (name, body) in &bodies {
            let answer =
                server.request("POST", path, &[("Content-Type", "application/json")], body);
            assert!(matches!(answer.status, 400 | 413), "{path}, {name}: {}", answer.status);
            let document = answer.json();
            assert_eq!(document["schema"], "dosimeter.error/1");
            assert!(!document["error"].as_str().unwrap().is_empty());
        }
    }
    let refused = server.ask("/api/account", &json!({"run": {"noise_multiplier": 0.01, "sample_rate": 0.01, "steps": 10}, "delta": 1e-5}));
    assert_eq!((refused.status, refused.json()["exit_code"].clone()), (422, Value::from(5)));
    assert!(server.is_well());
}

#[test]
fn hostile_score_files_are_refused_with_their_row() {
    let server = Server::plain();
    let drop = |kind: &str, body: &[u8]| {
        server.request("POST", "/api/audit", &[("Content-Type", kind)], body)
    };
    let cases: [(&str, &[u8]); 7] = [
        ("text/csv", b""),
        ("text/csv", b"score,member\n1,1\n"),
        ("text/csv", b"score,member\nnan,1\n1,0\n"),
        ("text/csv", b"score,member\n1,7\n"),
        ("text/csv", &[0xff; 4096]),
        ("application/x-ndjson", b"{\"score\":1}\n"),
        ("application/x-ndjson", b"[[[[[[["),
    ];
    for (kind, body) in cases {
        let answer = drop(kind, body);
        assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(body));
    }
    let named = drop("text/csv", b"score,member\n1,1\nnan,0\n").json()["error"].to_string();
    assert!(named.contains("row"), "{named}");
    assert_eq!(drop("text/plain", b"score,member\n1,1\n0,0\n").status, 415);
    assert!(server.is_well());
}
