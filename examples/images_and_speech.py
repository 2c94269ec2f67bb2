"""Look at an image, and speak, without a key: the image goes to the model that asks, and espeak-ng speaks."""

import json
import os
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

from handrail.model_tools import handle_function_call

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    chart = Image.new("RGB", (3000, 2000), "white")
    ImageDraw.Draw(chart).rectangle((200, 900, 600, 2000), fill="navy")
    chart.save("chart.webp")

    # Without `media.vision_model` the result is the image itself, made small enough for any provider.
    result = handle_function_call("vision_analyze", {"image_url": "chart.webp", "question": "How many bars?"})
    text, image = result["content"]
    told = json.loads(text["text"])
    print(told["question"], told["width"], told["height"], image["image_url"]["url"][:15])

    # A broken one is said.
    Path("broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    print(handle_function_call("vision_analyze", {"image_url": "broken.png"}))

    spoken = json.loads(handle_function_call("text_to_speech", {"text": "One bar.", "output_path": "answer.wav"}))
    print(Path("answer.wav").stat().st_size if "path" in spoken else spoken["error"])
