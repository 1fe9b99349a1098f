//! Windows that slide over an image: their largest number, or their mean.

use super::arguments::Argument::{self, Address, Long};
use super::layer::{Layer, Turn, Written};
use super::program::{blocks, flag};
use crate::TrainingError;
use crate::model::Pool;

/// The largest number of each window; remembers which it was.
pub(super) struct MaxPool(pub(super) Pool);

/// The mean of each window.
pub(super) struct AveragePool(pub(super) Pool);

fn numbers_of(pool: &Pool) -> Argument {
    Argument::Pool(
        [
            pool.input.height,
            pool.input.width,
            pool.input.channels,
            pool.output.height,
            pool.output.width,
            pool.kernel,
            pool.stride,
        ]
        .map(|number| number as i32),
    )
}

/// `winners`: those of the forward pass; 0 for means.
fn backward(
    pool: &Pool,
    turn: &Turn<'_>,
    (dy, winners): (u64, u64),
    written: &mut Written,
) -> Result<(), TrainingError> {
    let again = turn.engine.settle(turn.chunk, written, turn.source())?;
    let arguments = vec![
        Address(turn.dx()),
        Address(dy),
        Address(winners),
        numbers_of(pool),
        Long(turn.examples() as u64),
        flag(again),
    ];
    turn.engine.start("pool_backward", (blocks(turn.lengths().0), 1), arguments)
}

impl Layer for MaxPool {
    fn remembers(&self, _without_patches: bool) -> (usize, usize) {
        (0, self.0.output.len())
    }

    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let arguments = vec![
            Address(turn.y()),
            Address(turn.memory().bytes.address()),
            Address(turn.x()),
            numbers_of(&self.0),
            Long(turn.examples() as u64),
        ];
        turn.engine.start("max_pool", (blocks(turn.lengths().1), 1), arguments)
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        backward(&self.0, turn, (dy, turn.memory().bytes.address()), written)
    }
}

impl AveragePool {
    /// Whether the mean of a whole image is taken, with channels in fours.
    fn is_whole(&self) -> bool {
        let pool = &self.0;
        (pool.output.height, pool.output.width) == (1, 1)
            && (pool.input.height, pool.input.width) == (pool.kernel, pool.kernel)
            && pool.input.channels.is_multiple_of(4)
    }
}

impl Layer for AveragePool {
    fn forward(&self, turn: &Turn<'_>) -> Result<(), TrainingError> {
        let arguments = vec![
            Address(turn.y()),
            Address(turn.x()),
            numbers_of(&self.0),
            Long(turn.examples() as u64),
        ];
        if self.is_whole() {
            let fours = turn.lengths().1 / 4;
            return turn.engine.start("average_whole", (blocks(fours), 1), arguments);
        }
        turn.engine.start("average_pool", (blocks(turn.lengths().1), 1), arguments)
    }

    fn backward(
        &self,
        turn: &Turn<'_>,
        dy: u64,
        written: &mut Written,
    ) -> Result<(), TrainingError> {
        let pool = &self.0;
        if !self.is_whole() {
            return backward(pool, turn, (dy, 0), written);
        }
        let again = turn.engine.settle(turn.chunk, written, turn.source())?;
        let arguments = vec![
            Address(turn.dx()),
            Address(dy),
            numbers_of(pool),
            Long(turn.examples() as u64),
            flag(again),
        ];
        turn.engine.start("average_backward", (blocks(turn.lengths().0), 1), arguments)
    }
}
