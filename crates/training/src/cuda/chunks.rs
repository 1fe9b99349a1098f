//! Which replicas are worked on together.

use super::device::Buffer;
use super::drawing::Drawn;
use super::workspace::Workspace;

/// Replicas that are worked on together: slot s holds replica `order[s]`.
pub(super) struct Chunk {
    /// Address of the order on the device.
    pub(super) order: u64,
    /// The first replica, where the slots are replicas one after the other.
    pub(super) first: Option<usize>,
    pub(super) slots: usize,
    /// Rows reserved for each slot.
    pub(super) rows: usize,
}

/// Rows are padded to a multiple of this.
pub(super) const ROWS: usize = 8;
/// Replicas in a chunk below which sorting by batch size does not pay.
const FEWEST: usize = 128;
const MOST_CHUNKS: usize = 4;

/// Cuts a step into chunks: one when few replicas or equal batches, otherwise replicas of similar
/// batch sizes together.
pub(super) fn chunks(
    drawn: &Drawn<'_>,
    workspace: &Workspace,
    identity: &Buffer<i32>,
) -> Vec<Chunk> {
    let count = drawn.sizes.len();
    let size = |replica: i32| drawn.sizes[replica as usize] as usize;
    let rows = |replica: i32| size(replica).next_multiple_of(ROWS);
    let (least, most) = match (drawn.sorted.first(), drawn.sorted.last()) {
        (Some(&first), Some(&last)) => (rows(first), rows(last)),
        _ => return Vec::new(),
    };
    let wanted = if least == most { 1 } else { (count / FEWEST).clamp(1, MOST_CHUNKS) };
    let slots = count.div_ceil(wanted).min(workspace.slots);
    let in_order = wanted == 1;
    (0..count)
        .step_by(slots)
        .map(|start| {
            let slots = slots.min(count - start);
            let own: Vec<i32> = if in_order {
                (start as i32..(start + slots) as i32).collect()
            } else {
                drawn.sorted[start..start + slots].to_vec()
            };
            Chunk {
                order: if in_order { identity.at(start) } else { drawn.order + 4 * start as u64 },
                first: in_order.then_some(start),
                slots,
                rows: own.iter().map(|replica| rows(*replica)).max().unwrap_or(0),
            }
        })
        .collect()
}
