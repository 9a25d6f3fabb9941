//! `componentize MODULE COMPONENT`: makes a component from a core module, and prints its imports,
//! one name a line.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [module, component] = &*arguments else {
        eprintln!("usage: componentize MODULE COMPONENT");
        return ExitCode::from(2);
    };
    match write(module, component) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("componentize: {}: {error}", module.display());
            ExitCode::FAILURE
        }
    }
}

fn write(module: &OsString, component: &OsString) -> Result<(), Box<dyn Error>> {
    let encoded = componentize::encode(&fs::read(module)?)?;
    let imports = componentize::interfaces(&encoded)?.imports;
    fs::write(component, encoded)?;
    for name in imports {
        println!("{name}");
    }
    Ok(())
}
