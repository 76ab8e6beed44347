"""What commands ask of stored bisections: of this machine's database, or of a server (`perfbisect web`)."""
