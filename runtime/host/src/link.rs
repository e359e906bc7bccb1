//! The linker: the interfaces that a component can import, one line each. An interface that is not listed here does not exist for a guest.
//!
//! Sockets and HTTP are never linked, whatever the grants are. [`crate::interfaces`] has the message for such an import.

use crate::attempt::Attempt;
use crate::attempt::wasi_files;
use crate::bindings::{agents, chat, control, exec, files, llm, tools, types};
use wasmtime::component::{HasData, HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Result};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi_io::bindings::wasi::io;

type This = HasSelf<Attempt>;

struct Handles;

impl HasData for Handles {
    type Data<'a> = &'a mut ResourceTable;
}

/// Returns the linker for all components.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<Attempt>> {
    let mut linker = Linker::new(engine);
    contract(&mut linker)?;
    wasi(&mut linker)?;
    Ok(linker)
}

fn contract(l: &mut Linker<Attempt>) -> Result<()> {
    types::add_to_linker::<_, This>(l, |attempt| attempt)?;
    chat::add_to_linker::<_, This>(l, |attempt| attempt)?;
    files::add_to_linker::<_, This>(l, |attempt| attempt)?;
    control::add_to_linker::<_, This>(l, |attempt| attempt)?;
    llm::add_to_linker::<_, This>(l, |attempt| attempt)?;
    exec::add_to_linker::<_, This>(l, |attempt| attempt)?;
    agents::add_to_linker::<_, This>(l, |attempt| attempt)?;
    tools::add_to_linker::<_, This>(l, |attempt| attempt)
}

fn wasi(l: &mut Linker<Attempt>) -> Result<()> {
    // Glovebox implements the whole file system itself: see [`wasi_files`].
    wasi_files::add_to_linker(l, Attempt::posix_files)?;
    io::error::add_to_linker::<_, Handles>(l, |attempt| &mut attempt.wasi.table)?;
    io::poll::add_to_linker::<_, Handles>(l, |attempt| &mut attempt.wasi.table)?;
    io::streams::add_to_linker::<_, Handles>(l, |attempt| &mut attempt.wasi.table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, Attempt::clocks)?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, Attempt::clocks)?;
    random::random::add_to_linker::<_, WasiRandom>(l, |attempt| attempt.wasi.ctx.random())?;
    random::insecure::add_to_linker::<_, WasiRandom>(l, |attempt| attempt.wasi.ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(l, |attempt| attempt.wasi.ctx.random())?;
    cli::exit::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::environment::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, Attempt::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, Attempt::cli)
}
