//! An analysis plan: everything that is decided before the scores are seen. Its hash in the
//! answer lets an auditor show that it was.

use crate::{AttackDirection, AuditError, Design, Family, Method, ThresholdRule, analysis, grid};
use vocabulary::{Adjacency, PlanDocument, Problem, Run};

/// What will be computed, at which confidence, and which bound is the headline.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub design: Design,
    /// In order; checked by [`Plan::check`].
    pub methods: Vec<Method>,
    /// With `--method all` a method that cannot be used is listed, not refused.
    pub all_methods: bool,
    pub deltas: Vec<f64>,
    pub confidence: f64,
    pub threshold: ThresholdRule,
    pub direction: AttackDirection,
    pub primary: Method,
    /// One statement about all bounds together.
    pub joint: bool,
    pub seed: u64,
    /// Sampling rate and steps of the training, for the DP-SGD families.
    pub training: Option<(f64, u64)>,
    /// Errors of either kind below which `grid` does not look at a threshold.
    pub min_count: u64,
    /// False positive rates at which the attack's power is reported.
    pub fprs: Vec<f64>,
    /// Bootstrap rounds; 0 for none.
    pub bootstrap: usize,
    /// The run whose claim is judged.
    pub claim: Option<Run>,
    /// The claimed epsilon at the first delta, where it is stated as a number.
    pub claim_epsilon: Option<f64>,
}

impl Plan {
    /// The default plan for a design: its distribution-free bound under the union rule at 95 %.
    pub fn new(design: Design) -> Self {
        let method = Method::distribution_free(design);
        Self {
            design,
            methods: vec![method],
            all_methods: false,
            deltas: vec![0.0],
            confidence: 0.95,
            threshold: ThresholdRule::Union,
            direction: AttackDirection::Both,
            primary: method,
            joint: false,
            seed: 0,
            training: None,
            min_count: grid::MIN_COUNT,
            fprs: vec![0.001, 0.01],
            bootstrap: 0,
            claim: None,
            claim_epsilon: None,
        }
    }

    /// Checks the plan and puts the distribution-free bound beside any other.
    ///
    /// # Errors
    /// The part that is out of range or contradicts another, by name.
    pub fn check(mut self) -> Result<Self, AuditError> {
        let invalid = |problem: Problem| Err(AuditError::InvalidInput(problem));
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return invalid(
                Problem::outside("confidence", self.confidence, "(0, 1)").and("give e.g. 0.95"),
            );
        }
        if self.deltas.is_empty() {
            self.deltas.push(0.0);
        }
        for delta in &self.deltas {
            if !(0.0..1.0).contains(delta) {
                return invalid(
                    Problem::outside("delta", *delta, "[0, 1)").and("give e.g. 1e-5, or 0"),
                );
            }
        }
        for fpr in &self.fprs {
            if !(*fpr > 0.0 && *fpr < 1.0) {
                return invalid(
                    Problem::outside("false positive rate", *fpr, "(0, 1)").and("give e.g. 0.01"),
                );
            }
        }
        if let Some(epsilon) = self.claim_epsilon
            && !(epsilon >= 0.0 && epsilon.is_finite())
        {
            let expected = "a finite number of at least 0";
            return invalid(
                Problem::is_not("claimed epsilon", epsilon, expected).and("give e.g. 8"),
            );
        }
        if let Some((sample_rate, steps)) = self.training {
            if !(sample_rate > 0.0 && sample_rate <= 1.0) {
                return invalid(Problem::outside("sample rate", sample_rate, "(0, 1]"));
            }
            if steps == 0 {
                return invalid(Problem::is_not("steps", steps, "at least 1"));
            }
        }
        if self.all_methods {
            self.methods = Method::ALL.to_vec();
        }
        let plain = Method::distribution_free(self.design);
        if !self.methods.contains(&plain) {
            self.methods.insert(0, plain);
        }
        let mut seen = Vec::new();
        self.methods.retain(|method| {
            let fresh = !seen.contains(method);
            seen.push(*method);
            fresh
        });
        if !self.primary.is_confidence_bound() {
            let bounds = Method::ALL.into_iter().filter(|method| method.is_confidence_bound());
            let mut names: Vec<&str> = bounds.map(Method::as_str).collect();
            let last = names.pop().unwrap_or_default();
            let message = format!(
                "{} is not a confidence bound and cannot be primary; choose {} or {last}",
                self.primary,
                names.join(", ")
            );
            return invalid(Problem::from(message).about(
                "primary",
                self.primary.to_string(),
                "a confidence bound",
            ));
        }
        if !self.methods.contains(&self.primary) {
            self.methods.push(self.primary);
        }
        for method in self.methods.iter().copied() {
            if self.all_methods && method != self.primary {
                continue;
            }
            if let Some(objection) = self.objection(method) {
                return Err(AuditError::NotValid(format!("method {method} {objection}")));
            }
        }
        Ok(self)
    }

    /// Why a method cannot be used with this plan.
    pub fn objection(&self, method: Method) -> Option<String> {
        if let Some(objection) = method.objection(self.design) {
            return Some(objection.to_owned());
        }
        if let Some(objection) = analysis::objection(method, &self.threshold) {
            return Some(objection.to_owned());
        }
        if !method.needs_training() {
            return None;
        }
        match self.family(method) {
            None => Some("needs --sample-rate and --steps of the training".to_owned()),
            // A pair is quick to make; what has none says why.
            Some(family @ Family::Claimed { .. }) => {
                let run = self.claim.as_ref()?;
                let noise = run.phases().first()?.noise_multiplier;
                family.pair(noise).err().map(|error| format!("has no pair for the claim: {error}"))
            }
            Some(_) => None,
        }
    }

    /// The DP-SGD family of a method.
    pub fn family(&self, method: Method) -> Option<Family> {
        let seen = method.family_sees()?;
        if let Some(run) = &self.claim
            && let family @ Family::Claimed { .. } = Family::of_run(seen, run)
        {
            return Some(family);
        }
        let (sample_rate, steps) = self.training?;
        let size = self.claim.as_ref().map_or(1, Run::group_size);
        Some(Family::of_groups(seen, sample_rate, steps, size))
    }

    /// Which data sets the scores tell apart: those of the claimed run, else one record more.
    pub fn adjacency(&self) -> Adjacency {
        self.claim.as_ref().map_or(Adjacency::AddRemove, Run::adjacency)
    }

    /// How many separate statements the plan makes, for `joint`. All bounds that read the same
    /// two rate bounds (every delta and family under `dkw`, every family under `union`) are one. The exact tests of `fixed` and
    /// `holdout` are one each.
    pub fn statements(&self) -> usize {
        let usable: Vec<Method> = self
            .methods
            .iter()
            .copied()
            .filter(|method| method.is_confidence_bound() && self.objection(*method).is_none())
            .collect();
        let statements = match self.design {
            Design::Runs if self.threshold == ThresholdRule::Dkw => 1,
            // The law of ranks is a statement for each delta; the families share the martingale.
            Design::Runs if self.threshold == ThresholdRule::Union => {
                let free = usable.iter().any(|method| method.is_distribution_free());
                let families = usable.iter().any(|method| !method.is_distribution_free());
                usize::from(free) * self.deltas.len() + usize::from(families)
            }
            _ => usable
                .iter()
                .map(|method| if method.is_distribution_free() { self.deltas.len() } else { 1 })
                .sum(),
        };
        statements.max(1)
    }

    /// The error of each statement.
    pub fn level(&self) -> f64 {
        let error = 1.0 - self.confidence;
        if self.joint { error / self.statements() as f64 } else { error }
    }

    /// The plan as a document whose hash is the plan's.
    pub fn document(&self) -> PlanDocument {
        PlanDocument {
            schema: "dosimeter.audit-plan/1".into(),
            design: self.design,
            methods: self.methods.clone(),
            deltas: self.deltas.clone(),
            confidence: self.confidence,
            threshold_rule: self.threshold.to_string(),
            direction: self.direction.name().into(),
            primary: self.primary,
            joint: self.joint,
            seed: self.seed,
            sample_rate: self.training.map(|training| training.0),
            steps: self.training.map(|training| training.1),
            min_count: self.min_count,
            fprs: self.fprs.clone(),
            bootstrap: self.bootstrap,
            claim: self.claim.clone(),
            claim_epsilon: self.claim_epsilon,
        }
    }
}
