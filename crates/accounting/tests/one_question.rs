//! One question has one answer: the same bits alone, in company, in reverse order, twice, after
//! many others and from several threads.

use accounting::pairs::{BinomialGaussian, Composed, LastIterateMax};
use accounting::{AccountingError, Order, Pair, directions};
use vocabulary::{Adjacency, Direction, Interval, Run};

/// Uniform numbers in [0, 1).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.next())
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() * count as f64) as usize
    }
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Epsilon(f64, Direction),
    Delta(f64, Direction),
    Rest(f64),
    Order(f64, Order),
    Power(f64, Direction),
    Missed(f64),
    Advantage,
    Security,
    Mu(f64),
}

impl Question {
    fn random(random: &mut Uniform) -> Self {
        let direction = [Direction::Both, Direction::Add, Direction::Remove][random.below(3)];
        let delta = random.between(1e-12, 0.1);
        let epsilon = random.between(1e-4, 10.0);
        match random.below(12) {
            0 | 1 => Self::Epsilon(delta, direction),
            2 | 3 => Self::Delta(epsilon, direction),
            4 => Self::Rest(epsilon),
            5 => Self::Order(-epsilon, Order::Add),
            6 => Self::Power(random.between(1e-5, 0.5), direction),
            7 => Self::Missed(random.between(1e-3, 0.5)),
            8 | 9 => Self::Advantage,
            10 => Self::Security,
            _ => Self::Mu(delta.max(1e-6)),
        }
    }

    fn ask(self, pair: &dyn Pair) -> Result<Interval, AccountingError> {
        match self {
            Self::Epsilon(delta, direction) => directions::epsilon(pair, delta, direction),
            Self::Delta(epsilon, direction) => directions::delta(pair, epsilon, direction),
            Self::Rest(epsilon) => directions::one_minus_delta(pair, epsilon, Direction::Both),
            Self::Order(epsilon, way) => pair.delta(epsilon, way),
            Self::Power(fpr, direction) => directions::tpr(pair, fpr, direction),
            Self::Missed(fpr) => directions::fnr(pair, fpr, Direction::Both),
            Self::Advantage => directions::advantage(pair),
            Self::Security => directions::bayes_security(pair),
            Self::Mu(delta) => directions::mu::of(pair, delta, Direction::Both),
        }
    }

    /// The bits of the answer; a refusal is one too.
    fn bits(self, pair: &dyn Pair) -> Option<[u64; 3]> {
        let found = self.ask(pair).ok()?;
        Some([found.lower, found.value, found.upper].map(f64::to_bits))
    }
}

/// A pair, made anew, and whether it is cheap enough for a mu.
fn pair(random: &mut Uniform, kind: usize) -> Option<Box<dyn Fn() -> Box<dyn Pair>>> {
    let mut run = Run::builder();
    let phases = [1, 2, 1, 1, 2, 1, 1, 2][kind];
    for phase in 0..phases {
        let (noise, rate) = (random.between(0.5, 20.0), random.between(1e-4, 0.5));
        // Phases of one step, and rates next to 1.
        let (rate, steps) = match (kind, phase) {
            (1, 0) => (rate, 1.0),
            (1, _) => (1.0 - random.between(1e-7, 1e-3), 1.0),
            (4, 0) => (1.0, 1.0 + 3.0 * random.next()),
            _ => (rate, random.between(2.0, 1e4)),
        };
        run = run.phase(noise, rate, steps as u64);
    }
    if kind == 2 {
        run = run.group_size(2 + random.below(4) as u32);
    }
    if kind == 3 {
        run = run.adjacency(Adjacency::Substitute);
    }
    let run = run.build().ok()?;
    Some(match kind {
        5 | 7 => Box::new(move || Box::new(BinomialGaussian::for_run(&run).unwrap())),
        6 => Box::new(move || Box::new(LastIterateMax::for_run(&run).unwrap())),
        _ => Box::new(move || Box::new(Composed::for_run(&run).unwrap())),
    })
}

#[test]
fn answers_do_not_depend_on_company() {
    let rounds: usize =
        std::env::var("DOSIMETER_COMPANY_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    let mut random = Uniform(20261117);
    let mut answered = 0;
    for round in 0..8 * rounds {
        let kind = round % 8;
        let Some(make) = pair(&mut random, kind) else { continue };
        let count = if kind == 6 { 4 } else { 7 };
        let questions: Vec<Question> = (0..count).map(|_| Question::random(&mut random)).collect();
        // Alone, each of a pair of its own.
        let alone: Vec<_> = questions.iter().map(|question| question.bits(&*make())).collect();
        answered += alone.iter().flatten().count();
        let together = make();
        let order: Vec<usize> = (0..count)
            .chain((0..count).rev())
            .chain((0..count).map(|_| random.below(count)))
            .collect();
        for index in order {
            let found = questions[index].bits(&*together);
            assert_eq!(found, alone[index], "{kind}: {:?} of {questions:?}", questions[index]);
        }
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (together, questions, alone) = (&together, &questions, &alone);
                scope.spawn(move || {
                    for turn in 0..count {
                        let index = (turn * 3 + thread * 2) % count;
                        assert_eq!(questions[index].bits(&**together), alone[index]);
                    }
                });
            }
        });
    }
    assert!(answered > 5 * 8 * rounds, "{answered}");
}

/// The run whose advantage had 41 intervals.
#[test]
fn one_advantage() {
    let run = Run::builder()
        .phase(0.5876059344697525, 0.0012095671377026565, 1)
        .phase(2.861670399396739, 0.9999988157265957, 1)
        .build()
        .unwrap();
    let pair = Composed::for_run(&run).unwrap();
    let alone = Question::Advantage.bits(&pair);
    let mut random = Uniform(5);
    for _ in 0..60 {
        for _ in 0..3 {
            Question::Delta(random.between(1e-4, 12.0), Direction::Both).bits(&pair);
            Question::Epsilon(random.between(1e-10, 0.1), Direction::Both).bits(&pair);
        }
        assert_eq!(Question::Advantage.bits(&pair), alone);
    }
}
