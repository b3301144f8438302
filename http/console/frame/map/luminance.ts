import { FrameProblem } from "../heights/frame-problem.js";

/** The luminance of a frame, as 8 bits a point. */
export interface Luminance {
  readonly bitmap: ImageBitmap;
  /** 0 to 255. */
  valueAt(column: number, line: number): number;
}

/** Decodes the picture. Its values stay as they are: no colour profile is applied. @throws FrameProblem */
export async function decodeLuminance(png: Blob): Promise<Luminance> {
  const bitmap = await createImageBitmap(png, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).catch(() => {
    throw new FrameProblem("This browser cannot show the luminance: the picture is damaged, or too large for it.");
  });
  const one = document.createElement("canvas");
  one.width = 1;
  one.height = 1;
  const context = one.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
  return {
    bitmap,
    valueAt(column, line) {
      context.drawImage(bitmap, column, line, 1, 1, 0, 0, 1, 1);
      return context.getImageData(0, 0, 1, 1).data[0] as number;
    },
  };
}
