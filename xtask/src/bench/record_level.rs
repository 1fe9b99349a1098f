//! Bayes security: the cost of closed forms and of the exact value beside the lattice accountant
//! (figure 5 of Cherubin et al. 2024: sigma 5, p .001, 1 to 100 epochs).

use super::bars::Bar;
use super::format::{answer, ratio, seconds};
use super::measure::{Bench, Measured, faster};
use super::page::Page;

pub fn security(bench: &Bench, page: &mut Page) {
    page.heading(
        "Bayes security: sigma 5, p = 0.001",
        "1 - delta at epsilon 0. Exact: certified ends by composition, adding or removing a record \
         (what dp-accounting has) and replacing one (what the closed form is about). dp-accounting \
         with its default grid (1e-4), and with the one at which it came closest to the truth at 100 \
         epochs (1e-5; finer ones drift away again: 1e-7 says .87). Closed form: the published one (it errs on the unsafe side), called from Rust and, as its authors do, \
         from Python with SciPy, which is what \"within 100x of the closed form\" is measured \
         against (the same formula in Rust is a few dozen nanoseconds, a square root and an error \
         function, and the exact value costs some hundred times that). The fewer steps, the more the \
         exact value costs and the less the lattice does: the bar is about 100 epochs. Certified form: \
         ours, never above the truth.",
    );
    page.line("| epochs | exact, add/remove | CPU | PLD, default grid | CPU | faster | PLD, grid 1e-5 | CPU | faster | exact, replace | CPU | closed form | CPU | CPU in Python | certified form | CPU |");
    page.line("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for epochs in [1.0, 10.0, 50.0, 100.0] {
        let steps = epochs * 1000.0;
        let numbers = [5.0, 1e-3, steps];
        let ours = |what: &str, replace: f64| bench.ours(what, &[5.0, 1e-3, steps, replace]);
        let (added, replaced) = (ours("security", 0.0), ours("security", 1.0));
        let (formula, certified) = (ours("closed-form", 1.0), ours("certified", 1.0));
        let lattice = bench.peer("security", "pld", &numbers);
        let fine = bench.peer("security", "pld-fine", &numbers);
        let python = bench.peer("security", "closed-form", &numbers);
        let value = |measured: &Measured| {
            measured.number("value").map_or_else(|| measured.why().to_owned(), answer)
        };
        let cost = |measured: &Measured| measured.seconds().map_or_else(|| "—".to_owned(), seconds);
        page.line(format!(
            "| {epochs} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            value(&added),
            cost(&added),
            value(&lattice),
            cost(&lattice),
            faster(&lattice, &added).map_or_else(|| "—".to_owned(), ratio),
            value(&fine),
            cost(&fine),
            faster(&fine, &added).map_or_else(|| "—".to_owned(), ratio),
            value(&replaced),
            cost(&replaced),
            value(&formula),
            cost(&formula),
            cost(&python),
            value(&certified),
            cost(&certified)
        ));
        if epochs == 100.0 {
            page.bar(Bar::at_least(
                "exact Bayes security, 100 epochs: at least 500× dp-accounting at its most accurate",
                500.0,
                faster(&fine, &added),
            ));
            page.bar(Bar::at_most(
                "exact Bayes security within 100× of the published closed form as its authors call it",
                100.0,
                faster(&replaced, &python),
            ));
            page.bar(Bar::at_most(
                "the certified closed form within 100× of the published one, both in Rust",
                100.0,
                faster(&certified, &formula),
            ));
        }
    }
}
