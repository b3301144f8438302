import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { MapControl, type MapProps } from "./map-control.js";
import { listenToGestures } from "./map-gestures.js";
import { mapKey } from "./map-keys.js";
import { MapPainter } from "./map-painter.js";
import type { Size } from "./viewport.js";

/** A map to pan, zoom, point at and cut, by mouse, fingers and keys. */
export function MapView(props: MapProps) {
  const { model, layer, label, isCutting } = props;
  const box = useRef<HTMLDivElement>(null);
  const size = useSignal<Size>({ width: 0, height: 0 });
  const current = useRef(props);
  current.current = props;
  const control = useMemo(() => new MapControl(() => current.current, size), [size]);
  const painter = useRef<MapPainter>(undefined);

  useEffect(() => {
    const element = box.current as HTMLDivElement;
    painter.current = new MapPainter(element);
    // The size is needed at once, and not only when the observer reports it: a link may lead to a defect.
    const measure = (): void => {
      const { width, height } = element.getBoundingClientRect();
      // The observer still reports a map that was just removed: a defect could not be gone to with that size.
      if (width === 0 || height === 0) return;
      size.value = { width: Math.floor(width), height: Math.floor(height) };
      model.mapSize = size.value;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    const stop = listenToGestures(element, control);
    return () => {
      observer.disconnect();
      stop();
      painter.current?.end();
    };
  }, [control, size, model]);

  useEffect(
    () =>
      effect(() => {
        model.arrivals.value;
        const { width, height } = size.value;
        if (width > 0 && height > 0) painter.current?.paint(control.picture(), size.value, model);
      }),
    // This runs after every drawing of the component, because its layer, defects and labels are painted too.
  );

  return (
    <div
      ref={box}
      class={`map${isCutting ? " map-cutting" : ""}`}
      role="application"
      aria-label={label}
      aria-describedby="map-keys"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys are written beside it.
      tabIndex={0}
      data-layer={layer.kind}
      onKeyDown={(event) => {
        if (mapKey(event, control)) event.preventDefault();
      }}
    >
      <canvas />
      <canvas />
    </div>
  );
}
