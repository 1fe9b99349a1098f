//! What each answer warns of and exits with.

use crate::{
    Audited, CalibrationMap, Check, Commitment, Comparison, Document, ExperimentStatus, Panel,
    Planned, Translation, exit,
};
use accounting::compare::{BatchSizes, Map};
use accounting::curve::Curve;
use accounting::{Advice, Calibration};
use vocabulary::Account;

impl Document for Account {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl Document for Calibration {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl Document for Advice {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl Document for Curve {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl Document for Comparison {
    fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for one in &self.runs {
            all.extend(one.account.warnings.iter().map(|text| format!("{}: {text}", one.name)));
        }
        all
    }
}

impl Document for Map {
    fn warnings(&self) -> Vec<String> {
        let reasons: Vec<&String> =
            self.cells.iter().filter_map(|cell| cell.reason.as_ref()).collect();
        let empty = |first| match reasons.len() {
            1 => format!("one cell is empty, because {first}"),
            many => format!("{many} cells are empty; the first because {first}"),
        };
        reasons.first().map(empty).into_iter().collect()
    }
}

impl Document for BatchSizes {
    fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for row in &self.rows {
            if let Some(reason) = &row.reason {
                all.push(format!("batch size {}: {reason}", row.batch_size));
            }
        }
        all
    }
}

impl Document for Check {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn exit_code(&self) -> u8 {
        if self.passed { exit::ANSWERED } else { exit::CHECK_FAILED }
    }
}

impl Document for Audited {
    fn warnings(&self) -> Vec<String> {
        self.analysis.warnings.clone()
    }

    fn exit_code(&self) -> u8 {
        if self.contradicts() { exit::CHECK_FAILED } else { exit::ANSWERED }
    }
}

impl Document for ExperimentStatus {
    fn exit_code(&self) -> u8 {
        if self.merged { exit::ANSWERED } else { exit::INCOMPLETE }
    }
}

impl Document for CalibrationMap {}
impl Document for Commitment {}
impl Document for Panel {}
impl Document for Planned {}

impl Document for Translation {
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}
