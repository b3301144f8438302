export function ProgramPage({ programId }: { programId: string }) {
  return <h1>Program {programId}</h1>;
}
