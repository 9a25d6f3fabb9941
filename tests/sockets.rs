//! What only real sockets have: resets, refusals, servers that come and go, TLS. Real processes; no
//! instants are compared.

mod coming_and_going;
mod faults;
mod tls;
