"""Models beside the agent's own: `providers` asks them, `requirements` checks what is there, `images` loads and converts
pictures, `image_analysis` answers questions about them."""
