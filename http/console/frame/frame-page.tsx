/** One frame: its heights, its luminance, its points in space. */
export function FramePage({ frameId }: { frameId: string }) {
  return <p>Frame {frameId}</p>;
}
