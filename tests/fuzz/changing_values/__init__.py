"""Scripts in which values change before they are run, generated at random and run by real bash."""
