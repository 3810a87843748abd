//! Windows PDBs (MSF containers): native symbols, lines and inlinees, and classic managed PDBs.
