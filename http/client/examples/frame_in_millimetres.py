"""A walk through a frame in millimetres: `python3 frame_in_millimetres.py URL FRAME`. README.md beside this file explains it."""
import io, json, os, sys
from urllib.request import Request, urlopen
import numpy as np
import pandas as pd

if len(sys.argv) != 3:
    sys.exit("usage: python3 frame_in_millimetres.py URL FRAME")
BASE, FRAME = sys.argv[1].rstrip("/"), sys.argv[2]
KEY = os.environ.get("SERVICE_KEY")  # an API key, if the service has keys


def get(path):
    headers = {"Authorization": f"Bearer {KEY}"} if KEY else {}
    with urlopen(Request(BASE + path, headers=headers), timeout=60) as answer:
        return answer.read()


# 1. The heights as the sensor gave them, one row a line. `geometry` says what they mean.
frame = json.loads(get(f"/sensor/frames/{FRAME}"))
raw = np.load(io.BytesIO(get(frame["file_path"])))
geometry, height = frame["geometry"], frame["geometry"]["height"]

# 2. Millimetres. A code of `invalid`, or NaN, is no measurement.
is_missing = np.isin(raw, np.array(height["invalid"], raw.dtype))
z_mm = np.where(is_missing, np.nan, raw.astype("f8") * height["scale_mm"] + height["offset_mm"])
x_mm = geometry["x_origin_mm"] + geometry["x_pitch_mm"] * np.arange(raw.shape[1])
y_mm = geometry["y_origin_mm"] + geometry["y_pitch_mm"] * np.arange(raw.shape[0])

# 3. One row for each measured point.
x, y = np.meshgrid(x_mm, y_mm)
points = pd.DataFrame({"x_mm": x.ravel(), "y_mm": y.ravel(), "z_mm": z_mm.ravel()}).dropna()
if len(points) < 3:
    sys.exit(f"the frame has {len(points)} measured points: too few for a plane")

# 4. The plane that fits best, z = a x + b y + c, and how far each point is above it.
ones = np.ones(len(points))
(a, b, c), *_ = np.linalg.lstsq(np.column_stack([points.x_mm, points.y_mm, ones]), points.z_mm, rcond=None)
points["above_mm"] = (points.z_mm - (a * points.x_mm + b * points.y_mm + c)) / np.sqrt(1 + a * a + b * b)

# 5. What stands out, and each line for itself.
highest = points.loc[points.above_mm.idxmax()]
lines = points.groupby("y_mm").above_mm.agg(["count", "min", "max", "mean"])
print(lines.to_string(float_format="{:.4f}".format))
print(json.dumps({
    "points": len(points),
    "missing": int(np.isnan(z_mm).sum()),
    "tilt_mm_per_m": [round(1000 * a, 3), round(1000 * b, 3)],
    "flatness_mm": round(points.above_mm.max() - points.above_mm.min(), 4),
    "highest_at_mm": [round(highest.x_mm, 3), round(highest.y_mm, 3)],
}))
