//! Behaviour of real sockets alone: resets, refusals, servers that come and go, TLS. Uses real
//! processes and compares no times.

mod batching;
mod coming_and_going;
mod faults;
mod grpc;
mod hostile;
mod identity;
mod series;
mod spans;
mod speech;
mod steps;
mod tls;
mod websocket;
mod windows;
