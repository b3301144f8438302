// Ends a start on a Node that is too old, before anything is installed, compiled or loaded. Import it first, and import what needs a newer
// Node only behind it. No imports and no recent syntax here: an old Node must be able to read it. package.json's `engines` says the same.
const LEAST = [20, 15];

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
  console.error(`inspection-service needs Node ${LEAST.join(".")} or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}
