import { useEffect, useRef } from "preact/hooks";
import { apiFetch, type Run, type RunFile } from "../../data/api.js";
import { useResource } from "../../data/resource.js";
import { Download } from "../../downloads/download.js";
import { drawLines } from "../../ui/charts/line-plot.js";
import { Loaded } from "../../ui/states.js";
import { Section, Text } from "../../ui/values.js";
import { parseSeries, type Series } from "./parse-series.js";
import { stepsOf } from "./steps-axis.js";

/** The measurement series of the run's sweeps. */
export function SeriesPlots({ run }: { run: Run }) {
  const sweeps = (run.files ?? []).filter(({ type, step_index: step, name }) => isSweep(type, step, name));
  if (sweeps.length === 0) return null;
  const steps = stepsOf(run);
  return (
    <Section title="Series" aside={<span class="count">{sweeps.length}</span>} class="series">
      {sweeps.map((file) => (
        <figure key={file.name}>
          <figcaption>
            <Text of={steps.find(({ index }) => index === file.step_index)?.name ?? file.name} />{" "}
            {!file.deleted_at && (
              <>
                <Download path={pathOf(run, file)} name={file.name} isAtHub={Boolean(run.cell)}>
                  CSV
                </Download>{" "}
                <span class="note">channels of the sensor, in its unit</span>
              </>
            )}
          </figcaption>
          {file.deleted_at ? (
            <p class="note">Retention removed this series.</p>
          ) : (
            <SeriesPlot path={pathOf(run, file)} />
          )}
        </figure>
      ))}
    </Section>
  );
}

function isSweep(type: RunFile["type"], step: number | null | undefined, name: string): boolean {
  return type === "measurement" && step != null && name.endsWith("cl_sweep.csv");
}

function pathOf(run: Run, { name }: RunFile): string {
  return `/runs/${run.id}/files/${encodeURIComponent(name)}`;
}

function SeriesPlot({ path }: { path: string }) {
  const series = useResource<Series>(path, async (signal) =>
    parseSeries(await (await apiFetch(path, { signal })).text()),
  );
  return <Loaded of={series}>{(data) => (hasValue(data) ? <Plot series={data} /> : <NoValue />)}</Loaded>;
}

function hasValue({ columns: [, ...channels] }: Series): boolean {
  return channels.some((values) => values.some((value) => value !== null));
}

function NoValue() {
  return <p class="note">No channel measured a value.</p>;
}

const HEIGHT_PX = 200;

function Plot({ series }: { series: Series }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    return drawLines(box.current as HTMLDivElement, series.columns, series.channels, HEIGHT_PX);
  }, [series]);
  const text = `${series.channels.length} channels with ${series.columns[0].length} samples`;
  return <div class="plot" ref={box} role="img" aria-label={text} />;
}
