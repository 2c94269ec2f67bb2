"""What runs where the script runs. It is sent there as text, and must be readable by Python 3.8."""
