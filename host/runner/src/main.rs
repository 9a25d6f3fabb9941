//! The binary: parse, execute, print the error, exit. A panic is a bug, and its exit code says so.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use runner::cli::dashboard;
use runner::cli::failure::Failure;

/// musl's allocator has one lock for all threads, which the readers of replies would wait for.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if runner::cli::templates::is_renderer() {
        return runner::cli::templates::exec();
    }
    if runner::cli::completions::is_completing() {
        return runner::cli::completions::answer();
    }
    model::clock::since_process_began();
    print_panics();
    let cli = runner::cli::Cli::read();
    if let Err(error) = launch::parent::end_with_parent() {
        return Failure::command_line(format!("{}: {error}", launch::parent::PIPE)).report();
    }
    match std::panic::catch_unwind(|| cli.exec()) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::bug("").report(),
    }
}

/// Prints a panic that becomes no error message, after the alternate screen, which hides it.
fn print_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !session::is_guarded() {
            dashboard::leave();
            print(panic);
        }
    }));
}
