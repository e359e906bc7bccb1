//! The agent program of an attempt, as the host starts it: the settings of the plan, and the home folder that the attempt
//! made for it.

use super::sandbox::AttemptSandbox;
use glovebox_host::agents::ProgramSetting;
use glovebox_jail::private_home::PrivateHome;
use glovebox_plan::plan::Binding;
use std::sync::Arc;

impl AttemptSandbox {
    /// Returns the agent program of the stage, with its home folder. `None` if the stage has none.
    pub(super) fn program(&self, binding: &Binding) -> Option<ProgramSetting> {
        let (program, home) = binding.program.as_ref().zip(self.home.as_ref())?;
        Some(ProgramSetting {
            program: program.program,
            options: program.options.clone(),
            home: Arc::clone(&home.dir),
            home_inside: PrivateHome::inside(),
        })
    }
}
