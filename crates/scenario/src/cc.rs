//! The key `cc`: a congestion controller by its name, with the parameters that its configuration
//! lists over the host's settings.

use std::sync::Arc;

use ackclock_cc::EcnFeedback;
use ackclock_sim::spec::CcSpec;
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{CONTROLLERS, Controller};

use crate::fields::Fields;
use crate::keys::Domain;
use crate::parameters;
use crate::quantity::OneOf;

/// Every controller, also those from outside.
fn names(fields: &Fields<'_>) -> Vec<&'static str> {
    CONTROLLERS.iter().map(|known| known.name).chain(fields.own().controllers().iter().map(|own| own.name())).collect()
}

/// Says what the key `cc` may hold where it need not be read.
pub(crate) fn declare(fields: &Fields<'_>) {
    fields.declare("cc", || Domain::Kind(names(fields)));
}

/// Reads the key `cc`; what it does not say is as in `profile`.
pub(crate) fn read(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    let own = fields.own().controllers();
    let names = names(fields);
    let kinds = OneOf { what: "congestion control", names: &names };
    fields.choose("cc", profile.cc, &kinds, |kind, fields| {
        let mut cc = match own.iter().find(|own| own.name() == kind) {
            Some(own) => CcSpec::Own(Arc::clone(own), own.defaults()),
            None => variant(fields, kind, profile),
        };
        parameters::read(fields, kind, &mut cc);
        cc
    })
}

/// A built-in controller as the host has it; where stacks have one of this name each, the key
/// `variant` says whose.
fn variant(fields: &mut Fields<'_>, kind: &str, profile: &Profile) -> CcSpec {
    let stack = profile.stack();
    let found = CcSpec::by_name(kind, &stack).unwrap_or_else(|| unreachable!("`{kind}` is in the table of names"));
    let Some(own) = found.variant() else { return found };
    let variants = CcSpec::variants(kind, &stack);
    let names: Vec<&str> = variants.iter().filter_map(CcSpec::variant).collect();
    let wanted = fields.or("variant", own, OneOf { what: "variant", names: &names });
    variants.into_iter().find(|spec| spec.variant() == Some(wanted)).unwrap_or(found)
}

/// The feedback of ECN that the controller under the key `cc` takes, if it takes one in particular.
pub(crate) fn feedback(fields: &mut Fields<'_>) -> Option<EcnFeedback> {
    let node = &fields.get("cc")?.node;
    let kind = node.table().map_or(node.str(), |table| table.get("kind")?.node.str());
    Controller::by_name(kind?)?.feedback
}
