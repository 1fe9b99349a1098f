//! Answers per second while the page's slider is dragged in a real browser, and the processor time of one.

use super::bars::Bar;
use super::format::three_digits;
use super::page::Page;
use crate::browser;
use crate::process::root;
use serde_json::Value;
use std::process::Command;

pub fn slider(page: &mut Page) {
    page.line(
        "\nThe same server while somebody drags a slider: the noise slider is moved to and \
         fro in Chromium, five times \
         1.5 s; counted are the answers of `/api/account` and `/api/panel` that reached the page, \
         which draws each of them. With nothing to draw: the same questions one after the other. \
         Browser, server and whatever else runs share the cores; processor time does not depend on \
         what else runs. The page's is that of its main thread.\n",
    );
    let measured = measure();
    let rates: Vec<f64> = measured
        .as_ref()
        .and_then(|object| object["rates"].as_array())
        .map(|rates| rates.iter().filter_map(Value::as_f64).collect())
        .unwrap_or_default();
    let best = rates.iter().copied().reduce(f64::max);
    if let (Some(object), Some(best), Some(worst)) =
        (&measured, best, rates.iter().copied().reduce(f64::min))
    {
        let number = |value: &Value| value.as_f64().map_or_else(|| "?".to_owned(), three_digits);
        page.line(
            "| answers per second, best drag | worst drag | nothing to draw | processor time per \
             answer, server | page | load average |",
        );
        page.line("|---|---|---|---|---|---|");
        page.line(format!(
            "| {} | {} | {} | {} ms | {} ms | {} |",
            three_digits(best),
            three_digits(worst),
            number(&object["bare"]),
            number(&object["each"]["server"]),
            number(&object["each"]["page"]),
            number(&object["load"])
        ));
    } else {
        page.line("Not measured: it needs Node, the page's packages and a browser.");
    }
    page.bar(Bar::at_least(
        "the page while a slider is dragged: 60 answers per second, as a multiple",
        1.0,
        best.map(|best| best / 60.0),
    ));
    // A busy machine answers less often; what an answer costs stays the same.
    let cost = measured.as_ref().and_then(|object| {
        Some(object["each"]["server"].as_f64()? + object["each"]["page"].as_f64()?)
    });
    page.bar(Bar::at_least(
        "the same by processor time, server and page on one core",
        1.0,
        cost.map(|milliseconds| 1000.0 / milliseconds / 60.0),
    ));
}

fn measure() -> Option<Value> {
    let browser = match browser::prepare() {
        Ok(browser) => browser,
        Err(error) => {
            eprintln!("the slider is left out: {error:#}");
            return None;
        }
    };
    eprintln!("measuring the page's slider");
    let output = Command::new("node")
        .arg("bench/slider.mjs")
        .current_dir(root().join("web"))
        .env("CHROMIUM", browser)
        .output()
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
