//! Claims as a grid: a row per lens, a column per quantity.

use crate::words::quantity_name;
use vocabulary::{Account, Claim, Direction, LensName, Quantity};

/// What a person looks for first stands first.
const ORDER: [Quantity; 8] = [
    Quantity::Epsilon,
    Quantity::Delta,
    Quantity::Mu,
    Quantity::Tpr,
    Quantity::Advantage,
    Quantity::BayesSecurity,
    Quantity::AttackAccuracy,
    Quantity::Reconstruction,
];

pub(crate) struct Grid<'a> {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row<'a>>,
}

pub(crate) struct Row<'a> {
    pub(crate) lens: LensName,
    /// Any claim of the lens: they share standing and release.
    pub(crate) first: &'a Claim,
    pub(crate) cells: Vec<Option<&'a Claim>>,
}

/// The claims about both directions; lenses without claims have no row.
pub(crate) fn grid(account: &Account) -> Grid<'_> {
    let claims: Vec<&Claim> =
        account.claims.iter().filter(|claim| claim.direction == Direction::Both).collect();
    let mut columns: Vec<String> = Vec::new();
    for quantity in ORDER {
        for claim in claims.iter().filter(|claim| claim.quantity == quantity) {
            let name = quantity_name(claim);
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    let rows = LensName::ALL.into_iter().filter_map(|lens| {
        let of_lens: Vec<&Claim> =
            claims.iter().copied().filter(|claim| claim.source == lens).collect();
        let cells = columns
            .iter()
            .map(|name| of_lens.iter().copied().find(|claim| quantity_name(claim) == *name))
            .collect();
        Some(Row { lens, first: of_lens.first().copied()?, cells })
    });
    let rows = rows.collect();
    Grid { columns, rows }
}
