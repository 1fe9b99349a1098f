//! The reference values copied into the project.

use accounting::Order;
use vocabulary::Run;

pub(crate) struct Row {
    pub line: usize,
    pub quantity: String,
    pub run: Run,
    pub at: f64,
    pub orders: Vec<Order>,
    pub value: f64,
    /// Half a unit of the last trusted digit.
    pub tolerance: f64,
    pub text: String,
}

pub(crate) fn composition() -> Vec<Row> {
    include_str!("../golden/composition.csv")
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.starts_with("quantity"))
        .map(|(i, line)| {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |k: usize| cells[k].parse::<f64>().expect("a number");
            let value = number(6);
            let digits: i32 = cells[7].parse().expect("digits");
            let unit = 10_f64.powi(value.abs().log10().floor() as i32 + 1 - digits);
            Row {
                line: i + 1,
                quantity: cells[0].into(),
                run: Run::builder()
                    .phase(number(1), number(2), number(3) as u64)
                    .build()
                    .expect("a run"),
                at: number(4),
                orders: match cells[5] {
                    "remove" => vec![Order::Remove],
                    "add" => vec![Order::Add],
                    _ => vec![Order::Remove, Order::Add],
                },
                value,
                tolerance: 0.5 * unit,
                text: line.into(),
            }
        })
        .collect()
}
