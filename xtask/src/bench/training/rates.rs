//! Model-steps per second, ours and theirs in turns, so that a busy machine slows both.
//!
//! On one thread they are counted by processor time, which other programs disturb less. On all
//! cores they are counted by the clock, which means something on a quiet machine only: the threads
//! of one PyTorch model wait for each other, ours do not. Whether it was quiet is seen from the
//! cores that the turns got.

use super::super::bars::Bar;
use super::programs::Programs;
use std::fmt::Write as _;

/// Turns of every rate.
pub const TURNS: usize = 3;

pub const MODES: [(&str, &str); 4] = [
    ("hooks", "Opacus, default hooks"),
    ("ghost", "Opacus, ghost clipping"),
    ("functional", "torch.func, vmap of grad"),
    ("plain", "PyTorch without privacy"),
];

pub const NETS: [(&str, &str); 2] = [
    ("mlp", "784-128-10 with ReLU (101,770 parameters)"),
    ("cnn", "the network of Opacus' MNIST example (26,010 parameters)"),
];

/// What a turn has to get of its cores for the clock to mean something.
const QUIET: f64 = 0.93;

/// Arithmetic of one step on 256 records: three products for a weight that is not in the first
/// layer, two for one that is.
const MLP_STEP: f64 = 2.0 * 256.0 * (2.0 * 784.0 * 128.0 + 3.0 * 128.0 * 10.0);

/// What was promised: net, peer, one thread (or all cores), times. On one thread 6 times ghost
/// clipping would be more than the processor's multiply-adds allow; what it allows is in the note.
const PROMISES: [(&str, &str, bool, f64); 5] = [
    ("mlp", "hooks", true, 60.0),
    ("mlp", "ghost", true, 3.3),
    ("mlp", "ghost", false, 6.0),
    ("cnn", "hooks", true, 4.0),
    ("cnn", "ghost", true, 4.0),
];

/// Rates of one net on this many threads.
struct Rates {
    ours: Vec<f64>,
    /// Of the cores that were asked for.
    got: Vec<f64>,
    /// Of the processor's multiply-adds.
    shares: Vec<f64>,
    theirs: Vec<Peer>,
}

#[derive(Clone, Default)]
struct Peer {
    rates: Vec<f64>,
    ratios: Vec<f64>,
    /// Ratios of turns in which both sides got their cores.
    quiet: Vec<f64>,
}

impl Peer {
    /// The ratio to show: of quiet turns where there are some and the clock counts.
    fn times(&self, single: bool) -> Option<f64> {
        median(if single || self.quiet.is_empty() { &self.ratios } else { &self.quiet })
    }
}

pub fn all(programs: &Programs, cores: usize, bars: &mut Vec<Bar>, tables: &mut String) {
    for (net, title) in NETS {
        let mut threads = vec![1, cores];
        threads.dedup();
        let rates: Vec<(usize, Rates)> =
            threads.into_iter().map(|threads| (threads, rates(programs, net, threads))).collect();
        let _ = write!(tables, "\n## {title}\n\n");
        if let Some(share) = median(&rates[0].1.shares) {
            let promise = "mlp: at least 0.65 of the multiply-adds that the processor can do";
            bars.push(Bar::at_least(promise, 0.65, Some(share)).plain());
            let ghost = median(&rates[0].1.theirs[1].ratios);
            tables.push_str(&roof(share, ghost));
        }
        tables
            .push_str("Model-steps per second, batch 256.\n\n| threads | Dosimeter, 64 replicas |");
        for (_, name) in MODES {
            let _ = write!(tables, " {name} |");
        }
        tables.push_str("\n|---|---|---|---|---|---|\n");
        for (threads, rates) in &rates {
            rows(net, *threads, rates, bars, tables);
        }
        let busy = rates.iter().skip(1).filter_map(|(threads, rates)| {
            let quiet = rates.theirs.iter().any(|peer| !peer.quiet.is_empty());
            let got = median(&rates.got).filter(|_| !quiet)?;
            Some((threads, got * *threads as f64))
        });
        for (threads, got) in busy {
            let _ = write!(
                tables,
                "\nOther programs ran: of {threads} cores our turns got {got:.2}, so that the row of \
                 {threads} threads says little and is held to no bar.\n"
            );
        }
    }
}

fn rates(programs: &Programs, net: &str, threads: usize) -> Rates {
    let key = if threads == 1 { "cpu_rate" } else { "rate" };
    let mut rates = Rates {
        ours: Vec::new(),
        got: Vec::new(),
        shares: Vec::new(),
        theirs: vec![Peer::default(); MODES.len()],
    };
    for _ in 0..TURNS {
        let found = programs.ours(&[net, "64", "5"], threads, 300);
        let number = |key: &str| found.as_ref().and_then(|found| found[key].as_f64());
        let own = number(key);
        rates.ours.extend(own);
        let got = number("cores").map(|cores| cores / threads as f64);
        rates.got.extend(got);
        if net == "mlp" && threads == 1 {
            let roof = programs.ours(&["roof"], 1, 120);
            let roof = roof.and_then(|found| found["gflop_s"].as_f64());
            rates.shares.extend(own.zip(roof).map(|(own, roof)| own * MLP_STEP / (roof * 1e9)));
        }
        for ((mode, _), peer) in MODES.iter().zip(&mut rates.theirs) {
            let found = programs.peer(&["rate", net, mode, &threads.to_string(), "3"], 300);
            let number = |key: &str| found.as_ref().and_then(|found| found[key].as_f64());
            peer.rates.extend(number(key));
            let ratio = own.zip(number(key)).map(|(own, rate)| own / rate);
            peer.ratios.extend(ratio);
            let theirs = number("cores").map(|cores| cores / threads as f64);
            let least = got.zip(theirs).map_or(0.0, |(ours, theirs)| ours.min(theirs));
            peer.quiet.extend(ratio.filter(|_| least >= QUIET));
        }
    }
    rates
}

fn rows(net: &str, threads: usize, rates: &Rates, bars: &mut Vec<Bar>, tables: &mut String) {
    let _ = write!(tables, "| {threads} | {} |", median(&rates.ours).map_or("—".into(), three));
    for ((mode, name), peer) in MODES.iter().zip(&rates.theirs) {
        let times = peer.times(threads == 1);
        let _ = match (median(&peer.rates), times) {
            (Some(rate), Some(times)) => write!(tables, " {} ({}x) |", three(rate), three(times)),
            _ => write!(tables, " — |"),
        };
        for (own, against, single, least) in PROMISES {
            if own == net && against == *mode && single == (threads == 1) {
                let how = if single { "one thread" } else { "all cores" };
                let promise = format!("{net}, {how}: at least {least} times {name}");
                let held = if single { times } else { median(&peer.quiet) };
                bars.push(Bar::at_least(promise, least, held));
            }
        }
    }
    tables.push('\n');
}

/// What of the processor's arithmetic the steps are, and what that leaves to gain.
fn roof(share: f64, ghost: Option<f64>) -> String {
    let most = ghost.map_or("—".into(), |ghost| three(ghost / share));
    format!(
        "A step is {} MFLOP, counting the multiplications by the zeros behind the ReLU, which are left \
         out. On one thread these steps are {:.0} % of the multiply-adds that the processor does with \
         all numbers in its registers, noise, batches and updates included; at 100 % they would be \
         {most} times Opacus' ghost clipping.\n\n",
        three(MLP_STEP / 1e6),
        100.0 * share
    )
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Three digits that count.
pub fn three(value: f64) -> String {
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.digits$}")
}
