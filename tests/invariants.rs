//! What the architecture promises, each a test.
