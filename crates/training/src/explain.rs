//! How each layer's gradients are clipped, and what that costs by a model of cost.
//!
//! A layer whose gradient is a product of inputs (P positions of p numbers) and slopes (P of c) has
//! three routes to its norm and its clipped sum:
//!
//! - kept: every record's gradient is formed once (P p c multiplications) and kept; norm and sum
//!   read it from memory;
//! - again: it is formed for its norm alone, and the clipped sum is one more product of all records;
//! - ghost: the norm comes from inner products of inputs and of slopes (P^2 (p + c)), and the clipped
//!   sum is one product.
//!
//! The model counts multiplications and bytes, each at the rate that such products reached on the
//! device named; memory and arithmetic are taken one after the other. It is an estimate.

use crate::cost::{self, Clipping, Rates, Route, RouteCost, Work};
use crate::ledger::DeviceRecord;
use crate::model::Network;
use crate::recipe::Recipe;
use serde::Serialize;

/// One layer with parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerExplanation {
    pub layer: String,
    pub parameters: usize,
    /// The route that is taken.
    pub route: Route,
    /// The cheapest by the model.
    pub cheapest: Route,
    pub costs: Vec<RouteCost>,
}

/// A training's layers, and its memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    pub device: String,
    pub precision: String,
    pub standing: &'static str,
    pub layers: Vec<LayerExplanation>,
    pub parameters: usize,
    /// Multiplications of one record: forward, back, and gradients by the routes taken.
    pub multiplications_per_record: f64,
    /// Bytes that one record occupies while it is worked on.
    pub bytes_per_record: usize,
    /// Records that are worked on together on the CPU; a device takes as many as its memory holds.
    pub records_together: Option<usize>,
}

impl Explanation {
    /// Explains a recipe on a device.
    pub fn new(recipe: &Recipe, device: &DeviceRecord) -> Self {
        let (network, rates) = (&recipe.network, Rates::of(device));
        let on_cpu = device.kind == "cpu";
        let together = recipe.executor_capacity();
        let mut layers = Vec::new();
        let mut multiplications = 2.0 * network.multiplications() as f64;
        for layer in network.operations.iter().filter_map(|operation| operation.kind.clipping()) {
            let Clipping { words, parameters, work } = layer;
            let (shape, routes) = match work {
                Work::Product { shape, on_cpu: routes, .. } if on_cpu => (shape, routes),
                Work::Product { shape, on_device: routes, .. } => (shape, routes),
                Work::Vector { multiplications } => {
                    layers.push(kept_vector(words, parameters, multiplications, rates));
                    continue;
                }
            };
            let costs: Vec<RouteCost> =
                Route::ALL.into_iter().map(|route| shape.cost(route, rates)).collect();
            let route = cost::cheapest(shape, routes, rates);
            let cheapest = cost::cheapest(shape, &Route::ALL, rates);
            let taken = costs.iter().find(|cost| cost.route == route);
            multiplications += taken.map_or(0.0, |cost| cost.multiplications);
            layers.push(LayerExplanation { layer: words, parameters, route, cheapest, costs });
        }
        Self {
            device: device.instructions.clone(),
            precision: device.precision.clone(),
            standing: "estimate",
            layers,
            parameters: network.parameters,
            multiplications_per_record: multiplications,
            bytes_per_record: bytes_per_record(network, on_cpu),
            records_together: on_cpu.then_some(together),
        }
    }

    /// Microseconds of one record by the routes taken, and by the cheapest ones.
    pub fn microseconds(&self) -> (f64, f64) {
        let of = |layer: &LayerExplanation, route: Route| {
            layer
                .costs
                .iter()
                .find(|cost| cost.route == route)
                .map_or(0.0, |cost| cost.microseconds)
        };
        let taken = self.layers.iter().map(|layer| of(layer, layer.route)).sum();
        let cheapest = self.layers.iter().map(|layer| of(layer, layer.cheapest)).sum();
        (taken, cheapest)
    }
}

/// A layer whose gradient is a vector: written, read for the norm, read for the sum.
fn kept_vector(
    layer: String,
    parameters: usize,
    multiplications: f64,
    rates: Rates,
) -> LayerExplanation {
    let size = 4.0 * parameters as f64;
    let seconds = multiplications / rates.multiplications + 3.0 * size / rates.bytes;
    let cost = RouteCost {
        route: Route::Kept,
        multiplications,
        bytes_moved: 3.0 * size,
        bytes_kept: size,
        microseconds: 1e6 * seconds,
    };
    let (route, cheapest) = (Route::Kept, Route::Kept);
    LayerExplanation { layer, parameters, route, cheapest, costs: vec![cost] }
}

fn bytes_per_record(network: &Network, on_cpu: bool) -> usize {
    #[cfg(feature = "cuda")]
    if !on_cpu {
        return crate::cuda::bytes_per_record(network);
    }
    let _ = on_cpu;
    4 * (network.footprint() + network.kept())
}

#[cfg(test)]
mod tests {
    use super::{Explanation, Route};
    use crate::data::{Dataset, Provenance, Shape};
    use crate::ledger::DeviceRecord;
    use crate::model::ModelDescription;
    use crate::{OptimizerDescription, Recipe};
    use std::sync::Arc;
    use vocabulary::Run;

    fn explained(kind: &str, model: &ModelDescription) -> Explanation {
        explained_on(kind, Shape::Image { height: 32, width: 32, channels: 3 }, model)
    }

    fn explained_on(kind: &str, shape: Shape, model: &ModelDescription) -> Explanation {
        let data = Dataset {
            features: vec![0.0; shape.len()],
            labels: vec![0],
            classes: 10,
            shape,
            columns: Vec::new(),
            provenance: Provenance::default(),
        };
        let network = Arc::new(model.network(shape, 10).unwrap());
        let run = Run::builder().phase(1.0, 1.0, 1).build().unwrap();
        let recipe = Recipe::new(network, OptimizerDescription::sgd(1.0), &run, &data, 1).unwrap();
        let device = DeviceRecord {
            kind: kind.into(),
            instructions: "a device".into(),
            precision: "f32".into(),
            lanes: 1,
            sensitivity: 1.0,
        };
        Explanation::new(&recipe, &device)
    }

    #[test]
    fn every_parameter_belongs_to_a_layer_whose_route_has_a_cost() {
        let model = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
        for kind in ["cpu", "cuda"] {
            let found = explained(kind, &model);
            let parameters: usize = found.layers.iter().map(|layer| layer.parameters).sum();
            assert_eq!(parameters, found.parameters, "{kind}");
            for layer in &found.layers {
                let of = |route: Route| {
                    layer.costs.iter().find(|c| c.route == route).unwrap().microseconds
                };
                assert!(of(layer.cheapest) <= of(layer.route), "{kind}: {}", layer.layer);
            }
            let (taken, cheapest) = found.microseconds();
            assert!(cheapest > 0.0 && cheapest <= taken, "{kind}: {cheapest} {taken}");
        }
    }

    /// Gradients of convolutions cost as much as forward; so a step is three forward passes where
    /// each is formed once, and the ghost's inner products are P^2 (p + c).
    #[test]
    fn costs_are_counted_as_by_hand() {
        let model = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
        let found = explained("cuda", &model);
        let shape = Shape::Image { height: 32, width: 32, channels: 3 };
        let forward = model.network(shape, 10).unwrap().multiplications() as f64;
        // The ghost of the last layer, one position, costs inputs + outputs more.
        let expected = 3.0 * forward + (256.0 + 10.0);
        assert!((found.multiplications_per_record - expected).abs() < 1.0);
        let layer = found.layers.iter().find(|l| l.layer.contains("256 to 256")).unwrap();
        let [kept, again, ghost] = &layer.costs[..] else { panic!() };
        let formed = 64.0 * 2304.0 * 256.0;
        assert_eq!(kept.multiplications, formed);
        assert_eq!(again.multiplications, 2.0 * formed);
        assert_eq!(ghost.multiplications, formed + 64.0 * 64.0 * (2304.0 + 256.0));
        assert_eq!(kept.bytes_kept, 4.0 * 2304.0 * 256.0);
        assert_eq!(layer.route, Route::Kept);
    }

    /// On the CPU a convolution's gradients are kept where there are more than 36 positions: forming
    /// them again costs 1 / 3e10 of a second for each, keeping them 12 / 1e10.
    #[test]
    fn the_cpu_keeps_what_is_dearer_to_form_again() {
        let found =
            explained("cpu", &ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 });
        let route = |found: &Explanation, name: &str| {
            found.layers.iter().find(|layer| layer.layer.contains(name)).unwrap().route
        };
        assert_eq!(route(&found, "3 to 16"), Route::Kept);
        assert_eq!(route(&found, "256 to 256"), Route::Kept);
        assert_eq!(route(&found, "linear"), Route::Ghost);
        let shape = Shape::Image { height: 16, width: 16, channels: 3 };
        let found = explained_on(
            "cpu",
            shape,
            &ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 },
        );
        assert_eq!(route(&found, "64 to 64"), Route::Kept);
        assert_eq!(route(&found, "256 to 256"), Route::Again);
    }
}
