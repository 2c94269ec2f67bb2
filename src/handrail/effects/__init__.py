"""What calls change: their numbers and records, showing their effect, and taking them back."""
