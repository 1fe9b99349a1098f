//! `train --explain`: how each layer is clipped, at what cost.

use crate::print::{Align, TextTable, WIDTH, with_commas, wrap};
use training::{Explanation, Route};

pub(super) fn human(found: &Explanation) -> String {
    let mut table = TextTable::new([
        ("layer", Align::Left),
        ("parameters", Align::Right),
        ("route", Align::Left),
        ("kept", Align::Right),
        ("again", Align::Right),
        ("ghost", Align::Right),
        ("waits", Align::Right),
    ]);
    for layer in &found.layers {
        let cost = |route: Route| layer.costs.iter().find(|cost| cost.route == route);
        let time = |route: Route| {
            cost(route).map_or_else(String::new, |cost| {
                let mark = if layer.cheapest == route { "*" } else { " " };
                format!("{:.3}{mark}", cost.microseconds)
            })
        };
        table.row([
            layer.layer.clone(),
            layer.parameters.to_string(),
            layer.route.as_str().to_owned(),
            time(Route::Kept),
            time(Route::Again),
            time(Route::Ghost),
            cost(layer.route).map_or_else(String::new, |cost| bytes(cost.bytes_kept)),
        ]);
    }
    let (taken, cheapest) = found.microseconds();
    let lines = |text: String| wrap(&text, "", 0, WIDTH);
    let mut text = lines(format!(
        "Clipping on {} in {}: microseconds per record of each route by the model of cost (an \
         estimate; * the cheapest), and what waits for the clipping factor",
        found.device, found.precision
    ));
    text.push_str(&format!("\n{}\n", table.render(2)));
    text.push_str(&lines(format!(
        "gradients by the routes taken: {taken:.1} microseconds per record; by the cheapest routes: \
         {cheapest:.1}"
    )));
    text.push_str(&lines(format!(
        "a record: {} multiplications, {} while it is worked on",
        with_commas(found.multiplications_per_record.round() as u64),
        bytes(found.bytes_per_record as f64)
    )));
    if let Some(together) = found.records_together {
        text.push_str(&format!("records worked on together: {together}\n"));
    } else {
        text.push_str(&lines(
            "a device has one route per kind of layer: the costs do not choose there".to_owned(),
        ));
    }
    text.push_str(
        "\nkept: every record's gradient is formed once and kept\n\
         again: it is formed for its norm, and once more in the product that sums\n\
         ghost: the norm comes from inner products; one product sums\n",
    );
    text
}

fn bytes(count: f64) -> String {
    match count {
        count if count >= 1e6 => format!("{:.1} MB", count / 1e6),
        count if count >= 1e3 => format!("{:.1} kB", count / 1e3),
        count => format!("{count:.0} B"),
    }
}
