"""How a change of state reaches whoever waits for it: rings and events."""
