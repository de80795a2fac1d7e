"""Every replaceable decision; `interfaces` has the contracts."""
