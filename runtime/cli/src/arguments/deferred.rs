//! Arguments of a command that are added to clap's command tree only when clap uses that command.
//!
//! The program builds the tree at every start, and the tree has some two hundred flags. To build all of them takes as
//! long as a check of a hundred nodes. Help and man pages use every command, so they are the same as without this.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The arguments of one command.
#[derive(Debug)]
pub struct Deferred<T>(pub T);

/// Adds the arguments of a command. Keeps the command's own description, because the description of its arguments type
/// is for readers of the code.
fn augment<T: Args>(command: Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    T::augment_args(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}

impl<T: Args> Args for Deferred<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        command.defer(augment::<T>)
    }

    /// Adds the arguments immediately. In the help of a command they are then listed before the flags that all commands
    /// have.
    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
