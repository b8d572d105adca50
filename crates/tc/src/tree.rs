//! Qdiscs, classes and filters of each device, as commands set them up.
//!
//! # Source
//! iproute2 7.1: `tc/tc_qdisc.c`, `tc/tc_class.c`, `tc/tc_filter.c`, `tc/tc_stab.c`; Linux
//! `net/sched/sch_api.c` (`tc_modify_qdisc`, `tc_ctl_tclass`), `cls_api.c` (`tcf_auto_prio`).

use std::slice::Iter;

use crate::source::{Action, Command, ImportError, Object, Place, Read, wrong};
use crate::units::{self, Expected};

/// Qdiscs whose change leaves what it does not name: their options are attributes of their own.
const MERGED: &[&str] = &["cake", "cake_mq", "codel", "dualpi2", "ets", "fq", "fq_codel", "fq_pie", "htb", "pie"];

/// The priority of the first filter that names none, 0xc000.
const FIRST_PRIORITY: u32 = 0xc000;

/// The place to which something is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    Root,
    /// The packets that a device receives.
    Ingress,
    /// A class, or the only place in a qdisc.
    Class(u32),
}

/// A qdisc.
#[derive(Clone, Debug)]
pub(crate) struct Qdisc {
    pub(crate) place: Place,
    /// Its number in the upper half; 0 if it has none.
    pub(crate) handle: u32,
    pub(crate) parent: Parent,
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
    /// Its size table.
    pub(crate) stab: Option<Stab>,
}

/// A size table: the lengths that a qdisc counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stab {
    pub(crate) overhead: i32,
    pub(crate) mpu: u32,
    pub(crate) is_atm: bool,
}

/// A class.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) place: Place,
    pub(crate) id: u32,
    pub(crate) parent: Parent,
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
    pub(crate) name: Option<String>,
}

/// A filter.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) place: Place,
    pub(crate) parent: Parent,
    pub(crate) priority: u32,
    pub(crate) protocol: Option<String>,
    pub(crate) handle: Option<String>,
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
}

/// A device with all that it has.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) qdiscs: Vec<Qdisc>,
    pub(crate) classes: Vec<Class>,
    pub(crate) filters: Vec<Filter>,
    /// The device that gets what this one receives.
    pub(crate) redirect: Option<String>,
}

impl Device {
    /// The qdisc that decides about what the device sends.
    pub(crate) fn root(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == Parent::Root)
    }

    /// The qdisc inside a qdisc that has a single one.
    pub(crate) fn inside(&self, handle: u32) -> Option<&Qdisc> {
        let is_inside = |parent| matches!(parent, Parent::Class(id) if handle != 0 && id & 0xffff_0000 == handle);
        self.qdiscs.iter().find(|qdisc| is_inside(qdisc.parent))
    }

    /// The qdisc of a class.
    pub(crate) fn leaf(&self, class: u32) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == Parent::Class(class))
    }

    /// The classes of a qdisc.
    pub(crate) fn classes_of(&self, handle: u32) -> Vec<&Class> {
        self.classes.iter().filter(|class| handle != 0 && class.id & 0xffff_0000 == handle).collect()
    }

    /// Removes a qdisc with all that is in it.
    fn remove(&mut self, handle: u32, parent: Parent) {
        self.qdiscs.retain(|qdisc| qdisc.handle != handle || qdisc.parent != parent);
        if handle == 0 {
            return;
        }
        let is_of = |id: u32| id & 0xffff_0000 == handle;
        self.classes.retain(|class| !is_of(class.id));
        self.filters.retain(|filter| !matches!(filter.parent, Parent::Class(id) if is_of(id)));
        let inside: Vec<(u32, Parent)> = self.qdiscs.iter().map(|qdisc| (qdisc.handle, qdisc.parent)).collect();
        for (inner, parent) in inside {
            if inner != handle && matches!(parent, Parent::Class(id) if is_of(id)) {
                self.remove(inner, parent);
            }
        }
    }
}

/// Carries the commands out.
pub(crate) fn build(read: &mut Read) -> Result<Vec<Device>, ImportError> {
    let mut devices: Vec<Device> = Vec::new();
    for command in std::mem::take(&mut read.commands) {
        let mut words = Words { place: command.place.clone(), rest: command.words.iter() };
        let common = Common::read(&mut words, command.object)?;
        let Some(name) = &common.device else {
            return Err(ImportError::at(&command.place, "no device", "`dev NAME`"));
        };
        let device = match devices.iter().position(|device| device.name == *name) {
            Some(known) => &mut devices[known],
            None => {
                devices.push(Device {
                    name: name.clone(),
                    place: command.place.clone(),
                    qdiscs: Vec::new(),
                    classes: Vec::new(),
                    filters: Vec::new(),
                    redirect: None,
                });
                devices.last_mut().unwrap_or_else(|| unreachable!("it was pushed"))
            }
        };
        let options = words.rest.map(String::clone).collect();
        match command.object {
            Object::Qdisc => qdisc(device, &command, common, options)?,
            Object::Class => class(device, &command, common, options)?,
            Object::Filter => filter(device, &command, common, options, read)?,
        }
    }
    Ok(devices)
}

fn qdisc(device: &mut Device, command: &Command, common: Common, options: Vec<String>) -> Result<(), ImportError> {
    let place = &command.place;
    let handle = match &common.handle {
        Some(text) => units::handle(text).map_err(|expected| wrong(place, "handle", text, expected))?,
        None => 0,
    };
    if command.action == Action::Delete {
        let is_it = |qdisc: &&Qdisc| {
            common.parent.is_none_or(|parent| qdisc.parent == parent) && (handle == 0 || qdisc.handle == handle)
        };
        let found: Vec<(u32, Parent)> =
            device.qdiscs.iter().filter(is_it).map(|qdisc| (qdisc.handle, qdisc.parent)).collect();
        found.into_iter().for_each(|(handle, parent)| device.remove(handle, parent));
        return Ok(());
    }
    let parent = match (common.parent, handle) {
        (Some(parent), _) => parent,
        // `change` may name the qdisc alone.
        (None, 1..) => match device.qdiscs.iter().find(|qdisc| qdisc.handle == handle) {
            Some(there) => there.parent,
            None if handle == 0xffff_0000 => Parent::Ingress,
            None => return Err(ImportError::at(place, "no place for the qdisc", "`root` or `parent ID`")),
        },
        (None, 0) => return Err(ImportError::at(place, "no place for the qdisc", "`root` or `parent ID`")),
    };
    let there = device.qdiscs.iter_mut().find(|qdisc| qdisc.parent == parent);
    let kind = match (common.kind, &there) {
        (Some(kind), _) => kind,
        (None, Some(there)) => there.kind.clone(),
        (None, None) => return Err(ImportError::at(place, "no qdisc", "the name of one, such as fq_codel")),
    };
    if let Some(there) = there {
        let is_same = there.kind == kind && (handle == 0 || there.handle == 0 || there.handle == handle);
        if is_same && command.action != Action::Add {
            there.handle = there.handle.max(handle);
            there.place = place.clone();
            there.stab = common.stab.or(there.stab.take());
            if MERGED.contains(&kind.as_str()) {
                there.options.extend(options);
            } else {
                there.options = options;
            }
            return Ok(());
        }
        let (old, at) = (there.handle, there.parent);
        device.remove(old, at);
    }
    device.qdiscs.push(Qdisc { place: place.clone(), handle, parent, kind, options, stab: common.stab });
    Ok(())
}

fn class(device: &mut Device, command: &Command, common: Common, options: Vec<String>) -> Result<(), ImportError> {
    let place = &command.place;
    let Some(text) = &common.class else {
        return Err(ImportError::at(place, "no class", "`classid ID`, such as classid 1:10"));
    };
    let mut id = units::class_id(text).map_err(|expected| wrong(place, "classid", text, expected))?;
    // Without the number of a qdisc it is that of the parent (`tc_ctl_tclass`).
    if let (0, Some(Parent::Class(parent))) = (id >> 16, common.parent) {
        id |= parent & 0xffff_0000;
    }
    let known = device.classes.iter().position(|class| class.id == id);
    if command.action == Action::Delete {
        device.classes.retain(|class| class.id != id);
        let inside: Vec<(u32, Parent)> = device.qdiscs.iter().map(|qdisc| (qdisc.handle, qdisc.parent)).collect();
        for (handle, parent) in inside.into_iter().filter(|(_, parent)| *parent == Parent::Class(id)) {
            device.remove(handle, parent);
        }
        return Ok(());
    }
    let there = known.map(|known| &device.classes[known]);
    let Some(parent) = common.parent.or(there.map(|class| class.parent)) else {
        return Err(ImportError::at(place, "no class above it", "`parent ID`, such as parent 1:"));
    };
    let Some(kind) = common.kind.or_else(|| there.map(|class| class.kind.clone())) else {
        return Err(ImportError::at(place, "no kind of class", "the name of a qdisc with classes, such as htb"));
    };
    // The qdisc itself is above the classes at the top.
    let parent = match parent {
        Parent::Class(above) if above & 0xffff == 0 => Parent::Root,
        parent => parent,
    };
    let class = Class { place: place.clone(), id, parent, kind, options, name: command.name.clone() };
    match known {
        Some(known) => device.classes[known] = class,
        None => device.classes.push(class),
    }
    Ok(())
}

fn filter(
    device: &mut Device,
    command: &Command,
    common: Common,
    options: Vec<String>,
    read: &mut Read,
) -> Result<(), ImportError> {
    let parent = common.parent.unwrap_or(Parent::Root);
    if command.action == Action::Delete {
        device.filters.retain(|filter| {
            filter.parent != parent || common.priority.is_some_and(|priority| filter.priority != priority)
        });
        return Ok(());
    }
    if parent == Parent::Ingress {
        let target =
            options.windows(3).find(|words| words[0] == "redirect" && words[1] == "dev").map(|words| &words[2]);
        match target {
            Some(target) => device.redirect = Some(target.clone()),
            None => {
                let what = format!("filter ... {} {}", common.kind.unwrap_or_default(), options.join(" "));
                read.leave(&command.place, what, "packets that a device receives pass no queue of ackclock's");
            }
        }
        return Ok(());
    }
    // Later filters without a priority come before earlier ones.
    let first = device.filters.iter().filter(|filter| filter.parent == parent).map(|filter| filter.priority).min();
    let automatic = first.map_or(FIRST_PRIORITY, |first| first.saturating_sub(1));
    device.filters.push(Filter {
        place: command.place.clone(),
        parent,
        priority: common.priority.filter(|&priority| priority > 0).unwrap_or(automatic),
        protocol: common.protocol,
        handle: common.handle,
        kind: common.kind.unwrap_or_default(),
        options,
    });
    Ok(())
}

/// The words of a command, from which each option takes its own.
struct Words<'w> {
    place: Place,
    rest: Iter<'w, String>,
}

impl Words<'_> {
    /// The value of an option.
    fn value(&mut self, option: &str, expected: Expected) -> Result<&str, ImportError> {
        let missing = || ImportError::at(&self.place, format!("`{option}` has no value"), expected);
        self.rest.next().map(String::as_str).ok_or_else(missing)
    }
}

/// The options of all objects before the kind.
#[derive(Debug, Default)]
struct Common {
    device: Option<String>,
    handle: Option<String>,
    class: Option<String>,
    parent: Option<Parent>,
    priority: Option<u32>,
    protocol: Option<String>,
    stab: Option<Stab>,
    kind: Option<String>,
}

impl Common {
    fn read(words: &mut Words<'_>, object: Object) -> Result<Common, ImportError> {
        let mut common = Common::default();
        let is_filter = object == Object::Filter;
        while let Some(word) = words.rest.next() {
            match word.as_str() {
                "dev" => common.device = Some(words.value("dev", "the name of a device")?.to_owned()),
                "root" | "egress" => common.parent = Some(Parent::Root),
                "ingress" | "clsact" if object != Object::Class => {
                    common.parent = Some(Parent::Ingress);
                    common.kind.get_or_insert_with(|| word.clone());
                }
                "parent" => {
                    let place = words.place.clone();
                    let text = words.value("parent", "the number of a class, such as 1:10")?;
                    let id = match text {
                        "root" => 0xffff_ffff,
                        _ => units::class_id(text).map_err(|expected| wrong(&place, "parent", text, expected))?,
                    };
                    common.parent = Some(match id {
                        0xffff_ffff => Parent::Root,
                        0xffff_0000..=0xffff_fff1 => Parent::Ingress,
                        id => Parent::Class(id),
                    });
                }
                "handle" => common.handle = Some(words.value("handle", "a number, such as 1:")?.to_owned()),
                "classid" if object == Object::Class => {
                    common.class = Some(words.value("classid", "a number, such as 1:10")?.to_owned());
                }
                "protocol" if is_filter => {
                    common.protocol = Some(words.value("protocol", "a protocol, such as ip")?.to_owned());
                }
                "prio" | "pref" | "priority" | "preference" if is_filter => {
                    let place = words.place.clone();
                    let text = words.value("prio", units::A_NUMBER)?;
                    let priority =
                        units::unsigned(text, 0).map_err(|expected| wrong(&place, "prio", text, expected))?;
                    common.priority = Some(priority.min(0xffff) as u32);
                }
                "stab" if object == Object::Qdisc => common.stab = Some(stab(words)?),
                "estimator" | "ingress_block" | "egress_block" | "chain" | "block" if object != Object::Class => {
                    words.value(word, "a value")?;
                    if word == "estimator" {
                        words.value(word, "two times")?;
                    }
                }
                kind => {
                    common.kind = Some(kind.to_owned());
                    break;
                }
            }
        }
        Ok(common)
    }
}

/// Reads a size table, which ends with the first word that is not its own.
fn stab(words: &mut Words<'_>) -> Result<Stab, ImportError> {
    let mut stab = Stab::default();
    let place = words.place.clone();
    loop {
        let Some(option) = words.rest.as_slice().first().map(String::as_str) else { return Ok(stab) };
        if !["mtu", "mpu", "overhead", "tsize", "linklayer"].contains(&option) {
            return Ok(stab);
        }
        words.rest.next();
        let text = words.value(option, "a value")?;
        let refuse = |expected| wrong(&place, option, text, expected);
        match option {
            "overhead" => stab.overhead = units::signed(text).map_err(refuse)?,
            "mpu" => stab.mpu = units::unsigned(text, 10).map_err(refuse)? as u32,
            "linklayer" => stab.is_atm = is_atm(text).map_err(refuse)?,
            // The size of the table: lengths beyond it are extrapolated.
            _ => {
                units::unsigned(text, 10).map_err(refuse)?;
            }
        }
    }
}

/// Returns `true` for the name of a link layer with cells of ATM (`get_linklayer`).
pub(crate) fn is_atm(text: &str) -> Result<bool, Expected> {
    match text {
        "" => Err("ethernet, atm or adsl"),
        // `atm` and `adsl` begin alike; both are cells.
        _ if "atm".starts_with(text) || "adsl".starts_with(text) => Ok(true),
        _ if "ethernet".starts_with(text) => Ok(false),
        _ => Err("ethernet, atm or adsl"),
    }
}
