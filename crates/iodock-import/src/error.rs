use iodock_event::SourceError;
use std::fmt;

/// The reason why an import ended without a store. `Display` describes it; [`ImportError::hint`] says what to
/// do.
#[derive(Debug)]
pub enum ImportError {
    /// A log or journal cannot be read.
    Source(SourceError),
    /// The store cannot be written.
    Store { message: String, hint: String },
    /// The options are contradictory.
    Usage { message: String, hint: String },
    /// The caller's cancel flag was set.
    Cancelled,
}

impl ImportError {
    pub fn hint(&self) -> &str {
        match self {
            ImportError::Source(error) => &error.hint,
            ImportError::Store { hint, .. } | ImportError::Usage { hint, .. } => hint,
            ImportError::Cancelled => "",
        }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Source(error) => error.fmt(f),
            ImportError::Store { message, .. } | ImportError::Usage { message, .. } => f.write_str(message),
            ImportError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<SourceError> for ImportError {
    fn from(error: SourceError) -> Self {
        ImportError::Source(error)
    }
}

impl From<iodock_store::StoreError> for ImportError {
    fn from(error: iodock_store::StoreError) -> Self {
        ImportError::Store { message: error.to_string(), hint: error.hint() }
    }
}
