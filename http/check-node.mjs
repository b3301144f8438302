// Refuses a Node that is too old, before anything is installed, compiled or loaded. Import this file first. It has no imports and no recent
// syntax, so that an old Node can read it. The same version stands in package.json's `engines`.
const LEAST = [20, 19];

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
  console.error(`inspection-service needs Node ${LEAST.join(".")} or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}
