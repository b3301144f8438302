import { type PythonPeer, startPython } from "./python-peer.js";

/**
 * libpng itself, called from Python by ctypes: PIL has an encoder of its own. It takes lines of "width height level filter file" (filter as
 * libpng's PNG_FILTER_ bits, 0 for its default) and answers "seconds bytes".
 */
const LOOP = `
import sys, time, ctypes, ctypes.util
png = ctypes.CDLL(ctypes.util.find_library("png16") or "libpng16.so.16")
P = ctypes.c_void_p
png.png_get_libpng_ver.restype = ctypes.c_char_p
version = png.png_get_libpng_ver(None)
png.png_create_write_struct.restype = P
png.png_create_write_struct.argtypes = [ctypes.c_char_p, P, P, P]
png.png_create_info_struct.restype = P
png.png_create_info_struct.argtypes = [P]
WRITE = ctypes.CFUNCTYPE(None, P, P, ctypes.c_size_t)
FLUSH = ctypes.CFUNCTYPE(None, P)
png.png_set_write_fn.argtypes = [P, P, WRITE, FLUSH]
png.png_set_IHDR.argtypes = [P, P, ctypes.c_uint32, ctypes.c_uint32] + [ctypes.c_int] * 5
png.png_set_compression_level.argtypes = [P, ctypes.c_int]
png.png_set_compression_buffer_size.argtypes = [P, ctypes.c_size_t]
png.png_set_filter.argtypes = [P, ctypes.c_int, ctypes.c_int]
for name in ("png_write_info", "png_write_end"): getattr(png, name).argtypes = [P, P]
png.png_set_swap.argtypes = [P]
png.png_write_image.argtypes = [P, P]
png.png_destroy_write_struct.argtypes = [P, P]
for line in sys.stdin:
    width, height, level, kind, name = line.split()
    width, height = int(width), int(height)
    plane = ctypes.create_string_buffer(open(name, "rb").read())
    rows = (P * height)(*[ctypes.addressof(plane) + 2 * width * row for row in range(height)])
    out = []
    write = WRITE(lambda _, data, length: out.append(ctypes.string_at(data, length)))
    flush = FLUSH(lambda _: None)
    start = time.perf_counter()
    writer = png.png_create_write_struct(version, None, None, None)
    info = png.png_create_info_struct(writer)
    png.png_set_write_fn(writer, None, write, flush)
    png.png_set_compression_level(writer, int(level))
    png.png_set_compression_buffer_size(writer, 1 << 20)
    if kind != "0": png.png_set_filter(writer, 0, int(kind))
    png.png_set_IHDR(writer, info, width, height, 16, 0, 0, 0, 0)
    png.png_write_info(writer, info)
    png.png_set_swap(writer)
    png.png_write_image(writer, rows)
    png.png_write_end(writer, info)
    seconds = time.perf_counter() - start
    pointer = P(writer)
    png.png_destroy_write_struct(ctypes.byref(pointer), None)
    print(seconds, sum(map(len, out)), flush=True)
`;

/** The bit of libpng's filter `sub`, and for its own choice. */
export const FILTER_SUB = 0x10;
export const FILTER_DEFAULT = 0;

export interface Libpng {
  /** Encodes 16-bit little-endian samples of a file. */
  encode(
    file: string,
    width: number,
    height: number,
    level: number,
    filter: number,
  ): Promise<{ seconds: number; bytes: number }>;
  close(): Promise<void>;
}

export function startLibpng(): Libpng | { why: string } {
  const check = 'ctypes; ctypes.CDLL(__import__("ctypes.util").util.find_library("png16") or "libpng16.so.16")';
  const python: PythonPeer | { why: string } = startPython([check], LOOP);
  if ("why" in python) return { why: "no Python that finds libpng16 (Debian: apt-get install libpng16-16 python3)" };
  return {
    async encode(file, width, height, level, filter) {
      const answer = await python.ask(`${width} ${height} ${level} ${filter} ${file}`);
      const [seconds = 0, bytes = 0] = answer.split(" ").map(Number);
      return { seconds, bytes };
    },
    close: () => python.close(),
  };
}
