//! `hidden-state` and `hidden-state-renyi`: the last iterate under named assumptions on the loss
//! ([`crate::hidden_state`]). Without the loss's constants they do not hold for any run.

use super::{Lens, PLAIN, Subject, View, batches};
use crate::AccountingError;
use crate::hidden_state::{Loss, gaussian, renyi};
use vocabulary::{LensName, NotCovered, Phase, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::HiddenState,
    release: Release::LastIterate,
    standing: |run| {
        let full = run.phases().iter().all(|phase| phase.sample_rate == 1.0);
        if full { Standing::Proven } else { Standing::Estimate }
    },
    assumptions,
    trusts: |subject| subject.loss.map(Loss::assumption),
    supports: |subject| {
        let (phase, loss) = needed(subject)?;
        gaussian::supports(subject.run, phase, loss)
    },
    look: |subject| {
        let (phase, loss) = needed(subject)?;
        Ok(View::gaussian(gaussian::pair(subject.run, phase, loss)?))
    },
    ..PLAIN
};

pub(super) const RENYI_LENS: Lens = Lens {
    name: LensName::HiddenStateRenyi,
    standing: |_| Standing::Proven,
    assumptions: |run| {
        let mut all = assumptions(run);
        all.push(
            "the model starts at random: N(0, 2 sigma^2/m) in the paper's units, projected".into(),
        );
        all
    },
    supports: |subject| {
        let (phase, loss) = needed(subject)?;
        renyi::rate(subject.run, phase, loss).map(drop)
    },
    look: |subject| {
        let (phase, loss) = needed(subject)?;
        Ok(View::bound(renyi::rate(subject.run, phase, loss)?))
    },
    ..LENS
};

fn assumptions(run: &Run) -> Vec<String> {
    vec!["the attacker sees the last iterate only".into(), batches(run)]
}

/// The phase and the constants that both are about.
fn needed<'a>(subject: &Subject<'a>) -> Result<(&'a Phase, &'a Loss), AccountingError> {
    (PLAIN.supports)(subject)?;
    let Some(loss) = subject.loss else {
        let why = "it needs the loss's constants: give --learning-rate, --smoothness, and \
                   --strong-convexity or --diameter";
        return Err(NotCovered::Missing { key: "learning_rate", why }.into());
    };
    loss.check()?;
    let [phase] = subject.run.phases() else {
        let found = subject.run.phases().len();
        return Err(NotCovered::Phases { what: "it holds", found, separately: false }.into());
    };
    match subject.run.group_size() {
        1 => Ok((phase, loss)),
        found => Err(NotCovered::Group { what: "it holds", found }.into()),
    }
}
