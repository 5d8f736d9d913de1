"""How origins and homes find each other: who is there, what they are asked, and how letters reach them."""
