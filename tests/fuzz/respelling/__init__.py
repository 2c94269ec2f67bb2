"""The same command, spelled or wrapped otherwise: what bash runs stays the same, so the verdict must too."""
