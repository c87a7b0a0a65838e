//! Laws over generated input.
