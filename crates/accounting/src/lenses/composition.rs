//! `composition`: all iterates are seen, so the run is the composition of its steps. The pair is that of
//! the run's scheme ([`crate::schemes`]): exact, or a proven upper bound with the best proven lower end
//! beside it. A run that a Rényi filter ended has no pair, but the bound of its filter. Proven for every scheme and neighbours that are answered at all.

use super::{Lens, PLAIN, View};
use crate::schemes;
use vocabulary::LensName;
use vocabulary::figure::Hue;

pub(super) const LENS: Lens = Lens {
    name: LensName::Composition,
    hue: Hue::Blue,
    assumptions: |run| {
        let mut all = vec!["the attacker sees every iterate".to_owned()];
        all.extend(schemes::words(run));
        all
    },
    supports: |subject| schemes::supports(subject.run),
    look: |subject| {
        if let Some(filter) = schemes::filter(subject.run)? {
            return Ok(View::bound(filter));
        }
        let view = View::Pair(schemes::pair(subject.run)?);
        Ok(match schemes::at_least(subject.run) {
            Some(below) => view.enclosed(View::Pair(below)),
            None => view,
        })
    },
    required: true,
    beside_audits: true,
    in_profiles: true,
    ..PLAIN
};
