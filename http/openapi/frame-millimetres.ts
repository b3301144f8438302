/** How to turn the files of a frame into millimetres, as the OpenAPI document shows it. A test runs these Python lines. */
const NPY_LINES = `
import io, json, numpy as np; from urllib.request import urlopen
frame = json.load(urlopen(f"{base_url}/sensor/frames/{frame_id}"))
raw = np.load(io.BytesIO(urlopen(base_url + frame["file_path"]).read()))
g = frame["geometry"]; h = g["height"]; is_missing = np.isin(raw, np.array(h["invalid"], raw.dtype))
z_mm = np.where(is_missing, np.nan, raw.astype("f8") * h["scale_mm"] + h["offset_mm"])
x_mm = g["x_origin_mm"] + g["x_pitch_mm"] * np.arange(raw.shape[1])
y_mm = g["y_origin_mm"] + g["y_pitch_mm"] * np.arange(raw.shape[0])
`;

const PNG_LINES = `
import io, numpy as np; from urllib.request import urlopen; from PIL import Image
picture = Image.open(io.BytesIO(urlopen(f"{base_url}/sensor/frames/{frame_id}/file.png").read()))
samples, text = np.array(picture), {key: float(value) for key, value in picture.text.items()}
if "z_scale_mm" in text: z_mm = samples * text["z_scale_mm"] + text["z_offset_mm"]
elif "z_min_mm" in text: z_mm = text["z_min_mm"] + (samples - 1.0) * (text["z_max_mm"] - text["z_min_mm"]) / 65534
else: z_mm = np.zeros(samples.shape)
z_mm[samples == 0] = np.nan
`;

export const FRAME_GEOMETRY =
  "Where the points of a frame lie, as the producer declared it. z_mm = raw * scale_mm + offset_mm, unless raw is one of `invalid`; " +
  "x_mm = x_origin_mm + column * x_pitch_mm; y_mm = y_origin_mm + line * y_pitch_mm. The description of GET /sensor/frames/{frame_id}/file.npy shows it in numpy.";

export const NPY_IN_MILLIMETRES =
  `This converts it to millimetres, using the frame's \`geometry\`. \`base_url\` is the service's address, such as ` +
  `http://127.0.0.1:8000; \`frame_id\` is one of a run's \`results.frame_ids\`. \`z_mm[line, column]\` lies at \`x_mm[column]\`, \`y_mm[line]\`:\n\n` +
  `\`\`\`python${NPY_LINES}\`\`\`\n\nIn \`z_mm\`, NaN means no measurement.`;

export const CLOUD_RESOLUTION =
  "Vertices are float32, which has 24 bits. The comments `offset_mm` and `scale_mm` in the header say, for x, y and z, how column, line and raw " +
  "height became millimetres. A coordinate of more than 2^23 times its scale is rounded (for a scale of 0.00001 mm: of more than 84 mm), so two " +
  "neighbouring raw values may get the same z. The NPY keeps every raw value; the height map PNG keeps up to 65,534 different ones. " +
  "`intensity` is the luminance as in the luminance PNG.";

export const PNG_IN_MILLIMETRES =
  "A sample of 0 means no measurement. The text chunks of the picture say what the other samples mean. With `z_scale_mm` and `z_offset_mm`, the " +
  "samples are the raw values: z = sample * z_scale_mm + z_offset_mm. Without them, samples from 1 to 65535 are z from `z_min_mm` to `z_max_mm`, rounded. " +
  `A picture without any measurement has none of these. \`x_pitch_mm\` and \`y_pitch_mm\` are also text chunks.\n\n\`\`\`python${PNG_LINES}\`\`\``;

const OVERVIEW_LINES = `
import io, numpy as np; from urllib.request import urlopen
answer = urlopen(f"{base_url}/sensor/frames/{frame_id}/overview.npy?points=100000")
z_mm, where = np.load(io.BytesIO(answer.read())), {key: float(answer.headers[f"X-{key}-Mm"]) for key in ("X-Pitch", "Y-Pitch", "X-Origin", "Y-Origin")}
x_mm = where["X-Origin"] + where["X-Pitch"] * np.arange(z_mm.shape[1])
y_mm = where["Y-Origin"] + where["Y-Pitch"] * np.arange(z_mm.shape[0])
`;

export const OVERVIEW_IN_MILLIMETRES =
  "For viewers and notebooks that need a large frame at once, but not all of it. The array has every k-th column of every k-th line, beginning with the " +
  "first: k, in the header `X-Stride`, is the smallest that leaves at most `points` points. `z_mm[line, column]` is the height of the frame's point " +
  "(line * k, column * k) as float32, or NaN where nothing was measured. It lies at `x_mm[column]`, `y_mm[line]`:\n\n" +
  `\`\`\`python${OVERVIEW_LINES}\`\`\`\n\n` +
  "A float32 has 24 bits: a height of more than 2^23 times the frame's `scale_mm` is rounded. At 1,000,000 mm, as with a large `offset_mm`, heights " +
  "within 0.06 mm are equal. The frame's `geometry` has the offset, and the NPY keeps every raw value: GET /sensor/frames/{frame_id}/file.npy gives " +
  "exact heights, of single lines too by `Range`.\n\nThe array is made while it is sent. It is not among the run's files.";

export const PREVIEW_COLOURS =
  "At most 640 pixels on the longer side. A pixel shows the mean height of a block of k x k points, without those that were not measured; k is the " +
  "smallest that fits. Sample 0 is transparent: nothing was measured. Samples from 1 to 255 are the colours of viridis from the 1st to the 99th " +
  "percentile of all heights, which the text chunks `z_min_mm` and `z_max_mm` give. Heights beyond have the first or the last colour. The text chunks " +
  "`x_pitch_mm` and `y_pitch_mm` are millimetres from one pixel to the next. It is made with the height map `file.png`, and is not among the run's files.";
