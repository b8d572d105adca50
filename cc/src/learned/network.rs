//! A policy: a multilayer perceptron from observations to actions.
//!
//! Sums are in the order of the inputs, without fused operations, and the functions are those of
//! `units`, so that a policy decides alike on every platform.

use ackclock_units::maths;

/// The function that a layer applies to its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// The hyperbolic tangent.
    Tanh,
    /// The positive part.
    Relu,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
}

impl Activation {
    /// The names in files.
    pub const NAMES: [(&'static str, Activation); 5] = [
        ("identity", Activation::Identity),
        ("tanh", Activation::Tanh),
        ("relu", Activation::Relu),
        ("softplus", Activation::Softplus),
        ("sigmoid", Activation::Sigmoid),
    ];

    fn of(self, x: f64) -> f64 {
        match self {
            Activation::Identity => x,
            Activation::Tanh => {
                // Beyond this it is 1 in double precision.
                let e = maths::exp_m1(2.0 * x.clamp(-20.0, 20.0));
                e / (e + 2.0)
            }
            Activation::Relu => x.max(0.0),
            Activation::Softplus if x > 30.0 => x,
            Activation::Softplus => maths::ln(1.0 + maths::exp(x)),
            Activation::Sigmoid => 1.0 / (1.0 + maths::exp(-x.clamp(-700.0, 700.0))),
        }
    }
}

/// A dense layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// By inputs, each with a weight for every output.
    weights: Vec<f64>,
    bias: Vec<f64>,
    activation: Activation,
}

/// Why layers are no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError(pub String);

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShapeError {}

impl Layer {
    /// A layer with a row of weights, one for each input, for every output; `number` counts layers
    /// from 0 and is named in errors.
    ///
    /// # Errors
    /// Rows differ in length, or there is not one bias for each.
    pub fn new(number: usize, rows: &[Vec<f64>], bias: Vec<f64>, activation: Activation) -> Result<Layer, ShapeError> {
        let inputs = rows.first().map_or(0, Vec::len);
        if rows.is_empty() || inputs == 0 {
            return Err(ShapeError(format!("layer {number}: there are no weights")));
        }
        if let Some(row) = rows.iter().position(|row| row.len() != inputs) {
            let (first, found) = (inputs, rows[row].len());
            return Err(ShapeError(format!("layer {number}: row 0 has {first} weights and row {row} has {found}")));
        }
        if bias.len() != rows.len() {
            let (rows, found) = (rows.len(), bias.len());
            return Err(ShapeError(format!("layer {number}: there are {rows} rows of weights and {found} biases")));
        }
        if rows.iter().flatten().chain(&bias).any(|value| !value.is_finite()) {
            return Err(ShapeError(format!("layer {number}: a weight or a bias is not finite")));
        }
        let weights = (0..inputs).flat_map(|input| rows.iter().map(move |row| row[input])).collect();
        Ok(Layer { weights, bias, activation })
    }

    /// Number of inputs, and number of outputs.
    pub fn shape(&self) -> (usize, usize) {
        (self.weights.len() / self.bias.len(), self.bias.len())
    }

    fn apply(&self, input: &[f64], output: &mut Vec<f64>) {
        output.clear();
        output.extend_from_slice(&self.bias);
        for (&x, weights) in input.iter().zip(self.weights.chunks_exact(self.bias.len())) {
            for (sum, &weight) in output.iter_mut().zip(weights) {
                *sum += weight * x;
            }
        }
        output.iter_mut().for_each(|sum| *sum = self.activation.of(*sum));
    }
}

/// The normalisation of observations: `(x - mean) / deviation`, limited to `limit` both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalisation {
    /// The mean of each number of an observation.
    pub mean: Vec<f64>,
    /// Its standard deviation.
    pub deviation: Vec<f64>,
    /// The most that comes of it, both ways.
    pub limit: f64,
}

/// A multilayer perceptron whose outputs are the numbers of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    normalisation: Option<Normalisation>,
    layers: Vec<Layer>,
}

/// Where the layers' outputs are while an action is computed.
#[derive(Clone, Debug, Default)]
pub struct Scratch([Vec<f64>; 2]);

impl Network {
    /// A network of these layers.
    ///
    /// # Errors
    /// A layer does not fit the one before it, or the first one not `inputs`.
    pub fn new(inputs: usize, normalisation: Option<Normalisation>, layers: Vec<Layer>) -> Result<Network, ShapeError> {
        if let Some(Normalisation { mean, deviation, limit }) = &normalisation {
            if mean.len() != inputs || deviation.len() != inputs {
                let found = format!("{} means and {} deviations", mean.len(), deviation.len());
                return Err(ShapeError(format!("normalisation: an observation has {inputs} numbers, found {found}")));
            }
            let positive = |value: &f64| value.is_finite() && *value > 0.0;
            if !deviation.iter().all(positive) || !mean.iter().all(|mean| mean.is_finite()) || !positive(limit) {
                return Err(ShapeError("normalisation: expected finite means, deviations and a limit above 0".into()));
            }
        }
        let mut width = inputs;
        for (number, layer) in layers.iter().enumerate() {
            let (expected, outputs) = layer.shape();
            if expected != width {
                let before = if number == 0 { "an observation".into() } else { format!("layer {}", number - 1) };
                return Err(ShapeError(format!(
                    "layer {number} has {expected} inputs, and {before} has {width} numbers"
                )));
            }
            width = outputs;
        }
        if layers.is_empty() {
            return Err(ShapeError("there are no layers".into()));
        }
        Ok(Network { normalisation, layers })
    }

    /// Number of values in an observation.
    pub fn inputs(&self) -> usize {
        self.layers[0].shape().0
    }

    /// Number of values in an action.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].shape().1
    }

    /// The numbers of the action that follows from an observation.
    pub fn act<'s>(&self, observation: &[f32], scratch: &'s mut Scratch) -> &'s [f64] {
        let Scratch([input, output]) = scratch;
        input.clear();
        input.extend(observation.iter().map(|&x| f64::from(x)));
        if let Some(Normalisation { mean, deviation, limit }) = &self.normalisation {
            for ((x, mean), deviation) in input.iter_mut().zip(mean).zip(deviation) {
                *x = ((*x - mean) / deviation).clamp(-limit, *limit);
            }
        }
        for layer in &self.layers {
            layer.apply(input, output);
            std::mem::swap(input, output);
        }
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(rows: &[&[f64]], bias: &[f64], activation: Activation) -> Layer {
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        Layer::new(0, &rows, bias.to_vec(), activation).expect("it fits")
    }

    #[test]
    fn an_action_follows_from_an_observation() {
        let hidden = layer(&[&[1.0, 2.0], &[-1.0, 0.5]], &[0.5, -4.0], Activation::Relu);
        let last = layer(&[&[3.0, 1.0]], &[-1.0], Activation::Identity);
        let network = Network::new(2, None, vec![hidden, last]).expect("it fits");
        // 1 + 4 + 0.5 = 5.5; -1 + 1 - 4 < 0; 3 * 5.5 - 1.
        assert_eq!(network.act(&[1.0, 2.0], &mut Scratch::default()), [15.5]);
    }

    #[test]
    fn functions_are_accurate() {
        for x in [-50.0, -3.0f64, -1e-9, 0.0, 0.3, 2.0, 50.0] {
            assert!((Activation::Tanh.of(x) - x.tanh()).abs() < 1e-15, "{x}");
            assert!((Activation::Sigmoid.of(x) - 1.0 / (1.0 + maths::exp(-x))).abs() < 1e-15, "{x}");
            assert!((Activation::Softplus.of(x) - maths::ln(1.0 + maths::exp(x))).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn observations_are_normalised() {
        let normalisation = Normalisation { mean: vec![10.0], deviation: vec![2.0], limit: 5.0 };
        let last = layer(&[&[1.0]], &[0.0], Activation::Identity);
        let network = Network::new(1, Some(normalisation), vec![last]).expect("it fits");
        assert_eq!([14.0, -1e9].map(|x| network.act(&[x], &mut Scratch::default())[0]), [2.0, -5.0]);
    }

    #[test]
    fn errors_say_which_layer_has_which_shape() {
        let wide = layer(&[&[1.0, 2.0]], &[0.0], Activation::Tanh);
        let error = |inputs, layers| Network::new(inputs, None, layers).expect_err("no network").0;
        assert_eq!(error(3, vec![wide.clone()]), "layer 0 has 2 inputs, and an observation has 3 numbers");
        assert_eq!(error(2, vec![wide.clone(), wide]), "layer 1 has 2 inputs, and layer 0 has 1 numbers");
        assert_eq!(error(2, vec![]), "there are no layers");
        let rows = [vec![1.0, 2.0], vec![1.0]];
        let ragged = Layer::new(4, &rows, vec![0.0; 2], Activation::Tanh).expect_err("ragged").0;
        assert_eq!(ragged, "layer 4: row 0 has 2 weights and row 1 has 1");
        let biases = Layer::new(4, &rows[..1], vec![0.0; 2], Activation::Tanh).expect_err("biases").0;
        assert_eq!(biases, "layer 4: there are 1 rows of weights and 2 biases");
    }
}
