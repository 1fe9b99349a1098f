//! `serve` from the command line: where it listens, what it refuses, how it ends.
#![cfg(feature = "serve")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

fn dosimeter() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("dosimeter"));
    command.stdin(Stdio::null()).env_remove("DOSIMETER_TOKEN");
    command
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_listens_on_loopback_says_where_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = dosimeter()
        .args(["serve", "--port", "0", "--no-open"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address =
        line.trim().strip_prefix("http://").unwrap().strip_suffix('/').unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert!(get(&address, "/").starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/api/version").contains(env!("CARGO_PKG_VERSION")));
    let script = get(&address, "/app.js");
    assert!(script.len() > 50_000, "the page's script is built in");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn other_machines_need_a_token() {
    let refused = |args: &[&str], token: Option<&str>| {
        let mut command = dosimeter();
        command.args(["serve", "--no-open"]).args(args);
        if let Some(token) = token {
            command.env("DOSIMETER_TOKEN", token);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = refused(&["--listen", "0.0.0.0:0"], None);
    assert!(code == Some(2) && stderr.contains("needs a token"), "{stderr}");
    let (code, stderr) = refused(&["--listen", "127.0.0.1:0"], None);
    assert!(code == Some(2) && stderr.contains("needs a token"), "{stderr}");
    let (code, stderr) = refused(&["--listen", "0.0.0.0:0"], Some("short"));
    assert!(code == Some(2) && stderr.contains("at least 16"), "{stderr}");
    let (code, stderr) = refused(&["no/such/folder"], None);
    assert!(code == Some(2) && stderr.contains("not a folder"), "{stderr}");
}
