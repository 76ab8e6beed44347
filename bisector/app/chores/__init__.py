"""What is done beside a search: reports at its end, and what executors look after."""
