export function ProgramsPage() {
  return <h1>Programs</h1>;
}
