//! The terminal while the dashboard has it. However that ends, it is as before afterwards.

use std::io::{self, IsTerminal, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use anyhow::bail;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};

/// Whether the dashboard has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while something is written to it.
static WRITING: Mutex<()> = Mutex::new(());

/// For how long a panic waits for a frame that another thread draws.
const FRAME: (usize, Duration) = (100, Duration::from_millis(1));

/// Whether there is a terminal for a dashboard.
///
/// # Errors
/// There is none.
pub(crate) fn check() -> anyhow::Result<()> {
    for (name, is_terminal) in [("output", stdout().is_terminal()), ("input", io::stdin().is_terminal())] {
        if !is_terminal {
            bail!("--watch requires a terminal, and standard {name} is none; --metrics does without one");
        }
    }
    Ok(())
}

/// What there is to read.
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
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    let input = io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut fds, Timespec::try_from(patience).ok().as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Ok(Input::None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(if fds[0].revents().intersects(gone) { Input::Gone } else { Input::Some })
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
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Screen> {
        restore_on_panic();
        TAKEN.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen))
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws a frame, unless the terminal was given back.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if TAKEN.load(Ordering::SeqCst) {
            self.terminal.draw(draw)?;
        }
        Ok(())
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
