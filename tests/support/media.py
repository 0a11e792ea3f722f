"""Small images, audio clips and videos, made on the spot."""

from __future__ import annotations

import base64
import io
import math
import struct
import wave
from functools import cache
from pathlib import Path

from server.study.samples.png import patch

HUES = [
    (214, 96, 77),
    (244, 165, 130),
    (146, 197, 222),
    (67, 147, 195),
    (90, 174, 97),
    (153, 112, 171),
]

RECORDING = """
async (colours) => {
  const videos = colours.map(([red, green, blue], number) => {
    const canvas = document.createElement("canvas");
    canvas.width = 160; canvas.height = 120;
    const pen = canvas.getContext("2d");
    const kind = {mimeType: "video/webm;codecs=vp8"};
    const recorder = new MediaRecorder(canvas.captureStream(20), kind);
    const parts = [];
    recorder.ondataavailable = (event) => parts.push(event.data);
    let at = 0;
    const draw = () => {
      pen.fillStyle = "#eee"; pen.fillRect(0, 0, 160, 120);
      pen.fillStyle = `rgb(${red} ${green} ${blue})`;
      pen.beginPath(); pen.arc(20 + 12 * at++, 60, 10 + 3 * number, 0, 7); pen.fill();
    };
    const timer = setInterval(draw, 50);
    draw(); recorder.start();
    return new Promise((done) => setTimeout(() => {
      recorder.onstop = async () => {
        clearInterval(timer);
        const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
        done(btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join("")));
      };
      recorder.stop();
    }, 500));
  });
  return Promise.all(videos);
}
"""


def tone(hertz: float, seconds: float = 0.25) -> bytes:
    """A WAV file with one soft tone."""
    rate, stream = 8000, io.BytesIO()
    count = int(rate * seconds)
    samples = (
        int(9000 * math.sin(2 * math.pi * hertz * at / rate) * math.sin(math.pi * at / count))
        for at in range(count)
    )
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, rate, count, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return stream.getvalue()


@cache
def videos(chromium, count: int) -> list[bytes]:
    """WebM videos of a moving dot, recorded by the browser itself."""
    page = chromium.new_page()
    found = page.evaluate(RECORDING, [list(hue) for hue in HUES[:count]])
    page.close()
    return [base64.b64decode(finding) for finding in found]


def write_media_study(
    folder: Path, files: dict[str, bytes], toml: str = "", alts: bool = True
) -> Path:
    """A study of these files; with `alts`, each has words that are not its file's name."""
    (folder / "stimuli").mkdir(parents=True)
    for name, content in files.items():
        (folder / "stimuli" / name).write_bytes(content)
    head = 'title = "Media"\nseed = 5\n'
    if alts:
        rows = [f"secret{at},stimuli/{name},words for {at}" for at, name in enumerate(files)]
        (folder / "items.csv").write_text("key,file,alt\n" + "\n".join(rows) + "\n")
        head += 'stimuli.list = "items.csv"\n'
    (folder / "study.toml").write_text(head + toml)
    return folder


def images(count: int = 5) -> dict[str, bytes]:
    """Files of one colour each: after the hues, darker ones."""
    colours = [
        [max(0, part - 45 * (at // len(HUES))) for part in HUES[at % len(HUES)]]
        for at in range(count)
    ]
    return {f"hidden-name-{at}.png": patch(*colour) for at, colour in enumerate(colours)}


def audio_clips(count: int = 4) -> dict[str, bytes]:
    """Files of one tone each."""
    return {f"tone-{at}.wav": tone(330 + 70 * at) for at in range(count)}
