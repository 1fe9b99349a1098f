//! The games, beside the same games in NumPy. Wall time on all cores for ours, because trials are
//! spread over threads; NumPy runs as it does by default.

use super::bars::Bar;
use super::format::{ratio, seconds};
use super::measure::{Bench, Measured};
use super::page::Page;

pub fn games(bench: &Bench, page: &mut Page) {
    page.heading(
        "Games",
        "Every game is played step by step, with and without the canary. NumPy: the same game, all \
         trials of a batch as one array, `default_rng`.",
    );
    page.line("| game | sigma, q, T | trials | Dosimeter | Gaussians per second | NumPy | Dosimeter is faster |");
    page.line("|---|---|---|---|---|---|---|");
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let ours = |what: &str, numbers: [f64; 4]| {
        let mut arguments = vec![what.to_owned()];
        arguments.extend(numbers.iter().chain([&threads]).map(f64::to_string));
        bench.example("games", &arguments)
    };
    let linear = [1.0, 0.01, 1000.0, 1e5];
    let generator = ours("generator", linear);
    let wall = |measured: &Measured| measured.number("wall_s");
    for (game, numbers) in [
        ("linear", linear),
        ("our-loss", [1.0, 0.1, 100.0, 5000.0]),
        ("our-loss", [0.5, 0.01, 1024.0, 5000.0]),
        ("repeaters", [0.5, 0.1, 100.0, 5000.0]),
    ] {
        let (mine, theirs) = (ours(game, numbers), bench.peer("game", game, &numbers));
        let times = wall(&theirs).zip(wall(&mine)).map(|(slow, fast)| slow / fast);
        let [sigma, q, steps, trials] = numbers;
        let text = |value: Option<f64>| value.map_or_else(|| "—".to_owned(), seconds);
        page.line(format!(
            "| {game} | {sigma}, {q}, {steps} | {trials} + {trials} | {} | {} | {} | {} |",
            text(wall(&mine)),
            mine.number("rate")
                .map_or_else(|| "—".to_owned(), |rate| format!("{:.0} million", rate / 1e6)),
            text(wall(&theirs)),
            times.map_or_else(|| "—".to_owned(), ratio)
        ));
        match game {
            "linear" => {
                let share = mine.number("rate").zip(generator.number("rate")).map(|(a, b)| a / b);
                let promise = "the linear game: at least half of the generator's rate";
                page.bar(Bar::at_least(promise, 0.5, share));
            }
            "our-loss" => {
                let promise =
                    format!("our-loss, T = {steps}, 5000 + 5000 games: 5 s over the time taken");
                page.bar(Bar::at_least(promise, 1.0, wall(&mine).map(|seconds| 5.0 / seconds)));
            }
            _ => {}
        }
        page.bar(Bar::at_least(format!("{game}, T = {steps}: faster than NumPy"), 1.0, times));
    }
    if let Some(rate) = generator.number("rate") {
        page.line(format!(
            "\nThe generator alone: {:.0} million Gaussians per second.",
            rate / 1e6
        ));
    }
}
