//! Criterion benchmarks of the other crates; the package has no code of its own.
