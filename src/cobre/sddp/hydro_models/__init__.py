"""How a reservoir behaves: evaporation, and planes of the production function."""
