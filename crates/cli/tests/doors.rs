//! One question, one answer: what the command line prints and what the page's server answers is
//! the same document to the byte, refusals included, over a thousand random questions.

use answers::Question;
use dosimeter_cli::{Console, command_with_console};
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Questions of each kind.
const EACH: &[(&str, usize)] = &[
    ("account", 330),
    ("calibrate", 110),
    ("advice", 20),
    ("curve", 90),
    ("compare", 60),
    ("compare-map", 20),
    ("batch-sizes", 20),
    ("translate", 110),
    ("check", 90),
    ("plan", 40),
    ("panel", 30),
    ("map", 20),
    ("audit", 60),
];

#[test]
fn the_command_and_the_page_answer_the_same_bytes() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(1);
    let (mut asked, mut refused) = (0, 0);
    for kind in Question::KINDS {
        assert!(EACH.iter().any(|(known, _)| known == kind), "{kind} is not asked");
    }
    for (kind, count) in EACH {
        for _ in 0..*count {
            let question = dice.question(kind);
            let scores = (*kind == "audit").then(|| dice.scores());
            let told = match *kind {
                // The page alone asks these: no command prints their documents.
                "panel" | "map" => document(kind, &question),
                _ => command(kind, &question, scores.as_deref(), folder.path()),
            };
            let heard = match &scores {
                Some(scores) => server.audit(&question, scores),
                None => {
                    server.post(&format!("/api/{kind}"), "application/json", &question.to_string())
                }
            };
            assert_eq!(told, heard, "{kind}: {question}");
            asked += 1;
            refused += usize::from(matches!(told, Said::Refusal { .. }));
        }
    }
    assert_eq!(asked, 1000);
    assert!((150..600).contains(&refused), "{refused} refusals are not a fair share");
}

/// What a door said.
#[derive(Debug, PartialEq)]
enum Said {
    Answer(String),
    /// With the field that it names, its value and what was expected.
    Refusal {
        message: String,
        hint: Option<String>,
        code: u64,
        field: [Value; 3],
    },
}

/// The layer below every door.
fn document(kind: &str, question: &Value) -> Said {
    let answer = Question::read(kind, &question.to_string()).and_then(|asked| asked.answer());
    match answer {
        Ok(answer) => Said::Answer(answer.text),
        Err(refusal) => refused(&serde_json::to_value(refusal.document()).unwrap()),
    }
}

/// What a `dosimeter.error/1` says.
fn refused(document: &Value) -> Said {
    assert_eq!(document["schema"], "dosimeter.error/1");
    Said::Refusal {
        message: document["error"].as_str().unwrap().to_owned(),
        hint: document["hint"].as_str().map(str::to_owned),
        code: document["exit_code"].as_u64().unwrap(),
        field: ["field", "value", "expected"].map(|key| document[key].clone()),
    }
}

/// The command line in this process, from the flags that mean the question.
fn command(kind: &str, question: &Value, scores: Option<&str>, folder: &std::path::Path) -> Said {
    let words: &[&str] = match kind {
        "advice" => &["dosimeter", "calibrate"],
        "compare-map" => &["dosimeter", "compare", "--map"],
        "batch-sizes" => &["dosimeter", "compare"],
        _ => &["dosimeter", kind],
    };
    let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for (key, value) in question.as_object().unwrap() {
        match key.as_str() {
            "kind" => arguments.insert(2, value.as_str().unwrap().to_owned()),
            "run" | "policy" => flags(value, &mut arguments),
            "claim" => {
                let path = folder.join("claim.json");
                std::fs::write(&path, json!({ "run": value }).to_string()).unwrap();
                arguments.push(format!("--claim={}", path.display()));
            }
            "runs" => {
                for one in value.as_array().unwrap() {
                    flags(&one["run"], &mut arguments);
                }
            }
            _ => flag(key, value, &mut arguments),
        }
    }
    if let Some(scores) = scores {
        let path = folder.join("scores.csv");
        std::fs::write(&path, scores).unwrap();
        arguments.push(path.display().to_string());
    }
    arguments.push("--format=json".into());
    let (stdout, stderr) = (Buffer::default(), Buffer::default());
    let mut console = Console::to(Box::new(stdout.clone()), Box::new(stderr.clone()));
    match command_with_console(arguments, &mut console) {
        Ok(_) => Said::Answer(stdout.text()),
        Err(failure) => {
            assert_eq!(stdout.text(), "", "a refusal prints no document");
            let field = serde_json::to_value(&failure.field).unwrap();
            Said::Refusal {
                message: failure.message,
                hint: failure.hint,
                code: u64::from(failure.code),
                field: ["field", "value", "expected"].map(|key| field[key].clone()),
            }
        }
    }
}

fn flags(keys: &Value, arguments: &mut Vec<String>) {
    for (key, value) in keys.as_object().unwrap() {
        flag(key, value, arguments);
    }
}

fn flag(key: &str, value: &Value, arguments: &mut Vec<String>) {
    let flag = format!("--{}", key.replace('_', "-"));
    match value {
        Value::Bool(true) => arguments.push(flag),
        Value::Array(items) => items.iter().for_each(|item| self::flag(key, item, arguments)),
        Value::String(text) => arguments.push(format!("{flag}={text}")),
        other => arguments.push(format!("{flag}={other}")),
    }
}

/// Random questions: mostly sensible, sometimes not.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len() as u64) as usize]
    }

    /// A number of a list of good ones, or one of a list of bad ones.
    fn number(&mut self, good: &[f64], bad: &[f64]) -> Value {
        let from = if self.chance(94) { good } else { bad };
        json!(*self.pick(from))
    }

    fn run(&mut self, leave_out: &str) -> Value {
        let mut run = Map::new();
        let noise = self.number(&[0.7, 1.0, 1.37, 4.0], &[-1.0, 0.0, 0.01, 1e4]);
        run.insert("noise_multiplier".into(), noise);
        if self.chance(70) {
            run.insert("sample_rate".into(), self.number(&[0.01, 0.001, 0.25], &[0.0, 1.5]));
        } else {
            run.insert("batch_size".into(), json!(*self.pick(&[16_u64, 256, 0])));
            run.insert("dataset_size".into(), json!(*self.pick(&[1000_u64, 50_000])));
        }
        let steps = json!(*self.pick(&[1_u64, 50, 1000, 0]));
        run.insert("steps".into(), steps);
        if self.chance(10) {
            run.insert("epochs".into(), json!(3.5));
        }
        if self.chance(20) {
            let schemes = ["poisson", "shuffle", "fixed-size", "full"];
            run.insert("sampling".into(), json!(*self.pick(&schemes)));
        }
        if self.chance(20) {
            run.insert("adjacency".into(), json!(*self.pick(&["add-remove", "substitute"])));
        }
        if self.chance(10) {
            run.insert("group_size".into(), json!(*self.pick(&[2_u64, 3, 0])));
        }
        if self.chance(85) {
            run.remove(leave_out);
        }
        Value::Object(run)
    }

    fn delta(&mut self) -> Value {
        self.number(&[1e-5, 1e-6, 0.01], &[0.0, -1.0, 2.0, 1e-200])
    }

    fn lens(&mut self) -> Value {
        let all =
            ["composition", "last-iterate", "full-batch", "gaussian-clt", "closed-form-certified"];
        json!(*self.pick(&all))
    }

    fn question(&mut self, kind: &str) -> Value {
        let mut keys = Map::new();
        match kind {
            "account" | "compare" => {
                let run = self.run("");
                if kind == "account" {
                    keys.insert("run".into(), run);
                } else {
                    keys.insert("runs".into(), json!([{ "name": "run", "run": run }]));
                }
                if self.chance(80) {
                    keys.insert("delta".into(), json!([self.delta()]));
                }
                if self.chance(20) {
                    keys.insert("epsilon".into(), json!([self.number(&[0.5, 2.0], &[-1.0])]));
                }
                if self.chance(20) {
                    keys.insert("fpr".into(), json!([self.number(&[0.01, 0.3], &[0.0, 1.0])]));
                }
                let quantities =
                    ["epsilon", "delta", "advantage", "bayes-security", "attack-accuracy"];
                keys.insert(
                    "quantity".into(),
                    json!([*self.pick(&quantities), *self.pick(&quantities)]),
                );
                keys.insert("lens".into(), json!([self.lens()]));
                if self.chance(10) {
                    keys.insert("directions".into(), json!(true));
                }
                if kind == "account" && self.chance(10) {
                    keys.insert("attack_prior".into(), json!([self.number(&[0.5, 0.1], &[1.0])]));
                }
                if kind == "account" && self.chance(5) {
                    keys.insert("candidates".into(), json!(*self.pick(&[4_u64, 1])));
                }
            }
            "calibrate" => {
                let unknowns = [
                    ("noise-multiplier", "noise_multiplier"),
                    ("steps", "steps"),
                    ("sample-rate", "sample_rate"),
                ];
                let (solve, key) = *self.pick(&unknowns);
                keys.insert("solve".into(), json!(solve));
                keys.insert("run".into(), self.run(key));
                let targets =
                    ["target_epsilon", "target_advantage", "target_bayes_security", "target_tpr"];
                let target = *self.pick(&targets);
                // Targets that take noise of about one: little noise is slow to certify.
                let good: &[f64] = match target {
                    "target_epsilon" => &[1.0, 2.0],
                    "target_bayes_security" => &[0.9, 0.95],
                    _ => &[0.05, 0.1],
                };
                keys.insert(target.into(), self.number(good, &[-1.0, 0.0]));
                if (target == "target_epsilon") == self.chance(95) {
                    keys.insert("delta".into(), self.delta());
                }
                if (target == "target_tpr") == self.chance(95) {
                    keys.insert("fpr".into(), json!(0.01));
                }
            }
            "advice" => {
                keys.insert("run".into(), json!({"dataset_size": 50_000, "epochs": 5.0}));
                keys.insert("batch_sizes".into(), json!([256, *self.pick(&[1000_u64, 4096])]));
                keys.insert("target_epsilon".into(), self.number(&[2.0, 4.0], &[-1.0]));
                if self.chance(80) {
                    keys.insert("delta".into(), self.delta());
                }
            }
            "compare-map" => {
                keys.insert("noise_multiplier".into(), self.number(&[1.0, 2.0], &[-1.0, 1e4]));
                keys.insert("sample_rates".into(), json!([0.01, 0.1]));
                keys.insert("steps_list".into(), json!([10, 100]));
                keys.insert("delta".into(), json!([self.delta()]));
            }
            "batch-sizes" => {
                keys.insert("batch_sizes".into(), json!([256, 1000]));
                keys.insert("dataset_size".into(), json!(50_000));
                if self.chance(90) {
                    keys.insert("epochs".into(), json!(5.0));
                }
                keys.insert("heuristic_epsilon".into(), self.number(&[2.0, 4.0], &[-1.0]));
                keys.insert("delta".into(), json!([self.delta()]));
            }
            "panel" => {
                keys.insert("run".into(), self.run(""));
                keys.insert("points".into(), json!(*self.pick(&[5_u64, 9, 0])));
            }
            "map" => {
                keys.insert("run".into(), self.run(""));
                keys.insert("delta".into(), self.delta());
                keys.insert("columns".into(), json!(*self.pick(&[2_u64, 3, 1])));
                keys.insert("rows".into(), json!(2));
                // Time enough for every cell, however busy the machine is.
                keys.insert("milliseconds".into(), json!(20_000));
            }
            "curve" => {
                let kinds = ["tradeoff", "profile", "steps"];
                let curve = *self.pick(&kinds);
                keys.insert("kind".into(), json!(curve));
                keys.insert("run".into(), self.run(""));
                keys.insert("points".into(), json!(*self.pick(&[3_u64, 5, 1])));
                keys.insert("lens".into(), json!([*self.pick(&["composition", "full-batch"])]));
                if (curve == "steps") == self.chance(90) {
                    keys.insert("delta".into(), self.delta());
                }
                if curve == "profile" && self.chance(50) {
                    keys.insert("epsilon".into(), json!([0.5, 1.5]));
                }
            }
            "translate" => {
                let from = ["bayes_security", "epsilon", "mu", "attack_accuracy", "tpr"];
                let from = *self.pick(&from);
                keys.insert(from.into(), self.number(&[0.6, 0.9], &[-1.0, 0.0, 1.5]));
                if self.chance(70) {
                    keys.insert("delta".into(), self.delta());
                }
                if self.chance(30) {
                    keys.insert("prior".into(), self.number(&[0.5, 0.2], &[0.0, 1.0]));
                }
            }
            "check" => {
                keys.insert("run".into(), self.run(""));
                let mut policy = Map::new();
                let limits = ["max_epsilon", "max_advantage", "min_bayes_security", "max_tpr"];
                policy.insert((*self.pick(&limits)).into(), self.number(&[0.3, 0.9], &[-1.0]));
                if self.chance(80) {
                    policy.insert("delta".into(), self.delta());
                }
                if self.chance(80) {
                    policy.insert("fpr".into(), json!(0.01));
                }
                policy.insert("lens".into(), self.lens());
                keys.insert("policy".into(), Value::Object(policy));
            }
            "plan" => {
                if self.chance(80) {
                    keys.insert("target_epsilon".into(), self.number(&[0.5, 1.0], &[-1.0]));
                } else if self.chance(80) {
                    keys.insert("claim".into(), self.run(""));
                }
                if self.chance(60) {
                    keys.insert("delta".into(), self.delta());
                }
                if self.chance(90) {
                    keys.insert("attack_fpr".into(), self.number(&[0.01, 0.05], &[0.0]));
                    keys.insert("attack_tpr".into(), self.number(&[0.5, 0.9], &[1.0]));
                }
                keys.insert("threshold".into(), json!("fixed"));
            }
            _ => {
                keys.insert("delta".into(), json!([self.number(&[1e-5, 0.0], &[-1.0, 1.0])]));
                keys.insert("confidence".into(), self.number(&[0.9, 0.95], &[0.0, 1.5]));
                if self.chance(30) {
                    keys.insert(
                        "method".into(),
                        json!([*self.pick(&["gdp", "bayes", "one-run", "none"])]),
                    );
                }
                if self.chance(20) {
                    keys.insert("design".into(), json!(*self.pick(&["runs", "one-run"])));
                }
                match self.roll(8) {
                    0 | 1 => {
                        let claimed = self.number(&[0.5, 8.0, 30.0], &[-1.0]);
                        keys.insert("claim_epsilon".into(), claimed);
                    }
                    2 => {
                        keys.insert("claim".into(), self.run(""));
                    }
                    3 => {
                        keys.insert("run".into(), self.run(""));
                    }
                    4 => {
                        keys.insert("method".into(), json!(["all"]));
                        keys.insert("run".into(), json!({"sample_rate": 0.1, "steps": 50}));
                    }
                    5 => {
                        keys.insert("sequential".into(), json!(true));
                    }
                    _ => {}
                }
            }
        }
        Value::Object(keys)
    }

    /// A small table; with a column `run`, the rows are of one training or of several.
    fn scores(&mut self) -> String {
        let runs = self.roll(3);
        let mut text =
            String::from(if runs == 0 { "score,member\n" } else { "score,member,run\n" });
        for row in 0..60 {
            let member = row % 2;
            let score = self.roll(1000) as f64 / 1000.0 + f64::from(member) * 0.4;
            let run = match runs {
                0 => String::new(),
                1 => ",one".into(),
                _ => format!(",{row}"),
            };
            text.push_str(&format!("{score},{member}{run}\n"));
        }
        text
    }
}

struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Self {
        let bound = server::bind(server::Settings::loopback(0)).unwrap();
        let (address, stop) = (bound.address(), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stop);
        std::thread::spawn(move || bound.serve(&flag).unwrap());
        Self { address, stop }
    }

    fn audit(&self, question: &Value, scores: &str) -> Said {
        let encoded: String =
            question.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
        self.post(&format!("/api/audit?figures=no&question={encoded}"), "text/csv", scores)
    }

    fn post(&self, path: &str, kind: &str, body: &str) -> Said {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if head.starts_with("HTTP/1.1 200") {
            return Said::Answer(body.to_owned());
        }
        refused(&serde_json::from_str(body).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
