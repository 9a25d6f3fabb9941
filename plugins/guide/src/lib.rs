//! The plugins of the guide, as they stand in its pages (`plugins/guide/*.md`): here they are
//! compiled natively, and their unit tests run. That they work as components is a test of the whole
//! (`tests/guide.rs`).
#![forbid(unsafe_code)]

/// The backend of `backend.md`.
pub mod backend {
    include!(concat!(env!("OUT_DIR"), "/backend.rs"));
}

/// The dataset of `dataset.md`.
pub mod dataset {
    include!(concat!(env!("OUT_DIR"), "/dataset.rs"));
}

/// The scorer of `scorer.md`.
pub mod scorer {
    include!(concat!(env!("OUT_DIR"), "/scorer.rs"));
}
