// Refuses a Node that is not supported, before anything is installed, compiled or loaded. Import this file first. It has no imports and no recent
// syntax, so that an old Node can read it. The console can only be built on these versions. package.json's `engines` lists them too.
const [major, minor] = process.versions.node.split(".").map(Number);
if (!(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19))) {
  console.error(
    `inspection-service needs Node 20.19 or newer 20.x, or 22.12 or newer; this is Node ${process.versions.node}.`,
  );
  process.exit(1);
}
