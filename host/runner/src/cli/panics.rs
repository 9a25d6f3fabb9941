//! The message of a panic: none where the panic becomes an error message. Otherwise the alternate
//! screen is left first, because the message would vanish with it.

use super::dashboard::screen;

/// Installs the panic hook.
pub fn install() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !session::is_guarded() {
            screen::leave();
            print(panic);
        }
    }));
}
