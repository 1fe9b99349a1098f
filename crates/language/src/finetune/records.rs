//! What a fine-tuning writes down about itself: its plan, its ledger, its warnings.

use super::layout::{Layout, Scope};
use super::place::Measurer;
use super::session::Finetuning;
use crate::LanguageError;
use crate::model::Decoder;
use sha2::{Digest, Sha256};
use training::data::{Constants, Preprocessing, Provenance};
use training::files::Progress;
use training::model::ModelDescription;
use training::{
    ClippingRecord, DataRecord, DeviceRecord, LEDGER_SCHEMA, Ledger, ModelRecord, NoiseRecord,
    NotPrivate, SamplingRecord,
};
use vocabulary::Phase;

impl Finetuning<'_> {
    /// Names what has to be the same for two trainings to give the same model.
    pub(super) fn plan(&self, device: &DeviceRecord) -> String {
        let document = serde_json::json!({
            "run": self.run,
            "seed": self.recipe.seed,
            "records": digest(self.examples.iter().flat_map(|example| {
                let first = (example.first as u32).to_le_bytes();
                std::iter::once(first).chain(example.tokens.iter().map(|t| t.to_le_bytes()))
            })),
            "weights": fingerprint(&self.start.model.decoder),
            "model": ModelDescription::Language(self.start.description.model.clone()),
            "optimizer": self.recipe.optimizer,
            "canaries": self.start.description.canaries,
            "micro_batch": self.recipe.micro_batch,
            "device": device,
        });
        digest([document.to_string().as_bytes()])
    }

    pub(super) fn ledger(
        &self,
        progress: &Progress,
        device: &DeviceRecord,
        layout: &Layout,
        measurer: &mut Measurer,
    ) -> Result<Ledger, LanguageError> {
        let start = self.start;
        let generator = "philox4x32-10";
        let steps = self.run.steps();
        let loss = match &start.test {
            Some(test) => Some(measurer.loss(&self.decoder, &test.examples)?),
            None => None,
        };
        let mut preprocessing = vec![Preprocessing {
            step: format!("tokens, at most {} per record; longer ones are cut", start.length()),
            constants: Constants::Public,
        }];
        if let Some(planted) = &self.canaries {
            let members = planted.members();
            preprocessing.push(Preprocessing {
                step: format!(
                    "{} of {} {}",
                    members.iter().filter(|member| **member).count(),
                    members.len(),
                    planted.scored()
                ),
                constants: Constants::Public,
            });
        }
        Ok(Ledger {
            schema: LEDGER_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            planned_steps: steps,
            complete: progress.steps_done == steps,
            plan: progress.plan.clone(),
            sampling: SamplingRecord {
                scheme: self.run.sampling(),
                generator: generator.into(),
                seed: Some(self.recipe.seed),
                micro_batch: self.recipe.micro_batch,
            },
            clipping: ClippingRecord {
                norm: self.run.clip_norm(),
                unit: "record".into(),
                at_most: device.sensitivity,
                normalisers: self
                    .run
                    .phases()
                    .iter()
                    .map(|phase: &Phase| {
                        self.run.drawing().share(phase.sample_rate) * start.records() as f64
                    })
                    .collect(),
                normalised_by: "expected batch size, from the data set's size taken as public"
                    .into(),
            },
            noise: NoiseRecord {
                generator: generator.into(),
                secure: false,
                seed: Some(self.recipe.seed),
                precaution: "none: whoever knows the seed knows the noise; for audits and \
                             experiments, not for a model that is released"
                    .into(),
            },
            data: DataRecord {
                records: self.examples.len(),
                numbers_per_record: start.length(),
                classes: start.model.decoder.architecture.vocabulary,
                provenance: Provenance {
                    name: start.texts.name.clone(),
                    sha256: vec![start.texts.sha256.clone()],
                    licence: None,
                    preprocessing,
                    unused: Vec::new(),
                },
            },
            model: ModelRecord {
                description: ModelDescription::Language(start.description.model.clone()),
                parameters: layout.size,
            },
            optimizer: self.recipe.optimizer,
            device: device.clone(),
            sessions: progress.sessions.clone(),
            warnings: self.warnings(),
            not_private: NotPrivate {
                note: "computed from records and covered by no guarantee".into(),
                test_accuracy: None,
                train_accuracy: None,
                test_loss: loss,
                statistics: progress.summary.record(),
            },
            run: self.run.clone(),
        })
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.run.sampling().by_coins() {
            warnings.push(
                "batches were not drawn by independent coins: the numbers for Poisson sampling do \
                 not apply"
                    .into(),
            );
        }
        if self.start.texts.cut > 0 {
            warnings.push(format!(
                "{} of {} records were longer than {} tokens and lost their end",
                self.start.texts.cut,
                self.start.records(),
                self.start.length()
            ));
        }
        warnings.push("fast noise: keep this model to yourself; it is for measuring".into());
        warnings
    }
}

/// SHA-256 of the weights.
pub fn fingerprint(decoder: &Decoder) -> String {
    let layout = Layout::new(decoder, Scope::Full);
    let mut hash = Sha256::new();
    hash.update(format!("{:?}", decoder.architecture));
    for (piece, _) in &layout.pieces {
        hash.update(piece.name());
        let numbers = piece.of(decoder).map_or(&[][..], Vec::as_slice);
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        hash.update(bytes);
    }
    hexadecimal(&hash.finalize())
}

pub(crate) fn digest<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hexadecimal(&hash.finalize())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
