export function RunPage({ runId }: { runId: string }) {
  return <h1>Run {runId}</h1>;
}
