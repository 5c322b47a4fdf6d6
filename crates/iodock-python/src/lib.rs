//! `iodock._native`, the Python interface of the Rust crates. It has one file per exposed crate, and contains
//! no logic of its own.

mod checksum;
mod darshan;
mod doorway;
mod errors;
mod fold;
mod following;
mod import;
mod load;
mod monitor;
mod perfetto;
mod record;
mod symbolize;
mod vocabulary;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // `make setup` and `make wheel` set the commit; it is None if only cargo was used to build.
    module.add("__commit__", option_env!("IODOCK_COMMIT"))?;
    module.add("NativeError", module.py().get_type::<errors::NativeError>())?;
    checksum::register(module)?;
    darshan::register(module)?;
    fold::register(module)?;
    following::register(module)?;
    import::register(module)?;
    load::register(module)?;
    monitor::register(module)?;
    perfetto::register(module)?;
    record::register(module)?;
    symbolize::register(module)?;
    vocabulary::register(module)
}
