"""Mail between sessions: the mailbox, who may write to whom, and how a letter finds its way."""
