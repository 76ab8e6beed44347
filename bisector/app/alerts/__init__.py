"""What becomes of alerts: suspects, confirmations, the bisections that they begin, and what people say."""
