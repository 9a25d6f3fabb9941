//! The command line, one file per subcommand. Nothing else in the program prints.

pub mod mock;
