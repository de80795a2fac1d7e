"""Every replaceable decision: `interfaces` says what each must do."""
