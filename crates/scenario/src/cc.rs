//! The key `cc`: a congestion controller by its name, with the parameters that its configuration
//! lists over the host's settings.

use std::sync::Arc;

use ackclock_cc::EcnFeedback;
use ackclock_sim::spec::{CcSpec, HostSpec};
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{CONTROLLERS, Controller};

use crate::fields::Fields;
use crate::keys::{self, Domain};
use crate::own::LEARNED;
use crate::quantity::{OneOf, Problem, Text};
use crate::report::{Diagnostic, listed};
use crate::{parameters, policy};

/// The largest file of a policy, bytes.
const MAX_POLICY: u64 = 64 << 20;

/// Every controller, also those from outside.
fn names(fields: &Fields<'_>) -> Vec<&'static str> {
    let built_in = CONTROLLERS.iter().map(|known| known.name);
    built_in.chain(LEARNED).chain(fields.own().controllers().iter().map(|own| own.name())).collect()
}

/// Says what the key `cc` may hold where it need not be read.
pub(crate) fn declare(fields: &Fields<'_>) {
    fields.declare(keys::CC, || Domain::Kind(names(fields)));
}

/// Reads the key `cc`; what it does not say is as in `profile`.
pub(crate) fn read(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    let own = fields.own().controllers();
    let names = names(fields);
    let kinds = OneOf { what: "congestion control", names: &names };
    fields.choose(keys::CC, profile.cc, &kinds, |kind, fields| {
        let mut cc = match own.iter().find(|own| own.name() == kind) {
            Some(own) => CcSpec::Own(Arc::clone(own), own.defaults()),
            None if kind == "external" => external(fields, profile),
            None if kind == "policy" => learned(fields, profile),
            None => variant(fields, kind, profile),
        };
        parameters::read(fields, kind, &mut cc);
        cc
    })
}

/// A controller whose decisions an environment makes.
fn external(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    let agents = fields.agents();
    let Some((first, _)) = agents.first() else {
        let title = format!("{}: `external` requires an environment", fields.shown());
        let found = "its decisions come from outside the run";
        let note = "expected to be used in ackclock.gym.Env; `policy` runs what was learned there";
        fields.push(Diagnostic::new(title, fields.place(), found).note(note));
        return CcSpec::External(Arc::default(), None);
    };
    let name = fields.maybe("agent", Text).unwrap_or_else(|| first.clone());
    if let Some((_, agent)) = agents.iter().find(|(other, _)| *other == name) {
        return CcSpec::External(Arc::clone(agent), policy::beneath(agent, profile));
    }
    if let Some(entry) = fields.get("agent") {
        let names = listed(agents.iter().map(|(name, _)| &**name));
        fields.reject("agent", &entry.node, Problem::new("the environment has no such agent", names));
    }
    CcSpec::External(Arc::default(), None)
}

/// A controller that does what the policy in a file says.
fn learned(fields: &mut Fields<'_>, profile: &Profile) -> CcSpec {
    let expected = "the file of an exported policy, such as \"policy.json\"";
    let Some(name) = fields.required("file", Text, expected) else { return CcSpec::External(Arc::default(), None) };
    let path = fields.inputs().path(&name);
    let read = || {
        let bytes = fields.inputs().read(&name, MAX_POLICY).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > MAX_POLICY {
            return Err(format!("it has more than {MAX_POLICY} bytes"));
        }
        let text = str::from_utf8(&bytes).map_err(|error| error.to_string())?;
        policy::read_policy(text).map(Arc::new)
    };
    let found = match fields.traces() {
        Some(files) => files.policy(&path, read),
        None => read(),
    };
    match found {
        Ok(policy) => {
            let beneath = policy::beneath(policy.agent(), profile);
            CcSpec::Policy(policy, beneath)
        }
        Err(why) => {
            if let Some(entry) = fields.get("file") {
                let title = format!("cannot use {} as a policy: {why}", path.display());
                fields.reject("file", &entry.node, Problem::new(title, expected));
            }
            CcSpec::External(Arc::default(), None)
        }
    }
}

/// A learner has to be the sender of one connection that is there from the start.
pub(crate) fn forbid_learners(fields: &Fields<'_>, sender: &HostSpec, where_: &str) {
    if let HostSpec::Endpoint(endpoint) = sender
        && endpoint.cc.agent().is_some()
    {
        let title = format!("{}: `{}` cannot be the controller {where_}", fields.shown(), endpoint.cc.name());
        let note = "expected it in `[[flows]]`, over one path or several, without subflows";
        fields.push(Diagnostic::new(title, fields.place(), "its decisions belong to one connection").note(note));
    }
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
