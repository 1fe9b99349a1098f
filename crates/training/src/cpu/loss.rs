//! Softmax cross-entropy: loss and gradient of the logits, example by example.

/// Replaces each row of `logits` by softmax - one-hot and gives the losses; `losses` and
/// `correct` are per example.
pub(crate) fn cross_entropy(
    logits: &[f32],
    labels: &[u32],
    classes: usize,
    gradient: &mut [f32],
    losses: &mut [f32],
    correct: &mut [bool],
) {
    let rows = logits.chunks_exact(classes).zip(gradient.chunks_exact_mut(classes));
    for (example, (row, gradient)) in rows.enumerate() {
        let label = labels[example] as usize;
        let (loss, hit) = cross_entropy_of(row, label, gradient);
        losses[example] = loss;
        correct[example] = hit;
    }
}

fn cross_entropy_of(logits: &[f32], label: usize, gradient: &mut [f32]) -> (f32, bool) {
    let mut largest = f32::NEG_INFINITY;
    let mut winner = 0;
    for (class, &logit) in logits.iter().enumerate() {
        if logit > largest {
            (largest, winner) = (logit, class);
        }
    }
    let mut total = 0.0f32;
    for (logit, gradient) in logits.iter().zip(gradient.iter_mut()) {
        *gradient = (logit - largest).exp();
        total += *gradient;
    }
    let loss = total.ln() - (logits[label] - largest);
    let scale = 1.0 / total;
    for gradient in gradient.iter_mut() {
        *gradient *= scale;
    }
    // The probability of the other classes, not 1 - p: no cancellation when p is near 1.
    let others: f32 =
        gradient.iter().enumerate().filter(|(c, _)| *c != label).map(|(_, p)| p).sum();
    gradient[label] = -others;
    (loss, winner == label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_gradient() {
        let logits = [1.0f32, -2.0, 0.5];
        let mut gradient = [0.0; 3];
        let (loss, hit) = cross_entropy_of(&logits, 2, &mut gradient);
        let exps: Vec<f64> = logits.iter().map(|x| f64::from(*x).exp()).collect();
        let total: f64 = exps.iter().sum();
        assert!((f64::from(loss) - (total.ln() - 0.5)).abs() < 1e-6);
        assert!(!hit);
        for (class, gradient) in gradient.iter().enumerate() {
            let expected = exps[class] / total - f64::from(u8::from(class == 2));
            assert!((f64::from(*gradient) - expected).abs() < 1e-7);
        }
    }
}
