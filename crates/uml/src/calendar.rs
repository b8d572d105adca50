//! The calendar of a guest: the protocol by which User Mode Linux lets another program own its clock
//! (`time-travel=ext`).
//!
//! A guest asks to run at a time ([`CalendarOp::Request`]) and waits ([`CalendarOp::Wait`]); the calendar lets it run
//! at exactly that time ([`CalendarOp::Run`]), or allows it beforehand to schedule itself up to some time
//! ([`CalendarOp::FreeUntil`]). Every message is acknowledged. Times are nanoseconds of the guest's clock.
//!
//! # Source
//!
//! Linux 6.1, `include/uapi/linux/um_timetravel.h` (messages) and `arch/um/kernel/time.c` (the
//! guest's part).
//!
//! - A guest that is let run at another time than that of its first event hits a `BUG_ON`
//!   (`time_travel_update_time`), hence [`Calendar::run`] takes no time.
//! - It may go on by itself only to times before that of `FREE_UNTIL`, and forgets that time when it
//!   waits (`time_travel_ext_request`, `time_travel_ext_wait`).
//! - Having gone on, it says its time before anything that another program sees
//!   (`__time_travel_propagate_time`, called by `vu_notify`).

/// Bytes of a message.
pub(crate) const MESSAGE: usize = 16;

/// Meanings of messages (`enum um_timetravel_ops`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CalendarOp {
    /// Any message has been received; an answer where it asks something.
    Ack = 0,
    /// The guest is there.
    Start = 1,
    /// It wants to run at this time; the last request counts.
    Request = 2,
    /// It stands still.
    Wait = 3,
    /// It asks for the time.
    Get = 4,
    /// It tells its time.
    Update = 5,
    /// It runs, at this time.
    Run = 6,
    /// It need not ask before this time.
    FreeUntil = 7,
    /// It asks for the time of day.
    GetTod = 8,
}

/// A message, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeMessage {
    pub(crate) op: CalendarOp,
    pub(crate) seq: u32,
    pub(crate) time: u64,
}

impl TimeMessage {
    /// The message in these bytes; the number of its meaning if that is unknown.
    pub(crate) fn parse(bytes: &[u8; MESSAGE]) -> Result<TimeMessage, u32> {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let ops = [
            CalendarOp::Ack,
            CalendarOp::Start,
            CalendarOp::Request,
            CalendarOp::Wait,
            CalendarOp::Get,
            CalendarOp::Update,
            CalendarOp::Run,
            CalendarOp::FreeUntil,
            CalendarOp::GetTod,
        ];
        let op = ops.into_iter().find(|&op| op as u32 == word(0)).ok_or(word(0))?;
        let mut time = [0; 8];
        time.copy_from_slice(&bytes[8..]);
        Ok(TimeMessage { op, seq: word(4), time: u64::from_ne_bytes(time) })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> [u8; MESSAGE] {
        let mut bytes = [0; MESSAGE];
        bytes[..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }
}

/// A guest's clock, as its calendar knows it.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// The guest's time: that of the last RUN or UPDATE, or of the calendar's last call.
    clock: u64,
    /// The time at which it wants to run.
    requested: Option<u64>,
    /// It stands still.
    waits: bool,
    /// It does not ask before this time.
    free_until: Option<u64>,
    /// Number of the calendar's last message.
    seq: u32,
    /// The time of day at time 0, ns since 1970.
    day: u64,
}

impl Calendar {
    /// The calendar of a guest at time 0, when it is `day` nanoseconds since 1970.
    pub(crate) fn new(day: u64) -> Calendar {
        Calendar { clock: 0, requested: None, waits: false, free_until: None, seq: 0, day }
    }

    /// The guest's time.
    pub(crate) fn clock(&self) -> u64 {
        self.clock
    }

    /// The time at which it wants to run, if it does.
    pub(crate) fn requested(&self) -> Option<u64> {
        self.requested
    }

    /// Whether it stands still.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// The time comes to a guest that stands still.
    pub(crate) fn set(&mut self, now: u64) {
        self.clock = self.clock.max(now);
    }

    /// A message of the guest, and the acknowledgment to send; `Err` is what is wrong with it.
    /// Acknowledgments of the calendar's own messages, and only they, have no answer.
    pub(crate) fn receive(&mut self, message: TimeMessage) -> Result<Option<TimeMessage>, String> {
        let mut answer = 0;
        match message.op {
            CalendarOp::Ack if message.seq == self.seq => return Ok(None),
            CalendarOp::Ack => return Err(format!("acknowledges message {}, of {}", message.seq, self.seq)),
            CalendarOp::Start => {}
            CalendarOp::Request if message.time < self.clock => {
                return Err(format!("asks to run at {} ns, when it is {}", message.time, self.clock));
            }
            CalendarOp::Request => self.requested = Some(message.time),
            CalendarOp::Wait => {
                self.waits = true;
                self.free_until = None;
            }
            CalendarOp::Get => answer = self.clock,
            CalendarOp::Update if message.time < self.clock => {
                return Err(format!("its clock goes back from {} to {} ns", self.clock, message.time));
            }
            CalendarOp::Update => self.clock = message.time,
            CalendarOp::GetTod => answer = self.day.saturating_add(self.clock),
            CalendarOp::Run | CalendarOp::FreeUntil => {
                return Err(format!("sends {:?}, which is for the calendar", message.op));
            }
        }
        Ok(Some(TimeMessage { op: CalendarOp::Ack, seq: message.seq, time: answer }))
    }

    /// Lets the guest run at the time it has asked for; `None` if it does not stand still, or has
    /// not asked.
    pub(crate) fn run(&mut self) -> Option<TimeMessage> {
        if !self.waits {
            return None;
        }
        let time = self.requested.take()?;
        self.waits = false;
        self.clock = self.clock.max(time);
        Some(self.message(CalendarOp::Run, time))
    }

    /// Lets the guest go on without asking to times before `until`, once it runs; `None` if that is
    /// nothing new.
    pub(crate) fn free_until(&mut self, until: u64) -> Option<TimeMessage> {
        self.free_until = Some(until);
        Some(self.message(CalendarOp::FreeUntil, until))
    }

    /// Takes back what [`Calendar::free_until`] allowed: from now on the guest asks.
    pub(crate) fn rein_in(&mut self) -> Option<TimeMessage> {
        let until = self.clock;
        self.free_until.filter(|&free| free > until)?;
        self.free_until(until)
    }

    fn message(&mut self, op: CalendarOp, time: u64) -> TimeMessage {
        self.seq = self.seq.wrapping_add(1);
        TimeMessage { op, seq: self.seq, time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(calendar: &mut Calendar, op: CalendarOp, time: u64) -> Option<TimeMessage> {
        calendar.receive(TimeMessage { op, seq: 9, time }).expect("a proper message")
    }

    /// The layout is that of `struct um_timetravel_msg`: op, seq, time in host order.
    #[test]
    fn messages_are_as_the_header_says() {
        let message = TimeMessage { op: CalendarOp::Update, seq: 0x0102_0304, time: 7 };
        let mut bytes = [0; MESSAGE];
        bytes[..4].copy_from_slice(&5_u32.to_ne_bytes());
        bytes[4..8].copy_from_slice(&0x0102_0304_u32.to_ne_bytes());
        bytes[8..].copy_from_slice(&7_u64.to_ne_bytes());
        assert_eq!(message.bytes(), bytes);
        for op in 0..12_u32 {
            bytes[..4].copy_from_slice(&op.to_ne_bytes());
            match TimeMessage::parse(&bytes) {
                Ok(message) => assert_eq!(message.bytes(), bytes),
                Err(unknown) => assert!(unknown == op && op > 8),
            }
        }
    }

    #[test]
    fn a_guest_runs_at_the_time_it_last_asked_for() {
        let mut calendar = Calendar::new(1000);
        assert_eq!(
            says(&mut calendar, CalendarOp::Start, u64::MAX),
            Some(TimeMessage { op: CalendarOp::Ack, seq: 9, time: 0 })
        );
        assert_eq!(says(&mut calendar, CalendarOp::GetTod, 0).map(|ack| ack.time), Some(1000));
        says(&mut calendar, CalendarOp::Request, 500);
        assert_eq!(calendar.run(), None, "it does not wait yet");
        says(&mut calendar, CalendarOp::Wait, u64::MAX);
        // An interrupt, at 200.
        calendar.set(200);
        assert_eq!(says(&mut calendar, CalendarOp::Get, 0).map(|ack| ack.time), Some(200));
        says(&mut calendar, CalendarOp::Request, 200);
        assert_eq!(calendar.run(), Some(TimeMessage { op: CalendarOp::Run, seq: 1, time: 200 }));
        assert_eq!((calendar.waits(), calendar.clock(), calendar.requested()), (false, 200, None));
        assert_eq!(calendar.receive(TimeMessage { op: CalendarOp::Ack, seq: 1, time: 0 }), Ok(None));
    }

    #[test]
    fn freedom_ends_with_the_wait_or_when_it_is_taken_back() {
        let mut calendar = Calendar::new(0);
        assert_eq!(calendar.free_until(900).map(|message| message.time), Some(900));
        says(&mut calendar, CalendarOp::Update, 300);
        assert_eq!(calendar.rein_in(), Some(TimeMessage { op: CalendarOp::FreeUntil, seq: 2, time: 300 }));
        assert_eq!(calendar.rein_in(), None, "it is not free any more");
        calendar.free_until(900);
        says(&mut calendar, CalendarOp::Wait, 0);
        assert_eq!(calendar.rein_in(), None);
    }

    #[test]
    fn a_guest_that_breaks_the_protocol_is_refused() {
        let mut calendar = Calendar::new(0);
        says(&mut calendar, CalendarOp::Update, 300);
        for (op, time) in [
            (CalendarOp::Update, 299),
            (CalendarOp::Request, 299),
            (CalendarOp::Run, 400),
            (CalendarOp::FreeUntil, 400),
            (CalendarOp::Ack, 0),
        ] {
            assert!(calendar.receive(TimeMessage { op, seq: 9, time }).is_err(), "{op:?}");
        }
    }
}
