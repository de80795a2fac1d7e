"""Two studies side by side, in money, power and water: what changed, by how much, and how sure that is."""
