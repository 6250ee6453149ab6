//! Pure decisions and checks.
