//! The image that guests start from.

/// Directory of the image that hosts use unless they name another.
pub const IMAGE: &str = "ACKCLOCK_UML_IMAGE";
