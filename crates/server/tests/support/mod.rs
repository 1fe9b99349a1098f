//! A server in a thread, and a client that can misbehave.
#![allow(dead_code)]

use serde_json::Value;
use server::{Limits, Settings, bind};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::loopback(0);
        change(&mut settings);
        let bound = bind(settings).unwrap();
        let address = bound.address();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || bound.serve(&flag).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn plain() -> Self {
        Self::start(|_| {})
    }

    pub(crate) fn limited(limits: Limits) -> Self {
        Self::start(|settings| settings.limits = limits)
    }

    pub(crate) fn of_folder(folder: PathBuf) -> Self {
        Self::start(|settings| settings.folder = Some(folder))
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends bytes as they are and reads until the server closes or has answered.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        read_answer(&mut stream).expect("an answer")
    }

    /// A request with the usual headers and further ones.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {}\r\n", self.host()));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        self.raw(&[text.as_bytes(), body].concat())
    }

    pub(crate) fn ask(&self, path: &str, question: &Value) -> Answer {
        self.request(
            "POST",
            path,
            &[("Content-Type", "application/json")],
            question.to_string().as_bytes(),
        )
    }

    /// It answers an easy question.
    pub(crate) fn is_well(&self) -> bool {
        let question = serde_json::json!({
            "run": {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000},
            "delta": 1e-5, "lens": "composition", "quantity": "epsilon",
        });
        self.ask("/api/account", &question).status == 200
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// One answer; `None` when the server closes without one.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 65536];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: bytes[end..].to_vec() };
    let length: usize = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
    while answer.body.len() < length {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => answer.body.extend_from_slice(&buffer[..count]),
        }
    }
    Some(answer)
}
