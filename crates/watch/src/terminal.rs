//! The terminal while the dashboard has it. However that ends, it is as before afterwards.

use std::io::{self, IsTerminal, Write, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use anyhow::bail;
use crossterm::cursor::Show;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{event, execute, queue};

use super::frame::Frame;

/// `true` while the dashboard has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while something is written to it.
static WRITING: Mutex<()> = Mutex::new(());

/// For how long a panic waits for a frame that another thread draws.
const FRAME: (usize, Duration) = (100, Duration::from_millis(1));

/// Checks that there is a terminal for a dashboard.
///
/// # Errors
/// There is none.
pub fn check() -> anyhow::Result<()> {
    for (name, is_terminal) in [("output", stdout().is_terminal()), ("input", io::stdin().is_terminal())] {
        if !is_terminal {
            bail!("--watch requires a terminal, and standard {name} is none; --metrics does without one");
        }
    }
    Ok(())
}

/// The kinds of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    None,
    Some,
    /// The terminal was closed.
    Gone,
}

/// Waits for an event, which is then to be read. crossterm does not return from a terminal that was
/// closed: it reads on.
///
/// # Errors
/// Standard input does not work.
#[cfg(unix)]
pub(super) fn wait(patience: Duration) -> io::Result<Input> {
    let there = || Ok(if event::poll(Duration::ZERO)? { Input::Some } else { Input::None });
    // Events may have been read along with the last one.
    if look(Duration::ZERO)? == Input::Gone {
        return Ok(Input::Gone);
    }
    match there()? {
        Input::None => {}
        input => return Ok(input),
    }
    match look(patience)? {
        Input::Some => there(),
        input => Ok(input),
    }
}

/// Waits until standard input has something.
#[cfg(unix)]
fn look(patience: Duration) -> io::Result<Input> {
    use std::os::fd::AsFd;

    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    let input = io::stdin();
    let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX)) {
        Ok(0) | Err(Errno::EINTR) => return Ok(Input::None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    let is_gone = fds[0].revents().is_some_and(|events| events.intersects(gone));
    Ok(if is_gone { Input::Gone } else { Input::Some })
}

/// Waits for an event, which is then to be read.
///
/// # Errors
/// The terminal does not work.
#[cfg(not(unix))]
pub(super) fn wait(patience: Duration) -> io::Result<Input> {
    Ok(if event::poll(patience)? { Input::Some } else { Input::None })
}

/// The terminal, with keys as they are pressed, and a screen that leaves what was there.
#[derive(Debug)]
pub(super) struct Screen {
    shown: Frame,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Screen> {
        restore_on_panic();
        TAKEN.store(true, Ordering::SeqCst);
        let screen = Screen { shown: Frame::blank(0, 0) };
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }

    /// Draws a frame, unless the terminal was given back.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !TAKEN.load(Ordering::SeqCst) {
            return Ok(());
        }
        let (width, height) = size()?;
        let mut frame = Frame::blank(width.into(), height.into());
        let mut out = Vec::new();
        if self.shown.area != frame.area {
            queue!(out, Clear(ClearType::All))?;
            self.shown = Frame::blank(width.into(), height.into());
        }
        draw(&mut frame);
        frame.write(&self.shown, &mut out)?;
        self.shown = frame;
        stdout().write_all(&out)?;
        stdout().flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // There is nobody to tell of what fails.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// A panic's message is on the screen that stays. It may come from the thread that draws.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let (times, pause) = FRAME;
            for _ in 0..times {
                match WRITING.try_lock() {
                    Err(TryLockError::WouldBlock) => thread::sleep(pause),
                    _ => break,
                }
            }
            restore();
            report(info);
        }));
    });
}
